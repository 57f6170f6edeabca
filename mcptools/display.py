"""How names and bytes are shown to a model: always as text that JSON can hold, never as something they are not."""

from typing import Any, Final

__all__ = ["LONGEST_WORDS", "cut", "cut_within", "decoded", "line_endings", "one_line", "shown"]

LONGEST_WORDS: Final = 8000
"""Characters of each text in a refusal: some 2,500 tokens."""


def shown(text: str) -> str:
    """Return `text` as every client can take it: half characters, which no JSON holds, are spelt out."""
    return text.encode(errors="backslashreplace").decode()


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
