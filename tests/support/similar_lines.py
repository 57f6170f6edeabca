"""Texts of lines that read alike, and histories of them of which it is known what each edit did.

A line has an identity in addition to its text, so the text without an edit is known by construction: no line moves, and
each has one edit that put it in and at most one that took it out. An edit of a history touches no line that another one
touched, nor one directly next to such a line, so each result is certain.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import count, pairwise
from typing import TYPE_CHECKING, Final

from objstore import Hunk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["History", "Line", "functions", "repeated", "text_of", "undone_next_to_another_change"]

SHAPES: Final = {
    "javascript": ("", ("function {}(a, b) {{", "  if (!a) {{", "    return b;", "  }}", "  return a;", "}}", ""), ""),
    "short javascript": ("", ("function {}() {{", "  return 1;", "}}", ""), ""),
    "c": ("#include <x.h>\n\n", ("static int {}(int a)", "{{", "    if (a < 0)", "        return -1;", "}}", ""), ""),
    "python": ("", ("def {}(self):", '    """', "    Return it.", '    """', "    return self.x", "", ""), ""),
    "properties": ("class A:\n", ("    @property", "    def {}(self):", "        return self._x", ""), ""),
    "json": ("[\n", ("  {{", '    "name": "{}",', '    "kind": 1', "  }},"), "  {}\n]\n"),
    "markdown": ("", ("## {}", "", "- one", "- two", ""), ""),
    "settings": ("", ("[{}]", "on = true", ""), ""),
}
"""What files of alike parts look like: what comes first, the lines of a part with a name, what comes last."""

LETTERS: Final = ("}", "", "  return x", "a", "b")
"""Lines that come over and over."""


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One line: two that read the same are two lines."""

    reads: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one edit did."""

    removed: frozenset[Line]
    inserted: frozenset[Line]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """States of a file, and what it would be without one of the edits that led from one to the next."""

    lines: tuple[tuple[Line, ...], ...]  # of each state
    order: tuple[Line, ...]  # all lines that there ever were
    changes: tuple[Change, ...]

    @property
    def states(self) -> list[bytes]:
        """Return the text of each state."""
        return [text_of(lines) for lines in self.lines]

    def without(self, edit: int) -> bytes:
        """Return the last state without what one edit did."""
        kept = [change for number, change in enumerate(self.changes) if number != edit]
        gone = {line for change in kept for line in change.removed} | self.changes[edit].inserted
        base = set(self.lines[0])
        there = base.union(*(change.inserted for change in kept)) - gone
        return text_of(line for line in self.order if line in there)

    def hunks(self, edit: int) -> list[Hunk]:
        """Return which lines an edit really replaced by which."""
        old, new = self.lines[edit], self.lines[edit + 1]
        places = {line: at for at, line in enumerate(new)}
        found: list[Hunk] = []
        at = new_at = 0
        for kept, line in [*((at, line) for at, line in enumerate(old) if line in places), (len(old), None)]:
            goal = len(new) if line is None else places[line]
            if kept > at or goal > new_at:
                found.append(Hunk(at, kept - at, new_at, goal - new_at))
            at, new_at = kept + 1, goal + 1
        return found

    def held_by_all(self) -> dict[str, int]:
        """Return how often at least every state has each line."""
        counts = [{line.reads: 0 for line in self.order} for _ in self.lines]
        for counted, lines in zip(counts, self.lines, strict=True):
            for line in lines:
                counted[line.reads] += 1
        return {reads: least for reads in counts[0] if (least := min(counted[reads] for counted in counts))}


def text_of(lines: Iterable[Line]) -> bytes:
    """Return the text of some lines."""
    return "".join(line.reads + "\n" for line in lines).encode()


def repeated(seed: int, *, alike: float) -> History:
    """Return a history of lines of which the given share is one of five, and all others are unique."""
    draw = random.Random(seed)
    fresh = count()

    def line() -> Line:
        return Line(draw.choice(LETTERS) if draw.random() < alike else f"line {next(fresh)}")

    now = [line() for _ in range(draw.randint(6, 24))]
    order, touched = list(now), set[Line]()
    states, changes = [tuple(now)], []
    for _ in range(draw.randint(2, 4)):
        removed, inserted = set[Line](), set[Line]()
        for _ in range(draw.choice((1, 1, 2))):
            at, going = draw.randint(0, len(now)), draw.choice((0, 1, 1, 2, 3))
            coming = draw.choice((0, 1, 2, 3)) if going else draw.choice((1, 2, 3))
            old, around = now[at : at + going], now[max(0, at - 1) : at + going + 1]
            new = [line() for _ in range(coming)]
            if touched.intersection(around) or len(old) < going or text_of(old) == text_of(new):
                continue
            touched.update(around, new)
            before = old[-1] if old else now[at - 1] if at else None
            place = 0 if before is None else order.index(before) + 1
            order[place:place] = new
            now[at : at + going] = new
            removed.update(old)
            inserted.update(new)
        if removed or inserted:
            states.append(tuple(now))
            changes.append(Change(removed=frozenset(removed), inserted=frozenset(inserted)))
    return History(lines=tuple(states), order=tuple(order), changes=tuple(changes))


class _File:
    """A file of alike parts, some of which edits put in, take out, rename or change."""

    def __init__(self, draw: random.Random) -> None:
        head, self._shape, tail = SHAPES[draw.choice(sorted(SHAPES))]
        self._names = (f"part_{number}" for number in count())
        self.parts = [self._part() for _ in range(draw.randint(2, 6))]
        self._head, self._tail = ([Line(reads) for reads in text.splitlines()] for text in (head, tail))
        self.order = list(self.lines())

    def _part(self) -> list[Line]:
        name = next(self._names)
        return [Line(reads.format(name)) for reads in self._shape]

    def lines(self) -> list[Line]:
        return [*self._head, *(line for part in self.parts for line in part), *self._tail]

    def insert(self, at: int) -> Change:
        part = self._part()
        following = (self.parts[at] if at < len(self.parts) else self._tail)[:1]
        place = self.order.index(following[0]) if following else len(self.order)
        self.order[place:place] = part
        self.parts.insert(at, part)
        return Change(removed=frozenset(), inserted=frozenset(part))

    def delete(self, part: list[Line]) -> Change:
        self.parts = [other for other in self.parts if other is not part]
        return Change(removed=frozenset(part), inserted=frozenset())

    def change(self, part: list[Line], at: int) -> Change:
        """Change a line of a part; the first or second is the one with its name."""
        old, new = part[at], Line(part[at].reads + ("  # changed" if part[at].reads.strip() else "# was blank"))
        self.order.insert(self.order.index(old), new)  # before it, as what is put in above the one is above the other
        changed = [new if line is old else line for line in part]
        self.parts = [changed if other is part else other for other in self.parts]
        return Change(removed=frozenset([old]), inserted=frozenset([new]))


def functions(seed: int) -> History | None:
    """Return a history of functions and the like: each edit puts in, takes out or changes some that no other one does.

    None: where one was put in, another was taken out directly next to it, so their order is open.
    """
    draw = random.Random(seed)
    file = _File(draw)
    states, changes, untouched = [tuple(file.lines())], [], list(file.parts)
    came, went = set[Line](), set[Line]()
    for _ in range(draw.randint(2, 4)):
        done: list[Change] = []
        for _ in range(draw.choice((1, 1, 2))):
            what = draw.choice(("insert", "insert", "delete", "change"))
            if what == "insert":
                done.append(file.insert(draw.randint(0, len(file.parts))))
                came |= done[-1].inserted
            elif untouched:
                part = untouched.pop(draw.randrange(len(untouched)))
                done.append(file.delete(part) if what == "delete" else file.change(part, draw.randrange(len(part))))
                went |= done[-1].removed if what == "delete" else set()
        if done:
            states.append(tuple(file.lines()))
            removed = frozenset[Line]().union(*(change.removed for change in done))
            changes.append(Change(removed=removed, inserted=frozenset[Line]().union(*(c.inserted for c in done))))
    order = file.order
    if any((a in came and b in went) or (a in went and b in came) for a, b in pairwise(order)):
        return None
    return History(lines=tuple(states), order=tuple(order), changes=tuple(changes))


def undone_next_to_another_change(seed: int) -> Sequence[bytes]:
    """Return three states: to the second, an edit only inserted a part; the third lacks it, and changes one more."""
    draw = random.Random(seed)
    file = _File(draw)
    before = text_of(file.lines())
    at = draw.randint(0, len(file.parts))
    file.insert(at)
    between = text_of(file.lines())
    file.delete(file.parts[at])
    part = draw.choice(file.parts)
    match draw.choice(("change", "change", "delete", "insert")):
        case "change":
            file.change(part, draw.randrange(len(part)))
        case "delete":
            file.delete(part)
        case _:
            file.insert(draw.randint(0, len(file.parts)))
    return before, between, text_of(file.lines())
