"""Look up recorded edits, conversations and blobs for the addresses cas://edit, cas://conversation and cas://blob."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final, TypeVar

from mcptools.edit.display import one_line, shown
from mcptools.files.workspaces import Directories
from mcptools.model.failures import Failure, FailureKind, failure_of
from mcptools.tools.comments import comment_listed
from mcptools.tools.history import edit_diff, edit_listed, reasons_given
from objstore import BlobId, BlobMissing, CasError, EditFilter, NoSuchName, Workspace

__all__ = ["ListedResource", "Resources"]

_HASH_BYTES: Final = 32
_STATES: Final = ("open", "sent", "answered", "resolved", "all")
_MOST_LISTED: Final = 50
"""Edits of each directory that are listed. Older ones can be read by their address."""

FoundT = TypeVar("FoundT")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedResource:
    """An entry in the list of resources."""

    address: str
    name: str
    words: str


class Resources:
    """The recorded edits of the served directories. Reading them creates no store."""

    def __init__(self, directories: Directories) -> None:
        self._directories = directories

    def edit(self, id: str) -> str:  # noqa: A002 - the address has it so
        """Return an edit with its diff as JSON; `id` is its number, its id, or the beginning of the id."""

        def find(workspace: Workspace) -> str:
            view, _ = workspace.history.find_units(id)
            if not self._directories.shows(workspace, view):
                raise NoSuchName(id, "edit")
            found = {
                "id": view.id.hex(),
                **asdict(edit_listed(workspace, view)),
                "blob_before": None if view.edit.before is None else view.edit.before.blob.hex(),
                "blob_after": None if view.edit.after is None else view.edit.after.blob.hex(),
                "hunk_statuses": [status.value for status in view.units[1:]],
                "reasons": [asdict(given) for given in reasons_given(view)],
                "diff": "" if view.expired else edit_diff(workspace, view).decode("utf-8", "backslashreplace"),
            }
            return _json(found)

        return self._only(find, f"edit {id}", is_whole=len(id) == 2 * _HASH_BYTES)

    def conversation(self, id: str) -> str:  # noqa: A002 - the address has it so
        """Return the edits of a conversation as JSON, in their order, from every directory that has some."""
        what = f"conversation {id}"
        if not id:
            raise _missing(what)  # an empty filter would return the edits of all conversations

        def find(workspace: Workspace) -> list[dict[str, object]]:
            views = workspace.history.edits(EditFilter(conversation=id))
            found = [asdict(edit_listed(workspace, view)) for view in views if self._directories.shows(workspace, view)]
            if not found:
                raise NoSuchName(id, "conversation")
            return found

        refusals: list[CasError | OSError] = []
        edits = [edit for found in self._each(find, refusals) for edit in found]
        if not edits:
            raise _missing(what, refusals)
        return _json({"mcp_conversation_id": id, "edits": edits})

    def comments(self, state: str) -> str:
        """Return the comments in a state, or all, with their answers as JSON, from every directory."""
        if state not in _STATES:
            raise Failure(
                FailureKind.INVALID_REQUEST, f"No state of a comment: {shown(state)}; use {', '.join(_STATES)}"
            )

        def find(workspace: Workspace) -> list[dict[str, object]]:
            return [
                asdict(comment_listed(workspace, view, 0))
                for view in workspace.comments.all()
                if state in {"all", view.word} and self._directories.allows(workspace, view.path)
            ]

        refusals: list[CasError | OSError] = []
        found = [comment for comments in self._each(find, refusals) for comment in comments]
        if not found and refusals:
            raise failure_of(refusals[0], "comments")
        return _json({"comments": found})

    def blob(self, hash: str) -> bytes:  # noqa: A002 - the address has it so
        """Return the bytes with this BLAKE3 hash, in hex."""
        try:
            name = BlobId(bytes.fromhex(hash))
        except ValueError:
            raise _missing(f"blob {hash}") from None
        if len(name) != _HASH_BYTES:
            raise _missing(f"blob {hash}")
        refusals: list[CasError | OSError] = []
        # The bytes are the same in every store.
        for found in self._each(lambda workspace: self._blob(workspace, name), refusals):
            return found
        raise _missing(f"blob {hash}", refusals)

    def newest(self) -> list[ListedResource]:
        """Return the newest edits, the newest first, and the conversations that they belong to.

        If one directory can't be read, the others are listed all the same.
        """
        edits: list[tuple[int, ListedResource]] = []
        conversations: dict[str, None] = {}

        def list_newest(workspace: Workspace) -> None:
            for view in workspace.history.edits(EditFilter(newest_first=True, limit=_MOST_LISTED)):
                if self._directories.shows(workspace, view):
                    listed = edit_listed(workspace, view)
                    name = f"edit {view.seq} of {one_line(listed.path)}"
                    words = f"{listed.status} {listed.operation}, +{listed.lines_added} -{listed.lines_removed} lines"
                    edits.append(
                        (view.edit.time, ListedResource(address=f"cas://edit/{view.id.hex()}", name=name, words=words))
                    )
                    conversations[view.edit.conversation] = None

        refusals: list[CasError | OSError] = []
        looked_into = list(self._each(list_newest, refusals))
        if refusals and not looked_into:
            raise failure_of(refusals[0], "resources")
        edits.sort(key=lambda found: -found[0])
        return [entry for _, entry in edits] + [
            ListedResource(address=f"cas://conversation/{name}", name=name, words="A conversation with its edits")
            for name in conversations
        ]

    # ---- inside

    def _blob(self, workspace: Workspace, name: BlobId) -> bytes:
        """Return a blob's bytes; if only a part of the workspace is allowed, only a blob of an edit in that part.

        Raises NoSuchName if the blob is not in this workspace.
        """
        if not self._directories.covers(workspace):
            shown_edits = (view.edit for view in workspace.history.edits() if self._directories.shows(workspace, view))
            states = (state for edit in shown_edits for state in (edit.before, edit.after))
            if not any(state is not None and state.blob == name for state in states):
                raise NoSuchName(name.hex(), "blob")
        try:
            return workspace.history.blob(name)
        except BlobMissing as error:
            raise NoSuchName(name.hex(), "blob") from error

    def _only(self, find: Callable[[Workspace], FoundT], what: str, *, is_whole: bool) -> FoundT:
        """Return what is found in exactly one directory. Raises Failure.

        `is_whole`: the name is a complete id, which is unique across stores, so a directory that can't be read does
        not matter.
        """
        refusals: list[CasError | OSError] = []
        found = list(self._each(find, refusals))
        if not found or (refusals and not is_whole):
            raise _missing(what, refusals)
        if len(found) > 1:
            raise Failure(FailureKind.INVALID_REQUEST, f"More than one directory has {shown(what)}; use the edit's id")
        return found[0]

    def _each(self, find: Callable[[Workspace], FoundT], refusals: list[CasError | OSError]) -> Iterator[FoundT]:
        """Yield what is found in each directory, and add to `refusals` the error of each that can't be read."""
        recorded, unopened = self._directories.recorded()
        refusals += unopened
        for workspace in recorded:
            try:
                found = find(workspace)
            except NoSuchName:  # not BlobMissing: an edit whose bytes are lost is still recorded here
                continue
            except (CasError, OSError) as error:
                refusals.append(error)
            else:
                yield found


def _missing(what: str, refusals: Sequence[CasError | OSError] = ()) -> Failure:
    """Return the failure for a name that was not found, or the first error, if a directory could not be read."""
    if refusals:
        return failure_of(refusals[0], what)
    return Failure(FailureKind.FILE_NOT_FOUND, f"Not recorded here: {shown(what)}")


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)
