"""How names and bytes are shown to a model: always as text that JSON can hold, never as something they are not."""

__all__ = ["decoded", "line_endings", "one_line", "shown"]


def shown(text: str) -> str:
    """Return `text` as every client can take it: half characters, which no JSON holds, are spelt out."""
    return text.encode(errors="backslashreplace").decode()


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
