"""A workspace for tests: an agent edits, a person decides, and the disk is observed."""

import os
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from objstore import (
    Action,
    Call,
    CallInfo,
    CallOutcome,
    Conflict,
    Conflicted,
    Decided,
    Decision,
    DecisionOutcome,
    EditView,
    ExternalChange,
    Hunk,
    OnExternal,
    Operation,
    Seq,
    Status,
    Unit,
    Workspace,
)
from objstore.disk.fs.disk import Disk
from objstore.model.ids import blob_id
from objstore.model.records import Record, WrittenFile
from objstore.values.fastclass import replace
from tests.support.copied_stores import create_store
from tests.support.faulty_disk import UnsyncedDisk

__all__ = ["TEN", "FileObservation", "Scene", "deletes", "lines", "moves", "observe_tree", "words", "writes"]

TEN: Final = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
"""A text of ten lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileObservation:
    """Everything observable about one path without changing it."""

    kind: int
    mode: int
    inode: int
    mtime: int  # ns
    content: bytes  # of a file; of a link: where it points


def observe_tree(root: Path, *, store: bool = False) -> dict[str, FileObservation]:
    """Return everything below `root` (with `store`: the files of the journal), by relative path."""
    top = root / ".cas" / "segments" if store else root
    found: dict[str, FileObservation] = {}
    for folder, folders, names in os.walk(top):
        if folder == str(root):
            folders.remove(".cas")
        for name in (*folders, *names):
            path = Path(folder, name)
            seen = path.lstat()
            content = b""
            if stat.S_ISLNK(seen.st_mode):
                content = os.fsencode(path.readlink())
            elif stat.S_ISREG(seen.st_mode):
                content = path.read_bytes()
            found[str(path.relative_to(top))] = FileObservation(
                kind=stat.S_IFMT(seen.st_mode),
                mode=stat.S_IMODE(seen.st_mode),
                inode=seen.st_ino,
                # A folder's time changes with the names in it.
                mtime=0 if stat.S_ISDIR(seen.st_mode) else seen.st_mtime_ns,
                content=content,
            )
    return found


def lines(text: str) -> bytes:
    """Return a text, given its lines separated by spaces."""
    return "".join(f"{word}\n" for word in text.split()).encode()


def words(content: bytes | None) -> str:
    """Return the lines of a text separated by spaces."""
    return "gone" if content is None else " ".join(content.decode().split("\n")).strip()


def writes(path: str, content: bytes, *, mode: int | None = None) -> Callable[[Call], None]:
    """Return the change that writes a file."""
    return lambda call: call.write(path, content, mode=mode)


def deletes(path: str) -> Callable[[Call], None]:
    """Return the change that deletes a file."""
    return lambda call: call.delete(path)


def moves(source: str, destination: str) -> Callable[[Call], None]:
    """Return the change that moves a file."""
    return lambda call: call.move(source, destination)


class Scene:
    """A workspace with short methods for common operations."""

    def __init__(self, root: Path, disk: type[Disk] = UnsyncedDisk) -> None:
        self.root = root
        self.disk = disk
        root.mkdir(exist_ok=True)
        if disk is UnsyncedDisk:  # others count what a creation does
            create_store(root)
        self.workspace = Workspace.init(root, disk())

    def close(self) -> None:
        self.workspace.close()

    # ---- the agent

    def call(self, *changes: Callable[[Call], object], conversation: str = "conv_one") -> CallOutcome:
        with self.workspace.call(CallInfo(tool="test", conversation=conversation)) as call:
            for change in changes:
                change(call)
            return call.commit()

    def write(self, path: str, content: bytes, *, hunks: Sequence[Hunk] | None = None, mode: int | None = None) -> Seq:
        outcome = self.call(lambda call: call.write(path, content, hunks=hunks, mode=mode))
        return outcome.edits[0].seq

    def edit(self, path: str, old: bytes, new: bytes) -> Seq:
        """Replace the only `old` in the file by `new`."""

        def change(call: Call) -> None:
            content = call.read(path).bytes
            assert content.count(old) == 1
            call.write(path, content.replace(old, new), operation=Operation.EDIT)

        return self.call(change).edits[0].seq

    def delete(self, path: str) -> Seq:
        return self.call(lambda call: call.delete(path)).edits[0].seq

    def move(self, source: str, destination: str) -> Seq:
        return self.call(lambda call: call.move(source, destination)).edits[0].seq

    # ---- the person

    def units(self, *names: str | int) -> list[Unit]:
        """Return the units that `12` and `12:2` name."""
        return [unit for name in names for unit in self.workspace.find_units(str(name))[1]]

    def decide(
        self,
        action: Action,
        *names: str | int,
        cascade: bool = False,
        on_external: OnExternal = OnExternal.ABORT,
        expected: Sequence[ExternalChange] = (),
        dry_run: bool = False,
        reason: str = "",
    ) -> DecisionOutcome:
        return self.workspace.decide(
            action,
            self.units(*names),
            cascade=cascade,
            on_external=on_external,
            expected=expected,
            dry_run=dry_run,
            reason=reason,
            who="reviewer",
        )

    def reject(self, *names: str | int, reason: str = "", cascade: bool = False) -> Decided:
        outcome = self.decide(Action.REJECT, *names, reason=reason, cascade=cascade)
        assert isinstance(outcome, Decided), outcome
        return outcome

    def accept(self, *names: str | int) -> Decided:
        outcome = self.decide(Action.ACCEPT, *names)
        assert isinstance(outcome, Decided), outcome
        return outcome

    def reset(self, *names: str | int) -> Decided:
        outcome = self.decide(Action.RESET, *names)
        assert isinstance(outcome, Decided), outcome
        return outcome

    def undo(self) -> Decided:
        outcome = self.workspace.review.undo(who="reviewer")
        assert isinstance(outcome, Decided), outcome
        return outcome

    def refused(self, action: Action, *names: str | int) -> tuple[Conflict, ...]:
        """Return the conflicts for which a decision is refused; check that nothing has changed."""
        before = self.everything()
        outcome = self.decide(action, *names)
        assert isinstance(outcome, Conflicted), outcome
        assert self.everything() == before
        return outcome.conflicts

    # ---- git, and other records that no surface makes

    def record(self, *records: Record) -> None:
        """Append records as one group. The files are as the caller left them."""
        journal = self.workspace._journal  # noqa: SLF001 - no public name makes such records yet
        with journal.writing() as batch:
            for record in records:
                batch.record(record)
            journal.commit(batch, ())

    def git(self, path: str, content: bytes, verdicts: Mapping[Unit, Status]) -> None:
        """Let git put a recorded state of a file in place, which gives units the statuses that they had in it."""
        (self.root / path).write_bytes(content)
        store = self.workspace._journal.store  # noqa: SLF001 - as above
        tip = store.index.documents.tip_at(path.encode())
        assert tip is not None
        assert tip.state is not None
        self.record(
            Decision(
                number=store.index.numbers.next_decision(),
                time=1,
                action=Action.GIT,
                verdicts=tuple(sorted(verdicts.items())),
                written=(
                    WrittenFile(
                        document=tip.document,
                        path_before=tip.path,
                        before=tip.state,
                        path_after=tip.path,
                        after=replace(tip.state, blob=blob_id(content)),
                    ),
                ),
                who="",
                reason="main → feature",
                commit="c" * 40,
            )
        )

    def claim(self, *names: str | int, status: Status = Status.ACCEPTED, conversation: str = "") -> None:
        """Claim edits, without changing any file."""
        number = self.workspace._journal.store.index.numbers.next_decision()  # noqa: SLF001 - as above
        self.record(
            Decision(
                number=number,
                time=1,
                action=Action.CLAIM,
                verdicts=tuple((unit, status) for unit in sorted(self.units(*names))),
                written=(),
                who="reviewer",
                conversation=conversation,
            )
        )

    # ---- what is so

    def text(self, path: str) -> bytes | None:
        """Return a file's bytes, None where there is no file."""
        file = self.root / path
        return file.read_bytes() if file.exists() else None

    def mode(self, path: str) -> int:
        return stat.S_IMODE((self.root / path).lstat().st_mode)

    def view(self, seq: int) -> EditView:
        return self.workspace.history.edit(seq)

    def statuses(self) -> dict[int, Status]:
        return {view.seq: view.status for view in self.workspace.history.edits()}

    def files(self) -> dict[str, FileObservation]:
        return observe_tree(self.root)

    def everything(self) -> tuple[dict[str, FileObservation], dict[str, FileObservation]]:
        """Return the files and the journal, as closely as can be seen."""
        return self.files(), observe_tree(self.root, store=True)

    def external(self) -> dict[str, ExternalChange]:
        return {change.path: change for change in self.workspace.review.external_changes()}

    # ---- the store

    def reopen(self) -> None:
        self.workspace.close()
        self.workspace = Workspace.open(self.root, self.disk())

    def forget_index(self) -> None:
        """Delete everything that can be derived, and open again."""
        self.workspace.close()
        for found in (self.root / ".cas").glob("index.sqlite*"):
            found.unlink()
        (self.root / ".cas" / "applied").unlink(missing_ok=True)
        self.workspace = Workspace.open(self.root, self.disk())

    def copy_to(self, root: Path) -> "Scene":
        """Return a scene in a copy of the folder, taken while no process writes."""
        shutil.copytree(self.root, root, symlinks=True)
        return Scene(root)
