"""Define the errors of requests that can't be met: names that match nothing, decisions, settings, bundles and purges.

They are separate from `errors` because most commands end without one, and `cas status` must not wait for them to load.
"""

from collections.abc import Mapping, Sequence
from enum import Enum, auto

from objstore.values.errors import CasError, StoreError

__all__ = [
    "AgentDecides",
    "AmbiguousName",
    "BundleRefused",
    "ChangesGone",
    "CheckedElse",
    "DecidedMeanwhile",
    "EditAway",
    "EditExpired",
    "EditTakenOut",
    "FileMayBeOlder",
    "LineMissing",
    "NoChangeAtLine",
    "NoPlaceForCopy",
    "NoSuchName",
    "NoSuchSetting",
    "NotAmendable",
    "NotBundled",
    "NotClaimable",
    "NotInSnapshot",
    "NothingSelected",
    "ObjectMissing",
    "ObjectTooLarge",
    "PurgeRefused",
    "RemoteDecided",
    "RemoteDiverged",
    "RemoteFailed",
    "RemoteNameRefused",
    "RemoteRefused",
    "RemoteRolledBack",
    "RemoteSupportMissing",
    "RemoteUnknown",
    "RemoteUrlRefused",
    "Selecting",
    "SeriesBroken",
    "SettingInvalid",
    "SettingsUnreadable",
    "SnapshotIncomplete",
    "SnapshotUnreadable",
    "SnapshotsNotComparable",
]


# ---- names


class NoSuchName(CasError):
    """No edit, hunk, conversation, state or blob of this workspace has a name."""

    def __init__(self, spelling: str, kind: str) -> None:
        self.spelling = spelling
        self.kind = kind
        super().__init__(f"No {kind} is named {spelling!r} here.")


class NoChangeAtLine(CasError):
    """No pending change covers a line of a file."""

    def __init__(self, path: str, line: int, reason: str, near: Sequence[int] = ()) -> None:
        self.path = path
        self.line = line
        self.near = tuple(near)  # lines of the current file with a change, the nearest first
        more = f" The nearest change is at {path}:{self.near[0]}." if self.near else ""
        super().__init__(f"{path}:{line} {reason}.{more}")


class LineMissing(CasError):
    """A file has fewer lines than a comment names."""

    def __init__(self, path: str, line: int, count: int) -> None:
        self.path = path
        self.line = line
        self.count = count
        super().__init__(f"{path} has no line {line}: it has {count} line{'' if count == 1 else 's'}.")


class NotInSnapshot(NoSuchName):
    """A path names nothing in a snapshot, and nothing created since in the folder that the snapshot covers."""

    def __init__(self, spelling: str, number: int, near: Sequence[str]) -> None:
        self.number = number
        self.near = tuple(near)  # similar paths in the snapshot
        super().__init__(spelling, f"file or folder of snapshot {number}")


class AmbiguousName(CasError):
    """A prefix matches more than one name."""

    def __init__(self, spelling: str, kind: str, candidates: Sequence[str]) -> None:
        self.spelling = spelling
        self.kind = kind
        self.candidates = tuple(candidates)
        shown = ", ".join(self.candidates[:5])
        super().__init__(f"{spelling!r} matches more than one {kind}: {shown}. Type more of the name.")


class Selecting(Enum):
    """What a selection that selects nothing named."""

    PLACE = auto()  # a path at which nothing is pending
    GROUP = auto()  # a turn, a session or an agent
    CONVERSATION = auto()  # a conversation that did not edit the named file


class NothingSelected(CasError):
    """Every name of a selection is known, but no edit has all that was named."""

    def __init__(self, named: Selecting, words: Sequence[str], path: str) -> None:
        self.named = named
        self.words = tuple(words)  # the turns, the session and the agent, or the conversation
        self.path = path  # "": none was named
        of = " and ".join(self.words)
        match named:
            case Selecting.PLACE:
                super().__init__(f"Nothing{f' of {of}' if of else ''} is pending at {path}.")
            case Selecting.GROUP:
                super().__init__(f"No edit of an agent matches {of}{f' at {path}' if path else ''}.")
            case Selecting.CONVERSATION:
                super().__init__(f"No agent edited {path} in {of}.")


class ChangesGone(CasError):
    """Changes are not as they were shown any more: they were decided, or their lines changed."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self.keys = tuple(keys)
        what = "This change is" if len(keys) == 1 else f"{len(keys)} of these changes are"
        super().__init__(f"{what} not as shown any more: the agent, or you, changed the lines since you looked.")


# ---- edits and decisions


class EditExpired(CasError):
    """An edit has expired: retention deleted its text, so it can be neither shown nor decided."""

    def __init__(self, seq: int, time: int, reason: str) -> None:
        self.seq = seq
        self.time = time  # of the expiry, in microseconds since 1970-01-01 UTC
        self.reason = reason
        super().__init__(f"Edit {seq} expired on {_day(time)}: {reason}. Its record is kept, but not its text.")


class NotClaimable(CasError):
    """An edit can't be claimed, because its maker is recorded."""

    def __init__(self, seq: int, origin: str) -> None:
        self.seq = seq
        self.origin = origin
        super().__init__(
            f"It is recorded who made edit {seq} (origin {origin}), so it can't be claimed: "
            "only changes that were found on disk can be."
        )


class AgentDecides(CasError):
    """A decision was asked for inside the shell of an agent, by a command or by a page that was started there."""

    def __init__(self, client: str) -> None:
        self.client = client
        super().__init__(
            f"This is {client}'s shell; a person decides, in a terminal of their own, "
            "unless `review.by_agents` allows it."
        )


class NoPlaceForCopy(CasError):
    """No folder outside the workspace can hold a scratch copy of it."""

    def __init__(self, root: str) -> None:
        self.root = root
        super().__init__(
            f"No folder outside {root} can hold a copy of it. Set TMPDIR to a folder elsewhere that you may write."
        )


class CheckFailed(CasError):
    """A check ran on what a decision would leave, and did not succeed; the decision was not made."""

    def __init__(self, command: str, how: str, output: str, *, is_cut: bool = False, was_stopped: bool = False) -> None:
        self.command = command
        self.output = output  # its end
        self.is_cut = is_cut  # whether it wrote more
        self.was_stopped = was_stopped  # by the person, before it ended
        super().__init__(f"Nothing was decided: `{command}` {how} on a copy of what this would leave.")

    @property
    def lines(self) -> list[str]:
        """Return the lines of the output's end, after one that says that it is an end."""
        said = self.output.splitlines()
        return [*([f"... (the last {len(said)} lines)"] if self.is_cut else []), *said]


class CheckedElse(CasError):
    """Files changed while a check ran, so that the decision would not lead to what was checked; it was not made."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = tuple(paths)
        shown = 5
        more = len(self.paths) - shown
        named = ", ".join(self.paths[:shown]) + (f" and {more} more" if more > 0 else "")
        super().__init__(
            f"Files changed while the check ran: {named}. Nothing was decided, because the check was of other files. "
            "If the check itself wrote them, let it write only below the folder that it starts in. Then decide again."
        )


class EditAway(CasError):
    """Hunks can't be decided on: git or somebody undid what they did, so they have no effect now."""

    def __init__(self, units: Sequence[str]) -> None:
        self.units = tuple(units)  # their names, such as 12:2
        shown = 5
        more = len(self.units) - shown
        named = ", ".join(self.units[:shown]) + (f" and {more} more" if more > 0 else "")
        if len(self.units) == 1:
            what, there, it = "is away: its change is", "it is", "it was made), it"
        else:
            what, there, it = "are away: their changes are", "they are", "they were made), they"
        super().__init__(
            f"{named} {what} not there now. When {there} there again (for example after `git checkout` of the branch "
            f"where {it} can be decided on again."
        )


class EditTakenOut(CasError):
    """Hunks can't be accepted: later accepted changes took what they did out of the file."""

    def __init__(self, units: Sequence[str], path: str, *, by_person: bool, is_recorded: bool = True) -> None:
        self.units = tuple(units)  # names for `cas reject`, such as 12:2
        self.is_recorded = is_recorded  # whether what took them out is recorded yet
        self.path = path  # of one of the files
        self.by_person = by_person  # whether a person's changes took all of it out
        shown = 5
        more = len(self.units) - shown
        named = ", ".join(self.units[:shown])
        it, change = ("it", "its change is") if len(self.units) == 1 else ("them", "their changes are")
        rest = f" and {more} more" if more > 0 else ""
        super().__init__(
            f"{named}{rest} can't be accepted: {change} not in {path} any more, "
            f"because {'you' if by_person else 'later accepted edits'} took {it} out."
        )


class FileMayBeOlder(CasError):
    """An edit that creates a file can't be rejected: no look had seen the file until then, and it may be older."""

    def __init__(self, seqs: Sequence[int], path: str) -> None:
        self.seqs = tuple(seqs)
        self.path = path  # of the first edit's file
        named = " ".join(map(str, self.seqs))
        super().__init__(
            f"{named.replace(' ', ', ')} can't be rejected: {path} only came into sight with this edit, so the file "
            "may be older, and nothing else has its bytes. If it should go, delete it yourself; to keep it, accept the "
            "edit."
        )


class NotAmendable(CasError):
    """An edit has no result that can be amended."""

    def __init__(self, seq: int, reason: str) -> None:
        self.seq = seq
        self.reason = reason
        super().__init__(f"Edit {seq} can't be amended: {reason}.")


class DecidedMeanwhile(CasError):
    """Hunks were decided elsewhere after the reviewer saw them; nothing was changed."""

    def __init__(self, decided: Mapping[str, str]) -> None:
        self.decided = decided  # the names of the hunks, each with its present status
        shown = 5
        named = ", ".join([*decided][:shown]) + (f" and {len(decided) - shown} more" if len(decided) > shown else "")
        was, statuses = "was" if len(decided) == 1 else "were", ", ".join(sorted(set(decided.values())))
        super().__init__(f"{named} {was} decided elsewhere meanwhile ({statuses} now); nothing was changed.")


class SeriesBroken(CasError):
    """Edits were chosen without a later edit that depends on them."""

    def __init__(self, seq: int, needs: tuple[int, ...]) -> None:
        self.seq = seq
        self.needs = needs
        named = f"{'edit' if len(needs) == 1 else 'edits'} {' '.join(map(str, needs))}"
        super().__init__(f"Edit {seq} depends on {named}, but was not chosen: choose {seq} too, or leave out {named}.")


# ---- settings


class NoSuchSetting(CasError):
    """No setting has this name."""

    def __init__(self, name: str, origin: str, near: str) -> None:
        self.name = name
        self.origin = origin  # path of the file that has the name; "": it was given in a command
        self.near = near  # a setting with a similar name; "": none
        where = f" (in {origin})" if origin else ""
        hint = f" Did you mean {near}?" if near else ""
        super().__init__(f"There is no setting {name!r}{where}.{hint}")


class SettingInvalid(CasError):
    """The value of a setting is not allowed."""

    def __init__(self, name: str, spelling: str, origin: str, reason: str) -> None:
        self.name = name
        self.spelling = spelling
        self.origin = origin  # path of a file or name of a variable; "": it was given in a command
        self.reason = reason
        where = f" in {origin}" if origin else ""
        super().__init__(f"{name} can't be {spelling!r}{where}: it takes {reason}.")


class SettingsUnreadable(CasError):
    """A settings file can't be read or can't be changed."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"The settings in {path} can't be used: {reason}.")


# ---- snapshots, bundles and purges


class SnapshotIncomplete(StoreError):
    """A snapshot could not include everything in its folder, and was not recorded."""

    def __init__(self, reason: str, *, is_over_limit: bool = True) -> None:
        self.reason = reason
        over = "Snapshot a smaller folder, or list in .casignore what it may leave out."
        super().__init__(f"No snapshot was taken: {reason}. {over if is_over_limit else 'Try again.'}")


class SnapshotUnreadable(StoreError):
    """A tree of a snapshot is lost or damaged, so its contents are not completely known."""

    def __init__(self, number: int, reason: str) -> None:
        self.number = number
        self.reason = reason
        super().__init__(f"Snapshot {number} can't be read: {reason.rstrip('.')}.")


class SnapshotsNotComparable(StoreError):
    """Two snapshots have no folder in common: neither is inside the other, or one omitted the other's folder."""

    def __init__(self, number: int, path: str, other: int, other_path: str) -> None:
        self.number = number
        self.path = path  # the folder that it covers, relative to the workspace; "": all of it
        self.other = other
        self.other_path = other_path
        super().__init__(
            f"Snapshots {number} and {other} cover nothing in common: one covers {path or 'the workspace'}, "
            f"the other {other_path or 'the workspace'}."
        )


class NotBundled(StoreError):
    """Blobs that the store needs are lost, so an import would refuse its bundle."""

    def __init__(self, lost: Sequence[bytes]) -> None:
        self.lost = tuple(lost)  # ids of blobs
        more = len(lost) - 1
        others = f" and {more} more are" if more else " is"
        super().__init__(
            f"No bundle was written: blob {lost[0].hex()}{others} lost, and an import would refuse the bundle."
        )


class BundleRefused(StoreError):
    """A bundle is malformed, damaged or unsafe. `concerns_files`: only its files can't be written."""

    def __init__(self, reason: str, *, concerns_files: bool = False) -> None:
        self.reason = reason
        self.concerns_files = concerns_files
        super().__init__(f"The bundle is refused, and nothing was imported: {reason}.")


class PurgeRefused(CasError):
    """Bytes can't be purged: a file, edit, snapshot or pin holds them, and only a person may give that up."""

    def __init__(
        self,
        files: Sequence[str],
        changed_outside: Sequence[str],
        pending: Sequence[int],
        pins: Sequence[int],
    ) -> None:
        self.files = tuple(files)
        self.changed_outside = tuple(changed_outside)
        self.pending = tuple(pending)
        self.pins = tuple(pins)
        reasons = []
        if self.files:
            one = len(self.files) == 1
            reasons.append(f"{', '.join(self.files)} still {'contains' if one else 'contain'} these bytes")
        if self.changed_outside:
            was = "was" if len(self.changed_outside) == 1 else "were"
            reasons.append(f"{', '.join(self.changed_outside)} {was} last recorded with them and changed since")
        if reasons:
            super().__init__(
                f"Nothing was purged: {'. '.join(reasons)}. Name these files too, to remove all that is stored of "
                "them; or change them; or keep the bytes that they have, with --keep-shared."
            )
            return
        kinds = {"pending edit": self.pending, "pin": self.pins}
        held = "; ".join(
            f"{kind}{'' if len(numbers) == 1 else 's'} {' '.join(map(str, numbers))}"
            for kind, numbers in kinds.items()
            if numbers
        )
        super().__init__(f"Nothing was purged, because this would be removed too: {held}. Use --yes to remove it.")


def _day(microseconds: int) -> str:
    """Return the date of a moment, in UTC, as YYYY-MM-DD."""
    from objstore.values.dates import date_of

    return date_of(microseconds).strftime("%Y-%m-%d")


# ---- remotes


class RemoteSupportMissing(CasError):
    """The library that reaches object stores is not installed."""

    def __init__(self) -> None:
        super().__init__("Remotes need the library obstore. Install it: pip install 'editledger[remote]'")


class RemoteUrlRefused(CasError):
    """A URL can't be that of a remote."""

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        super().__init__(f"{url} can't be the place of a remote: {reason}.")


class RemoteNameRefused(CasError):
    """A name can't be that of a new remote."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"{name!r} can't be the name of a new remote: {reason}.")


class RemoteUnknown(CasError):
    """No remote has a name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        self.known = tuple(known)
        listed = f"The remotes are: {', '.join(known)}." if known else "There is none."
        super().__init__(f"No remote is named {name!r}. {listed}")


class RemoteFailed(CasError):
    """A bucket did not do what was asked of it; what was sent before stays there, and is not sent again."""

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        super().__init__(f"{url}: {reason}.")


class ObjectMissing(RemoteFailed):
    """A bucket lacks an object."""

    def __init__(self, url: str, key: str) -> None:
        self.key = key
        super().__init__(url, f"the object {key} is missing")


class ObjectTooLarge(RemoteFailed):
    """An object of a bucket has more bytes than it may have."""

    def __init__(self, url: str, key: str, most: int) -> None:
        self.key = key
        super().__init__(url, f"the object {key} has more than the {most} bytes that it may have")


class RemoteRefused(CasError):
    """What a bucket holds is not what it should be; nothing was taken from it."""

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        super().__init__(f"{url}: {reason}. Nothing was taken from there.")


class RemoteRolledBack(CasError):
    """A bucket holds an older state than the one seen last: somebody restored or emptied it."""

    def __init__(self, url: str, what: str, seen: int, found: int) -> None:
        self.url = url
        self.what = what
        self.seen = seen
        self.found = found  # 0: none
        now = f"{found} is the newest there" if found else "there is none"
        super().__init__(
            f"{url} was rolled back: of {what}, number {seen} was seen there, and now {now}. "
            "Nothing was taken from there."
        )


class RemoteDiverged(CasError):
    """The lane of this store in a bucket continues a history that this store doesn't have."""

    def __init__(self, url: str, head: int) -> None:
        self.url = url
        self.head = head
        super().__init__(
            f"{url} has a later history of this store (head {head}) that is not here: this .cas was copied or restored "
            "from a backup, or its copy was pushed. Nothing was sent."
        )


class RemoteDecided(CasError):
    """Somebody else has decided on a unit of a remote store."""

    def __init__(self, unit: str, who: str, action: str, *, is_carried: bool) -> None:
        self.unit = unit
        self.who = who
        self.action = action
        self.is_carried = is_carried
        then = "it was carried out" if is_carried else "it waits to be carried out"
        super().__init__(f"{unit} is decided: {action} by {who or 'somebody'}, and {then}.")
