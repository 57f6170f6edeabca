"""Cut a hunk into parts that can be decided on one by one, and compute the resulting text."""

from collections.abc import Sequence

from cli.screen.word_diff import paired_lines
from objstore import Hunk, TextForm, diff_lines, encoded, split_lines, value

__all__ = ["Part", "Split", "located", "parts"]


@value
class Part:
    """Lines that replace others. Both sides may be empty, but never both at once."""

    old: tuple[bytes, ...]
    new: tuple[bytes, ...]

    @property
    def changes(self) -> bool:
        """Return whether the sides differ."""
        return self.old != self.new


@value
class Split:
    """The place of a hunk in a file: the text above it, its own two sides, and the text below it."""

    above: bytes
    old: tuple[bytes, ...]
    new: tuple[bytes, ...]
    below: bytes
    form: TextForm = TextForm.PLAIN  # of the file

    def text(self, chosen: Sequence[Sequence[bytes]]) -> bytes:
        """Return the file's bytes with the chosen lines in the hunk's place."""
        return encoded(b"".join((self.above, *(line for lines in chosen for line in lines), self.below)), self.form)

    def taken_out(self, part: Part, done: Sequence[Sequence[bytes]]) -> Hunk:
        """Return the hunk that undoes a part; `done`: the chosen lines of the parts above it."""
        start = self.above.count(b"\n") + sum(map(len, done))
        return Hunk(start, len(part.new), start, len(part.old))


def located(
    old: Sequence[bytes], new: Sequence[bytes], without: bytes, text: bytes, first: int | None = None
) -> Split | None:
    """Return the place of the hunk from `old` to `new`, given the file without it and with it.

    `first`: the first line that it inserted (None: unknown). Returns None if its lines can't be distinguished from
    those around them, or if the two files differ in more than the hunk, or in a line without its newline.
    """
    if not all(line.endswith(b"\n") for line in (*old, *new)):
        return None
    before, after = split_lines(without), split_lines(text)
    if len(before) - len(old) != len(after) - len(new):
        return None
    head = _common(before, after)
    tail = _common(before[::-1], after[::-1])
    lowest = max(0, len(after) - len(new) - tail)
    places = [
        at
        for at in range(min(head, len(after) - len(new)), lowest - 1, -1)
        if before[at : at + len(old)] == list(old) and after[at : at + len(new)] == list(new)
    ]
    if new and len(places) > 1:
        places = [at for at in places if at == first]
    if not places:
        return None
    at = places[0]
    return Split(above=b"".join(after[:at]), old=tuple(old), new=tuple(new), below=b"".join(after[at + len(new) :]))


def parts(whole: Part) -> list[Part]:
    """Return a part cut into smaller ones, in order; only itself if it can't be cut.

    Together, their sides are its sides. It is cut at lines that are equal on both sides; else, lines that are alike
    replace each other; else it is cut at blank lines; else line by line.
    """
    for cut in (_at_equal_lines, _at_alike_lines, _at_blank_lines, _line_by_line):
        found = cut(whole)
        if sum(part.changes for part in found) > 1:
            return found
    return [whole]


# ---- inside


def _common(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _cut(whole: Part, cuts: Sequence[tuple[int, int]]) -> list[Part]:
    """Return the parts between the cuts; each cut is a position in both sides."""
    found = []
    old_at = new_at = 0
    for old_end, new_end in [*cuts, (len(whole.old), len(whole.new))]:
        if old_end > old_at or new_end > new_at:
            found.append(Part(old=whole.old[old_at:old_end], new=whole.new[new_at:new_end]))
        old_at, new_at = old_end, new_end
    return found


def _at_equal_lines(whole: Part) -> list[Part]:
    hunks = diff_lines(b"".join(whole.old), b"".join(whole.new))
    return _cut(whole, [cut for h in hunks for cut in ((h.old_start, h.new_start), (h.old_end, h.new_end))])


def _at_alike_lines(whole: Part) -> list[Part]:
    return _cut(whole, [cut for i, j in paired_lines(whole.old, whole.new) for cut in ((i, j), (i + 1, j + 1))])


def _at_blank_lines(whole: Part) -> list[Part]:
    if whole.old and whole.new:
        return [whole]
    side = whole.old or whole.new
    cuts = [at + 1 for at, line in enumerate(side[:-1]) if not line.strip() and side[at + 1].strip()]
    return _cut(whole, [(at, 0) if whole.old else (0, at) for at in cuts])


def _line_by_line(whole: Part) -> list[Part]:
    if whole.old and whole.new:
        return [whole]
    return [Part(old=(line,), new=()) for line in whole.old] + [Part(old=(), new=(line,)) for line in whole.new]
