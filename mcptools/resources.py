"""Resources: what is recorded, by address, as plain functions: an edit, a conversation, the bytes of a blob."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Final, TypeVar

from mcptools.directories import Directories
from mcptools.display import one_line, shown
from mcptools.failures import Failure, Kind
from mcptools.history import edit_diff, edit_listed
from mcptools.toolset import telling
from objstore import BlobId, BlobMissing, EditFilter, NoSuchName, Workspace

__all__ = ["Entry", "Resources"]

_HASH_BYTES: Final = 32
_MOST_LISTED: Final = 50
"""Edits of each directory that are listed; all have an address."""

FoundT = TypeVar("FoundT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Something that is recorded, as it is listed."""

    address: str
    name: str
    words: str


class Resources:
    """What is recorded of the served directories. Looking at it makes no store."""

    def __init__(self, directories: Directories) -> None:
        self._directories = directories

    def edit(self, id: str) -> str:  # noqa: A002 - the address has it so
        """Return as JSON an edit with its diff, by its number, or by its id or the beginning of that."""

        def find(workspace: Workspace) -> str:
            view, _ = workspace.find_units(id)
            if not self._directories.shows(workspace, view):
                raise NoSuchName(id, "edit")
            found = {
                "id": view.id.hex(),
                **asdict(edit_listed(workspace, view)),
                "blob_before": None if view.edit.before is None else view.edit.before.blob.hex(),
                "blob_after": None if view.edit.after is None else view.edit.after.blob.hex(),
                "hunk_statuses": [status.value for status in view.units[1:]],
                "diff": "" if view.expired else edit_diff(workspace, view).decode("utf-8", "backslashreplace"),
            }
            return _json(found)

        return self._only(find, f"edit {id}")

    def conversation(self, id: str) -> str:  # noqa: A002 - the address has it so
        """Return as JSON the edits of a conversation, in their order, from every directory that has some."""
        edits = []
        with telling(f"conversation {id}"):
            for workspace in self._directories.recorded() if id else ():  # "" would be those of all conversations
                views = workspace.edits(EditFilter(conversation=id))
                edits += [
                    asdict(edit_listed(workspace, view)) for view in views if self._directories.shows(workspace, view)
                ]
        if not edits:
            raise _missing(f"conversation {id}")
        return _json({"mcp_conversation_id": id, "edits": edits})

    def blob(self, hash: str) -> bytes:  # noqa: A002 - the address has it so
        """Return the bytes whose BLAKE3 hash this is."""
        try:
            name = BlobId(bytes.fromhex(hash))
        except ValueError:
            raise _missing(f"blob {hash}") from None
        if len(name) != _HASH_BYTES:
            raise _missing(f"blob {hash}")
        # Wherever the bytes are, they are the same.
        return next(self._found(lambda workspace: self._blob(workspace, name), f"blob {hash}"))

    def newest(self) -> list[Entry]:
        """Return the newest edits, the newest first, and the conversations that they belong to."""
        edits: list[tuple[int, Entry]] = []
        conversations: dict[str, None] = {}
        for workspace in self._directories.recorded():
            for view in workspace.edits(EditFilter(newest_first=True, limit=_MOST_LISTED)):
                if self._directories.shows(workspace, view):
                    listed = edit_listed(workspace, view)
                    name = f"edit {view.seq} of {one_line(listed.path)}"
                    words = f"{listed.status} {listed.operation}, +{listed.lines_added} -{listed.lines_removed} lines"
                    edits.append((view.edit.time, Entry(address=f"cas://edit/{view.id.hex()}", name=name, words=words)))
                    conversations[view.edit.conversation] = None
        edits.sort(key=lambda found: -found[0])
        return [entry for _, entry in edits] + [
            Entry(address=f"cas://conversation/{name}", name=name, words="A conversation with its edits")
            for name in conversations
        ]

    # ---- inside

    def _blob(self, workspace: Workspace, name: BlobId) -> bytes:
        """Return a blob's bytes. Where only a part of the workspace is allowed: one of an edit that is shown.

        Raises NoSuchName where it isn't here.
        """
        if not self._directories.covers(workspace):
            shown_edits = (view.edit for view in workspace.edits() if self._directories.shows(workspace, view))
            states = (state for edit in shown_edits for state in (edit.before, edit.after))
            if not any(state is not None and state.blob == name for state in states):
                raise NoSuchName(name.hex(), "blob")
        try:
            return workspace.blob(name)
        except BlobMissing as error:
            raise NoSuchName(name.hex(), "blob") from error

    def _only(self, find: Callable[[Workspace], FoundT], what: str) -> FoundT:
        found = list(self._found(find, what))
        if len(found) > 1:
            raise Failure(Kind.INVALID_REQUEST, f"More than one directory has {shown(what)}; use the edit's id")
        return found[0]

    def _found(self, find: Callable[[Workspace], FoundT], what: str) -> Iterator[FoundT]:
        """Yield what is found in each directory; at least one. Raises Failure where nothing is."""
        nothing = True
        with telling(what):
            for workspace in self._directories.recorded():
                try:
                    found = find(workspace)
                except NoSuchName:  # not BlobMissing: an edit is here also where its bytes are lost
                    continue
                nothing = False
                yield found
        if nothing:
            raise _missing(what)


def _missing(what: str) -> Failure:
    return Failure(Kind.FILE_NOT_FOUND, f"Not recorded here: {shown(what)}")


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)
