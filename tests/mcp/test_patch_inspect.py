"""`inspect_patch` over the wire: every result and example of its document."""

from tests.mcp.agent import Agent


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
    assert result.text == "Patch analysis complete\nfile1.py: +1 -1\nfile2.py: +1 -0"


def test_inspect_invalid_patch(agent: Agent) -> None:
    result = agent.call("inspect_patch", patch="this is no patch\n")
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


def test_the_example_as_printed_counts_its_lines_wrongly(agent: Agent) -> None:
    patch = "--- config.py\n+++ config.py\n@@ -1,3 +1,4 @@\n DEBUG = False\n+VERBOSE = True\n PORT = 8000\n"
    assert agent.call("inspect_patch", patch=patch).structured["error_type"] == "invalid_patch"


def test_files_of_a_git_diff_are_named_as_paths(agent: Agent) -> None:
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


def test_an_empty_patch_has_no_files(agent: Agent) -> None:
    result = agent.done("inspect_patch", patch="")
    assert result.structured["files"] == []
    assert result.structured["summary"]["total_hunks"] == 0


def test_a_fault_in_any_file_is_found(agent: Agent) -> None:
    good = "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n"
    for bad in ("--- g\n@@ -1 +1 @@\n-a\n+b\n", "--- g\n+++ g\n@@ -1,2 +1 @@\n-a\n+b\n", "stray words\n", "--- g\n"):
        assert agent.call("inspect_patch", patch=good + bad).structured["valid"] is False
        assert agent.call("inspect_patch", patch=good + bad + good).structured["valid"] is False
