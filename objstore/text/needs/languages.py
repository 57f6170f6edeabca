"""How the sources of each language are read, and what is kept of them: names, and the words of their imports."""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from objstore.text.needs import python_names, script_names
from objstore.text.needs.broken_names import Program
from objstore.text.needs.python_program import PythonProgram, module_words
from objstore.text.needs.script_program import ScriptProgram, file_words
from objstore.text.needs.source_kinds import grammar_of, is_python, is_script, reads_scripts
from objstore.values.fastclass import NamedTuple

__all__ = ["Language", "Names", "languages"]

Names: TypeAlias = Any
"""What is known of a source: each language has its own."""


class Language(NamedTuple):
    """How the sources of one language are read."""

    is_source: Callable[[str], bool]  # by its path
    kind: Callable[[str], bytes]  # a byte that says of a path how its text is read
    imported_words: Callable[[bytes], bytes]  # of a text: words of its imports, with a space around each
    module_words: Callable[[str], tuple[str, ...]]  # of a path: words of which one is in each import of it; "": any
    names: Callable[[bytes, str], Names]  # of a text at a path
    packed: Callable[[Names], bytes]  # names for a cache
    unpacked: Callable[[bytes], Names]
    unknown: Names  # the names of a source that is too long to be read
    program: Callable[[Iterable[str], Callable[[str], Names], Iterable[str], Iterable[str]], Program]
    """Makes one of all paths, what returns a source's names, the sources that declare for others, and ignored paths."""


def _python_names(text: bytes, _path: str) -> python_names.PythonNames:
    return python_names.python_names(text)


def _python_program(
    paths: Iterable[str],
    names: Callable[[str], python_names.PythonNames],
    _declaring: Iterable[str],
    _ignored: Iterable[str],
) -> PythonProgram:
    return PythonProgram(paths, names)


_PYTHON: Final = Language(
    is_source=is_python,
    kind=lambda _: b"p",
    imported_words=python_names.imported_words,
    module_words=module_words,
    names=_python_names,
    packed=python_names.packed,
    unpacked=python_names.unpacked,
    unknown=python_names.PythonNames(is_open=True),
    program=_python_program,
)

_SCRIPTS: Final = Language(
    is_source=is_script,
    kind=lambda path: b"d" if path.endswith(".d.ts") else grammar_of(path)[:2].encode(),
    imported_words=script_names.imported_files,
    module_words=file_words,
    names=script_names.script_names,
    packed=script_names.packed,
    unpacked=script_names.unpacked,
    unknown=script_names.ScriptNames(is_open=True),
    program=ScriptProgram,
)


def languages() -> tuple[Language, ...]:
    """Return the languages of which sources can be read here."""
    return (_PYTHON, _SCRIPTS) if reads_scripts() else (_PYTHON,)
