"""`inspect_patch` over the wire: every result and example of its contract."""

from pathlib import Path

import pytest

from tests.support.mcp_agent import Agent


def test_inspect_single_file(agent: Agent) -> None:
    patch = "--- config.py\n+++ config.py\n@@ -1,2 +1,3 @@\n DEBUG = False\n+VERBOSE = True\n PORT = 8000\n"
    result = agent.done("inspect_patch", patch=patch)
    assert result.structured == {
        "success": True,
        "valid": True,
        "files": [{"source": "config.py", "target": "config.py", "hunks": 1, "lines_added": 1, "lines_removed": 0}],
        "summary": {"total_files": 1, "total_hunks": 1, "total_lines_added": 1, "total_lines_removed": 0},
        "message": "Patch analysis complete",
    }


def test_inspect_multiple_files(agent: Agent) -> None:
    patch = (
        "--- file1.py\n+++ file1.py\n@@ -1,1 +1,1 @@\n-old\n+new\n"
        "--- file2.py\n+++ file2.py\n@@ -1,1 +1,2 @@\n existing\n+added\n"
    )
    result = agent.done("inspect_patch", patch=patch)
    assert result.structured["files"] == [
        {"source": "file1.py", "target": "file1.py", "hunks": 1, "lines_added": 1, "lines_removed": 1},
        {"source": "file2.py", "target": "file2.py", "hunks": 1, "lines_added": 1, "lines_removed": 0},
    ]
    assert result.structured["summary"] == {
        "total_files": 2,
        "total_hunks": 2,
        "total_lines_added": 2,
        "total_lines_removed": 1,
    }


def test_inspect_invalid_patch(agent: Agent) -> None:
    for patch in ("this is no patch\n", "@@ -1 +1 @@\n-a\n+b\n"):
        result = agent.call("inspect_patch", patch=patch)
        assert result.refused
        assert (
            result.structured.items()
            >= {
                "success": False,
                "valid": False,
                "error": "Invalid patch format: missing --- header at line 1",
                "error_type": "invalid_patch",
                "message": "Patch is not valid",
            }.items()
        )


MISCOUNTED = {
    "inspect": (
        "--- config.py\n+++ config.py\n@@ -1,3 +1,4 @@\n DEBUG = False\n+VERBOSE = True\n PORT = 8000\n",
        ("config.py", 1, 0),
        "@@ -1,2 +1,3 @@",
    ),
    "validate": (
        (
            "--- server.py\n+++ server.py\n@@ -10,7 +10,7 @@\n def start_server():\n     config = load_config()\n"
            "-    port = config['port']\n+    port = config.get('port', 8080)\n     app.run(port=port)\n"
        ),
        ("server.py", 1, 1),
        "@@ -10,4 +10,4 @@",
    ),
    "revert": (
        (
            "--- utils.py\n+++ utils.py\n@@ -5,7 +5,7 @@\n def process():\n-    return old_method()\n"
            "+    return new_method()\n"
        ),
        ("utils.py", 1, 1),
        "@@ -5,2 +5,2 @@",
    ),
}
"""The worked examples of the contract whose headers count wrong: the patch, what it does, and the right header."""


@pytest.mark.parametrize(("patch", "does", "header"), MISCOUNTED.values(), ids=MISCOUNTED.keys())
def test_examples_of_the_contract_as_printed_are_analyzed_with_a_note_on_their_headers(
    agent: Agent, patch: str, does: tuple[str, int, int], header: str
) -> None:
    name, added, removed = does
    result = agent.done("inspect_patch", patch=patch)
    assert {**result.structured, "notes": None} == {
        "success": True,
        "valid": True,
        "files": [{"source": name, "target": name, "hunks": 1, "lines_added": added, "lines_removed": removed}],
        "summary": {
            "total_files": 1,
            "total_hunks": 1,
            "total_lines_added": added,
            "total_lines_removed": removed,
        },
        "message": "Patch analysis complete",
        "notes": None,
    }
    assert result.notes == (
        f"apply_patch will want the right header. By its lines, the header at line 3 of the patch is {header}; context "
        "counts as old and new."
    )


def test_miscounted_hunks_of_many_files_are_told_apart(agent: Agent) -> None:
    # With the next file's headers, the hunk of config.py would have as many lines as its header counts.
    patches = [MISCOUNTED[name][0] for name in ("validate", "revert", "inspect")]
    for between in ("", "\n", "diff --git a/x b/x\n"):
        result = agent.done("inspect_patch", patch=between.join(patches))
        assert [file["target"] for file in result.structured["files"]] == ["server.py", "utils.py", "config.py"]
        assert result.structured["summary"] == {
            "total_files": 3,
            "total_hunks": 3,
            "total_lines_added": 3,
            "total_lines_removed": 2,
        }
        assert result.notes.startswith("apply_patch will want the right headers of 3 hunks. By its lines, the header ")


def test_removed_and_added_lines_that_look_like_headers_stay_in_their_hunk(agent: Agent) -> None:
    patch = "--- f\n+++ f\n@@ -1,9 +1,9 @@\n x\n--- old option\n+++ new option\n y\n"
    result = agent.done("inspect_patch", patch=patch)
    assert result.structured["files"] == [
        {"source": "f", "target": "f", "hunks": 1, "lines_added": 1, "lines_removed": 1}
    ]


def test_files_of_a_git_diff_are_reported_without_prefixes(agent: Agent) -> None:
    patch = (
        "diff --git a/src/a.py b/src/a.py\nindex 0123abc..4567def 100644\n"
        "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@ def f():\n x\n-old\n+new\n@@ -9 +9 @@\n-9\n+nine\n"
        "diff --git a/b.py b/b.py\nindex 0000000..4567def\n--- /dev/null\n+++ b/b.py\n@@ -0,0 +1 @@\n+x\n"
    )
    result = agent.done("inspect_patch", patch=patch)
    assert [(file["source"], file["target"], file["hunks"]) for file in result.structured["files"]] == [
        ("src/a.py", "src/a.py", 2),
        ("/dev/null", "b.py", 1),
    ]


def test_empty_patch_has_no_files(agent: Agent) -> None:
    result = agent.done("inspect_patch", patch="")
    assert result.structured["files"] == []
    assert result.structured["summary"]["total_hunks"] == 0


def test_fault_in_any_part_is_found(agent: Agent) -> None:
    good = "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n"
    for bad in ("--- g\n@@ -1 +1 @@\n-a\n+b\n", "--- g\n+++ g\n@@ -1 +1 @@\na\n+b\n", "stray words\n", "--- g\n"):
        assert agent.call("inspect_patch", patch=good + bad).structured["valid"] is False
        assert agent.call("inspect_patch", patch=good + bad + good).structured["valid"] is False


MODIFIED = "diff --git a/c.py b/c.py\nindex 0123abc..4567def 100644\n--- a/c.py\n+++ b/c.py\n@@ -1 +1 @@\n-x\n+y\n"
ADDED = (
    "diff --git a/n.py b/n.py\nnew file mode 100644\nindex 0000000..4567def\n"
    "--- /dev/null\n+++ b/n.py\n@@ -0,0 +1 @@\n+x\n"
)
REMOVED = (
    "diff --git a/o.py b/o.py\ndeleted file mode 100644\nindex 4567def..0000000\n"
    "--- a/o.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
)


def test_added_and_deleted_files_of_a_git_diff_are_reported_and_others_applied(agent: Agent, folder: Path) -> None:
    for patch in (ADDED + MODIFIED + REMOVED, REMOVED + ADDED + MODIFIED, MODIFIED + ADDED + REMOVED):
        for ending in ("\n", "\r\n"):
            result = agent.done("inspect_patch", patch=patch.replace("\n", ending))
            files = {(file["source"], file["target"]) for file in result.structured["files"]}
            assert files == {("/dev/null", "n.py"), ("c.py", "c.py"), ("o.py", "/dev/null")}
        for name in ("c.py", "o.py"):
            (folder / name).write_text("x\n")
        agent.done("apply_patch", file_path=str(folder / "c.py"), patch=patch)
        assert (folder / "c.py").read_text() == "y\n"
        refused = agent.call("apply_patch", file_path=str(folder / "o.py"), patch=patch)
        assert refused.structured["error"] == "Invalid patch format: it deletes the file; use delete_file"
        assert agent.call("edit_file_diff", path=str(folder / "o.py"), diff=REMOVED).refused
        assert (folder / "o.py").read_text() == "x\n"


def test_mode_that_contradicts_the_headers_is_refused(agent: Agent) -> None:
    for patch in (
        MODIFIED.replace("index", "new file mode 100644\nindex"),
        ADDED.replace("new file", "deleted file"),
        REMOVED.replace("deleted file", "new file"),
    ):
        assert "only changes to lines" in agent.call("inspect_patch", patch=patch).structured["error"]


RENAMED = "diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\n"
EMPTY = "diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n"


def test_parts_that_no_tool_applies_are_listed_with_the_reason(agent: Agent, folder: Path) -> None:
    (folder / "c.py").write_text("x\n")
    (folder / "old").write_text("x\n")
    patch = RENAMED + EMPTY + MODIFIED + "-- \n2.40.0\n"
    result = agent.done("inspect_patch", patch=patch)
    files = [tuple(file.values()) for file in result.structured["files"]]
    assert files == [("old", "new", 0, 0, 0), ("/dev/null", "e", 0, 0, 0), ("c.py", "c.py", 1, 1, 1)]
    assert result.notes == (
        "new: no patch tool applies this part; only changes to lines can be applied, not 'rename from old' at line 3."
    )
    for name, reason in (("old", "not 'rename from old' at line 3"), ("e", "it creates a file; use write_file")):
        (folder / name).touch()
        refused = agent.call("apply_patch", file_path=str(folder / name), patch=patch)
        assert reason in refused.structured["error"]
        assert refused.structured["error_type"] == "invalid_patch"
    agent.done("validate_patch", file_path=str(folder / "c.py"), patch=patch)
    agent.done("apply_patch", file_path=str(folder / "c.py"), patch=patch)
    assert (folder / "c.py").read_text() == "y\n"
    agent.done("revert_patch", file_path=str(folder / "c.py"), patch=patch)
    assert (folder / "c.py").read_text() == "x\n"


def test_copied_file_is_not_changed_by_its_copy(agent: Agent, folder: Path) -> None:
    (folder / "c.py").write_text("x\n")
    copy = "diff --git a/c.py b/d.py\ncopy from c.py\ncopy to d.py\n--- a/c.py\n+++ b/d.py\n@@ -1 +1 @@\n-x\n+z\n"
    agent.done("apply_patch", file_path=str(folder / "c.py"), patch=copy + MODIFIED)
    assert (folder / "c.py").read_text() == "y\n"


def test_files_that_git_quotes_are_reported_unquoted_and_patched(agent: Agent, folder: Path) -> None:
    names = ["b.txt", "é.txt", 'tab\t"quotes".txt']
    for name in names:
        (folder / name).write_text("one\ntwo\n")
    patch = "".join(
        f"diff --git {source} {target}\n--- {source}\n+++ {target}\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n"
        for source, target in (
            ("a/b.txt", "b/b.txt"),
            ('"a/\\303\\251.txt"', '"b/\\303\\251.txt"'),
            ('"a/tab\\t\\"quotes\\".txt"', '"b/tab\\t\\"quotes\\".txt"'),
        )
    )
    files = agent.done("inspect_patch", patch=patch).structured["files"]
    assert [(file["source"], file["target"]) for file in files] == [(name, name) for name in names]
    for name in names:
        agent.done("validate_patch", file_path=str(folder / name), patch=patch)
        agent.done("apply_patch", file_path=str(folder / name), patch=patch)
        assert (folder / name).read_text() == "one\nTWO\n"


_LINK = (
    "diff --git a/l b/l\nnew file mode 120000\nindex 0000000..1de5659\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+target\n"
)
_OTHER_LINK = "diff --git a/l b/l\nindex 1de5659..4dd1ef7 120000\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-target\n+f.txt\n"
_NO_LINK = (
    "diff --git a/l b/l\ndeleted file mode 120000\nindex 1de5659..0000000\n"
    "--- a/l\n+++ /dev/null\n@@ -1 +0,0 @@\n-target\n"
)
_MODULE = (
    "diff --git a/m b/m\nindex 1de5659..4dd1ef7 160000\n--- a/m\n+++ b/m\n"
    "@@ -1 +1 @@\n-Subproject commit 1\n+Subproject commit 2\n"
)


@pytest.mark.parametrize(
    ("special", "name", "what"),
    [
        (_LINK, "l", "a symbolic link"),
        (_OTHER_LINK, "l", "a symbolic link"),
        (_NO_LINK, "l", "a symbolic link"),
        (_MODULE, "m", "a submodule"),
    ],
)
def test_links_and_submodules_are_no_lines_and_hinder_no_other_part(
    agent: Agent, folder: Path, special: str, name: str, what: str
) -> None:
    file = "diff --git a/f.txt b/f.txt\n--- a/f.txt\n+++ b/f.txt\n@@ -1 +1 @@\n-a\n+b\n"
    (folder / "f.txt").write_text("a\n")
    reason = f"only changes to lines of files can be applied, not to {what} at line 2"
    notes = agent.done("inspect_patch", patch=special + file).structured["notes"]
    assert f"{name}: no patch tool applies this part; {reason}." in notes
    refused = agent.call("apply_patch", file_path=str(folder / name), patch=special)
    assert "write_file" not in refused.text
    agent.done("apply_patch", file_path=str(folder / "f.txt"), patch=special + file)
    assert (folder / "f.txt").read_text() == "b\n"
