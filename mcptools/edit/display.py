"""Show names and bytes to a model as text that JSON can hold, and that can't be mistaken for something else."""

from collections.abc import Iterable
from typing import Any, Final

__all__ = [
    "LONGEST_WORDS",
    "UNDECODABLE_MARK",
    "cut",
    "cut_within",
    "decoded",
    "one_line",
    "shown",
    "unnameable",
]

UNDECODABLE_MARK: Final = r"\udc"
"""The beginning of the escape with which a name's bytes that are not UTF-8 are shown."""

_UNNAMEABLE: Final = (
    rf"Names with {UNDECODABLE_MARK}NN are not UTF-8, and no tool can use them: a person can rename them."
)

LONGEST_WORDS: Final = 8000
"""Characters of each text in a refusal: some 2,500 tokens."""


def shown(text: str) -> str:
    r"""Return `text` with unpaired surrogates, which JSON can't hold, escaped as \udcNN."""
    return text.encode(errors="backslashreplace").decode()


def unnameable(listed: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """Return a note if any of `names` is in the list `listed`.

    `names`: the displayed forms of names that are not UTF-8; a client can't use them as paths.
    """
    return () if frozenset(names).isdisjoint(listed) else (_UNNAMEABLE,)


def cut(text: str, longest: int) -> str:
    """Return a text cut to `longest` characters, with its full length if it was cut."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text)} characters in all)"


def cut_within(value: Any, longest: int) -> Any:  # noqa: ANN401 - any JSON value
    """Return a JSON value with every text in it cut to `longest` characters."""
    match value:
        case str():
            return cut(value, longest)
        case list() | tuple():
            return [cut_within(item, longest) for item in value]
        case dict():
            return {name: cut_within(item, longest) for name, item in value.items()}
    return value


def one_line(name: str) -> str:
    """Return a name on one line, escaped if it contains line breaks or a terminal's control characters."""
    return name if name.isprintable() else ascii(name)


def decoded(content: bytes) -> tuple[str, bool]:
    r"""Return content as text, with bytes that are not UTF-8 as \xNN, and whether the text is exact."""
    try:
        return content.decode(), True
    except UnicodeDecodeError:
        return content.decode("utf-8", "backslashreplace"), False
