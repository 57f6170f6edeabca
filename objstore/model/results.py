"""Define what surfaces ask for and what they get back, conflicts included, as plain values."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from objstore.model.basic_types import Action, ConflictKind, DocumentId, FileState, Origin, Seq, Status, Unit, counted
from objstore.model.ids import BlobId
from objstore.model.views import Act, EditView
from objstore.values.fastclass import field, value

if TYPE_CHECKING:
    from objstore.model.records import Edit

__all__ = [
    "EXTERNAL_CALL",
    "Attributor",
    "Broken",
    "CallInfo",
    "CallOutcome",
    "Conflict",
    "Conflicted",
    "Decided",
    "DecisionOutcome",
    "Difference",
    "ExternalChange",
    "ExternalChanges",
    "FileEffect",
    "LinesKept",
    "MarkersWritten",
    "NothingToDo",
    "Notice",
    "TurnInfo",
    "counted_edits",
    "owner_at",
]


@value
class TurnInfo:
    """The turn that a call belongs to: what an agent does from one prompt to its stop."""

    session: str  # name of the run of the agent program
    began: int  # when the prompt was given, in microseconds since 1970-01-01 UTC
    prompt: str = ""  # texts may be empty: not known
    client: str = ""
    model: str = ""
    conversation: str = ""  # of the turn's record; "": that of the call
    since: int = 0  # the file system's time when the prompt was reported (ns); 0: not known


@value
class CallInfo:
    """The author of a change, and the conversation, tool and turn that it belongs to."""

    tool: str
    conversation: str = ""  # "": a new conversation
    origin: Origin = Origin.AGENT
    amends: Seq | None = None  # the edit whose result the call corrects; None: it is not an amendment
    notes: Mapping[str, str] = field(default_factory=dict)  # agent, client, model, prompt, …
    turn: TurnInfo | None = None  # None: it belongs to no known turn
    within: tuple[str, ...] = ()  # canonical paths that the call may reach, and all below; (): the whole workspace
    denies: Callable[[str], bool] | None = None  # whether it may not change the file at a canonical path; None: it may


EXTERNAL_CALL: Final = CallInfo(tool="", origin=Origin.EXTERNAL)
"""The attribution of a change that no known call made."""


class Attributor:
    """Says whose changes are that are found on disk, by what is known at one moment. This one knows nothing."""

    def __call__(self, path: str, moment: int, tick: int, *, is_unseen: bool = False) -> CallInfo:
        """Return the call that changed a file at a moment (ns of the file system), give or take a tolerance in ns.

        `is_unseen`: the last look did not read the file, so that it may have changed at any time before the moment.
        """
        del path, moment, tick, is_unseen
        return CallInfo(tool="", origin=Origin.UNATTRIBUTED)

    def may_be_formatted(self, session: str, path: str, recorded: int, moment: int, tick: int) -> bool:
        """Return whether a formatter may change at a moment what a session's call made of a file. Units as above.

        `recorded`: when that was recorded, in microseconds since 1970-01-01 UTC.
        """
        del session, path, recorded, moment, tick
        return False


def owner_at(whose: CallInfo | Attributor, path: bytes, moment: int, tick: int, *, is_unseen: bool = False) -> CallInfo:
    """Return the call that a change of a file at a moment is attributed to. Parameters as for an `Attributor`."""
    return whose if isinstance(whose, CallInfo) else whose(_name(path), moment, tick, is_unseen=is_unseen)


@value
class Difference:
    """A file that is not in its known state."""

    path: bytes
    document: DocumentId | None  # None: it has none yet
    known: FileState | None  # None: no file
    now: FileState | None  # None: no file
    changed: int  # the latest time at which it can have changed (ns of the file system)
    tick: int  # possible error of that time, for a file on another file system than the store (ns)
    folders: int = 0  # how many of its folders, counted from the innermost, are new with it
    is_lost: bool = False  # whether its known state can't be read
    is_unseen: bool = False  # whether the last look did not read the file, so that it may have changed earlier, too


@value
class CallOutcome:
    """The result of a tracked call: what it recorded and changed."""

    conversation: str
    new_conversation: bool
    call: int  # position in the conversation
    edits: tuple[EditView, ...]  # the call's own edits; () if it changed nothing
    external: tuple[EditView, ...]  # external edits, found and recorded before the call's
    decision: int = 0  # number of the decision that is recorded with it, by which `undo` takes it back; 0: none is
    secrets: tuple[str, ...] = ()  # paths of those of its files that look like secrets: their bytes are stored now
    older: tuple[str, ...] = ()  # of a rewind: paths of files that are kept as they came into sight: they may be older
    modes_lost: Mapping[bytes, int] = field(default_factory=dict)  # by path: setuid and setgid that it doesn't get
    given_to: tuple[int, ...] = ()  # of a restore: as that of Decided

    @property
    def files(self) -> "tuple[FileEffect, ...]":
        """Return what each of the call's own edits does, or would do, to a file on disk."""
        return tuple(_effect_of(view.edit, self.modes_lost.get(view.edit.path, 0)) for view in self.edits)


@value
class FileEffect:
    """The effect of a decision or an edit on one file on disk, made or previewed."""

    document: DocumentId
    path_before: str | None  # None: no file
    before: BlobId | None
    mode_before: int
    path_after: str | None
    after: BlobId | None
    mode_after: int
    mode_lost: int = 0  # setuid and setgid of the recorded mode, which no file gets


def _effect_of(edit: "Edit", mode_lost: int) -> FileEffect:
    before, after = edit.before, edit.after
    return FileEffect(
        document=edit.document,
        path_before=None if before is None else _name(edit.source or edit.path),
        before=None if before is None else before.blob,
        mode_before=0 if before is None else before.mode,
        path_after=None if after is None else _name(edit.path),
        after=None if after is None else after.blob,
        mode_after=0 if after is None else after.mode,
        mode_lost=mode_lost,
    )


def _name(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


@value
class Conflict:
    """Why a set of live edits has no text: one hunk, and the units that it needs."""

    kind: ConflictKind
    unit: Unit
    needs: tuple[Unit, ...]
    path: str
    line: int  # 1-based, in the present text; 0: the file as a whole
    removed: bytes  # the lines that the hunk deleted
    inserted: bytes  # the lines that it inserted
    outside: tuple[Seq, ...] = ()  # edits among these that are external and were not recorded in the end
    is_without: bool = False  # of a taken path: whether the file is there because the unit is not live

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
                return f"{who} and {needs} both change the file as a whole ({where})"
            case ConflictKind.BOTH_CHANGED:
                return f"{who} and {needs} both change the same lines ({where})"
            case ConflictKind.PATH_TAKEN if self.is_without:
                return f"without {who} the file is at {self.path} again, where {needs} has put another"
            case ConflictKind.PATH_TAKEN:
                return f"{who} puts a file where {needs} has put another ({where})"
            case ConflictKind.TEXT_RETURNED:
                return f"{who} was made without text that {needs} changes ({where})"
            case ConflictKind.SURROUNDINGS_GONE:
                return f"{who} is inside lines that {needs} changes ({where})"
            case ConflictKind.IN_DOUBT:
                return (
                    f"{who} was recorded by comparing texts, and lines read alike: "
                    f"which of them it means is not certain with this decision on {needs} ({where})"
                )
            case ConflictKind.MISSING_TARGET:
                return f"{who} needs {needs} ({where})"


@value
class Notice:
    """A warning that is no conflict: hunks adjacent to one that was just decided were decided the other way."""

    unit: Unit
    status: Status  # accepted or rejected; the neighbours have the other status
    adjacent: tuple[Unit, ...]  # ascending
    path: str
    line: int  # 1-based, in the text after the decision

    def __str__(self) -> str:
        others = ", ".join(map(str, self.adjacent))
        said = Status.REJECTED if self.status is Status.ACCEPTED else Status.ACCEPTED
        return (
            f"hunk {self.unit}, {self.status.value}, is directly next to {others}, "
            f"which {'is' if len(self.adjacent) == 1 else 'are'} {said.value} ({self.path}:{self.line})"
        )


@value
class MarkersWritten:
    """A file into which a decision wrote conflict markers (or would write them, in a dry run)."""

    edit: Seq  # the edit that wrote the markers; 0: a dry run
    path: str
    regions: int  # number of marked places
    aside: tuple[Unit, ...]  # hunks set aside: rejected until a reviewer decides on the conflict


@value
class Broken:
    """What a decision breaks in a Python source: a name that is undefined then, or an import of what is gone."""

    words: str  # what is wrong, and where
    path: str
    line: int  # 1-based, in the text after the decision; 0: the file as a whole
    user: Unit | None = None  # the unit that put the line there, if it is live; None: none did, or it is not known

    def __str__(self) -> str:
        return f"{self.words}{'' if self.user is None else f', which {self.user} added'}"


@value
class LinesKept:
    """A file of which a decision rejected the creation, and which stays with the lines of others."""

    edit: Seq  # the edit that creates it with these lines; 0: a dry run
    path: str
    lines: int
    units: tuple[Unit, ...]  # hunks that inserted the lines; they are rejected with the creation


@value
class Decided:
    """The decision is applied to the disk and the journal (or would be, in a dry run)."""

    action: Action
    number: int  # of the decision; 0: a dry run
    verdicts: tuple[tuple[Unit, Status], ...]  # units whose status changed
    cascaded: tuple[Unit, ...] = ()  # those of them that the reviewer did not name, but that depend on named ones
    files: tuple[FileEffect, ...] = ()  # files whose bytes, mode or path change; () if only statuses change
    external: tuple[EditView, ...] = ()  # external edits that were recorded first
    unrecorded: "tuple[Edit, ...]" = ()  # external edits that would be recorded first; only in a dry run
    notices: tuple[Notice, ...] = ()
    markers: tuple[MarkersWritten, ...] = ()
    unmarked: tuple[Seq, ...] = ()  # edits whose markers the decision removed
    returned: tuple[Unit, ...] = ()  # units whose status changed only because of the removal
    # Units that an undo or redo left rejected, each with the live unit that makes the same change.
    repeated: tuple[tuple[Unit, Unit], ...] = ()
    # Units that stay pending instead of being accepted, each with the accepted unit that took its change out.
    taken_out: tuple[tuple[Unit, Unit], ...] = ()
    given_to: tuple[int, ...] = ()  # the users whose the restored files are, if root runs this, ascending
    kept: tuple[LinesKept, ...] = ()  # files that stay with the lines of others
    act: Act | None = None  # what an undo took back, or a redo made again; None: it is another decision
    taken_back: tuple[Unit, ...] = ()  # units that were accepted and are rejected now, ascending
    broken: tuple[Broken, ...] = ()  # what works no longer then, and did before
    # What goes along and was not shown, each with its status: the reviewer has to be asked, and nothing was decided.
    unshown: tuple[tuple[Unit, Status], ...] = ()
    older: tuple[Seq, ...] = ()  # creations that stay as they were: a rule left their paths out until then
    absent: tuple[str, ...] = ()  # files that stay as they were: their file systems are not mounted

    @property
    def decided(self) -> tuple[Unit, ...]:
        """Return the units of recorded edits that were decided, without what was found on disk or set aside."""
        found = {*(view.seq for view in self.external), *(made.seq for made in self.unrecorded), *self.unmarked}
        aside = {unit for markers in self.markers for unit in markers.aside}
        aside.update(unit for kept in self.kept for unit in kept.units)
        return tuple(unit for unit, _ in self.verdicts if unit.seq not in found and unit not in aside)


@value
class Conflicted:
    """The decision was refused and nothing changed: some edits can't be live without others.

    `accept_first` and `reject_first` name all further units that would have to be decided with it. Both are empty if no
    such decision helps, for example if the units to be accepted exclude each other.
    """

    conflicts: tuple[Conflict, ...]
    accept_first: tuple[Unit, ...] = ()  # rejected units that are needed live, ascending
    reject_first: tuple[Unit, ...] = ()  # live units that can't stay, ascending
    outside: tuple[Seq, ...] = ()  # edits among these that are external and were not recorded in the end
    can_keep_lines: bool = False  # whether the decision would be possible if it kept the lines of others

    @property
    def recorded_to_reject(self) -> tuple[Unit, ...]:
        """Return the live units that can't stay, without those of changes from outside, which have no number yet."""
        return tuple(unit for unit in self.reject_first if unit.seq not in self.outside)


@value
class ExternalChange:
    """A file that differs from its recorded state."""

    document: DocumentId | None  # None: it has no edit, and differs from the baseline
    path: str
    recorded: BlobId | None  # None: the journal says that there is no file
    recorded_mode: int
    found: BlobId | None  # None: the file is gone
    found_mode: int
    taken_by: str = (
        ""  # what is there in place of the file, if it is gone or of another kind, as `kind_noun` says; "": nothing
    )

    @property
    def word(self) -> str:
        """Return in a word how the file differs."""
        if self.found is None:
            return "deleted"
        if self.recorded is None:
            return "created"
        return "modified" if self.found != self.recorded else "mode changed"


@value
class ExternalChanges:
    """Files have changed on disk since the last recorded state; the decision was not made."""

    changes: tuple[ExternalChange, ...]


@value
class NothingToDo:
    """Every named unit has the wanted status already."""


def counted_edits(units: Iterable[Unit], accepted: Iterable[Unit]) -> str:
    """Return how many edits some units are of, and of how many of these any unit is accepted, in words."""
    edits, taken = {unit.seq for unit in units}, {unit.seq for unit in accepted}
    number = counted(len(edits), "edit")
    if not taken:
        return number
    return f"{number}, {'accepted' if len(edits) == 1 else f'{len(taken)} of them accepted'}"


DecisionOutcome: TypeAlias = Decided | Conflicted | ExternalChanges | NothingToDo
