"""Outcomes: what surfaces ask for and what came of it, conflicts among it, as plain values."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from objstore.fastclass import field, value
from objstore.model.basic_types import Action, ConflictKind, DocumentId, Origin, Seq, Status, Unit
from objstore.model.ids import BlobId
from objstore.model.views import EditView, ExternalChange

if TYPE_CHECKING:
    from objstore.model.records import Edit

__all__ = [
    "NOBODY",
    "CallInfo",
    "CallOutcome",
    "Conflict",
    "Conflicted",
    "Decided",
    "DecisionOutcome",
    "ExternalChanges",
    "FileEffect",
    "MarkersWritten",
    "NothingToDo",
    "Notice",
    "Whose",
]


@value
class CallInfo:
    """Who asks for a change, and as part of what."""

    tool: str
    conversation: str = ""  # "": a new conversation
    origin: Origin = Origin.AGENT
    amends: Seq | None = None  # the edit whose result a person betters by the call; None: it amends none
    notes: Mapping[str, str] = field(default_factory=dict)  # agent, client, model, prompt, …
    within: tuple[str, ...] = ()  # canonical paths below which the call may reach; (): everywhere in the workspace


NOBODY: Final = CallInfo(tool="", origin=Origin.EXTERNAL)
"""Whose a change is that no call is known to have made."""

Whose: TypeAlias = Callable[[str, int, int], CallInfo]
"""Tells whose a change of a file is that was made at a moment (ns of the file system), give or take as many."""


@value
class CallOutcome:
    """What a tracked call recorded and did."""

    conversation: str
    new_conversation: bool
    call: int  # position in the conversation
    edits: tuple[EditView, ...]  # the call's own; () when it changed nothing
    external: tuple[EditView, ...]  # changes nobody had recorded, found and recorded first

    @property
    def files(self) -> "tuple[FileEffect, ...]":
        """Return what each of the call's own edits does, or would do, to a file on disk."""
        return tuple(_effect_of(view.edit) for view in self.edits)


@value
class FileEffect:
    """What a decision or an edit does, or would do, to one file on disk."""

    document: DocumentId
    path_before: str | None  # None: no file
    before: BlobId | None
    mode_before: int
    path_after: str | None
    after: BlobId | None
    mode_after: int


def _effect_of(edit: "Edit") -> FileEffect:
    before, after = edit.before, edit.after
    return FileEffect(
        document=edit.document,
        path_before=None if before is None else _name(edit.source or edit.path),
        before=None if before is None else before.blob,
        mode_before=0 if before is None else before.mode,
        path_after=None if after is None else _name(edit.path),
        after=None if after is None else after.blob,
        mode_after=0 if after is None else after.mode,
    )


def _name(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


@value
class Conflict:
    """Why a set of live edits has no text: one hunk, and what it needs."""

    kind: ConflictKind
    unit: Unit
    needs: tuple[Unit, ...]
    path: str
    line: int  # 1-based, in the text as it stands; 0: the file as a whole
    removed: bytes  # the lines that the hunk took out
    inserted: bytes  # the lines that it put in
    outside: tuple[Seq, ...] = ()  # edits among them that are changes found on disk, and were not recorded after all
    is_without: bool = False  # of a path that is taken: whether the file stands there because the unit is not live

    def __str__(self) -> str:
        who = f"edit {self.unit.seq}" + (f" hunk {self.unit.hunk}" if self.unit.hunk else "")
        if self.unit.seq in self.outside:
            who = "the change from outside"
        needed = {unit.seq for unit in self.needs}
        recorded = sorted(needed.difference(self.outside))
        named = [f"edit {', '.join(map(str, recorded))}"] if recorded else []
        needs = " and ".join([*named, *(["the change from outside"] if needed.intersection(self.outside) else [])])
        where = f"{self.path}:{self.line}" if self.line else self.path
        match self.kind:
            case ConflictKind.BOTH_CHANGED if not self.line:
                return f"{who} and {needs} both decide on the file as a whole ({where})"
            case ConflictKind.BOTH_CHANGED:
                return f"{who} and {needs} both change the same lines ({where})"
            case ConflictKind.PATH_TAKEN if self.is_without:
                return f"without {who} the file is at {self.path} again, where {needs} has put another"
            case ConflictKind.PATH_TAKEN:
                return f"{who} puts a file where {needs} has put another ({where})"
            case ConflictKind.TEXT_RETURNED:
                return f"{who} was made without text that {needs} decides on ({where})"
            case ConflictKind.SURROUNDINGS_GONE:
                return f"{who} is between lines that {needs} decides on ({where})"
            case ConflictKind.IN_DOUBT:
                return (
                    f"{who} was recorded by comparing texts, and lines read alike: "
                    f"which of them it means is not certain with this decision on {needs} ({where})"
                )
            case ConflictKind.MISSING_TARGET:
                return f"{who} needs {needs} ({where})"


@value
class Notice:
    """No conflict, and worth a look: hunks directly beside one that was decided just now were decided the other way."""

    unit: Unit
    status: Status  # accepted or rejected; the neighbours have the other
    beside: tuple[Unit, ...]  # ascending
    path: str
    line: int  # 1-based, in the text as the decision leaves it

    def __str__(self) -> str:
        others = ", ".join(map(str, self.beside))
        said = Status.REJECTED if self.status is Status.ACCEPTED else Status.ACCEPTED
        return (
            f"hunk {self.unit}, {self.status.value}, is directly next to {others}, "
            f"which {'is' if len(self.beside) == 1 else 'are'} {said.value} ({self.path}:{self.line})"
        )


@value
class MarkersWritten:
    """A file that a decision has put conflict markers into (or would, if it was a dry run)."""

    edit: Seq  # the edit that wrote them; 0: a dry run
    path: str
    regions: int  # how many places are marked
    aside: tuple[Unit, ...]  # hunks set aside: rejected until somebody decides on the conflict


@value
class Decided:
    """The decision holds: on disk and in the journal (or would, if it was a dry run)."""

    action: Action
    number: int  # of the decision; 0: a dry run
    verdicts: tuple[tuple[Unit, Status], ...]  # units whose status changed
    cascaded: tuple[Unit, ...]  # those among them that were not named, but needed something that was
    files: tuple[FileEffect, ...]  # files whose bytes, mode or path change; () when only statuses do
    external: tuple[EditView, ...]  # changes nobody had recorded, recorded first
    unrecorded: "tuple[Edit, ...]"  # those that would be recorded first, if it was a dry run
    notices: tuple[Notice, ...]
    markers: tuple[MarkersWritten, ...] = ()
    unmarked: tuple[Seq, ...] = ()  # edits that wrote markers, which are gone now
    returned: tuple[Unit, ...] = ()  # units whose status changed only because of that


@value
class Conflicted:
    """The decision was refused and nothing changed: these edits can't be live without those.

    Beside it stand the other units that would have to be decided with it, to the last one; none where no such
    decision helps, as when what is to be accepted excludes each other.
    """

    conflicts: tuple[Conflict, ...]
    accept_first: tuple[Unit, ...] = ()  # rejected units that are needed live, ascending
    reject_first: tuple[Unit, ...] = ()  # live units that can't stay, ascending
    outside: tuple[Seq, ...] = ()  # edits among them that are changes found on disk, and were not recorded after all


@value
class ExternalChanges:
    """Files have changed on disk since the last recorded state; nothing was done about the decision."""

    changes: tuple[ExternalChange, ...]


@value
class NothingToDo:
    """Every unit named has the wanted status already."""


DecisionOutcome: TypeAlias = Decided | Conflicted | ExternalChanges | NothingToDo
