"""How names and bytes are shown to a model: always as text that JSON can hold, never as something they are not."""

from collections.abc import Iterable
from typing import Any, Final

__all__ = [
    "LONGEST_WORDS",
    "SPELT_OUT",
    "cut",
    "cut_within",
    "decoded",
    "line_endings",
    "one_line",
    "shown",
    "unnameable",
]

SPELT_OUT: Final = r"\udc"
"""What begins, in a name as it is shown, each byte that is no UTF-8."""

_UNNAMEABLE: Final = (
    rf"Names with {SPELT_OUT}NN are not UTF-8, and no tool can be given them: a person can rename them."
)

LONGEST_WORDS: Final = 8000
"""Characters of each text in a refusal: some 2,500 tokens."""


def shown(text: str) -> str:
    """Return `text` as every client can take it: half characters, which no JSON holds, are spelt out."""
    return text.encode(errors="backslashreplace").decode()


def unnameable(listed: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """Return what has to be said beside a list of names, as they are shown, if some of these `names` are in it.

    `names`: as shown, those that are not UTF-8: what is shown is not how they can be given.
    """
    return () if frozenset(names).isdisjoint(listed) else (_UNNAMEABLE,)


def cut(text: str, longest: int) -> str:
    """Return a text of at most so many characters as it is, and of a longer one so many, and how many it has."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text)} characters in all)"


def cut_within(told: Any, longest: int) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return what is to be told with every text in it cut."""
    match told:
        case str():
            return cut(told, longest)
        case list() | tuple():
            return [cut_within(item, longest) for item in told]
        case dict():
            return {name: cut_within(item, longest) for name, item in told.items()}
    return told


def one_line(name: str) -> str:
    """Return a file's name such that it can't pass for several lines, or for a terminal's commands."""
    return name if name.isprintable() else ascii(name)


def decoded(content: bytes) -> tuple[str, bool]:
    r"""Return content as text, bytes that are not UTF-8 as \xNN, and whether the text is exact."""
    try:
        return content.decode(), True
    except UnicodeDecodeError:
        return content.decode("utf-8", "backslashreplace"), False


def line_endings(content: bytes) -> str:
    """Return what ends the lines of `content`: lf, crlf, mixed, or none where no line ends."""
    lines, crlf = content.count(b"\n"), content.count(b"\r\n")
    if not lines:
        return "none"
    if crlf in {0, lines}:
        return "crlf" if crlf else "lf"
    return "mixed"
