"""Files that come into sight while agents work, in each way in which a path becomes covered.

What such a file was before is not known, so what an agent may have changed in it awaits review.
"""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from objstore import AgentCall, CallInfo, EditView, FileMayBeOlder, Status, Workspace
from objstore.model.results import EXTERNAL_CALL
from objstore.review.calls.attribution import CANDIDATES, NOT_SEEN, WHY
from tests.support.git_repository import git, new_repository
from tests.support.scene import Scene

HIDDEN: Final = b"a person's line\n"

Way = tuple[Callable[[Path], object], Callable[[Path], object], str, str]
"""How a path is hidden and how it comes into sight, and its name before and after."""


def _wrote(name: str, text: str) -> Callable[[Path], object]:
    def write(root: Path) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return write


def _removed(name: str) -> Callable[[Path], object]:
    return lambda root: (root / name).unlink()


def _configured(*given: str) -> Callable[[Path], object]:
    return lambda root: git(root, "config", *given)


def _both(*acts: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda root: [act(root) for act in acts]


WAYS: Final[dict[str, Way]] = {
    ".gitignore is emptied": (_wrote(".gitignore", "*.local\n"), _wrote(".gitignore", ""), "x.local", "x.local"),
    ".gitignore is removed": (_wrote(".gitignore", "*.local\n"), _removed(".gitignore"), "x.local", "x.local"),
    "a rule takes it back": (
        _wrote(".gitignore", "*.local\n"),
        _wrote("d/.gitignore", "!x.local\n"),
        "d/x.local",
        "d/x.local",
    ),
    ".casignore is emptied": (_wrote(".casignore", "*.local\n"), _wrote(".casignore", ""), "x.local", "x.local"),
    "info/exclude is emptied": (
        _wrote(".git/info/exclude", "*.local\n"),
        _wrote(".git/info/exclude", ""),
        "x.local",
        "x.local",
    ),
    "core.excludesFile is unset": (
        _both(_wrote(".git/rules", "*.local\n"), lambda root: git(root, "config", "core.excludesFile", ".git/rules")),
        _configured("--unset", "core.excludesFile"),
        "x.local",
        "x.local",
    ),
    "core.ignorecase is unset": (
        _both(_wrote(".gitignore", "*.LOCAL\n"), _configured("core.ignorecase", "true")),
        _configured("core.ignorecase", "false"),
        "x.local",
        "x.local",
    ),
    "git add -f": (
        _wrote(".gitignore", "*.local\n"),
        lambda root: git(root, "add", "-f", "x.local"),
        "x.local",
        "x.local",
    ),
    "a setting is removed": (
        _wrote(".cas/config.toml", '[record]\nexclude = ["*.local"]\n'),
        _wrote(".cas/config.toml", ""),
        "x.local",
        "x.local",
    ),
    "a nested repository is one no more": (
        _both(lambda root: new_repository(root / "d"), _wrote("d/.git/info/exclude", "*.local\n")),
        _removed("d/.git/info/exclude"),
        "d/x.local",
        "d/x.local",
    ),
    "a nested repository is removed": (
        _both(lambda root: new_repository(root / "d"), _wrote("d/.git/info/exclude", "*.local\n")),
        lambda root: shutil.rmtree(root / "d/.git"),
        "d/x.local",
        "d/x.local",
    ),
    "a tag file is removed": (
        _wrote("d/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n"),
        _removed("d/CACHEDIR.TAG"),
        "d/x.local",
        "d/x.local",
    ),
    "it is renamed": (
        _wrote(".gitignore", "*.local\n"),
        lambda root: (root / "x.local").rename(root / "x.txt"),
        "x.local",
        "x.txt",
    ),
}


@pytest.fixture(params=[*WAYS.values()], ids=[*WAYS])
def way(request: pytest.FixtureRequest, scene: Scene) -> Way:
    """Return a way, in a workspace whose baseline leaves out a file that a person wrote."""
    hide, _, name, _ = request.param
    new_repository(scene.root)
    hide(scene.root)
    path = scene.root / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(HIDDEN)
    scene.workspace.record_changes(EXTERNAL_CALL)
    return request.param  # type: ignore[no-any-return]  # one of the parameters above


def shell(workspace: Workspace, *acts: Callable[[], object], number: int = 1) -> None:
    """Let an agent's shell do something."""
    call = AgentCall(conversation="s", id=str(number), tool="Bash", paths=None)
    workspace.hooks.begin(call)
    for act in acts:
        act()
    workspace.hooks.end(call)


def edits_of(scene: Scene, name: str) -> list[EditView]:
    """Return the edits of one path, after another look."""
    scene.workspace.hooks.notice(EXTERNAL_CALL)
    return [view for view in scene.workspace.history.edits() if os.fsdecode(view.edit.path) == name]


def appended(path: Path) -> Callable[[], object]:
    """Return what appends a line to a file."""

    def append() -> None:
        with path.open("ab") as file:
            file.write(b"an agent's line\n")

    return append


@pytest.mark.parametrize("order", ["at once", "in two calls", "a person shows it"])
def test_what_an_agent_may_have_changed_unseen_awaits_review(scene: Scene, way: Way, order: str) -> None:
    _, show, name, shown = way
    write = appended(scene.root / name)

    def show_it() -> None:
        show(scene.root)

    if order == "at once":
        shell(scene.workspace, write, show_it)
    elif order == "in two calls":
        shell(scene.workspace, write)
        shell(scene.workspace, show_it, number=2)
    else:
        shell(scene.workspace, write)
        show_it()
    if name != shown and order == "a person shows it":
        return  # a person moved the file there
    (view,) = edits_of(scene, shown)
    assert view.status is Status.PENDING
    assert view.is_unattributed is (name == shown)  # a rename shows who brought the file there
    assert view.edit.notes.get(WHY) == (NOT_SEEN if name == shown else None)
    if order == "at once" and name == shown:
        assert view.edit.notes[CANDIDATES] == "s"
    assert scene.workspace.review.pending_counts()[0] >= 1
    with pytest.raises(FileMayBeOlder):
        scene.reject(view.seq)
    assert (scene.root / shown).read_bytes() == HIDDEN + b"an agent's line\n"


def test_what_changed_before_agents_came_is_known_from_its_first_sight_on(scene: Scene, way: Way) -> None:
    _, show, name, shown = way
    time.sleep(0.05)  # more than a tick of the file system's clock
    shell(scene.workspace)
    show(scene.root)
    (first,) = [edits_of(scene, shown)]
    assert all(view.status is Status.ACCEPTED for view in first)
    assert first == [] or name != shown
    shell(scene.workspace, appended(scene.root / shown), number=2)
    view = edits_of(scene, shown)[0] if first == [] else edits_of(scene, shown)[-1]
    assert (view.status, view.edit.added) == (Status.PENDING, 1)
    scene.reject(view.seq)
    assert (scene.root / shown).read_bytes() == HIDDEN


def test_an_ignored_file_is_looked_at_when_a_tool_names_it_also_after_reports_were_lost(scene: Scene) -> None:
    (scene.root / ".casignore").write_text("x\n")
    (scene.root / "x").write_bytes(HIDDEN)
    scene.workspace.record_changes(EXTERNAL_CALL)
    shell(scene.workspace)
    (scene.root / ".cas" / "agents" / "events").unlink()
    (scene.root / "x").write_bytes(HIDDEN * 2)
    call = AgentCall(conversation="s", id="named", tool="Edit", paths=("x",))
    scene.workspace.hooks.begin(call)
    appended(scene.root / "x")()
    scene.workspace.hooks.end(call)
    before, made = edits_of(scene, "x")
    assert (before.is_unattributed, before.edit.added) == (True, 2)
    assert (made.edit.conversation, made.edit.added, made.status) == ("s", 1, Status.PENDING)


@pytest.mark.parametrize("is_announced", [True, False])
def test_what_changed_in_a_known_file_since_it_was_ignored_is_no_tools_own(scene: Scene, *, is_announced: bool) -> None:
    (scene.root / "x").write_bytes(HIDDEN)
    scene.workspace.record_changes(EXTERNAL_CALL)
    shell(scene.workspace, appended(scene.root / "x"))
    (scene.root / ".casignore").write_text("x\n")
    scene.workspace.hooks.notice(EXTERNAL_CALL)
    shell(scene.workspace, appended(scene.root / "x"), number=2)
    call = AgentCall(conversation="s", id="named", tool="Edit", paths=("x",))
    if is_announced:
        scene.workspace.hooks.begin(call)
        appended(scene.root / "x")()
    scene.workspace.hooks.end(call)
    _, unseen, *made = edits_of(scene, "x")
    assert (unseen.edit.added, unseen.edit.notes.get(WHY)) == (1, NOT_SEEN)
    assert [(view.edit.conversation, view.is_unattributed) for view in made] == [("s", False)] * is_announced


@pytest.mark.parametrize("writer", ["an agent", "a person, before agents came"])
def test_what_a_tool_of_ours_finds_in_an_ignored_file_awaits_review_if_an_agent_may_have_written_it(
    scene: Scene, writer: str
) -> None:
    (scene.root / ".casignore").write_text("x\n")
    (scene.root / "x").write_bytes(HIDDEN)
    scene.workspace.record_changes(EXTERNAL_CALL)
    time.sleep(0.05)  # more than a tick of the file system's clock
    shell(scene.workspace, *([appended(scene.root / "x")] if writer == "an agent" else []))
    with scene.workspace.call(CallInfo(tool="write", conversation="ours")) as call:
        call.write("x", call.read("x").bytes + b"of the tool\n")
        call.commit()
    *before, made = edits_of(scene, "x")
    assert (made.edit.conversation, made.edit.added, made.status) == ("ours", 1, Status.PENDING)
    assert [(view.is_unattributed, view.edit.added, view.status) for view in before] == (
        [(True, 2, Status.PENDING)] if writer == "an agent" else []
    )
    for view in before:
        with pytest.raises(FileMayBeOlder):
            scene.reject(view.seq)
    scene.reject(made.seq)
    assert (scene.root / "x").read_bytes().startswith(HIDDEN)
