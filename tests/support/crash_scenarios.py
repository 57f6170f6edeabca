"""Scenarios for crash tests: a workspace with some history, and one operation on it."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from objstore import LINK_MODE, Action, CallInfo, Decided, Origin, Status, TurnInfo, Unit, Workspace

__all__ = [
    "LINKED",
    "LOOK",
    "MANY_FILES",
    "ONE_FILE",
    "SCENES",
    "SNAPSHOT",
    "TWO_NAMES",
    "CrashScenario",
    "Files",
    "History",
    "change",
    "files",
    "history",
    "rejected",
    "write",
]

Files: TypeAlias = dict[str, tuple[bytes, int]]
"""Content and permission bits of each file outside the store, by path."""

History: TypeAlias = tuple[tuple[tuple[int, Status], ...], int]
"""Number and status of each edit, and how many decisions there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashScenario:
    """The preparation of a workspace, and the operation that is tested."""

    name: str
    prepare: Callable[[Workspace], None]
    act: Callable[[Workspace], object]


def files(root: Path) -> Files:
    """Return the user's files below `root`."""
    found = {}
    for folder, folders, names in os.walk(root):
        if ".cas" in folders:
            folders.remove(".cas")
        for name in (*names, *folders):
            path = Path(folder) / name
            if path.is_symlink():
                found[str(path.relative_to(root))] = (os.fsencode(path.readlink()), LINK_MODE)
            if path.is_symlink() or path.is_dir():
                continue
            found[str(path.relative_to(root))] = (path.read_bytes(), path.stat().st_mode & 0o7777)
    return found


def history(workspace: Workspace) -> History:
    """Return the statuses of edits and the number of decisions, as a reviewer sees them."""
    return tuple((edit.seq, edit.status) for edit in workspace.history.edits()), len(workspace.history.decisions())


def write(workspace: Workspace, path: str, content: bytes, *, mode: int | None = None) -> None:
    """Record one call that writes one file."""
    with workspace.call(CallInfo(tool="write_file", conversation="scene")) as call:
        call.write(path, content, mode=mode)
        call.commit()


def change(workspace: Workspace, *contents: tuple[str, bytes]) -> None:
    """Record one call that writes several files."""
    with workspace.call(CallInfo(tool="write_file", conversation="scene")) as call:
        for path, content in contents:
            call.write(path, content)
        call.commit()


def rejected(workspace: Workspace, *seqs: int) -> None:
    """Reject whole edits, and check that the decision was made."""
    units = [Unit(view.seq, hunk) for view in map(workspace.history.edit, seqs) for hunk in range(len(view.units))]
    assert isinstance(workspace.decide(Action.REJECT, units), Decided)


TEXT: Final = b"".join(b"line %d\n" % i for i in range(200))


def _nothing(_: Workspace) -> None:
    pass


def _edited(workspace: Workspace) -> None:
    write(workspace, "a.txt", TEXT)
    write(workspace, "a.txt", TEXT.replace(b"line 7\n", b"LINE 7\n"))
    write(workspace, "a.txt", TEXT.replace(b"line 7\n", b"LINE 7\n").replace(b"line 99\n", b""))


def _several(workspace: Workspace) -> None:
    change(workspace, ("a.txt", TEXT), ("old.txt", b"to be moved\n"), ("dead.txt", b"to be deleted\n"))
    change(workspace, ("a.txt", TEXT + b"more\n"), ("old.txt", b"to be moved\nand kept\n"))


def _all_sorts(workspace: Workspace) -> None:
    with workspace.call(CallInfo(tool="apply", conversation="scene")) as call:
        call.write("new/folder/b.txt", b"created\n")
        call.write("a.txt", TEXT.replace(b"line 1\n", b"") + b"more\n")
        call.move("old.txt", "new/moved.txt")
        call.delete("dead.txt")
        call.write("script", b"#!/bin/sh\n", mode=0o755)
        call.commit()


def _all_sorts_done(workspace: Workspace) -> None:
    _several(workspace)
    _all_sorts(workspace)


def _folder_and_file(workspace: Workspace) -> None:
    change(workspace, ("d/e/x.txt", TEXT), ("f", b"to be a folder\n"))


def _traded(workspace: Workspace) -> None:
    """Replace a folder by a file, and a file by a folder."""
    with workspace.call(CallInfo(tool="apply", conversation="scene")) as call:
        call.delete("d/e/x.txt")
        call.write("d", b"was a folder\n")
        call.delete("f")
        call.write("f/g/y.txt", TEXT)
        call.commit()


def _in_its_place(workspace: Workspace) -> None:
    """Replace a file by empty folders with a shell, and change another file."""
    root = Path(workspace.root)
    (root / "f").write_bytes(TEXT)
    (root / "g").write_bytes(TEXT)
    workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    (root / "f").unlink()
    (root / "f/a/b").mkdir(parents=True)
    (root / "g").write_bytes(b"other\n")
    _recorded(workspace)


def _swapped(workspace: Workspace) -> None:
    """Swap the names of an unrecorded folder and file with a shell."""
    root = Path(workspace.root)
    (root / "d").mkdir()
    (root / "d/x.txt").write_bytes(TEXT)
    (root / "d/y.txt").write_bytes(b"why\n")
    (root / "z").write_bytes(b"a file\n")
    workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    (root / "d").rename(root / "aside")
    (root / "z").rename(root / "d")
    (root / "aside").rename(root / "z")
    _recorded(workspace)


def _swapped_back(workspace: Workspace) -> None:
    _swapped(workspace)
    rejected(workspace, 1, 2, 3)


def _rejected_two(workspace: Workspace) -> None:
    _edited(workspace)
    rejected(workspace, 2)
    rejected(workspace, 3)


def _taken_turns(workspace: Workspace) -> None:
    """Take a turn that makes files, and one that changes, makes and deletes some."""
    for contents in ((("a.txt", TEXT), ("b.txt", b"bee\n")), (("a.txt", TEXT + b"more\n"), ("src/c.txt", TEXT))):
        turn = TurnInfo(session="scene", began=time.time_ns() // 1_000)
        with workspace.call(CallInfo(tool="write", conversation="scene", turn=turn)) as call:
            for path, content in contents:
                call.write(path, content)
            if call.exists("b.txt") and len(contents[0][1]) > len(TEXT):
                call.delete("b.txt")
            call.commit()


def _rewound(workspace: Workspace) -> None:
    _taken_turns(workspace)
    workspace.review.rewind_exactly(2)


def _strewn(workspace: Workspace) -> None:
    """Create unrecorded files next to a recorded one."""
    write(workspace, "a.txt", TEXT)
    for path, content in (("b.txt", b"bee\n"), ("src/c.py", TEXT), ("src/deep/d.py", b"dee\n")):
        file = Path(workspace.root) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _snapshot(workspace: Workspace) -> None:
    workspace.snapshots.take(who="scene")


def _disturbed(workspace: Workspace) -> None:
    """Change, delete and create files after a snapshot."""
    _strewn(workspace)
    _snapshot(workspace)
    write(workspace, "a.txt", b"other\n")
    root = Path(workspace.root)
    (root / "b.txt").unlink()
    (root / "src/c.py").write_bytes(b"other\n")
    (root / "new.txt").write_bytes(b"new\n")


def _known(workspace: Workspace) -> None:
    """Change, delete, move and create files after a first scan."""
    _strewn(workspace)
    workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    root = Path(workspace.root)
    (root / "a.txt").write_bytes(TEXT + b"more\n")
    (root / "b.txt").rename(root / "moved.txt")
    (root / "src/deep/d.py").unlink()
    (root / "new.txt").write_bytes(b"new\n")


def _recorded(workspace: Workspace) -> None:
    workspace.record_changes(CallInfo(tool="Bash", conversation="scene"))


SHELL: Final = CallInfo(tool="Bash", conversation="shell")


def _links_replaced(workspace: Workspace) -> None:
    """Record that a shell replaced links, a file and a folder by one another, and removed and retargeted links."""
    root = Path(workspace.root)
    (root / "file").write_bytes(TEXT)
    (root / "folder").mkdir()
    (root / "folder/inner").write_bytes(TEXT)
    for name in ("gone", "retargeted", "to file", "to folder"):
        (root / name).symlink_to("file")
    workspace.record_changes(SHELL)
    for name in ("gone", "retargeted", "to file", "to folder", "file", "folder/inner"):
        (root / name).unlink()
    (root / "folder").rmdir()
    (root / "retargeted").symlink_to("elsewhere")
    (root / "to file").write_bytes(TEXT)
    (root / "to folder").mkdir()
    (root / "to folder/inner").write_bytes(b"other\n")
    (root / "file").symlink_to("/nowhere")
    (root / "folder").symlink_to("..")
    workspace.record_changes(SHELL)


def _all_rejected(workspace: Workspace) -> None:
    rejected(workspace, *(view.seq for view in workspace.history.edits()))


def _links_brought_back(workspace: Workspace) -> None:
    _links_replaced(workspace)
    _all_rejected(workspace)


def _linked(workspace: Workspace) -> None:
    write(workspace, TWO_NAMES[0], TEXT)
    os.link(Path(workspace.root) / TWO_NAMES[0], Path(workspace.root) / TWO_NAMES[1])


ONE_FILE: Final = CrashScenario(
    name="edit", prepare=_edited, act=lambda w: write(w, "a.txt", TEXT.replace(b"0", b"zero"))
)
MANY_FILES: Final = CrashScenario(name="call over many files", prepare=_several, act=_all_sorts)
SCENES: Final = (
    CrashScenario(name="first call", prepare=_nothing, act=lambda workspace: write(workspace, "a.txt", TEXT)),
    ONE_FILE,
    CrashScenario(name="change of mode", prepare=_edited, act=lambda w: write(w, "a.txt", TEXT, mode=0o755)),
    MANY_FILES,
    CrashScenario(name="reject", prepare=_edited, act=lambda workspace: rejected(workspace, 2)),
    CrashScenario(name="reject over many files", prepare=_all_sorts_done, act=lambda w: rejected(w, 6, 7, 8, 9, 10)),
    CrashScenario(name="folder and file", prepare=_folder_and_file, act=_traded),
    CrashScenario(name="reject of swapped names", prepare=_swapped, act=lambda workspace: rejected(workspace, 1, 2, 3)),
    CrashScenario(name="undo of that", prepare=_swapped_back, act=lambda workspace: workspace.review.undo()),
    CrashScenario(
        name="reject of a folder for a file", prepare=_in_its_place, act=lambda workspace: rejected(workspace, 1, 2)
    ),
    CrashScenario(name="reject of replaced links", prepare=_links_replaced, act=_all_rejected),
    CrashScenario(name="undo of that reject", prepare=_links_brought_back, act=lambda w: w.review.undo()),
    CrashScenario(name="restored snapshot", prepare=_disturbed, act=lambda workspace: workspace.snapshots.restore(1)),
    CrashScenario(name="exact rewind", prepare=_taken_turns, act=lambda w: w.review.rewind_exactly(2)),
    CrashScenario(name="undo of an exact rewind", prepare=_rewound, act=lambda workspace: workspace.review.undo()),
    CrashScenario(name="undo", prepare=_rejected_two, act=lambda workspace: workspace.review.undo()),
)

TWO_NAMES: Final = ("a.txt", "same.txt")
SNAPSHOT: Final = CrashScenario(name="snapshot", prepare=_strewn, act=_snapshot)
LOOK: Final = CrashScenario(name="look", prepare=_known, act=_recorded)
LINKED: Final = CrashScenario(
    name="file with two names", prepare=_linked, act=lambda w: write(w, "a.txt", TEXT.replace(b"line", b"LINE"))
)
