"""Show the edit languages a file's text as lines that end in LF, and convert what they made to the file's bytes.

UTF-16 is shown as UTF-8, and CR as LF where it alone ends the lines. Whatever a model sends, lines get back the
encoding and the ends that the file has: JSON can't say an encoding, and models send LF whatever they read.
"""

from dataclasses import dataclass
from typing import Final

from mcptools.edit.display import decoded
from objstore import TextForm, encoded, form_of, lines_of

__all__ = ["UTF8_MARK", "FileText", "encoding", "file_text", "in_encoding_of", "line_endings", "why_not_utf16"]

UTF8_MARK: Final = b"\xef\xbb\xbf"
"""The byte-order mark of UTF-8."""

_CR: Final = TextForm.CR
"""The bit of the forms whose lines end in CR alone."""

_NAMES: Final = {TextForm.UTF16_LE: "utf-16-le", TextForm.UTF16_BE: "utf-16-be"}
_MARKS: Final = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    """A file's content, and its text as the edit languages see it."""

    content: bytes
    form: TextForm
    lines: bytes  # UTF-8, with LF for the ends of lines; as `content` if it is neither UTF-16 nor has CR alone

    @property
    def ends_in_cr(self) -> bool:
        """Return whether CR alone ends the lines, so that a text with CR can't mean anything else by it."""
        return bool(self.form & _CR)

    def as_meant(self, sent: bytes) -> bytes:
        """Return a text that a model sent, with the ends of lines as in `lines`."""
        return sent.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if self.ends_in_cr else sent

    def lines_meant(self, sent: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """Return lines that a model sent without endings: CR ends one where it ends those of the file."""
        if not self.ends_in_cr:
            return sent
        return tuple(part for line in sent for part in line.removesuffix(b"\r").split(b"\r"))

    def as_in_file(self, lines: bytes) -> bytes:
        """Return some of `lines` with the ends that they have in the file, to be shown exactly."""
        return lines.replace(b"\n", b"\r") if self.ends_in_cr else lines

    def with_lines(self, lines: bytes) -> bytes:
        """Return the file's bytes with other lines. Raises ValueError if LF would get among lines that end in CR."""
        if self.ends_in_cr and b"\r" in lines:
            raise ValueError("a line end other than CR")
        return encoded(lines, self.form)


def file_text(content: bytes) -> FileText:
    """Return a file's content with its text."""
    form = form_of(content)
    return FileText(content=content, form=form, lines=lines_of(content, form))


def in_encoding_of(before: bytes, sent: bytes) -> bytes:
    """Return a whole text that a model sent, in UTF-16 if the file that it replaces has that; ends of lines as sent."""
    form = TextForm(form_of(before) & ~_CR)
    return encoded(sent.removeprefix(UTF8_MARK), form) if form else sent


def line_endings(content: bytes) -> str:
    """Return the kind of line endings in `content`: lf, crlf, mixed, cr if it has CR alone, or none."""
    text = _decoded(content)
    lines, crlf = text.count(b"\n"), text.count(b"\r\n")
    if not lines:
        return "cr" if b"\r" in text else "none"
    if crlf in {0, lines}:
        return "crlf" if crlf else "lf"
    return "mixed"


def encoding(content: bytes) -> str:
    """Return the encoding of a text: utf-8, utf-8-bom, utf-16-le or utf-16-be; unknown if it is in none throughout.

    All but utf-8 have a byte-order mark.
    """
    form = TextForm(form_of(content) & ~_CR)
    if form:
        return _NAMES[form]
    if not decoded(content)[1]:
        return "unknown"
    return "utf-8-bom" if content.startswith(UTF8_MARK) else "utf-8"


def why_not_utf16(content: bytes) -> str | None:
    """Return why a content with the byte-order mark of UTF-16 is no text in it; None: it is, or has no such mark."""
    codec = _MARKS.get(content[:2])
    if codec is None or form_of(content):
        return None
    try:
        content[2:].decode(codec)
    except UnicodeDecodeError as error:
        what = "half a character is" if error.reason == "truncated data" else "half a surrogate pair is"
        return f"{what} at byte {error.start + 3}"
    return "it has characters that no text has, such as NUL"


def _decoded(content: bytes) -> bytes:
    """Return a content in UTF-8 if it is UTF-16; ends of lines are as they are."""
    return lines_of(content, TextForm(form_of(content) & ~_CR))
