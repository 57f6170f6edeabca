r"""Tell text from binary content, and convert texts whose lines do not end at a byte 0a: CR alone, and UTF-16.

Everything that counts, compares or joins lines works on one form: bytes whose lines end in b"\n". The *form* of a
file's content says how that is obtained: by exchanging CR and LF, by decoding UTF-16, by both, or not at all. The
conversion has an exact inverse, so bytes that lines were put together to are those that a program would have written.

The form follows from the content alone, but edits record it, because text before and after an edit may have two.
"""

from collections import deque
from enum import IntEnum
from typing import Final

__all__ = [
    "NO_FORMS",
    "TextForm",
    "encoded",
    "expressed",
    "form_of",
    "is_binary",
    "is_either_binary",
    "lines_of",
    "shown_lines",
]

_CHECKED: Final = 8192
_TEXT: Final = bytes(range(0x20, 0x7F)) + b"\n\r\t\b\f"
_HIGH: Final = bytes(range(0x80, 0x100))
_NOT_TEXT_SHARE: Final = 0.3
_known: Final = deque[tuple[bytes, float]](maxlen=8)
"""Heads of recent contents found to be text, with the share used: most are checked once as new and once as old."""

_EXCHANGED: Final = bytes.maketrans(b"\r\n", b"\n\r")
_CR: Final = 1
"""The bit of the forms whose lines end in CR alone."""


class TextForm(IntEnum):
    """How the lines of a content are found; the numbers are those of records."""

    PLAIN = 0  # each line ends in the byte 0a, whatever the encoding
    CR = 1
    UTF16_LE = 2  # with a byte-order mark, as are the others; each line ends in U+000A
    UTF16_LE_CR = 3
    UTF16_BE = 4
    UTF16_BE_CR = 5

    @property
    def words(self) -> str:
        """Return the name for a person."""
        encoding, ends = _NAMES[TextForm(self & ~_CR)], "CR line ends" if self & _CR else ""
        names = [name for name in (encoding, ends) if name]
        return " with ".join(names) or "plain"


NO_FORMS: Final = TextForm.PLAIN, TextForm.PLAIN
"""The forms before and after an edit of a plain text, or of a file that is no text."""

_NAMES: Final = {
    TextForm.PLAIN: "",
    TextForm.UTF16_LE: "UTF-16 (little-endian)",
    TextForm.UTF16_BE: "UTF-16 (big-endian)",
}
_CODECS: Final = {
    TextForm.UTF16_LE: (b"\xff\xfe", "utf-16-le"),
    TextForm.UTF16_BE: (b"\xfe\xff", "utf-16-be"),
}


def form_of(content: bytes) -> TextForm:
    """Return the form of a content. One that only looks like UTF-16, or is binary in that encoding, is plain."""
    for form, (mark, codec) in _CODECS.items():
        if content.startswith(mark):
            try:
                text = content[len(mark) :].decode(codec).encode()
            except UnicodeDecodeError:
                return TextForm.PLAIN
            if is_binary(text) or b"\0" in text:
                return TextForm.PLAIN
            return TextForm(form | _CR) if _ends_in_cr(text) else form
    return TextForm.CR if _ends_in_cr(content) and not is_binary(content) else TextForm.PLAIN


def lines_of(content: bytes, form: TextForm) -> bytes:
    r"""Return a content as a text whose lines end in b"\n", in UTF-8 if it was UTF-16; without its byte-order mark.

    Raises ValueError if the content doesn't have the form.
    """
    if form & ~_CR:
        mark, codec = _CODECS[TextForm(form & ~_CR)]
        if not content.startswith(mark):
            raise ValueError(f"the content does not begin as {form.words}")
        content = content[len(mark) :].decode(codec).encode()
    return content.translate(_EXCHANGED) if form & _CR else content


def encoded(text: bytes, form: TextForm) -> bytes:
    """Return the content of which `lines_of` returns `text`. Raises ValueError if the form can't express it."""
    if form & _CR:
        text = text.translate(_EXCHANGED)
    if form & ~_CR:
        mark, codec = _CODECS[TextForm(form & ~_CR)]
        return mark + text.decode().encode(codec)
    return text


def expressed(text: bytes, form: TextForm) -> bytes | None:
    """Return the content of which a reader finds the lines of `text`; None if the form can't express them."""
    if not form:
        return text
    try:
        content = encoded(text, form)
    except ValueError:
        return None
    return content if shown_lines(content) == text else None


def shown_lines(content: bytes) -> bytes:
    """Return a content as its lines are shown."""
    return lines_of(content, form_of(content))


def _ends_in_cr(text: bytes) -> bool:
    return b"\n" not in text and b"\r" in text


# ---- text or binary


def is_either_binary(old: bytes, new: bytes) -> bool:
    """Return whether at least one of two contents is binary."""
    return is_binary(old) or is_binary(new)


def is_binary(content: bytes, *, checked: int = _CHECKED, share: float = _NOT_TEXT_SHARE) -> bool:
    """Return whether `content` is binary: a NUL in its first bytes, or too many bytes that are not UTF-8 or ASCII text.

    `checked`: how many bytes are examined. `share`: the fraction of non-text bytes above which content is binary.
    """
    head = content[:checked]
    if (head, share) in _known:
        return False
    if b"\0" in head:
        return True
    unprintable = head.translate(None, _TEXT)
    most = len(head) * share
    if len(unprintable) <= most:
        _known.append((head, share))
        return False
    return not _is_utf8(head, cut=len(content) > checked) or len(unprintable.translate(None, _HIGH)) > most


def _is_utf8(head: bytes, *, cut: bool) -> bool:
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        # The last character may continue beyond the bytes examined.
        return cut and error.end == len(head) and error.reason == "unexpected end of data"
    return True
