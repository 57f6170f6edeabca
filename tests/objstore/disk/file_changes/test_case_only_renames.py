"""Renames that change only the case of a name, on a real mount of a file system that ignores case."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from objstore import Action, CallInfo, CasError, Unit, Workspace
from tests.support.case_insensitive_mount import can_mount, case_insensitive_folder
from tests.support.command_runner import CommandRunner, cas
from tests.support.faulty_disk import WHOLE, CountdownDisk, PowerCut, UnsyncedDisk, broken_disk, power_cut
from tests.support.hooked_agents import ClaudeCode
from tests.support.sampling import sampled_product

pytestmark = pytest.mark.skipif(not can_mount(), reason="needs root, mount and /dev/fuse")


@pytest.fixture(params=[True, False] if WHOLE else [True], ids=lambda does: "decomposing" if does else "composing")
def mount(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    with case_insensitive_folder(tmp_path / "backing", tmp_path / "mount", decomposes=request.param) as folder:
        yield folder


@pytest.fixture
def project(mount: Path) -> Path:
    """Return a workspace with a folder of two files on the mount, recorded."""
    (mount / "w/src").mkdir(parents=True)
    (mount / "w/src/Main.py").write_text("a\nb\n")
    (mount / "w/src/o.py").write_text("o\n")
    assert cas("init", folder=mount / "w").status == 0
    assert cas("record", folder=mount / "w").status == 0
    return mount / "w"


def files(folder: Path) -> dict[str, str]:
    """Return the text of each file, by its path as it is on disk."""
    found = (path for path in folder.rglob("*") if path.is_file() and ".cas" not in path.parts)
    return {str(path.relative_to(folder)): path.read_text() for path in found}


def done(folder: Path, *words: str) -> str:
    ran = cas(*words, folder=folder)
    assert (ran.status, ran.err) == (0, b""), ran
    return ran.text


CALL = CallInfo(tool="write_file", conversation="conv_one")

RENAMES = {
    "file": "mv src/Main.py t && mv t src/main.py",
    "file with a change": "mv src/Main.py t && mv t src/main.py && echo c >> src/main.py",
    "folder": "mv src t && mv t Src",
    "file and then a folder": "rm src/Main.py && mkdir -p src/main.py/deep && echo 1 > src/main.py/deep/x",
    "two files that swap names": "mv src/Main.py t && mv src/o.py src/main.py && mv t src/O.py",
    "two files in a row": "mv src/o.py src/p.py && mv src/Main.py t && mv t src/O.py",
    "folder and file with a change": "mv src t && mv t SRC && mv SRC/o.py t && mv t SRC/O.py && echo c >> SRC/O.py",
}

WAYS = {"snapshot": ("snapshot", "restore", "2"), "rewind": ("rewind", "1", "--exact", "--yes")}


@pytest.mark.parametrize("command", RENAMES.values(), ids=RENAMES.keys())
def test_rejecting_a_case_only_rename_gives_the_old_spelling_and_undo_the_new(project: Path, command: str) -> None:
    before = files(project)
    agent = ClaudeCode(project)
    agent.start()
    agent.ask("rename it")
    agent.run(command)
    agent.stop()
    after = files(project)
    assert after != before
    assert done(project, "record") == "Nothing changed.\n"
    for _ in range(2):
        done(project, "reject", "--turn", "1")
        assert files(project) == before
        assert done(project, "record") == "Nothing changed.\n"
        done(project, "undo")
        assert files(project) == after
        assert done(project, "record") == "Nothing changed.\n"
    done(project, "fsck")


def test_a_tool_renames_a_file_to_another_case(project: Path) -> None:
    runner = CommandRunner.__new__(CommandRunner)
    runner.folder = project
    runner.move("src/Main.py", "src/main.py")
    assert files(project) == {"src/main.py": "a\nb\n", "src/o.py": "o\n"}
    done(project, "reject", "1")
    assert files(project) == {"src/Main.py": "a\nb\n", "src/o.py": "o\n"}


def test_a_file_of_another_name_is_still_in_the_way(project: Path) -> None:
    runner = CommandRunner.__new__(CommandRunner)
    runner.folder = project
    with pytest.raises(CasError):
        runner.move("src/Main.py", "src/O.py")
    with pytest.raises(CasError):
        runner.move("src/Main.py", "SRC/Main.py")
    assert files(project) == {"src/Main.py": "a\nb\n", "src/o.py": "o\n"}


@pytest.mark.parametrize("failure", [power_cut, broken_disk])
def test_a_stop_at_any_step_of_a_case_only_rename_loses_no_file(
    project: Path, failure: Callable[[str], BaseException]
) -> None:
    names, stopped = {"main.py", "o.py"}, list[str]()
    done(project, "config", "set", "review.names", "off")  # what it keeps would move the steps
    with (
        Workspace.open(project, UnsyncedDisk()) as workspace,
        workspace.call(CALL) as call,
    ):
        call.move("src/Main.py", "src/main.py")
        call.commit()
    for steps in count():
        before = len(stopped)
        for _ in range(2):  # a rejection and an acceptance, if the first was made
            disk = CountdownDisk(steps, failure, lasting=False)
            with suppress(PowerCut, CasError), Workspace.open(project, disk) as workspace:
                edit = workspace.history.edit(1)
                action = Action.REJECT if edit.status.is_live else Action.ACCEPT
                workspace.decide(action, [Unit(edit.seq, 0)])
            stopped += [disk.failed] if disk.failed else []
            with (
                Workspace.open(project, UnsyncedDisk()) as workspace,
                workspace.call(CALL) as call,
            ):
                call.write("touch", b"")  # the next writer finishes what was recorded
                call.commit()
            assert {path.name.casefold() for path in (project / "src").iterdir()} == names
            assert (project / "src/main.py").read_text() == "a\nb\n"
        if len(stopped) == before:
            break
    assert "respell" in stopped


@pytest.mark.parametrize("failure", [power_cut, broken_disk])
@pytest.mark.parametrize("kind", ["two files that swap names", "file and then a folder"])
def test_a_stop_at_any_step_leaves_all_names_as_before_or_after(
    project: Path, kind: str, failure: Callable[[str], BaseException]
) -> None:
    done(project, "config", "set", "review.names", "off")  # what it keeps would move the steps
    (project / "touch").touch()
    before = files(project)
    agent = ClaudeCode(project)
    agent.ask("rename them")
    agent.run(RENAMES[kind])
    agent.stop()
    after = files(project)
    seen = set[bool]()
    for steps in count():
        disk = CountdownDisk(steps, failure, lasting=False)
        with suppress(PowerCut, CasError), Workspace.open(project, disk) as workspace:
            edits = [view for view in workspace.history.edits() if view.edit.path != b"touch"]
            action = Action.REJECT if edits[0].status.is_live else Action.ACCEPT
            workspace.decide(action, [Unit(view.seq, hunk) for view in edits for hunk in range(len(view.units))])
        with (
            Workspace.open(project, UnsyncedDisk()) as workspace,
            workspace.call(CALL) as call,
        ):
            call.write("touch", b"")  # the next writer finishes what was recorded
            call.commit()
        assert files(project) in (before, after)
        seen.add(files(project) == after)
        if not disk.failed:
            break
    assert seen == {True, False}


# Neither way puts a file in the place of a folder: a snapshot never does, and this mount doesn't tell since when what
# is in the folder exists.
@pytest.mark.parametrize(
    ("way", "kind"), sampled_product(list(WAYS), [kind for kind in RENAMES if kind != "file and then a folder"])
)
def test_a_restore_gives_the_old_spelling_and_reject_the_new(project: Path, way: str, kind: str) -> None:
    before = files(project)
    done(project, "snapshot", "create")
    agent = ClaudeCode(project)
    agent.start()
    agent.ask("rename it")
    agent.run(RENAMES[kind])
    agent.stop()
    after = files(project)
    done(project, *WAYS[way])
    assert files(project) == before
    assert done(project, "record") == "Nothing changed.\n"
    newest = cas("log", "--json", folder=project).lines()[0]["conversation_id"]
    done(project, "reject", "--conversation", newest)
    assert files(project) == after
    assert done(project, "record") == "Nothing changed.\n"
    done(project, "fsck")


def test_a_link_in_whose_place_a_folder_has_another_spelling_comes_back(project: Path) -> None:
    (project / "link").symlink_to("src")
    done(project, "record")
    agent = ClaudeCode(project)
    agent.ask("make it a folder")
    agent.run("rm link && mkdir Link && echo 1 > Link/x")
    agent.stop()
    for _ in range(2):
        done(project, "reject", "--turn", "1")
        assert [(path.name, str(path.readlink())) for path in project.glob("[lL]ink")] == [("link", "src")]
        done(project, "undo")
        assert files(project)["Link/x"] == "1\n"
    done(project, "fsck")


def test_links_get_another_case_and_their_old_one_back(project: Path) -> None:
    (project / "src/Link").symlink_to("Main.py")
    done(project, "record")
    done(project, "snapshot", "create")
    agent = ClaudeCode(project)
    agent.start()
    agent.ask("rename it")
    agent.run("mv src/Link t && mv t src/link")
    agent.stop()
    assert "link" in {path.name for path in (project / "src").iterdir()}
    done(project, "reject", "--turn", "1")
    assert {path.name for path in (project / "src").iterdir()} == {"Link", "Main.py", "o.py"}
    done(project, "undo")
    done(project, "snapshot", "restore", "2")
    assert {path.name for path in (project / "src").iterdir()} == {"Link", "Main.py", "o.py"}
    assert (project / "src/Link").readlink() == Path("Main.py")
