"""Create long histories quickly: record edits in groups, and write files once, in their last state."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from objstore import FileState, Hunk, Operation, Origin, Workspace, blob_id
from objstore.disk.fs.disk import Disk
from objstore.review.calls.edit_recorder import Change, Recorder, Version
from objstore.storage.transaction.journal import Journal

if TYPE_CHECKING:
    from objstore.model.basic_types import DocumentId

__all__ = ["Bulk"]

MODE: Final = 0o644


class Bulk:
    """A new workspace in which edits are recorded that change one file each."""

    def __init__(self, root: Path) -> None:
        """Create the store in `root`."""
        Workspace.init(root).close()
        self._root = root
        self._journal = Journal(str(root), Disk())
        self._versions: dict[str, Version] = {}
        self._documents: dict[str, DocumentId] = {}
        self._calls: dict[str, int] = {}

    def close(self) -> None:
        """Write the files as the last edits left them, and close the store."""
        for name, version in self._versions.items():
            path = self._root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(version.content)
            path.chmod(version.state.mode)
        self._journal.close()

    def begin(self, name: str, content: bytes) -> None:
        """Set the content of a file before its first edit."""
        self._versions[name] = _version(content)

    def call(self, conversation: str, edits: Sequence[tuple[str, bytes, Hunk]], origin: Origin = Origin.AGENT) -> None:
        """Record a call: for each edit the file's name, its new content, and the hunk."""
        number = self._calls[conversation] = self._calls.get(conversation, -1) + 1
        with self._journal.writing() as batch:
            recorder = Recorder(self._journal, batch)
            for ordinal, (name, content, hunk) in enumerate(edits):
                after = _version(content)
                view = recorder.record(
                    Change(
                        document=self._documents.get(name),
                        operation=Operation.EDIT,
                        path=name.encode(),
                        source=None,
                        before=self._versions[name],
                        after=after,
                        hunks=[hunk],
                        origin=origin,
                    ),
                    document=self._documents.get(name),
                    conversation=conversation,
                    call=number,
                    ordinal=ordinal,
                    tool="bench",
                    notes={},
                )
                self._documents[name], self._versions[name] = view.edit.document, after
            self._journal.commit(batch, ())


def _version(content: bytes) -> Version:
    return Version(content=content, state=FileState(blob=blob_id(content), mode=MODE))
