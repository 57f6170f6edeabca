"""Parts of SVG documents: page, axes, legends, bars. This module alone escapes texts.

A drawing is 420 units wide, as a phone's screen is, so that its text can be read there; a wider page scales it. It has
no scripts and loads nothing, and its style sheet follows the reader's light or dark colours.
"""

from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import count
from typing import Final

from cli.screen.terminal import beginning_of, visible

__all__ = [
    "BOTTOM",
    "LEFT",
    "MARK",
    "RIGHT",
    "TOP",
    "WIDTH",
    "bars",
    "drawing",
    "is_drawing",
    "legend",
    "level_lines",
    "path",
    "text",
    "ticks",
    "x_labels",
]

WIDTH: Final = 420
LEFT: Final = 66
RIGHT: Final = 408
TOP: Final = 52
BOTTOM: Final = 210

MARK: Final = "<!-- Drawn by cas stats. -->"
"""The second line of every drawing, by which its file is recognized."""

_TITLE_COLUMNS: Final = 54
_LABEL_COLUMNS: Final = 27
"""Characters of a label below an axis: two such labels fit next to each other."""

_SHOWN_AT_ONCE: Final = 1.5
"""Scale at which a browser shows a drawing that is a page of its own."""

# Fills differ in pattern as well as in colour: solid, slanted lines, crossed lines, dots. Each has 3:1 to the ground.
_STYLE: Final = """
svg{color-scheme:light dark;--ground:#fff;--ink:#1d2026;--soft:#5b6270;--line:#d9dce2;
--accepted:#1f6feb;--pending:#8a6100;--rejected:#b3372e;--away:#5b6270}
@media (prefers-color-scheme:dark){svg{--ground:#16181d;--ink:#e6e8ec;--soft:#a2a9b6;--line:#3a3f49;
--accepted:#6ea8ff;--pending:#d9a63c;--rejected:#f08a80;--away:#a2a9b6}}
text{font:11px system-ui,sans-serif;fill:var(--soft)}
.title{font-size:13px;font-weight:600;fill:var(--ink)}#untitled:target~.title{display:none}
.ground{fill:var(--ground)}.level{stroke:var(--line)}.zero{stroke:var(--soft)}
.curve{fill:none;stroke:var(--accepted);stroke-width:1.5}
.accepted{fill:var(--accepted)}.pending{fill:url(#pending)}.rejected{fill:url(#rejected)}.away{fill:url(#away)}
.mark{fill:var(--ink)}
.strokes{fill:none;stroke-width:1.6}
#pending .strokes{stroke:var(--pending)}#rejected .strokes{stroke:var(--rejected)}#away circle{fill:var(--away)}
""".replace("\n", "")

_PATTERNS: Final = (
    '<pattern id="pending" width="4" height="4" patternUnits="userSpaceOnUse">'
    '<path class="strokes" d="M-1 1L1 -1M0 4L4 0M3 5L5 3"/></pattern>'
    '<pattern id="rejected" width="4" height="4" patternUnits="userSpaceOnUse">'
    '<path class="strokes" d="M0 2H4M2 0V4"/></pattern>'
    '<pattern id="away" width="4" height="4" patternUnits="userSpaceOnUse"><circle cx="1" cy="1" r="1"/></pattern>'
)


def drawing(title: str, summary: str, body: Iterable[str], height: int) -> bytes:
    """Return a whole document: a title above what `body` draws, and the summary for screen readers.

    At the address `#untitled`, the title is left out: for a page that has it as a heading.
    """
    shown = text(8, 20, beginning_of(visible(title), _TITLE_COLUMNS), kind="title")
    wide, high = round(WIDTH * _SHOWN_AT_ONCE), round(height * _SHOWN_AT_ONCE)
    box = f'viewBox="0 0 {WIDTH} {height}" width="{wide}" height="{high}"'
    parts = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" aria-labelledby="title summary">',
        MARK,
        f'<title id="title">{_escaped(title)}</title>',
        f'<desc id="summary">{_escaped(summary)}</desc>',
        f"<style>{_STYLE}</style>",
        f"<defs>{_PATTERNS}</defs>",
        f'<rect id="untitled" class="ground" width="{WIDTH}" height="{height}"/>',
        shown,
        *body,
        "</svg>",
    )
    return "\n".join(parts).encode() + b"\n"


def is_drawing(content: bytes) -> bool:
    """Return whether a file's first bytes are those of a drawing of this module."""
    lines = content[:1000].split(b"\n")
    return lines[0].startswith(b"<svg ") and lines[1:2] == [MARK.encode()]


def text(x: float, y: float, said: str, anchor: str = "start", kind: str = "") -> str:
    """Return a line of text. `anchor`: the part of it that is at `x`: start, middle or end."""
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{_number(x)}" y="{_number(y)}" text-anchor="{anchor}"{named}>{_escaped(said)}</text>'


def path(kind: str, steps: Iterable[str]) -> str:
    """Return one shape of the given kind from path commands; "" if there are none."""
    joined = "".join(steps)
    return f'<path class="{kind}" d="{joined}"/>' if joined else ""


def bars(boxes: Iterable[tuple[float, float, float, float]]) -> Iterable[str]:
    """Yield the path commands of boxes, each with left, top, width and height; empty boxes give none."""
    for x, y, width, height in boxes:
        if height > 0:
            yield f"M{_number(x)} {_number(y)}h{_number(width)}v{_number(height)}h{_number(-width)}z"


def ticks(most: int, intervals: int = 4) -> list[int]:
    """Return round numbers from 0 up to the first that is at least `most`, which is above 0.

    Their distance is 1, 2 or 5 times a power of ten.
    """
    sizes = (digit * 10**power for power in count() for digit in (1, 2, 5))
    step = next(size for size in sizes if size * intervals >= most)
    return list(range(0, most + step, step))


def level_lines(levels: Iterable[int], y_of: Callable[[int], float], shown: Callable[[int], str]) -> Iterable[str]:
    """Yield a horizontal line for each level, with the level's value at its left end."""
    for level in levels:
        y = y_of(level)
        kind = "level" if level else "zero"
        yield f'<line class="{kind}" x1="{LEFT}" x2="{RIGHT}" y1="{_number(y)}" y2="{_number(y)}"/>'
        yield text(LEFT - 6, y + 4, shown(level), "end")


def x_labels(names: Sequence[str], times: Sequence[str], bottom: int, right: int = RIGHT) -> Iterable[str]:
    """Yield the names of the first and the last column below an axis, and in the next line their times, if given."""
    for at, labels in enumerate(filter(None, (names, times))):
        y = bottom + 16 + 15 * at
        yield text(LEFT, y, beginning_of(visible(labels[0]), _LABEL_COLUMNS))
        if labels[-1] != labels[0]:
            yield text(right, y, beginning_of(visible(labels[-1]), _LABEL_COLUMNS), "end")


def legend(kinds: Iterable[tuple[str, str]]) -> Iterable[str]:
    """Yield a box and a word for each kind, in a row below the title."""
    x = 8.0
    for kind, word in kinds:
        yield path(kind, bars([(x, 30, 12, 10)]))
        yield text(x + 17, 39, word)
        x += 34 + 6.2 * len(word)


def _escaped(said: str) -> str:
    return escape(visible(said))


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
