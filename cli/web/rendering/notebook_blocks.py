"""Render a notebook cell by cell: code and text outputs as text, Markdown rendered, other outputs by name and size."""

import json
from collections.abc import Iterator
from html import escape
from typing import Any, Final

from cli.screen.terminal import beginning_of, visible
from cli.web.rendering.markdown_blocks import block_text, markdown_blocks

__all__ = ["notebook_blocks"]

_MOST_CELLS: Final = 2_000
_MOST_CHARACTERS: Final = 20_000
"""Most characters of one output that are shown."""

_MOST_OUTPUTS: Final = 50
_NAME_COLUMNS: Final = 80


def notebook_blocks(text: str) -> list[str]:
    """Return the HTML of each cell, in order. A file that is no notebook gives one block that says so."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return [_note("This is not a notebook: it is not valid JSON.")]
    cells = read.get("cells") if isinstance(read, dict) else None
    if not isinstance(cells, list):
        return [_note("This is not a notebook as they are written since 2015: it has no list of cells.")]
    blocks = [_cell(cell) for cell in cells[:_MOST_CELLS]]
    more = len(cells) - _MOST_CELLS
    return [*blocks, _note(f"and {more} more cells")] if more > 0 else blocks


def _cell(cell: object) -> str:
    if not isinstance(cell, dict):
        return _note("A cell that can't be read.")
    kind, source = str(cell.get("cell_type")), _text(cell.get("source"))
    if source is None:
        return _note("A cell whose text can't be read.")
    if kind == "markdown":
        return _labelled("Markdown", "".join(markdown_blocks(source)))
    outputs = cell.get("outputs", [])
    shown = list(_outputs(outputs)) if isinstance(outputs, list) else [_note("Outputs that can't be read.")]
    label = "Code" if kind == "code" else beginning_of(visible(kind), _NAME_COLUMNS)
    return _labelled(label, block_text(source, "code") + "".join(shown))


def _outputs(outputs: list[Any]) -> Iterator[str]:
    for output in outputs[:_MOST_OUTPUTS]:
        match output:
            case {"output_type": "stream", "text": written}:
                yield _output("Output", _text(written))
            case {"output_type": "error", "ename": str(name), "evalue": str(value)}:
                yield _output("Error", f"{name}: {value}")
            case {"output_type": "execute_result" | "display_data", "data": dict(data)}:
                yield from _data(data)
            case _:
                yield _note("An output that can't be read.")
    if len(outputs) > _MOST_OUTPUTS:
        yield _note(f"and {len(outputs) - _MOST_OUTPUTS} more outputs")


def _data(data: dict[Any, Any]) -> Iterator[str]:
    """Yield the text of an output, and the kind and size of each other part."""
    if "text/plain" in data:
        yield _output("Output", _text(data["text/plain"]))
    for kind, content in data.items():
        if kind != "text/plain":
            size = len(_text(content) or json.dumps(content))
            yield _note(f"Output not shown: {beginning_of(visible(str(kind)), _NAME_COLUMNS)}, {size:,} characters.")


def _output(label: str, text: str | None) -> str:
    if text is None:
        return _note("An output whose text can't be read.")
    cut = len(text) - _MOST_CHARACTERS
    more = _note(f"and {cut:,} more characters") if cut > 0 else ""
    return _labelled(label, block_text(text[:_MOST_CHARACTERS], "output") + more)


def _text(written: object) -> str | None:
    """Return a text, which a notebook may store as a list of pieces (None: it is no text)."""
    if isinstance(written, str):
        return written
    if isinstance(written, list) and all(isinstance(piece, str) for piece in written):
        return "".join(written)
    return None


def _labelled(label: str, html: str) -> str:
    return f'<p class="label">{escape(label)}</p>\n{html}'


def _note(words: str) -> str:
    return f'<p class="note">{escape(words)}</p>\n'
