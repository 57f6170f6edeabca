r"""Match one line of an ignore file, byte by byte as git does.

A pattern is split at its slashes, and each part is matched with one name: as text if it has no wildcard, else with a
regular expression that never goes back (`(?>...)`), so that no line takes long. An ignore file is read by every scan
that finds a new name; decision 35 has the figures of the library that did this before.

Source: git's `wildmatch.c` and `dir.c`.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import product, takewhile
from typing import Final, TypeAlias

__all__ = ["IgnorePattern"]

_STAR: Final = -1
_MOST_ENDS: Final = 32
"""Ends that a name may have to match: `*.py[cod]` has three."""

_Token: TypeAlias = int | frozenset[bytes] | bytes
"""A star, a set, or a byte: each in the form of single bytes, because git matches these."""

_ANY: Final = frozenset(bytes([byte]) for byte in range(256)) - {b"/"}

_CLASSES: Final = {
    b"alnum": rb"[0-9A-Za-z]",
    b"alpha": rb"[A-Za-z]",
    b"blank": rb"[ \t]",
    b"cntrl": rb"[\x00-\x1f\x7f]",
    b"digit": rb"[0-9]",
    b"graph": rb"[\x21-\x7e]",
    b"lower": rb"[a-z]",
    b"print": rb"[\x20-\x7e]",
    b"punct": rb"[!-/:-@\[-`{-~]",
    b"space": rb"[ \t\n\v\f\r]",
    b"upper": rb"[A-Z]",
    b"xdigit": rb"[0-9A-Fa-f]",
}


class IgnorePattern:
    """The pattern of one line."""

    __slots__ = (
        "_expressions",
        "_is_anywhere",
        "_is_folder",
        "_parts",
        "_prefix",
        "beginning",
        "ends",
        "is_negated",
        "name",
    )

    def __init__(self, line: bytes, *, ignores_case: bool = False) -> None:
        """Read a line, without its line ending. Raises ValueError for one that never matches anything.

        `ignores_case`: the pattern matches paths of which every letter is small.
        """
        self.is_negated: Final = line.startswith(b"!")
        text = line.removeprefix(b"!")
        self._is_folder: Final = text.endswith(b"/")
        text = text.removesuffix(b"/")
        self._is_anywhere: Final = b"/" not in text  # it is matched with a name in any folder
        text = text.removeprefix(b"/")
        if not text:
            raise ValueError("it has no name")
        # Git compares a path's text before the first wildcard, and only then looks for wildcards: so stars that follow
        # a letter can cross slashes.
        prefix = b"" if self._is_anywhere else text[: _special(text)]
        self._parts: Final = [*_split(_tokens(text[len(prefix) :], ignores_case=ignores_case))]
        self._prefix: Final = prefix.lower() if ignores_case else prefix
        self._expressions: Final[dict[int, re.Pattern[bytes]]] = {}  # by the number of the part, compiled when needed
        last = [*_split(_tokens(text, ignores_case=ignores_case))][-1]
        is_crossing = any(map(self._is_any_folders, (0, len(self._parts) - 1)))
        if is_crossing and (len(self._parts) == 1 or self._prefix[-1:] not in {b"", b"/"}):
            last = [_STAR]
        self.name: Final = _literal(last)
        """The only name that a path which it matches can end with (None: there are several)."""
        self.beginning: Final = _literal([*takewhile(lambda token: isinstance(token, bytes), last)]) or b""
        """What each such name begins with."""
        self.ends: Final = _ends(last)
        """Each such name ends with one of these."""

    def matches(self, path: bytes, *, is_folder: bool) -> bool:
        """Return whether the pattern matches a path, relative to the folder of the ignore file."""
        if self._is_folder and not is_folder:
            return False
        if self._is_anywhere:
            return self._is_part(0, path.rpartition(b"/")[2])
        return path.startswith(self._prefix) and self._match(path[len(self._prefix) :].split(b"/"))

    def _match(self, names: Sequence[bytes]) -> bool:
        """Return whether the parts match the names."""
        reached = self._with_no_folders({0})  # the parts that may match the next name
        for name in names:
            following: set[int] = set()
            for part in reached:
                if self._is_any_folders(part):
                    following |= {part, part + 1} if part + 1 == len(self._parts) else {part}
                elif part < len(self._parts) and self._is_part(part, name):
                    following.add(part + 1)
            reached = self._with_no_folders(following)
        return len(self._parts) in reached

    def _with_no_folders(self, reached: set[int]) -> set[int]:
        """Return the parts, and those after `**/`, which also means no folder."""
        found = set(reached)
        for part in reached:
            while self._is_any_folders(part) and part + 1 < len(self._parts):
                part += 1  # noqa: PLW2901 - each of several in a row
                found.add(part)
        return found

    def _is_any_folders(self, part: int) -> bool:
        """Return whether a part is two stars or more: any number of folders."""
        if self._is_anywhere or part >= len(self._parts):
            return False
        return len(self._parts[part]) > 1 and all(token == _STAR for token in self._parts[part])

    def _is_part(self, part: int, name: bytes) -> bool:
        literal = _literal(self._parts[part])
        if literal is not None:
            return literal == name
        expression = self._expressions.get(part)
        if expression is None:
            expression = self._expressions[part] = re.compile(_expression(self._parts[part]), re.DOTALL)
        return expression.fullmatch(name) is not None


def _special(text: bytes) -> int:
    """Return where the first wildcard or backslash is (the length: there is none)."""
    return min((at for at in map(text.find, (b"*", b"?", b"[", b"\\")) if at >= 0), default=len(text))


def _tokens(text: bytes, *, ignores_case: bool) -> list[_Token]:
    """Return the tokens of a pattern. Raises ValueError if git would match nothing with it.

    `ignores_case`: for names in small letters. As in git, a capital after a backslash then matches nothing.
    """
    tokens: list[_Token] = []
    at = 0
    while at < len(text):
        byte = text[at : at + 1]
        at += 1
        if byte == b"*":
            tokens.append(_STAR)
        elif byte == b"?":
            tokens.append(_ANY)
        elif byte == b"[":
            members, at = _set(text, at, ignores_case=ignores_case)
            tokens.append(members)
        elif byte == b"\\":
            if at == len(text):
                raise ValueError("a backslash is at its end")
            tokens.append(text[at : at + 1])
            at += 1
        else:
            tokens.append(byte.lower() if ignores_case else byte)
    return tokens


def _set(text: bytes, at: int, *, ignores_case: bool) -> tuple[frozenset[bytes], int]:
    """Return the members of the set that begins at `at`, after its bracket, and where the text goes on.

    `ignores_case`: the capitals in ranges and classes, but not those that are members by themselves, are small letters
    too, as in git.
    """
    is_negated = text[at : at + 1] in {b"!", b"^"}
    at += is_negated
    members: set[bytes] = set()
    before = -1  # the byte with which a range may begin; -1: none
    is_first = True
    while is_first or text[at : at + 1] != b"]":
        is_first = False
        if at >= len(text):
            raise ValueError("a set has no end")
        if text.startswith(b"[:", at):
            end = text.find(b"]", at + 2)
            if end < 0:
                raise ValueError("a set has no end")
            if text[end - 1 : end] == b":" and end > at + 2:
                found = _CLASSES.get(text[at + 2 : end - 1])
                if found is None:
                    raise ValueError("a class in a set is unknown")
                members.update(_with_small(re.findall(found, bytes(range(256))), ignores_case=ignores_case))
                before, at = -1, end + 1
                continue
        if text[at] == ord("-") and before > 0 and text[at + 1 : at + 2] not in {b"", b"]"}:
            at += 1 + text.startswith(b"\\", at + 1)
            if at >= len(text):
                raise ValueError("a backslash is at its end")
            between = [bytes([byte]) for byte in range(before, text[at] + 1)]
            members.update(_with_small(between, ignores_case=ignores_case))
            before = -1
        else:
            at += text.startswith(b"\\", at)
            if at >= len(text):
                raise ValueError("a backslash is at its end")
            before = text[at]
            members.add(text[at : at + 1])
        at += 1
    return (_ANY - members if is_negated else frozenset(members) - {b"/"}), at + 1


def _with_small(members: list[bytes], *, ignores_case: bool) -> list[bytes]:
    return [*members, *map(bytes.lower, members)] if ignores_case else members


def _split(tokens: Sequence[_Token]) -> Iterator[list[_Token]]:
    """Yield the parts of a pattern between its slashes."""
    part: list[_Token] = []
    for token in tokens:
        if token == b"/":
            yield part
            part = []
        else:
            part.append(token)
    yield part


def _literal(part: Sequence[_Token]) -> bytes | None:
    """Return the name that a part matches (None: it has a wildcard)."""
    found = [token for token in part if isinstance(token, bytes)]
    return b"".join(found) if len(found) == len(part) else None


def _ends(part: Sequence[_Token]) -> tuple[bytes, ...]:
    """Return the ends of the names that a part can match: each has one of them."""
    choices: list[Sequence[bytes]] = []
    count = 1
    for token in reversed(part):
        if isinstance(token, int) or (isinstance(token, frozenset) and count * len(token) > _MOST_ENDS):
            break
        choices.append([token] if isinstance(token, bytes) else [*token])
        count *= len(choices[-1])
    return tuple(map(b"".join, product(*reversed(choices))))


def _expression(part: Sequence[_Token]) -> bytes:
    """Return the expression for a part: after each star, the first place at which the tokens that follow fit."""
    pieces: list[bytes] = [b""]
    for token in part:
        if isinstance(token, int):
            pieces.append(b"")
        elif isinstance(token, frozenset):
            members = b"".join(b"\\x%02x" % ord(member) for member in sorted(token))
            pieces[-1] += b"[%b]" % members if members else b"(?!)"
        else:
            pieces[-1] += re.escape(token)
    first, *others = pieces
    if not others:
        return first
    *middle, last = others
    return first + b"".join(b"(?>.*?%b)" % piece for piece in middle if piece) + b".*" + last
