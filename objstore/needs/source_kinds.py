"""Say by its name whether a file is a source that is read for names. Nothing is imported here: every decision asks."""

from collections.abc import Iterable
from typing import Final

__all__ = ["PYTHON", "concerns_sources", "is_python"]

PYTHON: Final = (".py", ".pyi")
"""The endings of Python sources."""


def is_python(path: str) -> bool:
    """Return whether a file is a Python source, by its name."""
    return path.endswith(PYTHON)


def concerns_sources(paths: Iterable[str]) -> bool:
    """Return whether one of the files is a source, by its name."""
    return any(map(is_python, paths))
