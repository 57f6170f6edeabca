"""The status of the workspace as text for a person: lines, as bytes to write."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final

from cli.render.prompts import quoted_prompt
from cli.screen.terminal import Screen, end_of, padded, shown_name, shown_width, width_of_terminal
from objstore import counted, few, shown_edits, store_folder_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from objstore import (
        Caution,
        Collision,
        CommitAcceptance,
        LostHistory,
        PendingGroup,
        PendingTurn,
        Remote,
        RemoteState,
        RunningCall,
        Seq,
        StatusReport,
        UnresolvedMarkers,
        UnreviewedCommit,
    )

__all__ = [
    "behind_words",
    "caution_line",
    "commit_words",
    "conversation_name",
    "running_line",
    "shown_markers",
    "size_text",
    "status_text",
    "turn_heading",
]

# With these, a status takes at most 24 lines, the height of the smallest terminal in use.
PENDING_LINES: Final = 10
SECTIONS: Final = 4
LONGEST_NAME: Final = 24
"""Characters of a conversation's name up to which it is shown. Somebody chose such a name; a longer one is an id."""

SECTION_LINES: Final = 4
PLACES: Final = 6
NUMBERS: Final = 12
SECRETS: Final = 3
COUNTS: Final = 9
COMMIT: Final = 7
LEAST_ROOT: Final = 12
"""Columns for the workspace's path, however narrow the terminal is."""


def status_text(
    report: StatusReport,
    screen: Screen,
    seen: tuple[int, int] | None = None,
    lost: Iterable[LostHistory] = (),
    remotes: Iterable[tuple[Remote, RemoteState, int]] = (),
) -> Iterator[bytes]:
    """Yield the workspace on one screen. `seen`: how many changes are pending, and how many of them no one has seen.

    `remotes`: each with what was seen of it, and how many edits it lacks, as `Remotes.behind` says.
    """
    sessions = f" in {counted(report.sessions, 'session')}" if report.sessions else ""
    counts = (
        f"{counted(report.edits, 'edit')}{sessions}, "
        f"{report.pending} pending, {report.accepted} accepted, {report.rejected} rejected"
        f"{f', {report.away} away' if report.away else ''}"
    )
    root, room = shown_name(report.root), width_of_terminal()
    yield screen.line(f"{end_of(root, max(LEAST_ROOT, room - len(counts) - 2)) if room else root}: {counts}")
    if not report.edits:
        yield screen.line(
            "No edit is recorded yet. To record an agent's edits, run `cas setup CLIENT`; `cas doctor` checks it."
        )
    yield from _pending_text(report, screen, seen)
    title = "running now (what changes meanwhile may be theirs):"
    if any(call.is_abandoned for call in report.running):
        title = "not ended (`cas record` ends what an ended program left, so that later changes are yours):"
    yield from _section(title, len(report.running), map(running_line, report.running), screen)
    yield from _section(
        "changed outside (see `cas diff --unrecorded`):", len(report.external), _external(report, screen), screen
    )
    if report.compared is not None:
        yield screen.line()
        compared = counted(report.compared, "file")
        yield screen.line(f"Only {compared} without edits could be compared in time; `cas record` compares all.")
    title = "conflict markers (resolve them in the file, or decide again):"
    yield from _section(title, len(report.markers), map(_markers_line, report.markers), screen)
    if report.comments:
        counts = ", ".join(f"{number} {word}" for word, number in report.comments.items())
        yield screen.line()
        yield screen.line(f"comments: {counts} (see `cas comment`)")
    title = "committed by an agent, not reviewed:"
    yield from _section(title, len(report.commits), map(_commit_line, report.commits), screen)
    if report.committed is not None:
        yield screen.line()
        yield screen.line(commit_words(report.committed))
    title = "several sessions have changed the same file:"
    yield from _section(
        title, len(report.collisions), (_collision_line(each, report) for each in report.collisions), screen
    )
    title = "no person has acknowledged (look, then `cas doctor --forget`):"
    yield from _section(title, len(report.cautions), map(caution_line, reversed(report.cautions)), screen)
    title = "policies changed, but not by `cas config` (set them with it, and they apply):"
    yield from _section(title, len(report.policies), report.policies, screen)
    yield from _section("can't be read:", len(report.unreadable), map(shown_name, report.unreadable), screen)
    size = store_folder_bytes(report.root)
    folder = "the size of the folder .cas can't be read" if size is None else f"the folder .cas {size_text(size)}"
    yield screen.line()
    yield screen.line(
        f"store: {size_text(report.store_bytes)} in {counted(report.blobs, 'blob')}, {folder}{_reclaimable(report)}"
    )
    yield from map(screen.line, _secrets(report))
    yield from map(screen.line, _twins(report))
    yield from map(screen.line, _faults(report.root))
    yield from (screen.line(f"{each} (see `cas doctor`)") for each in lost)
    yield from (screen.line(f"{remote.name}: {behind_words(state, behind)}") for remote, state, behind in remotes)


def behind_words(state: RemoteState, behind: int) -> str:
    """Return how far a remote is behind this store, and why it stays so."""
    said = "all pushed"
    if state.pushed is None:
        said = "nothing pushed yet"
    elif behind:
        said = f"{counted(behind, 'edit')} not pushed" if behind > 0 else "decisions or other records not pushed"
    return f"{said}; the last push failed: {shown_name(state.failure)}" if state.failure else said


def running_line(call: RunningCall) -> str:
    """Return a line about a call that has not ended."""
    from cli.render.edits import short_moment

    session = f"{shown_name(call.client or 'agent')} {call.session or ''}".rstrip()
    named = "" if call.paths is None else f" of {_few(call.paths)}"
    words = [session, shown_name(call.tool) + named, f"since {short_moment(call.began)}"]
    return "  ".join([*words, *([] if call.state == "running" else [call.state])])


def caution_line(caution: Caution) -> str:
    """Return a line about a decision inside an agent's shell, what narrows the record, or what doesn't arrive."""
    from cli.render.edits import short_moment, shown_decider
    from objstore import Decision, Edit, Expiry, Mark, SettingChange

    when = short_moment(caution.time)
    if caution.silence is not None:
        return f"{when}  {shown_name(str(caution.silence))}"
    match caution.record:
        case None:
            return f"{when}  {shown_name(caution.path)} is not recorded any more: a rule leaves it out now"
        case Edit() as made:
            inside = shown_decider(made.notes.get("who", ""), "", made.notes["shell"])
            return f"{when}  {made.tool} of {shown_name(os.fsdecode(made.path))}, edit {made.seq}, by {inside}"
        case Decision() as made:
            what = f"{made.action.value} of {_edits({unit.seq for unit, _ in made.verdicts})}"
        case Expiry() as made:
            ranges = " ".join(f"{first}-{last}" if first < last else f"{first}" for first, last in made.edits[:NUMBERS])
            what = f"{made.reason}{f': edits {ranges}' if ranges else ''}"
        case Mark() as made:
            what = f"comment {' '.join(map(str, made.comments))}: {made.state.value}"
        case SettingChange() as made:
            before, after = (shown_name(text) if text else "not set" for text in (made.before, made.after))
            what = f"{shown_name(made.name)}: {before} -> {after}"
        case _:
            return when
    return f"{when}  {what}, by {shown_decider(made.who, made.via, made.agent)}"


def _edits(seqs: set[Seq]) -> str:
    return f"edit{'s' * (len(seqs) != 1)} {shown_edits(sorted(seqs))}"


def commit_words(committed: CommitAcceptance) -> str:
    """Say which edits a commit accepted, and how to take that back."""
    edits = f"{'edit' if len(committed.edits) == 1 else 'edits'} {shown_edits(committed.edits)}"
    return f"commit {committed.commit[:COMMIT]} accepted {edits} (`cas undo` takes that back)"


def _commit_line(commit: UnreviewedCommit) -> str:
    edits = "edit" if len(commit.edits) == 1 else "edits"
    return f"{commit.commit[:COMMIT]}  {edits} {shown_edits(commit.edits)}"


def _collision_line(collision: Collision, report: StatusReport) -> str:
    clients = {turn.session: turn.client or "agent" for turn in report.turns}
    sessions = (
        f"{shown_name(clients.get(number, 'session'))} {number}: {shown_edits(seqs)}"
        for number, seqs in collision.edits.items()
    )
    return f"{shown_name(collision.path)}  {'; '.join(sessions)}"


def _section(title: str, count: int, rows: Iterable[str], screen: Screen) -> Iterator[bytes]:
    """Yield the first of `count` rows under their title; nothing if there are none."""
    if not count:
        return
    yield screen.line()
    yield screen.line(title)
    for row in islice(rows, SECTION_LINES):
        yield screen.line(f"  {row}")
    if count > SECTION_LINES:
        yield screen.line(f"  and {count - SECTION_LINES} more")


def _external(report: StatusReport, screen: Screen) -> Iterator[str]:
    for change in report.external:
        kind = screen.paint(f"{change.word:12}", "red")
        there = f"  (a {change.taken_by} is there)" if change.taken_by else ""
        yield f"{kind}  {shown_name(change.path)}{there}"


def _markers_line(markers: UnresolvedMarkers) -> str:
    places = ", ".join(map(str, markers.lines[:PLACES])) + (" ..." if len(markers.lines) > PLACES else "")
    return f"{shown_name(markers.path)}:{places}  {shown_markers(markers)}"


def _secrets(report: StatusReport) -> Iterator[str]:
    """Yield a line about files that look like secrets and are not recorded, and one about those that are stored."""
    left_out, stored = report.secrets.left_out, report.secrets.stored
    if left_out:
        one = len(left_out) == 1
        why = "because its name looks like a secret" if one else "because their names look like secrets"
        are = f"{counted(len(left_out), 'file')} {'is' if one else 'are'}"
        way = "`cas config set record.secrets 'default !NAME'` allows one"
        yield f"{are} not recorded, {why}: {_few(left_out)} ({way})"
    if stored:
        from cli.screen.quoting import typed

        ways = " ".join(typed(path) for path in stored[:SECRETS])
        yield f"stored although the name looks like a secret: {_few(stored)} (`cas purge {ways}` removes the bytes)"


def _twins(report: StatusReport) -> Iterator[str]:
    """Yield a line about files in question that have the name of another file in its other Unicode form."""
    named = [group.path for group in report.groups] + [change.path for change in report.external]
    paths = {path for path in named if not path.isascii()}
    if not paths:
        return
    from pathlib import Path  # costs 3 ms of start-up
    from unicodedata import normalize

    found: list[str] = []
    names: dict[str, Counter[str]] = {}
    for path in sorted(paths):
        folder, name = os.path.split(path)
        if folder not in names:
            names[folder] = Counter()
            with suppress(OSError):
                listed = Path(report.root, folder).iterdir()
                names[folder].update(normalize("NFC", each.name) for each in listed)
        if names[folder][normalize("NFC", name)] > 1:
            found.append(path)
    if found:
        yield (
            f"names that differ from another's only in Unicode form: {_few(found)} (macOS and some programs find only "
            "one of the two: rename one)"
        )


def _few(paths: Sequence[str]) -> str:
    """Return the first of some paths, and how many more there are."""
    return few(paths, SECRETS, ", ", shown_name)


def _faults(root: str) -> Iterator[str]:
    """Yield a line about errors of hooks, which no one saw when they happened."""
    from objstore import hook_failures

    failures = hook_failures(root)
    if failures:
        from cli.render.edits import moment

        last = failures[-1]
        when = f"{moment(last.time)} {last.client}: " if last.time else ""
        said = f"{when}{last.said or '`cas` did not start'}"
        yield f"hooks: {counted(len(failures), 'error')}, the last: {shown_name(said)} (see `cas doctor`)"


def _reclaimable(report: StatusReport) -> str:
    """Return what `cas gc` would do about the size of the store."""
    found = report.reclaimable
    if found.unreadable:
        return " (the limits can't be read, see `cas config`)"
    said = [f"frees about {size_text(found.free_bytes)}"] if found.free_blobs else []
    said += [f"may expire {counted(found.old_edits, 'old edit')}"] if found.old_edits else []
    if found.max_size is not None and report.store_bytes > found.max_size:
        said.append(f"frees the {size_text(report.store_bytes - found.max_size)} over the limit")
    return f"; `cas gc` {', '.join(said)}" if said else ""


def shown_markers(markers: UnresolvedMarkers) -> str:
    """Return which edits are in conflict between the markers."""
    decided, aside = ({unit.seq: None for unit in units} for units in (markers.decided, markers.aside))
    return f"edit {markers.edit}: {shown_edits(list(decided))} against {shown_edits(list(aside))}"


def _pending_text(report: StatusReport, screen: Screen, seen: tuple[int, int] | None) -> Iterator[bytes]:
    """Yield the pending edits by turn and file: some of every turn, as far as the screen has room."""
    if not report.groups:
        return
    yield screen.line()
    counts = (
        f"{counted(seen[0], 'change')}, {seen[1] or 'all'} {'not ' * bool(seen[1])}seen; " if seen and seen[0] else ""
    )
    yield screen.line(f"pending ({counts}`cas review` goes through it):")
    sections: dict[tuple[int, str], list[PendingGroup]] = {}
    for group in report.groups:
        sections.setdefault((group.turn, "" if group.turn else conversation_name(group)), []).append(group)
    listed = list(sections)[:SECTIONS]
    shown = _rows_shown([len(sections[key]) for key in listed])
    groups = [group for key, rows in zip(listed, shown, strict=True) for group in sections[key][:rows]]
    width = min(40, max(shown_width(shown_name(group.path)) for group in groups))
    digits = max(COUNTS, *(len(_counts(group)) for group in groups))
    turns = {turn.number: turn for turn in report.turns}
    for (turn, conversation), rows in zip(listed, shown, strict=True):
        yield screen.line(f"  {turn_heading(turns.get(turn), conversation, screen, used=2)}")
        own = sections[turn, conversation]
        for group in own[:rows]:
            yield screen.line(
                f"    {padded(shown_name(group.path), width)}  {_counts(group):>{digits}}  {shown_edits(group.seqs)}"
            )
        if rows < len(own):
            yield screen.line(f"    and {counted(len(own) - rows, 'file')} more (see `cas log --status pending`)")
    if len(listed) < len(sections):
        yield screen.line(f"  and {counted(len(sections) - len(listed), 'turn')} more (see `cas log --status pending`)")


def _rows_shown(files: Sequence[int]) -> list[int]:
    """Return how many files to show of each turn, given how many it has: at least one, and a fair share of the room."""
    shown = [1] * len(files)
    room = PENDING_LINES - 2 * len(files)
    while room > 0 and shown != list(files):
        for at, most in enumerate(files):
            if shown[at] < most and room > 0:
                shown[at] += 1
                room -= 1
    # A line that says that one file is hidden takes the room of that file.
    return [most if most - rows == 1 else rows for rows, most in zip(shown, files, strict=True)]


def conversation_name(group: PendingGroup) -> str:
    """Return what edits without a known turn are listed under, as `cas log` names it."""
    if not group.owner:
        return "claimed by you"
    is_other = group.owner != group.conversation or len(group.conversation) > LONGEST_NAME
    return f"session {group.session}" if is_other and group.session else group.owner


def turn_heading(turn: PendingTurn | None, conversation: str, screen: Screen, *, used: int) -> str:
    """Return what the pending edits of one turn are listed under: its number, its session, and its prompt.

    `used`: the columns of the rest of the line.
    """
    if turn is None:
        return screen.paint(shown_name(conversation), bold=True)
    name, who = f"turn {turn.number}", f"  {shown_name(turn.client or 'agent')} {turn.session}"
    prompt = quoted_prompt(turn.prompt, used + shown_width(name + who))
    return f"{screen.paint(name, bold=True)}{who}{prompt}"


def _counts(group: PendingGroup) -> str:
    return f"+{group.added} -{group.removed}"


def size_text(count: int) -> str:
    """Return a number of bytes as a person reads it."""
    size = float(count)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:  # noqa: PLR2004 -- SI prefixes
            return f"{size:.1f} {unit}" if unit != "bytes" else counted(count, "byte")
        size /= 1000
    return f"{size:.1f} GB"
