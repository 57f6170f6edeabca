"""Render Markdown as a list of top-level blocks of inert HTML: no scripts, no images, no forms."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from cli.screen.terminal import beginning_of, visible

__all__ = ["block_text", "markdown_blocks"]

_DEEPEST: Final = 40
"""Greatest depth of nested quotes and lists; the library leaves out what is deeper."""

_KEPT_LINKS: Final = re.compile(r"(https?://|mailto:|#)", re.IGNORECASE)
_ADDRESS_COLUMNS: Final = 200
_SIDES: Final = {"text-align:left": "left", "text-align:right": "right", "text-align:center": "center"}


def markdown_blocks(text: str) -> list[str]:
    """Return the HTML of each top-level block: headings, paragraphs, lists, tables and so on, in order.

    HTML in the text is shown as text, and an image as its name. Links to the web, to mail and within the page are kept;
    others become text. Invisible and control characters are escaped, however they are written.
    """
    renderer, env = _renderer(), dict[str, Any]()
    tokens = renderer.parse(text.replace("\r\n", "\n"), env)
    return [
        visible(renderer.renderer.render(block, renderer.options, env), keep="\t\n") for block in _top_level(tokens)
    ]


def block_text(text: str, kind: str = "") -> str:
    """Return the HTML of a text that is shown unrendered, line by line."""
    named = f' class="{kind}"' if kind else ""
    return f"<pre{named}><code>{escape(visible(text, keep=chr(9) + chr(10)))}</code></pre>\n"


def _top_level(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    start = 0
    for at, token in enumerate(tokens):
        if not token.level and token.nesting <= 0:
            yield tokens[start : at + 1]
            start = at + 1


@cache
def _renderer() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": _DEEPEST})
    made.enable(["table", "strikethrough"])
    made.validateLink = _is_link  # type: ignore[method-assign]  # as the library's documentation says
    for name, rule in (("image", _image), ("link_open", _link_open), ("link_close", _link_close)):
        made.add_render_rule(name, rule)
    for name in ("th_open", "td_open"):
        made.add_render_rule(name, _cell_open)
    return made


def _is_link(url: str) -> bool:
    """Accept every link in parsing; `_link_open` decides how it is shown."""
    return bool(url)


def _image(_: Any, tokens: Sequence[Token], at: int, __: OptionsDict, ___: EnvType) -> str:  # noqa: ANN401 -- the renderer itself, as the library calls its rules
    token = tokens[at]
    address = beginning_of(str(token.attrGet("src") or ""), _ADDRESS_COLUMNS)
    return f'<span class="image">image: {escape(token.content)} ({escape(address)})</span>'


def _link_open(_: Any, tokens: Sequence[Token], at: int, __: OptionsDict, ___: EnvType) -> str:  # noqa: ANN401 -- as for _image
    address = str(tokens[at].attrGet("href") or "")
    shown = escape(beginning_of(address, _ADDRESS_COLUMNS))
    if not _KEPT_LINKS.match(address):
        return f'<span class="link" title="{shown}">'
    return f'<a href="{escape(address)}" title="{shown}" target="_blank" rel="noopener noreferrer nofollow">'


def _link_close(_: Any, tokens: Sequence[Token], at: int, __: OptionsDict, ___: EnvType) -> str:  # noqa: ANN401 -- as for _image
    depth = 0
    for token in reversed(tokens[:at]):
        depth += (token.type == "link_close") - (token.type == "link_open")
        if depth < 0:
            return "</a>" if _KEPT_LINKS.match(str(token.attrGet("href") or "")) else "</span>"
    return ""


def _cell_open(_: Any, tokens: Sequence[Token], at: int, __: OptionsDict, ___: EnvType) -> str:  # noqa: ANN401 -- as for _image
    """Return the start of a table's cell, with its alignment as a class: the page allows no style attributes."""
    side = _SIDES.get(str(tokens[at].attrGet("style")), "left")
    return f'<{tokens[at].tag} class="{side}">'
