"""TOML as people write it in settings files: one table of ours set or taken out, all else kept byte for byte.

A text is read one statement at a time, so that a line in a text of several lines is never taken for a table's header.
What comes of an edit is read by a real parser besides, and counts only if it says what was wanted and nothing else;
what can't be edited so is refused.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cli.wiring.lines import line_end

__all__ = ["table", "with_table", "without_table"]

_MARK: Final = "\ufeff"
"""The byte order mark, with which some editors begin a text: a parser refuses it, and it stays where it is."""


_PIECE: Final = re.compile(
    r'''"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\#[^\n]*|[\[{]|[\]}]|\n|[^"'\#\[\]{}\n]+''',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    """A header, a key with its value, or a line that says nothing."""

    start: int
    end: int  # behind its line end
    is_header: bool
    said: Any  # what a parser makes of it alone

    @property
    def path(self) -> tuple[str, ...]:
        """Return the names of a header, or of a key and of what is below it as far as there is only one."""
        names, said = [], self.said
        while isinstance(said, dict) and len(said) == 1:
            ((name, said),) = said.items()
            names.append(name)
        return tuple(names)


def table(text: str, path: Sequence[str]) -> Any:  # noqa: ANN401 - whatever the text says
    """Return what the text has at `path`; None: nothing. Raises ValueError where it is no TOML."""
    held: Any = _parsed(text.removeprefix(_MARK))
    for name in path:
        held = held.get(name) if isinstance(held, dict) else None
    return held


def with_table(text: str, path: Sequence[str], members: Mapping[str, str | Sequence[str]]) -> str:
    """Return the text with these members in the table at `path`; other members of it, and all else, stay.

    Raises ValueError where the text is no TOML, or has the table in a shape that can't be changed alone.
    """
    if text.startswith(_MARK):
        return _MARK + with_table(text[1:], path, members)
    wanted = _parsed(text)
    held: Any = wanted
    for name in path:
        held = held.setdefault(name, {}) if isinstance(held, dict) else None
    if not isinstance(held, dict):
        raise ValueError(f"{'.'.join(path)} is no table")  # noqa: TRY004 - it is what the text says that is wrong
    missing = {key: value for key, value in members.items() if held.get(key) != value}
    held.update(members)
    if not missing:
        return text
    statements = list(_statements(text))
    heads = [at for at, one in enumerate(statements) if one.is_header and one.path == tuple(path)]
    if heads:
        return _checked(_changed(text, statements[heads[0]], _body(statements, heads[0]), missing), wanted, path)
    end = line_end(text)
    before = text + ("" if not text or text.endswith("\n") else end) + (end if text.strip() else "")
    return _checked(before + f"[{'.'.join(path)}]{end}" + _spelt(members, end), wanted, path)


def without_table(text: str, path: Sequence[str]) -> str:
    """Return the text without the table at `path` and those below it. Raises ValueError as `with_table` does."""
    if text.startswith(_MARK):
        return _MARK + without_table(text[1:], path)
    wanted = _parsed(text)
    above: Any = wanted
    for name in path[:-1]:
        above = above.get(name) if isinstance(above, dict) else None
    if not isinstance(above, dict) or path[-1] not in above:
        return text
    del above[path[-1]]
    statements = list(_statements(text))
    for start, end in reversed(list(_spans(statements, tuple(path)))):
        text = _joined(text[:start], text[end:])
    return _checked(text, wanted, path)


# ---- reading


def _parsed(text: str) -> dict[str, Any]:
    return tomllib.loads(text, parse_float=str)  # as text: what is not a number is not even itself


def _statements(text: str) -> Iterator[_Statement]:
    start, depth = 0, 0
    for piece in _PIECE.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(piece.group(), 0)
        if (piece.group() == "\n" and not depth) or piece.end() == len(text):
            alone = text[start : piece.end()]
            is_header = alone.lstrip().startswith("[")
            yield _Statement(start=start, end=piece.end(), is_header=is_header, said=_parsed(alone))
            start = piece.end()


def _body(statements: Sequence[_Statement], head: int) -> list[_Statement]:
    """Return what a header's table says, without the lines after it that say nothing: they may be of what follows."""
    inside: list[_Statement] = []
    for one in statements[head + 1 :]:
        if one.is_header:
            break
        inside.append(one)
    while inside and not inside[-1].said:
        inside.pop()
    return inside


def _spans(statements: Sequence[_Statement], path: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Yield where the table and those below it stand, those that follow one another as one."""
    heads = [at for at, one in enumerate(statements) if one.is_header]
    ours = [at for at in heads if statements[at].path[: len(path)] == path]
    for at in ours:
        following = next((head for head in heads if head > at), None)
        if following in ours:
            yield statements[at].start, statements[following].start
        else:
            yield statements[at].start, [statements[at], *_body(statements, at)][-1].end


# ---- writing


def _spelt(members: Mapping[str, str | Sequence[str]], end: str) -> str:
    return "".join(f"{key} = {_literal(value)}{end}" for key, value in members.items())


def _literal(value: str | Sequence[str]) -> str:
    # JSON's spelling of texts and of lists of them is TOML's, if it escapes this character and no others need two.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _changed(
    text: str, head: _Statement, body: Sequence[_Statement], missing: Mapping[str, str | Sequence[str]]
) -> str:
    """Return the text with members set in the table that has this header: in place, or after its others."""
    end = line_end(text)
    standing = {one.path[0]: one for one in body if one.said}
    last = [head, *body][-1].end
    new = {key: value for key, value in missing.items() if key not in standing}
    if new:
        text = text[:last] + ("" if text[:last].endswith("\n") else end) + _spelt(new, end) + text[last:]
    for one in reversed(body):
        if one.said and one.path[0] in missing:
            start, stop = _value(text, one)
            text = text[:start] + _literal(missing[one.path[0]]) + text[stop:]
    return text


def _value(text: str, statement: _Statement) -> tuple[int, int]:
    """Return where a key's value stands: behind the first `=` that is in no quoted key, and before a comment."""
    start, stop, depth = 0, 0, 0
    for piece in _PIECE.finditer(text, statement.start, statement.end):
        if not start:
            equals = -1 if piece.group()[0] in "\"'" else piece.group().find("=")
            if equals >= 0:
                rest = text[piece.start() + equals + 1 : piece.end()]
                start = piece.end() - len(rest.lstrip())
                stop = start + len(rest.strip())
            continue
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(piece.group(), 0)
        if piece.group().strip() and (depth or not piece.group().startswith("#")):
            stop = piece.start() + len(piece.group().rstrip())
    return start, stop


def _joined(before: str, after: str) -> str:
    """Return both as one text, without the empty line that stood between what stood between them and one of them."""
    empty = re.search(r"(?:^|(?<=\n))\r?\n\Z", before)
    if empty is not None and (not after or re.match(r"\r?\n", after)):
        return before[: empty.start()] + after
    return before + (after if before else re.sub(r"\A\r?\n", "", after))


def _checked(text: str, wanted: dict[str, Any], path: Sequence[str]) -> str:
    """Return the text if it says what is wanted; a table above ours may have stood there by ours alone."""
    try:
        is_wanted = _pruned(_parsed(text), path) == _pruned(wanted, path)
    except tomllib.TOMLDecodeError:
        is_wanted = False
    if not is_wanted:
        raise ValueError(f"{'.'.join(path)} is not written there as a table of its own, under [{'.'.join(path)}]")
    return text


def _pruned(said: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if name != path[0] or value != {}}
