"""Known attacks against the running server neither read nor write a byte outside the allowed directories.

They include the two advisories of the official filesystem server: GHSA-hc55-p739-j48w, a sibling directory whose name
starts with the name of the allowed one, and GHSA-q66q-fx2p-7w4m, a link that leads out.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from objstore import CallInfo, Workspace, check_store
from tests.support.faulty_disk import WHOLE
from tests.support.mcp_agent import Agent, Result, connected

PRIVATE = "guessed\nthe secret\n"
ROUNDS = 16 if WHOLE else 4
"""How many times every call is made while folders are swapped: `make crash` takes the larger number."""

FOLDER_SWAPPER = """
import os, shutil, sys
inside, aside, outside = sys.argv[1:]
swaps = 0
while not os.path.exists(aside + ".stop"):
    try:
        os.rename(inside, aside)
    except FileNotFoundError:
        os.mkdir(inside)  # the server removed a folder that it had created, just as this one replaced it
        continue
    try:
        os.symlink(outside, inside)
        os.unlink(inside)
        swaps += 1
    except FileExistsError:
        pass  # the server was faster, and has created the folder again
    while os.path.exists(aside):
        try:
            os.rename(aside, inside)
        except OSError:
            shutil.rmtree(inside, ignore_errors=True)
print(swaps)
"""
"""Replace a folder with a link to another one and back, repeatedly."""

FILE_SWAPPER = """
import os, sys
inside, aside, outside = sys.argv[1:]
swaps = 0
while not os.path.exists(aside + ".stop"):
    os.symlink(outside, aside)
    os.replace(aside, inside)
    with open(aside, "w") as file:
        file.write("mine\\n")
    os.replace(aside, inside)
    swaps += 1
print(swaps)
"""
"""Replace a file with a link to another one and back, repeatedly."""


@pytest.fixture
def outside(agent: Agent) -> Iterator[Path]:
    """Return a folder outside with a secret file; check afterwards that the folder is unchanged."""
    outside = agent.root.with_name(f"{agent.root.name}-evil")
    outside.mkdir(exist_ok=True)
    (outside / "file.txt").write_text(PRIVATE)
    os.utime(outside / "file.txt", (1, 1))
    yield outside
    assert [path.name for path in outside.iterdir()] == ["file.txt"]
    assert (outside / "file.txt").read_text() == PRIVATE
    assert (outside / "file.txt").stat().st_mtime == 1


@contextmanager
def swapping(program: str, inside: Path, outside: Path) -> Iterator[None]:
    """Let another process replace `inside` with a link to `outside` and back, repeatedly."""
    aside = inside.with_name(f"{inside.name}.aside")
    with subprocess.Popen(
        [sys.executable, "-c", program, str(inside), str(aside), str(outside)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield
        finally:
            stop = aside.with_name(f"{aside.name}.stop")
            stop.touch()
            swaps, _ = process.communicate()
            stop.unlink()
    assert process.returncode == 0
    assert int(swaps) > ROUNDS


def calls(file: Path, inside: Path) -> list[tuple[str, dict[str, object]]]:
    """Return a call of every kind that reads or writes a file, or the folder it is in."""
    path, folder = str(file), str(file.parent)
    edits = [{"old_string": "guessed", "new_string": "known"}]
    diff = "--- f\n+++ f\n@@ -1 +1 @@\n-guessed\n+known\n"
    return [
        ("read_file", {"path": path}),
        ("read_text_file", {"path": path}),
        ("read_multiple_files", {"paths": [path]}),
        ("read_file_by_keyword", {"path": path, "keyword": "guessed", "after": 1}),
        ("grep_files", {"path": folder, "keyword": "secret"}),
        ("search_files", {"path": folder, "pattern": "*"}),
        ("directory_tree", {"path": str(inside)}),
        ("list_directory", {"path": folder}),
        ("get_file_info", {"path": path}),
        ("write_file", {"path": path, "content": "mine\n"}),
        ("write_file", {"path": str(file.with_name("new.txt")), "content": "mine\n"}),
        ("multi_edit_text_file", {"path": path, "edits": edits}),
        ("edit_file_diff", {"path": path, "diff": diff}),
        ("apply_patch", {"file_path": path, "patch": diff}),
        ("backup_file", {"file_path": path}),
        ("generate_patch", {"original_file": path, "modified_file": str(inside / "other.txt")}),
        ("create_directory", {"path": str(file.with_name("made"))}),
        ("move_file", {"source": path, "destination": str(inside / "taken.txt")}),
        ("move_file", {"source": str(inside / "other.txt"), "destination": str(file.with_name("moved.txt"))}),
        ("delete_file", {"path": path}),
    ]


def text_of(results: list[Result]) -> str:
    return "\n".join(f"{result.texts} {result.structured}" for result in results)


def test_folder_swapped_for_a_link_during_calls_exposes_and_changes_nothing(
    agent: Agent, folder: Path, outside: Path
) -> None:
    inside = folder / "sub"
    inside.mkdir()
    results: list[Result] = []
    with swapping(FOLDER_SWAPPER, inside, outside):
        for _ in range(ROUNDS):
            (folder / "other.txt").write_text("mine\n")
            results += agent.call_concurrently(calls(inside / "file.txt", folder))
    assert "the secret" not in text_of(results)
    assert not (folder / "taken.txt").exists() or (folder / "taken.txt").read_text() == "mine\n"
    assert {result.refused for result in results} == {True, False}


def test_file_swapped_for_a_link_during_calls_exposes_and_changes_nothing(
    agent: Agent, folder: Path, outside: Path
) -> None:
    file = folder / "file.txt"
    file.write_text("mine\n")
    wanted = [(tool, given) for tool, given in calls(file, folder) if tool not in {"delete_file", "move_file"}]
    results: list[Result] = []
    with swapping(FILE_SWAPPER, file, outside / "file.txt"):
        for _ in range(ROUNDS):
            results += agent.call_concurrently(wanted)
    assert "the secret" not in text_of(results)
    assert {result.refused for result in results} == {True, False}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_folder_swapped_for_a_link_does_not_lead_out_of_the_roots(tmp_path: Path, mode: str) -> None:
    root = tmp_path.resolve() / "workspace"
    inside, hidden = root / "allowed" / "sub", root / "hidden"
    inside.mkdir(parents=True)
    hidden.mkdir()
    (hidden / "file.txt").write_text(PRIVATE)
    results: list[Result] = []
    with (
        connected(root, mode=mode, client_roots=lambda: [(root / "allowed").as_uri()]) as agent,
        swapping(FOLDER_SWAPPER, inside, hidden),
    ):
        for _ in range(max(2, ROUNDS // 4)):
            (root / "allowed" / "other.txt").write_text("mine\n")
            results += agent.call_concurrently(calls(inside / "file.txt", root / "allowed"))
    assert "the secret" not in text_of(results)
    assert [path.name for path in hidden.iterdir()] == ["file.txt"]
    assert (hidden / "file.txt").read_text() == PRIVATE


@pytest.fixture
def swapped(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """Return a directory to serve, and a workspace outside; check afterwards that the latter is unchanged."""
    root, outside = tmp_path.resolve() / "ws", tmp_path.resolve() / "evil"
    for folder in (root, outside):
        folder.mkdir()
        (folder / "other.txt").write_text("mine\n")
    (outside / "file.txt").write_text(PRIVATE)
    with Workspace.init(outside) as workspace, workspace.call(CallInfo(tool="secret tool")) as call:
        call.write("secret.txt", PRIVATE.encode())
        call.commit()
    before = content_of(outside)
    yield root, outside
    assert content_of(outside) == before


def content_of(folder: Path) -> dict[str, bytes]:
    # SQLite creates and removes the auxiliary files of an index whenever it is read.
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in {".sqlite-wal", ".sqlite-shm"}]
    return {str(path): path.read_bytes() for path in files}


def calls_on_root(base: Path) -> list[tuple[str, dict[str, object]]]:
    """Return a call of every kind on a root, or below it."""
    history_calls: list[tuple[str, dict[str, object]]] = [("list_edits", {}), ("show_edit", {"edit": 1}), ("Undo", {})]
    return [*calls(base / "file.txt", base), *history_calls]


SERVED = ["given", "legacy", "2026-07-28"]
"""How the directory is served: from the command line, or as a root, with each protocol version."""


@contextmanager
def serving(root: Path, how: str) -> Iterator[Agent]:
    given = how == "given"
    with connected(
        root,
        served=[root] if given else [],
        mode="auto" if given else how,
        client_roots=None if given else lambda: [root.as_uri()],
    ) as agent:
        yield agent


@pytest.mark.parametrize(
    ("how", "has_written"),
    [(how, written) for at, how in enumerate(SERVED) for written in (False, True) if WHOLE or written is (at != 1)],
)
def test_served_directory_replaced_by_a_link_exposes_and_changes_nothing(
    swapped: tuple[Path, Path], how: str, *, has_written: bool
) -> None:
    root, outside = swapped
    with serving(root, how) as agent:
        agent.done("read_file", path="other.txt")
        if has_written:
            agent.done("write_file", path="other.txt", content="mine too\n")
        root.rename(root.with_name("away"))
        root.symlink_to(outside)
        for base in (Path(), root):
            for tool, given in calls_on_root(base):
                result = agent.call(tool, **given)
                assert result.refused or result.structured.get("failed") == 1, (tool, result.structured)
                assert "secret" not in text_of([result])
        root.unlink()
        root.mkdir()  # the server now serves the new folder
        (root / "file.txt").write_text("guessed\n")
        assert agent.done("read_file", path="file.txt").texts[0] == "guessed\n"
        agent.done("write_file", path=str(root / "file.txt"), content="known\n")


@pytest.mark.parametrize("how", SERVED)
def test_link_in_place_of_a_served_directory_is_reported_as_a_symlink(swapped: tuple[Path, Path], how: str) -> None:
    root, outside = swapped
    with serving(root, how) as agent:
        agent.done("read_file", path="other.txt")
        root.rename(root.with_name("away"))
        root.symlink_to(outside)
        for tool in ("read_file", "delete_file"):
            error = agent.call(tool, path="other.txt").error
            assert (error["type"], str(root) in error["message"]) == ("symlink_error", True)


@pytest.mark.parametrize("how", SERVED)
def test_served_directory_swapped_for_a_link_during_calls_exposes_and_changes_nothing(
    swapped: tuple[Path, Path], how: str
) -> None:
    root, outside = swapped
    (root / "file.txt").write_text("guessed\n")
    results: list[Result] = []
    with serving(root, how) as agent:
        agent.done("read_file", path="other.txt")
        with swapping(FOLDER_SWAPPER, root, outside):
            for _ in range(ROUNDS // 2):
                results += agent.call_concurrently([*calls_on_root(Path()), *calls_on_root(root)])
    assert "secret" not in text_of(results)


def test_sibling_whose_name_starts_with_the_allowed_name_is_refused(agent: Agent, outside: Path) -> None:
    results = agent.call_concurrently(calls(outside / "file.txt", outside))
    assert {result.refused for result in results} == {True, False}
    several = [result for result in results if not result.refused]
    assert [result.structured["failed"] for result in several] == [
        1
    ]  # read_multiple_files reports each file separately
    assert "the secret" not in text_of(results)


@pytest.mark.parametrize(
    "target", ["{outside}", "{outside}/file.txt", "../{name}/file.txt", "chain", "/proc/self/root{outside}"]
)
def test_link_that_leads_out_exposes_and_changes_nothing(
    agent: Agent, folder: Path, outside: Path, target: str
) -> None:
    (folder / "chain").symlink_to(outside)
    inside = folder / "link"
    inside.symlink_to(target.format(outside=outside, name=outside.name))
    (folder / "other.txt").write_text("mine\n")
    for file in (inside / "file.txt", inside):
        results = agent.call_concurrently(calls(file, folder))
        assert "the secret" not in text_of(results)
    assert inside.is_symlink()


@pytest.mark.parametrize("name", ["../{name}/file.txt", "{outside}/file.txt", "a/../../{name}/file.txt", "/dev/null"])
def test_paths_in_patches_and_backups_do_not_lead_out(agent: Agent, folder: Path, outside: Path, name: str) -> None:
    escaping = name.format(name=outside.name, outside=outside)
    (folder / "file.txt").write_text("mine\n")
    patch = f"--- {escaping}\n+++ {escaping}\n@@ -1 +1 @@\n-guessed\n+known\n"
    for tool, arguments in (
        ("apply_patch", {"file_path": str(folder / "file.txt"), "patch": patch}),
        ("edit_file_diff", {"path": str(folder / "file.txt"), "diff": patch}),
        ("apply_patches", {"strategy": "atomic", "patches": [{"file_path": escaping, "patch": patch}]}),
        ("restore_backup", {"backup_file": f"{escaping}.backup.20260101_000000", "force": True}),
        ("restore_backup", {"backup_file": str(folder / "file.txt"), "target_file": escaping, "force": True}),
        ("backup_file", {"file_path": escaping}),
    ):
        assert agent.call(tool, **arguments).refused
    assert (folder / "file.txt").read_text() == "mine\n"


@pytest.mark.parametrize(
    "name", [".CAS", ".ca\u017f", "\uff0ecas", ".cas\u200b", ".c\u0061\u0301s/../.cas", "./.cas/."]
)
def test_no_variant_of_the_stores_name_reaches_the_store(agent: Agent, folder: Path, name: str) -> None:
    agent.done("write_file", path=str(folder / "file.txt"), content="so that there is a store\n")
    before = sorted(path.name for path in (agent.root / ".cas").iterdir())
    results = agent.call_concurrently(calls(agent.root / name / "index.sqlite", folder))
    for result in results:
        assert "SQLite format" not in str(result.structured)
    assert sorted(path.name for path in (agent.root / ".cas").iterdir()) == before


def test_hard_links_to_files_of_the_store_are_refused(tmp_path: Path) -> None:
    with connected(tmp_path) as agent:
        agent.done("write_file", path="a", content="one\n")
        names = {"log": ".cas/segments/00000001.seg", "sub/.gitignore": ".cas/.gitignore"}
        (tmp_path / "sub").mkdir()
        for name, inner in names.items():
            (tmp_path / name).hardlink_to(tmp_path / inner)
        before = {name: (tmp_path / name).read_bytes() for name in names}
        for name in names:
            for tool, arguments in (
                ("read_file", {"path": name}),
                ("read_text_file", {"path": name}),
                ("get_file_info", {"path": name}),
                ("grep_files", {"path": name, "keyword": "o"}),
                ("write_file", {"path": name, "content": "mine\n"}),
                ("move_file", {"source": name, "destination": "elsewhere"}),
                ("delete_file", {"path": name}),
            ):
                result = agent.call(tool, **arguments)
                assert result.error["type"] == "permission_denied", (tool, result.text)
                assert "reserved for the store" in result.texts[1], tool
            assert agent.call("backup_file", file_path=name).refused
        assert {name: (tmp_path / name).read_bytes() for name in names} == before
        assert not (tmp_path / "elsewhere").exists()
        agent.done("write_file", path="a", content="two\n")
        assert not check_store(str(tmp_path)).faults
