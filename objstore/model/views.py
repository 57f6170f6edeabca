"""Define what surfaces are shown of a workspace, as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from objstore.model.basic_types import UNKNOWN_AGENT, Origin, Unit
from objstore.model.records import RETURNED
from objstore.values.fastclass import replace, value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from objstore.model.basic_types import Action, CommentState, Seq, Status
    from objstore.model.ids import BlobId, RecordId
    from objstore.model.records import Comment, Decision, Edit

__all__ = [
    "AGENT_NOTES",
    "SUBAGENT",
    "Act",
    "CommentView",
    "Content",
    "DecisionView",
    "DirectoryEntry",
    "EditFilter",
    "EditView",
    "Expiration",
    "GitEvent",
    "PathInfo",
    "Reason",
    "Rejection",
    "SessionView",
    "State",
    "TurnLines",
    "TurnPrompt",
    "TurnView",
    "UnreportedComments",
    "Verdict",
    "check_in_brief",
    "output_end",
    "parted_reason",
    "reason_with_broken",
    "reason_with_check",
    "reason_with_failed",
]

SUBAGENT: Final = "subagent"
"""The note of an edit that a subagent made: the client's id of it."""

AGENT_NOTES: Final = ("agent", SUBAGENT)
"""The notes that name the agent of a session which made an edit: what kind of agent it is, and its id."""

_NOUNS: Final = {"accept": "acceptance", "reject": "rejection", "reset": "reopening", "claim": "claim"}
_SHORT: Final = 7
"""Digits of a commit's id that are shown."""

_NAMED: Final = 10
"""Units that a sentence lists by name; an edit may have thousands."""


_CHECKED: Final = "Checked with "
_BREAKS: Final = "This breaks names: it "
_FAILED_BEFORE: Final = "A check failed before this: `"
_FAILED_WITH: Final = "A check failed with this: `"
_FAILED: Final = (_FAILED_BEFORE, _FAILED_WITH)
_CHECK_GAP: Final = "\n\n"
"""Between a reason and what a check adds to it."""

_CHECK_LINES: Final = 20
_CHECK_SIZE: Final = 2_000
_BRIEF_LINES: Final = 10
"""Lines of a failed check's output that an agent reads."""
_OUTPUT: Final = "  "
"""In front of each line of a failed check's output."""
_COLOURS: Final = "\x1b\\[[0-9;]*[A-Za-z]"
_LONGEST_REASON: Final = 65_536


@value
class Content:
    """A file on disk."""

    path: str  # relative to the workspace, after following links inside it
    bytes: bytes
    blob: BlobId
    mode: int  # permission bits


@value
class State:
    """A recorded state of one file."""

    path: str
    blob: BlobId | None  # None: the file does not exist in this state
    mode: int


@value
class Expiration:
    """The time and the reason of an edit's expiry."""

    time: int  # microseconds since 1970-01-01 UTC
    reason: str


def output_end(output: str) -> str:
    """Return what is kept of a check's output: its last lines, without colours."""
    import re  # most of those who import this module decide nothing

    lines = re.sub(_COLOURS, "", output).rstrip().splitlines()[-_CHECK_LINES:]
    return "\n".join(lines)[-_CHECK_SIZE:]


def reason_with_check(reason: str, command: str, output: str) -> str:
    """Return the reason of a decision that was made because a command succeeded, with the end of its output."""
    kept = output_end(output)
    ended = f", which succeeded:\n{kept}" if kept else ", which succeeded."
    return _CHECK_GAP.join([*([reason] if reason else []), f"{_CHECKED}`{command}`{ended}"])[:_LONGEST_REASON]


def reason_with_failed(reason: str, command: str, how: str, output: str, *, is_before: bool) -> str:
    """Return the reason of a decision with a check that failed on the files before it, or on those that it leads to.

    It is put before what a check has added to it. `how`: as in "failed with status 1"; `output`: what is kept of it.
    """
    lines = [_OUTPUT + line for line in output.splitlines()]
    mark = _FAILED_BEFORE if is_before else _FAILED_WITH
    said = f"{mark}{' '.join(command.splitlines())}` {how}{':' if lines else '.'}"
    return _with_added(reason, "\n".join([said, *lines]))


def reason_with_broken(reason: str, broken: Sequence[str]) -> str:
    """Return the reason of a decision with what it breaks, before what checks have added to it."""
    more = [f"and {len(broken) - _NAMED} more"] if len(broken) > _NAMED else []
    return _with_added(reason, f"{_BREAKS}{'; '.join([*broken[:_NAMED], *more])}.")


def _with_added(reason: str, said: str) -> str:
    given, added = parted_reason(reason)
    both = "\n".join([said, *([added] if added else [])])
    return _CHECK_GAP.join([*([given] if given else []), both])[:_LONGEST_REASON]


def parted_reason(text: str) -> tuple[str, str]:
    """Return the reason that a person gave ("": none), and what the functions above added to it ("": nothing)."""
    for mark in (_BREAKS, *_FAILED, _CHECKED):  # in the order in which they are there
        if text.startswith(mark):
            return "", text
        reason, gap, check = text.rpartition(f"{_CHECK_GAP}{mark}")
        if gap:
            return reason, mark + check
    return text, ""


def check_in_brief(check: str, *, with_output: bool = True) -> str:
    """Return what was added to a reason as an agent reads it: what breaks, and the checks.

    Of a check that succeeded, without what it printed; `with_output`: with what one printed that failed.
    """
    said: list[str] = []
    failed: list[list[str]] = []
    for line in check.splitlines():
        if line.startswith(_FAILED):
            failed.append([line.rstrip(":.")])
        elif line.startswith((_BREAKS, _CHECKED)):
            said.append(line.rstrip(":."))
            if line.startswith(_CHECKED):
                break  # what it printed follows
        elif failed and with_output:
            failed[-1].append(line)
    for sentence, *lines in failed:
        shown = lines[-_BRIEF_LINES:]
        said.append("\n".join([f"{sentence}, and printed in the end:" if shown else sentence, *shown]))
    return ". ".join(said)


@value
class Reason:
    """The reason of the decision on some units of one edit: what the person gave, what a check added, or both."""

    units: tuple[Unit, ...]
    text: str  # "": the person gave none
    check: str = ""  # a command that had to succeed, and the end of its output; "": none

    @property
    def told(self) -> str:
        """Return the reason as an agent reads it, with what was added to it in brief ("": there is none)."""
        brief = check_in_brief(self.check)
        return f"{self.text} ({brief})" if self.text and brief else self.text or brief

    def __str__(self) -> str:
        more = len(self.units) - _NAMED
        return f"{', '.join(map(str, self.units[:_NAMED]))}{f' and {more} more' if more > 0 else ''}: {self.text}"


@value
class EditView:
    """A recorded edit and what was decided on it since."""

    id: RecordId
    edit: Edit
    status: Status  # the first of pending, accepted, rejected and away that any unit has
    units: tuple[Status, ...]  # of units 0, 1, …: the whole-file part, then each hunk
    whole: bool  # whether unit 0 changes anything: existence, path, mode, final newline
    reasons: tuple[str, ...]  # of the newest decision on each unit; "": it gave none
    expired: Expiration | None = None  # None: it can be shown and decided on
    owner: str  # the conversation that it is attributed to, after claims; "": the person

    @property
    def seq(self) -> Seq:
        """Return the edit's number in its workspace."""
        return self.edit.seq

    @property
    def given(self) -> tuple[Reason, ...]:
        """Return the given reasons, each with its units, in the order of these."""
        units: dict[str, list[Unit]] = {}
        for hunk in self.telling:
            if self.reasons[hunk]:
                units.setdefault(self.reasons[hunk], []).append(Unit(self.seq, hunk))
        parted = ((tuple(of), *parted_reason(text)) for text, of in units.items())
        return tuple(Reason(units=of, text=text, check=check) for of, text, check in parted)

    @property
    def reason(self) -> str:
        """Return the reason given for the edit or a part of it ("": none); of several, each after its units."""
        given = self.given
        return given[0].text if len(given) == 1 else "; ".join(str(each) for each in given if each.text)

    @property
    def check(self) -> str:
        """Return which command had to succeed for the decision, and the end of its output ("": none)."""
        return "\n".join(dict.fromkeys(each.check for each in self.given if each.check))

    @property
    def reason_told(self) -> str:
        """Return the reason as an agent reads it, with its check and what breaks; of several, each after its units."""
        given = self.given
        told = [replace(each, text=each.told) for each in given if each.told]
        return told[0].text if len(given) == len(told) == 1 else "; ".join(map(str, told))

    @property
    def is_unattributed(self) -> bool:
        """Return whether an agent may have made the edit, though it is not known which call did."""
        if self.owner == self.edit.conversation:
            return self.edit.origin is Origin.UNATTRIBUTED
        return self.owner == UNKNOWN_AGENT

    @property
    def is_of_agent(self) -> bool:
        """Return whether an agent made the edit, or may have made it. A claim settles that."""
        if self.owner != self.edit.conversation:
            return bool(self.owner)
        return self.edit.origin.needs_review

    @property
    def agents(self) -> list[str]:
        """Return the kind of the agent that made it, and its id if it is a subagent, as far as they were reported.

        A claim takes the edit from them.
        """
        is_own = self.owner == self.edit.conversation
        return [self.edit.notes[note] for note in AGENT_NOTES if is_own and self.edit.notes.get(note)]

    def is_of_turn(self, turn: int) -> bool:
        """Return whether the edit is of a turn, and was not claimed for somebody else since."""
        return self.edit.turn == turn and self.owner == self.edit.conversation

    def whole_if_complete(self, hunks: Sequence[int]) -> tuple[Unit, ...]:
        """Return the units with these numbers, ascending; all units, if these are all that change anything."""
        real = [hunk for hunk in range(len(self.units)) if hunk or self.whole]
        return tuple(Unit(self.seq, hunk) for hunk in (range(len(self.units)) if list(hunks) == real else hunks))

    def refuse_if_expired(self) -> None:
        """Raise EditExpired if the edit's content is no longer kept."""
        if self.expired is not None:
            from objstore.values.request_errors import EditExpired

            raise EditExpired(self.edit.seq, self.expired.time, self.expired.reason)

    @property
    def partly(self) -> bool:
        """Return whether its units have different statuses."""
        return len(set(self.units[self.telling.start :])) > 1

    @property
    def telling(self) -> range:
        """Return the numbers of its units, without unit 0 if that changes nothing."""
        return range(0 if self.whole or len(self.units) == 1 else 1, len(self.units))

    @property
    def telling_units(self) -> tuple[Unit, ...]:
        """Return its units, without unit 0 if that changes nothing."""
        return tuple(Unit(self.seq, hunk) for hunk in self.telling)

    @property
    def all_units(self) -> tuple[Unit, ...]:
        """Return its units, ascending."""
        return tuple(Unit(self.seq, hunk) for hunk in range(len(self.units)))


@value
class Verdict:
    """The decision by which some units of one edit have their status."""

    units: tuple[Unit, ...]
    decision: int  # its number
    action: Action
    time: int  # microseconds since 1970-01-01 UTC
    who: str
    via: str  # through what: a Surface; "": not known
    agent: str  # the client inside whose shell it was made; "": none is known
    commit: str  # the commit that made it, in hex; "": none


@value
class Rejection:
    """Units of one edit that were rejected for one reason."""

    edit: EditView
    units: tuple[Unit, ...]
    is_whole: bool  # whether these are all units of the edit
    reason: str  # "": none given


@value
class UnreportedRejections:
    """The rejections of a conversation's edits that were not reported to it yet."""

    rejections: tuple[Rejection, ...]  # the first of them, by edit
    more: int  # how many further edits are rejected, as a whole or in part
    units: frozenset[str]  # every rejected unit, in the form `12:2`


@value
class CommentView:
    """A comment, where its lines are now, and what became of it."""

    id: RecordId
    comment: Comment
    path: str  # of the file now, or the last one if it is gone
    lines: tuple[int, int]  # numbers of its first and last line now, from 1; (0, 0): it is about the file as a whole
    is_there: bool  # whether the file has any of its lines now; if not, `lines` is where they were
    state: CommentState
    sent_to: str  # the conversation that it was last sent to, or is meant for; "": none
    answers: tuple[CommentView, ...] = ()  # oldest first; of agents, and of persons
    more_files: int = 0  # how many other files it is about, if it is about edits of several

    @property
    def number(self) -> int:
        """Return the comment's number in its workspace."""
        return self.comment.number

    @property
    def is_by_agent(self) -> bool:
        """Return whether an agent wrote it."""
        return bool(self.comment.conversation)

    @property
    def is_resolved(self) -> bool:
        """Return whether a person has resolved it."""
        return self.state.value == "resolved"

    @property
    def word(self) -> str:
        """Return its state in a word: open, sent, answered or resolved."""
        if self.state.value == "sent" and self.answers:
            return "answered" if self.answers[-1].is_by_agent else self.answers[-1].state.value
        return self.state.value


@value
class UnreportedComments:
    """The comments of persons that an agent has not been sent yet."""

    comments: tuple[CommentView, ...]  # the first of them, oldest first; an answer is one of its own
    more: int  # how many further ones there are


@value
class EditFilter:
    """The conditions for listing edits; all that are given must hold."""

    conversation: str = ""
    path: str = ""  # the file's path now, before or after the edit
    status: Status | None = None
    turn: int = 0  # number of a turn; 0: any
    session: str = ""  # a session's number, or the beginning of its name; "": any
    before: int = 0  # only edits with a lower number; 0: all
    newest_first: bool = False
    limit: int = 0  # 0: all
    skip: int = 0  # how many matching edits to omit before the first


@value
class HistoryEnd:
    """How far a history went when somebody looked."""

    next_edit: int = 1  # the number that the next edit gets
    next_decision: int = 1


@value
class DecisionView:
    """A recorded decision."""

    id: RecordId
    decision: Decision


@value
class DecisionInForce:
    """A decision that was not undone."""

    number: int
    units: frozenset[Unit]


@value
class Act:
    """Something that a person did, or a commit, and that an undo takes back or took back."""

    number: int  # of its decision
    action: Action
    tool: str  # of a person's own change of files: restore, snapshot restore, rewind, amend; "": a decision alone
    units: tuple[Unit, ...]
    paths: tuple[str, ...]  # of the files that the person changed; (): a decision alone
    amends: Seq | None  # the edit that was amended; None: it was no amendment
    about: int  # number of the turn of a rewind, or of a snapshot; 0: neither
    commit: str  # the commit that made it, in hex; "": a person did
    time: int  # microseconds since 1970-01-01 UTC

    def words(self, name: Callable[[str], str]) -> str:
        """Return what it was, such as `restore of a`, `acceptance` or `rewind to before turn 3`.

        `name`: returns the name of a file as a surface shows it.
        """
        match self.tool:
            case "restore" if self.paths:
                return f"restore of {name(self.paths[0])}"
            case "snapshot restore":
                return f"restore of snapshot {self.about}"
            case "rewind":
                return f"rewind to before turn {self.about}"
            case "amend":
                return f"amendment of edit {self.amends}"
        if self.commit:
            return f"{_NOUNS.get(self.action.value, self.action.value)} by commit {self.commit[:_SHORT]}"
        return _NOUNS.get(self.action.value, self.action.value)


@value
class SessionView:
    """One run of an agent program: its turns, or edits without turns."""

    number: int  # by the order of the first records, from 1
    name: str
    client: str  # texts may be empty: not known
    prompt: str  # of its first turn
    began: int  # time of its first turn or edit, in microseconds since 1970-01-01 UTC
    ended: int  # time of its last turn or edit
    turns: int  # number of its turns
    edits: int  # number of its edits


@value
class TurnPrompt:
    """What an agent was asked in a turn. Texts may be empty: not known."""

    number: int
    session: int  # number of its session
    conversation: str
    time: int  # when the prompt was given, in microseconds since 1970-01-01 UTC
    prompt: str
    client: str
    model: str


@value
class TurnView:
    """What an agent did from one prompt to its stop. Edits that were claimed since are left out."""

    number: int
    session: int  # number of its session
    conversation: str
    time: int  # when the prompt was given, in microseconds since 1970-01-01 UTC
    prompt: str  # texts may be empty: not known
    client: str
    model: str
    seqs: tuple[Seq, ...]  # of its edits, ascending
    paths: tuple[str, ...]  # current paths of its files, ascending
    added: int  # lines
    removed: int
    counts: Mapping[Status, int]  # number of its edits of each status that any of them has


@value
class TurnLines:
    """Counts of the lines that the edits of one turn, session and status added and removed, without git's edits."""

    turn: int  # number of the turn; 0: none is known, or the edits were claimed since
    session: int  # number of the session; 0: none
    status: Status
    edits: int
    added: int  # lines
    removed: int
    first: Seq  # of these edits
    began: int  # time of the earliest of them, in microseconds since 1970-01-01 UTC


@value
class GitEvent:
    """One event of git that changed recorded files, or a commit that an agent made."""

    decision: int  # number of the decision that records it
    time: int  # when it was recorded, in microseconds since 1970-01-01 UTC
    words: str  # such as `main → feature`
    commit: str  # HEAD after it, in hex; "": none
    conversation: str  # of the call that ran git; "": a person's
    files: int  # files that it changed; 0: it is a commit that an agent made
    is_reviewed: bool  # of an agent's commit: whether none of the edits that it is known to contain is pending any more
    after: Seq  # the newest edit before it (0: none); its own edits follow

    @property
    def is_return(self) -> bool:
        """Return whether earlier text is back, which git or anything else may have done."""
        return self.words == RETURNED


@value
class DirectoryEntry:
    """One name in a folder."""

    name: str
    kind: str  # file, directory, symlink, other
    size: int  # bytes, of a file


@value
class PathInfo:
    """The facts about a file that are known without reading its content."""

    path: str  # canonical, relative to the root
    kind: str  # file, directory, symlink, other
    size: int  # bytes
    mode: int  # permission bits
    writable: bool  # whether this process may write the file and its folder, and the file has a write bit
    modified: int  # nanoseconds since the epoch
    accessed: int  # nanoseconds since the epoch


@value
class WaitingMessage:
    """Counts of the messages that a session is still to be sent about its edits."""

    session: int  # its number; 0: whichever agent works next
    rejections: int  # number of edits that were rejected, as a whole or in part
    comments: int
    has_hooks: bool  # whether it is sent anything by itself; without hooks, it has to ask
