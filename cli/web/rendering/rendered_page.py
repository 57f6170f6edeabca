"""Lay out the blocks of two texts side by side on a page, and mark those that differ."""

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import zip_longest
from typing import Final

from cli.screen.terminal import visible
from cli.web.rendering.markdown_blocks import markdown_blocks
from cli.web.rendering.notebook_blocks import notebook_blocks
from objstore import Hunk, diff_lines

__all__ = ["POLICY", "note_page", "rendered_page"]

_RENDERERS: Final[dict[str, Callable[[str], list[str]]]] = {"markdown": markdown_blocks, "notebook": notebook_blocks}

_FOLDED: Final = 8
"""Fold this many or more consecutive blocks without a change."""

_KEPT: Final = 2
"""Blocks that stay visible above and below a fold."""

_STYLE: Final = """
:root{color-scheme:light dark;--ground:#fff;--ink:#1d2026;--soft:#565d6b;--line:#d9dce2;--code:#f4f5f7;--link:#0b57c2;
--old:#fdecea;--old-edge:#b3372e;--new:#e6f4ea;--new-edge:#1b6e37}
@media (prefers-color-scheme:dark){:root{--ground:#16181d;--ink:#e6e8ec;--soft:#a2a9b6;--line:#3a3f49;--code:#20242c;
--link:#8ab4f8;--old:#3b2120;--old-edge:#f08a80;--new:#1c3324;--new-edge:#7fcf9a}}
*{box-sizing:border-box}
body{margin:0;padding:12px;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
.summary,.label,.note,.mark,.heads{color:var(--soft);font-size:13px}
.row,.heads{display:grid;grid-template-columns:1fr 1fr;gap:16px}
.side{min-width:0;padding:2px 10px;overflow-wrap:anywhere;border-left:3px solid transparent}
.old{background:var(--old);border-color:var(--old-edge)}
.new{background:var(--new);border-color:var(--new-edge)}
.mark,.label{margin:4px 0 0;font-weight:600}
.old>.mark{color:var(--old-edge)}.new>.mark{color:var(--new-edge)}
pre{overflow:auto;padding:8px;background:var(--code);white-space:pre-wrap}
code{background:var(--code);font:13px/1.5 ui-monospace,monospace}
table{border-collapse:collapse}
td,th{border:1px solid var(--line);padding:2px 8px}
.right{text-align:right}.center{text-align:center}.left{text-align:left}
blockquote{margin:8px 0;padding-left:12px;border-left:3px solid var(--line)}
hr{border:0;border-top:1px solid var(--line)}
a{color:var(--link)}.link{text-decoration:underline dotted}.image{border:1px solid var(--line);padding:0 4px}
summary{cursor:pointer;padding:8px 10px;color:var(--soft)}
@media (max-width:700px){.row,.heads{grid-template-columns:1fr;gap:0}.heads,.same>.side:first-child,.none{display:none}}
"""

_DIGEST: Final = b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; sandbox; "
    "frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)
"""Content security policy of these pages: no scripts, no requests, and only the review page may frame them."""


def rendered_page(name: str, kind: str, before: str | None, after: str | None) -> str:
    """Return a page with both texts rendered (None: no file). `kind`: markdown or notebook."""
    old, new = ([] if text is None else _RENDERERS[kind](text) for text in (before, after))
    hunks = diff_lines(_comparable(old), _comparable(new))
    noun = "cell" if kind == "notebook" else "block"
    differ = sum(max(hunk.old_count, hunk.new_count) for hunk in hunks)
    summary = (
        f"{differ} {noun}{'' if differ == 1 else 's'} differ{'s' if differ == 1 else ''}."
        if differ
        else "Nothing differs as it is rendered: look at the lines to see what has changed."
    )
    heads = '<div class="heads" aria-hidden="true"><div class="side">Before</div><div class="side">After</div></div>'
    return _page(name, [f'<p class="summary">{summary}</p>', heads, *_rows(old, new, hunks)])


def note_page(name: str, words: str) -> str:
    """Return a page that says why a file is not shown."""
    return _page(name, [f'<p class="summary">{escape(visible(words))}</p>'])


def _page(name: str, body: Sequence[str]) -> str:
    title = f"<title>{escape(visible(name))}, rendered</title>"
    head = f'<!doctype html><html lang="en"><meta charset="utf-8">{title}<style>{_STYLE}</style>'
    return "\n".join([head, "<body><main>", *body, "</main></body></html>\n"])


def _comparable(blocks: Sequence[str]) -> bytes:
    """Return a text with one line for each block, so that blocks are compared as lines, which is faster."""
    return b"".join(hashlib.sha256(block.encode()).hexdigest().encode() + b"\n" for block in blocks)


def _rows(old: Sequence[str], new: Sequence[str], hunks: Sequence[Hunk]) -> Iterator[str]:
    at = 0
    for number, hunk in enumerate(hunks, 1):
        yield from _same(new[at : hunk.new_start], is_first=not at, is_last=False)
        removed, inserted = old[hunk.old_start : hunk.old_end], new[hunk.new_start : hunk.new_end]
        for before, after in zip_longest(removed, inserted):
            sides = _side("old", "- before", before), _side("new", "+ after", after)
            yield f'<div class="row" role="group" aria-label="Change {number} of {len(hunks)}">{"".join(sides)}</div>'
        at = hunk.new_end
    yield from _same(new[at:], is_first=not at, is_last=True)


def _side(kind: str, mark: str, block: str | None) -> str:
    if block is None:
        return '<div class="side none"></div>'
    return f'<div class="side {kind}"><p class="mark">{mark}</p>{block}</div>'


def _same(blocks: Sequence[str], *, is_first: bool, is_last: bool) -> Iterator[str]:
    """Yield blocks without a change; if there are many, fold those that are not next to a change."""
    rows = [
        f'<div class="row same"><div class="side" inert>{block}</div><div class="side">{block}</div></div>'
        for block in blocks
    ]
    above, below = 0 if is_first else _KEPT, 0 if is_last else _KEPT
    if len(rows) < _FOLDED:
        yield from rows
        return
    hidden = rows[above : len(rows) - below]
    yield from rows[:above]
    yield f"<details><summary>{len(hidden)} without a change</summary>"
    yield from hidden
    yield "</details>"
    yield from rows[len(rows) - below :]
