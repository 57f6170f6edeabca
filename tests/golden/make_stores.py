"""Make a golden store: of a format version, with everything that a store may hold, to be read for ever.

`python -m tests.golden.make_stores FOLDER` makes one with the present version. What is in `tests/golden/stores/` was
made so once and is never made again: a store that a version wrote must be read by every later one. A new format version
gets a folder of its own. What is in `tests/golden/earlier/` was written before format 1; only conversions read it.
"""

import json
import os
import random
import sys
import tempfile
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from objstore import (
    MAX_BLOB,
    Action,
    Anchor,
    BlobId,
    CallAborted,
    CallInfo,
    Comment,
    CommentState,
    Decision,
    Edit,
    Mark,
    OnExternal,
    Origin,
    Seq,
    SettingChange,
    Status,
    TurnInfo,
    Unit,
    Workspace,
)
from objstore.disk.config.setting_sources import RetentionLimits
from objstore.disk.fs.disk import Disk
from objstore.disk.fs.file_state import file_at
from objstore.model.ids import BlobHasher
from objstore.model.records import WrittenFile
from objstore.review.calls.edit_recorder import Recorder, external_change, version_of
from objstore.storage.index.rows import EditConditions
from objstore.storage.log import segments
from objstore.storage.store.write_batch import now
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import DiskFailed

__all__ = ["CONTENTS_NAME", "SEGMENTS", "stored_contents"]

SEGMENTS: Final = "segments"
CONTENTS_NAME: Final = "told.json"
ROTATE_AT: Final = 12_000
"""Size of a full segment, so that the small golden store has several."""

DEEP: Final = 40
"""Edits of one file, more than the maximal depth of deltas."""


def make(folder: Path) -> None:
    """Create a golden store in the new folder `folder`: its segments, and their expected contents."""
    vars(segments)["ROTATE_AT"] = ROTATE_AT
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary) / "work"
        root.mkdir()
        disk = _Failing()
        with Workspace.init(root, disk) as workspace:
            _let_go(workspace)
            _deep(workspace)
            _all_sorts(workspace, root)
            _reviewed(workspace)
            _external(workspace, root)
            _rest(workspace, root, disk)
            _decided(workspace)
        _talked(root, disk)
        with Workspace.open(root, disk) as workspace:
            folder.mkdir(parents=True)
            (folder / SEGMENTS).mkdir()
            for segment in sorted((root / ".cas" / SEGMENTS).iterdir()):
                (folder / SEGMENTS / segment.name).write_bytes(segment.read_bytes())
            (folder / CONTENTS_NAME).write_text(json.dumps(stored_contents(workspace), indent=1, sort_keys=True) + "\n")


def stored_contents(workspace: Workspace) -> dict[str, Any]:
    """Return the contents of a store: its records in order, and every state that it still has, read and hashed."""
    edits = [
        {
            "seq": view.seq,
            "id": view.id.hex(),
            "operation": view.edit.operation.value,
            "path": os.fsdecode(view.edit.path),
            "source": None if view.edit.source is None else os.fsdecode(view.edit.source),
            "status": view.status.value,
            "units": [unit.value for unit in view.units],
            "origin": view.edit.origin.value,
            "tool": view.edit.tool,
            "notes": dict(view.edit.notes),
            "expired": None if view.expired is None else view.expired.reason,
        }
        | _besides(view.edit)
        for view in workspace.history.edits()
    ]
    snapshots = [
        {
            "number": view.number,
            "path": view.path,
            "title": view.title,
            "files": {
                path: [state.kind, state.mode, None if state.blob is None else state.blob.hex()]
                for path, state in workspace.snapshots.files(view.number)
            },
        }
        for view in workspace.snapshots.all()
    ]
    return {
        "edits": edits,
        "decisions": [
            [view.decision.number, view.decision.action.value, view.id.hex()] for view in workspace.history.decisions()
        ],
        "snapshots": snapshots,
        "pins": [
            [view.pin.number, view.pin.title, *(blob.hex() for blob in view.pin.blobs)]
            for view in workspace.retention.pins()
        ],
        **_talk(workspace),
        "records": [view.id.hex() for view in workspace.history.records()],
        "files": {path: [state.blob.hex(), state.mode] for path, state in workspace.history.files_at().items()},
        "blobs": {blob.hex(): _size(workspace, blob) for blob in workspace.history.blobs()},
        "depths": {str(depth): count for depth, count in workspace.history.stats().depths.items()},
    }


def _besides(edit: Edit) -> dict[str, Any]:
    """Return what few edits have."""
    found: dict[str, Any] = {}
    if edit.amends is not None:
        found["amends"] = edit.amends
    if edit.marks is not None:
        found["marks"] = [
            edit.marks.decision,
            [[unit.seq, unit.hunk, status.value] for unit, status in edit.marks.aside],
        ]
    if edit.newline:
        found["newline"] = True
    return found


def _talk(workspace: Workspace) -> dict[str, Any]:
    """Return what few stores have: turns, comments, owners, commits and settings."""
    records = [view.record for view in workspace.history.records()]
    found: dict[str, Any] = {
        "sessions": [
            [view.number, view.name, view.client, view.prompt, view.turns, view.edits]
            for view in workspace.sessions.sessions()
        ]
        if workspace.sessions.turns()
        else [],
        "turns": [
            [view.number, view.session, view.conversation, view.prompt, view.client, view.model, list(view.seqs)]
            for view in workspace.sessions.turns()
        ],
        "owners": {
            str(view.seq): view.owner for view in workspace.history.edits() if view.owner != view.edit.conversation
        },
        "commits": {str(each.number): each.commit for each in records if isinstance(each, Decision) and each.commit},
        "comments": [
            [each.number, each.path.decode(), list(each.first), list(each.lines), each.text, each.answers]
            for each in records
            if isinstance(each, Comment)
        ],
        "marks": [[list(each.comments), each.state.value] for each in records if isinstance(each, Mark)],
        "settings": [[each.name, each.before, each.after] for each in records if isinstance(each, SettingChange)],
    }
    return {name: rows for name, rows in found.items() if rows}


def _size(workspace: Workspace, blob: BlobId) -> int:
    """Return the size of a blob, every byte of which was read and hashed here."""
    hasher, size = BlobHasher(), 0
    for piece in workspace.history.pieces(blob):
        hasher.update(piece)
        size += len(piece)
    if hasher.blob_id() != blob:
        raise AssertionError(f"blob {blob.hex()} is not what its name says")
    return size


def _write(workspace: Workspace, *contents: tuple[str, bytes], mode: int | None = None) -> list[Seq]:
    info = CallInfo(tool="write_file", conversation="golden", notes={"model": "none"})
    with workspace.call(info) as call:
        for path, content in contents:
            call.write(path, content, mode=mode)
        return [edit.seq for edit in call.commit().edits]


def _decide(workspace: Workspace, action: Action, *seqs: int) -> None:
    units = [unit for seq in seqs for unit in workspace.find_units(str(seq))[1]]
    workspace.decide(action, units, reason="as the script says", who="golden", on_external=OnExternal.ABORT)


def _let_go(workspace: Workspace) -> None:
    """Write what then expires, with bytes that nothing can make small, and rewrite the segment that held it."""
    chance = random.Random(1)
    seqs = [_write(workspace, ("gone.bin", chance.randbytes(5_000)))[0] for _ in range(3)]
    seqs += _write(workspace, ("stays.txt", b"first\n"), ("other.txt", b"other\n"))
    seqs += _write(workspace, ("stays.txt", b"first\nsecond\n"))
    _decide(workspace, Action.ACCEPT, *seqs)
    workspace.retention.collect(RetentionLimits(older_than=0), who="golden")


def _deep(workspace: Workspace) -> None:
    lines = [b"line %d of a text that is long enough to be worth a delta\n" % at for at in range(60)]
    for at in range(DEEP):
        lines[at] = b"line %d, as edit %d left it\n" % (at, at)
        _write(workspace, ("deep.txt", b"".join(lines)))


def _all_sorts(workspace: Workspace, root: Path) -> None:
    _write(workspace, ("a.txt", b"one\ntwo\nthree\n"), ("folder/b.txt", b"no final newline"), ("empty", b""))
    _write(workspace, ("script", b"#!/bin/sh\n"), mode=0o755)
    _write(workspace, (os.fsdecode(b"not \xff utf-8\n"), b"\x00binary\xff\r\n"))
    with workspace.call(CallInfo(tool="apply", conversation="second")) as call:
        call.move("a.txt", "moved.txt")
        call.write("moved.txt", b"one\nTWO\nthree\n")
        call.delete("empty")
        call.commit()
    (root / "large.bin").write_bytes(bytes(MAX_BLOB) + b"the end\n")
    workspace.snapshots.take(who="golden", title="all of it")
    workspace.snapshots.take("folder", who="golden", title="a folder")


def _reviewed(workspace: Workspace) -> None:
    newest = workspace.history.edits()[-1].seq
    _write(workspace, ("folder/b.txt", b"a line\nand no final newline"))
    _decide(workspace, Action.REJECT, newest + 1)
    workspace.review.undo(who="golden")
    workspace.review.redo(who="golden")
    pending = [view.seq for view in workspace.history.edits() if view.status is Status.PENDING]
    _decide(workspace, Action.ACCEPT, *pending[:5])
    workspace.retention.pin([Seq(newest)], title="to be kept", who="golden")


def _external(workspace: Workspace, root: Path) -> None:
    (root / "moved.txt").write_bytes(b"zero\none\nTWO\nthree\n")
    (root / "large.bin").write_bytes(b"begun anew" + bytes(MAX_BLOB) + b"the end\n")
    workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    with workspace.call(CallInfo(tool="restore", origin=Origin.PERSON)) as call:
        call.write("stays.txt", b"a person's\n")
        call.commit()


class _Failing(Disk):
    """A disk on which files can't be replaced for a while."""

    fails = False

    def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:
        if self.fails:
            raise DiskFailed(name, "as the script says")
        return super().exchange(source_directory, source, directory, name)


def _rest(workspace: Workspace, root: Path, disk: _Failing) -> None:
    """Write a void, a long delta, an amendment, markers, a reset, a link, a pinned blob."""
    lines = [b"%d: a line of its own, and nothing like the others\n" % (at * 7919) for at in range(40)]
    _write(workspace, ("long.txt", b"".join(lines)))
    _write(workspace, ("long.txt", b"".join([*lines[:20], *lines[20:30] * 3, *lines[30:]])))  # worth compressing
    (seq,) = _write(workspace, ("end.txt", b"one\ntwo"))
    _write(workspace, ("end.txt", b"one\ntwo\n"))
    _decide(workspace, Action.ACCEPT, seq)
    _decide(workspace, Action.RESET, seq)
    disk.fails = True
    with suppress(CallAborted):
        _write(workspace, ("end.txt", b"of a call that was taken back\n"))
    disk.fails = False
    (first,) = _write(workspace, ("marked.txt", b"one\ntwo\nthree\n"))
    (second,) = _write(workspace, ("marked.txt", b"one\nTWO\nthree\n"))
    _write(workspace, ("marked.txt", b"one\nTWO and more\nthree\n"))
    workspace.review.amend(
        first,
        workspace.review.amendable(first).bytes + b"four\n",
        version=workspace.review.amendable(first).blob,
        who="me",
    )
    units = [unit for unit in workspace.find_units(str(second))[1] if unit.hunk]
    workspace.decide(Action.REJECT, units, markers=True, who="golden")
    (root / "ignored").mkdir()
    (root / "ignored" / "file").write_bytes(b"not covered\n")
    (root / ".casignore").write_bytes(b"ignored\n")
    (root / "link").symlink_to("end.txt")
    workspace.snapshots.take(who="golden", title="with a link")
    workspace.retention.pin(
        [], [workspace.history.find_state("end.txt").blob or BlobId(b"")], title="a state", who="golden"
    )


def _decided(workspace: Workspace) -> None:
    """Reject edits below a change of the final newline, and next to alike lines; then edit what that wrote."""
    _write(workspace, ("end.txt", b"one\ntwo"))
    (second,) = _write(workspace, ("end.txt", b"one\nTWO"))
    _write(workspace, ("end.txt", b"one\nTWO\n"))
    _decide(workspace, Action.REJECT, second)
    _write(workspace, ("end.txt", b"zero\none\ntwo"))
    one, two, three = (b"function %b() {\n  return 1;\n}\n\n" % name for name in (b"one", b"two", b"three"))
    _write(workspace, ("alike.js", one + two))
    (inserted,) = _write(workspace, ("alike.js", one + two + three))
    _write(workspace, ("alike.js", one.replace(b"one", b"ONE") + two))
    _decide(workspace, Action.REJECT, inserted)
    for content in (one + two, one + two + three, one.replace(b"one", b"ONE") + two):
        _write(workspace, ("open.js", content))
    text = workspace.history.text(workspace.history.find_state("alike.js").blob or BlobId(b""))
    _write(workspace, ("alike.js", b"// first\n" + text))


def _talked(root: Path, disk: Disk) -> None:
    """Write turns, comments and their marks, a setting, git's changes, claims, further origins."""
    turns = [
        TurnInfo(session="run", began=1_000_000, prompt="Write a list", client="golden", model="none"),
        TurnInfo(session="run", began=2_000_000, prompt="Make it longer", client="golden", model="none"),
    ]
    one, two, three = (b"one\n", b"one\ntwo\n", b"one\ntwo\nthree\n")
    first = Seq(0)
    with Workspace.open(root, disk) as workspace:
        for turn, content in zip(turns, (one, two), strict=True):
            with workspace.call(CallInfo(tool="write_file", conversation="run", turn=turn)) as call:
                call.write("list.txt", content)
                first = call.commit().edits[0].seq
        _decide(workspace, Action.ACCEPT, first - 1)
    with closing(Journal(str(root), disk)) as journal:
        _found(journal, root, "list.txt", three, CallInfo(tool="", origin=Origin.FORMATTER, conversation="run"))
        _found(journal, root, "list.txt", b"zero\n" + three, CallInfo(tool="", origin=Origin.UNATTRIBUTED))
        document = journal.store.index.documents.tip_at(b"list.txt")
        if document is None:
            raise AssertionError("the file is recorded")
        unit, away = Unit(Seq(first + 2), 1), Unit(Seq(first), 1)
        states = [journal.store.record(row.place)[0] for row in journal.store.index.edits.matching(EditConditions())]
        before, after = (state.after for state in states[-2:] if isinstance(state, Edit))
        with journal.writing() as batch:
            number = journal.store.index.numbers.next_decision()
            written = WrittenFile(
                document=document.document,
                path_before=b"list.txt",
                before=after,
                path_after=b"list.txt",
                after=after,
            )
            batch.record(
                Decision(
                    number=number,
                    time=now(),
                    action=Action.CLAIM,
                    verdicts=((unit, Status.ACCEPTED),),
                    written=(written,),
                    who="golden",
                )
            )
            journal.commit(batch, ())
        # Git takes the person's line out, and with another branch brings it back.
        for verdict, commit, states_of in (
            (Status.AWAY, "a" * 40, (after, before)),
            (Status.ACCEPTED, "b" * 64, (before, after)),
        ):
            number += 1
            (root / "list.txt").write_bytes(three if verdict is Status.AWAY else b"zero\n" + three)
            with journal.writing() as batch:
                batch.record(
                    Decision(
                        number=number,
                        time=now(),
                        action=Action.GIT,
                        verdicts=((unit, verdict),),
                        written=(replace(written, before=states_of[0], after=states_of[1]),),
                        who="",
                        reason="main \u2192 feature",
                        commit=commit,
                        conversation="run",
                    )
                )
                journal.commit(batch, ())
        _found(journal, root, "list.txt", b"zero\n" + three + b"four\n", CallInfo(tool="", origin=Origin.GIT))
        about = Comment(
            number=1,
            time=now(),
            who="golden",
            document=document.document,
            path=b"list.txt",
            first=Anchor(away.seq, away.hunk, 0),
            last=Anchor(away.seq, away.hunk, 0),
            lines=(3, 3),
            units=(away,),
            text="why two?",
        )
        with journal.writing() as batch:
            batch.record(about)
            batch.record(Mark(time=now(), who="golden", comments=(1,), state=CommentState.SENT, conversation="run"))
            batch.record(replace(about, number=2, text="because", answers=1, conversation="run", who="", units=()))
            batch.record(Mark(time=now(), who="golden", comments=(1, 2), state=CommentState.RESOLVED))
            batch.record(SettingChange(time=now(), who="golden", name="review.external", after="pending"))
            journal.commit(batch, ())


def _found(journal: Journal, root: Path, path: str, content: bytes, info: CallInfo) -> None:
    """Record that a file was found with other content."""
    (root / path).write_bytes(content)
    with journal.writing() as batch:
        tip = journal.store.tip_at(path.encode())
        found = version_of(file_at(journal.tree, path.encode()), journal.tree, path.encode())
        document, known = (None, None) if tip is None else (tip.document, tip.state)
        change = external_change(path.encode(), document, known, found, journal.store.text)
        Recorder(journal, batch).record_found([] if change is None else [(change, info)])
        journal.commit(batch, ())


if __name__ == "__main__":
    make(Path(sys.argv[1]))
