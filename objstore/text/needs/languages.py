"""How the sources of each language are read, and what is kept of them: names, and the words of their imports."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from objstore.text.needs.source_kinds import grammar_of, is_python, is_script, reads_scripts
from objstore.values.fastclass import NamedTuple

# What reads a language is imported when a source of it is read: a decision waits for that, and is mostly about one.
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from objstore.text.needs.broken_names import Program
    from objstore.text.needs.python_names import PythonNames
    from objstore.text.needs.python_program import PythonProgram

__all__ = ["Language", "Names", "languages_of"]

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


def languages_of(paths: Collection[str]) -> tuple[Language, ...]:
    """Return the languages of the sources among files at these paths, as far as they can be read here."""
    python = (_python(),) if any(map(is_python, paths)) else ()
    return (*python, _scripts()) if any(map(is_script, paths)) and reads_scripts() else python


@cache
def _python() -> Language:
    from objstore.text.needs import python_names, python_program

    def names(text: bytes, _path: str) -> PythonNames:
        return python_names.python_names(text)

    def program(
        paths: Iterable[str],
        names: Callable[[str], PythonNames],
        _declaring: Iterable[str],
        _ignored: Iterable[str],
    ) -> PythonProgram:
        return python_program.PythonProgram(paths, names)

    return Language(
        is_source=is_python,
        kind=lambda _: b"p",
        imported_words=python_names.imported_words,
        module_words=python_program.module_words,
        names=names,
        packed=python_names.packed,
        unpacked=python_names.unpacked,
        unknown=python_names.PythonNames(is_open=True),
        program=program,
    )


@cache
def _scripts() -> Language:
    from objstore.text.needs import script_names, script_program

    return Language(
        is_source=is_script,
        kind=lambda path: b"d" if path.endswith(".d.ts") else grammar_of(path)[:2].encode(),
        imported_words=script_names.imported_files,
        module_words=script_program.file_words,
        names=script_names.script_names,
        packed=script_names.packed,
        unpacked=script_names.unpacked,
        unknown=script_names.ScriptNames(is_open=True),
        program=script_program.ScriptProgram,
    )
