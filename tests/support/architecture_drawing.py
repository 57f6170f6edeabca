"""Draw the packages and which may import which, from the import contracts in pyproject.toml.

`python -m tests.support.architecture_drawing` writes the drawing between the two marker lines of docs/architecture.md.
"""

import tomllib
from pathlib import Path
from typing import Any, Final

__all__ = ["BEGIN", "END", "PAGE", "contracted_packages", "draw", "with_drawing"]

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "architecture.md"
BEGIN: Final = "<!-- drawing: begin (written by `python -m tests.support.architecture_drawing`) -->\n"
END: Final = "<!-- drawing: end -->\n"

_GAP: Final = "  "
_ENTRY: Final = "__main__"


def contracted_packages() -> dict[str, list[list[str]]]:
    """Return the layers of each distribution package, top layer first, each with the packages that it holds."""
    return {
        contract["containers"][0]: [_siblings(layer) for layer in contract["layers"]]
        for contract in _layer_contracts()
        if "containers" in contract
    }


def draw() -> str:
    """Return the drawing: a box for each distribution package, one line for each layer, top layer first."""
    (outer,) = (contract["layers"] for contract in _layer_contracts() if "containers" not in contract)
    rows = [[_box(name, contracted_packages()[name]) for name in _siblings(layer)] for layer in outer]
    widest = max(sum(len(box[0]) for box in row) + len(_GAP) * (len(row) - 1) for row in rows)
    lines = [line for row in rows for line in _side_by_side(row, widest)]
    return "\n".join(["```text", *lines, "```", ""])


def with_drawing(page: str) -> str:
    """Return the text of the page with the drawing between its two marker lines; raise ValueError without these."""
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        message = f"{PAGE.name} lacks the marker lines of the drawing"
        raise ValueError(message)
    return f"{before}{BEGIN}{draw()}{END}{after}"


def _layer_contracts() -> list[dict[str, Any]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return [contract for contract in project["tool"]["importlinter"]["contracts"] if contract["type"] == "layers"]


def _siblings(layer: str) -> list[str]:
    return [name.strip() for name in layer.split("|")]


def _box(title: str, layers: list[list[str]]) -> list[str]:
    lines = [" | ".join(layer) for layer in layers if layer != [_ENTRY]]
    width = max(map(len, [*lines, f"{title}/ "]))
    return [
        f"+- {title}/ ".ljust(width + 3, "-") + "+",
        *(f"| {line.ljust(width)} |" for line in lines),
        f"+{'-' * (width + 2)}+",
    ]


def _side_by_side(boxes: list[list[str]], width: int) -> list[str]:
    boxes = [_widened(box, width) for box in boxes] if len(boxes) == 1 else boxes
    height = max(map(len, boxes))
    padded = [_heightened(box, height) for box in boxes]
    return [_GAP.join(line) for line in zip(*padded, strict=True)]


def _widened(box: list[str], width: int) -> list[str]:
    missing = width - len(box[0])
    return [line[:-1] + ("-" if line.startswith("+") else " ") * missing + line[-1] for line in box]


def _heightened(box: list[str], height: int) -> list[str]:
    blank = f"|{' ' * (len(box[0]) - 2)}|"
    return [*box[:-1], *[blank] * (height - len(box)), box[-1]]


if __name__ == "__main__":
    PAGE.write_text(with_drawing(PAGE.read_text()))
