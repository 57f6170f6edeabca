"""Say by its name whether a file is a source that is read for names. Nothing is imported here: every decision asks."""

from collections.abc import Iterable
from functools import cache
from typing import Final

__all__ = ["concerns_sources", "grammar_of", "is_python", "is_script", "language_of", "reads_scripts"]

_PYTHON: Final = (".py", ".pyi")
_GRAMMARS: Final = {
    "javascript": (".js", ".mjs", ".cjs", ".jsx"),
    "tsx": (".tsx",),
    "typescript": (".ts", ".mts", ".cts"),
}
_SCRIPTS: Final = tuple(ending for endings in _GRAMMARS.values() for ending in endings)


def is_python(path: str) -> bool:
    """Return whether a file is a Python source, by its name."""
    return path.endswith(_PYTHON)


def is_script(path: str) -> bool:
    """Return whether a file is a JavaScript or TypeScript source, by its name."""
    return path.endswith(_SCRIPTS)


def grammar_of(path: str) -> str:
    """Return the grammar of a JavaScript or TypeScript source."""
    return next(grammar for grammar, endings in _GRAMMARS.items() if path.endswith(endings))


def language_of(path: str) -> str:
    """Return the name of a source's language."""
    if is_python(path):
        return "Python"
    return "JavaScript" if grammar_of(path) == "javascript" else "TypeScript"


def concerns_sources(paths: Iterable[str]) -> bool:
    """Return whether one of the files is a source that can be read, by its name."""
    return any(is_python(path) or (is_script(path) and reads_scripts()) for path in paths)


@cache
def reads_scripts() -> bool:
    """Return whether the extra `editledger[syntax]` is installed, which reads JavaScript and TypeScript."""
    from importlib.util import find_spec

    return all(map(find_spec, ("tree_sitter", "tree_sitter_javascript", "tree_sitter_typescript")))
