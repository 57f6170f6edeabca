"""TOML as text: one value, or one table, set or taken out, with comments and all else left as a person wrote it.

A text is read one statement at a time, so that a line in a text of several lines is never taken for a key or a header.
What comes of an edit is read by a real parser besides, and counts only if it says what was wanted and nothing else;
what can't be edited so is refused.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from objstore.values import value

__all__ = [
    "Table",
    "line_end",
    "parsed",
    "toml_table",
    "with_toml_table",
    "with_value",
    "without_toml_table",
    "without_value",
]

Table: TypeAlias = dict[str, Any]
"""What a TOML document says."""

_MARK: Final = "\ufeff"
"""The byte order mark, with which some editors begin a text: a parser refuses it, and it stays where it is."""

_PIECE: Final = re.compile(
    r'''"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\#[^\n]*|[\[{]|[\]}]|\n|[^"'\#\[\]{}\n]+''',
    re.DOTALL,
)

_BY_HAND: Final = "it is written in a way that can't be changed without touching the rest; edit the file by hand"


@value
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


def line_end(text: str) -> str:
    """Return what ends the text's first line; a line feed where there is only one line."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def parsed(text: str) -> Table:
    """Return what a TOML document says. Raises ValueError."""
    import tomllib

    return tomllib.loads(text)


# ---- a value


def with_value(text: str, name: str, literal: str) -> str:
    """Return `text` with `literal` as the value of `name` (`table.key`).

    Raises ValueError where `text` is no TOML, or the value can't be set without touching anything else.
    """
    wanted = _said(text)
    table, _, key = name.rpartition(".")
    place = wanted.setdefault(table, {}) if table else wanted
    if not isinstance(place, dict):
        raise ValueError(f"{table} is no table there")  # noqa: TRY004 - it is what the text says that is wrong
    place[key] = _said(f"x = {literal}")["x"]
    path = (table, key) if table else (key,)
    return _checked(_settings(text, path, literal), wanted, path, _BY_HAND)


def without_value(text: str, name: str) -> str:
    """Return `text` without the value of `name` (`table.key`); as it is where there is none.

    Raises ValueError where `text` is no TOML, or the value can't be taken out without touching anything else.
    """
    wanted = _said(text)
    table, _, key = name.rpartition(".")
    place = wanted.get(table, {}) if table else wanted
    if not isinstance(place, dict) or key not in place:
        return text
    del place[key]
    path = (table, key) if table else (key,)
    return _checked(_removals(text, path), wanted, path, _BY_HAND)


def _settings(text: str, path: tuple[str, ...], literal: str) -> Iterator[str]:
    """Yield the ways to set a value, the nearest to how the text is written first."""
    statements = list(_statements(text))
    for at in _standing(statements, path):
        start, stop = _value(text, statements[at])
        if "\n" not in text[start:stop]:  # else what is written there is more than a value of ours
            yield text[:start] + literal + text[stop:]
    *table, key = path
    line = f"{key} = {literal}{line_end(text)}"
    for head in _heads(statements, table):
        yield _inserted(text, _end(statements, head), line)
    if table:
        yield _appended(text, table, line)
    # The table may have been begun with dotted keys; then a header is no way to go on with it.
    yield f"{'.'.join(path)} = {literal}{line_end(text)}{text}"


def _removals(text: str, path: tuple[str, ...]) -> Iterator[str]:
    """Yield the ways to take a value out: with its table's header, where that says nothing without it, and alone."""
    statements = list(_statements(text))
    for at in _standing(statements, path):
        head = max((head for head in _heads(statements, path[:-1]) if head < at), default=None)
        if head is not None and _is_all(text, statements, head, at):
            above, below = text[: statements[head].start], text[statements[at].end :]
            yield _joined(above, below) if above else below  # an empty line that begins a text may be a person's
        yield text[: statements[at].start] + text[statements[at].end :]


def _is_all(text: str, statements: Sequence[_Statement], head: int, key: int) -> bool:
    """Return whether a key is all that a table says, with a header of our spelling, and no comment is about either."""
    lines = [text[one.start : one.end].strip() for one in statements[: key + 2]]
    beside = [*lines[max(0, head - 1) : head], *lines[key + 1 :]]
    return (
        lines[head] == f"[{'.'.join(statements[head].path)}]"
        and not any(lines[head + 1 : key])
        and _end(statements, head) == statements[key].end
        and not any(line.startswith("#") for line in beside)
    )


# ---- a table


def toml_table(text: str, path: Sequence[str]) -> Any:  # noqa: ANN401 - whatever the text says
    """Return what the text has at `path`; None: nothing. Raises ValueError where it is no TOML."""
    held: Any = _said(text.removeprefix(_MARK))
    for name in path:
        held = held.get(name) if isinstance(held, dict) else None
    return held


def with_toml_table(text: str, path: Sequence[str], members: Mapping[str, str | Sequence[str]]) -> str:
    """Return the text with these members in the table at `path`; other members of it, and all else, stay.

    Raises ValueError where the text is no TOML, or has the table in a shape that can't be changed alone.
    """
    if text.startswith(_MARK):
        return _MARK + with_toml_table(text[1:], path, members)
    wanted = _said(text)
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
    head = next(_heads(statements, path), None)
    if head is None:
        changed = _appended(text, path, _spelt(members, line_end(text)))
    else:
        changed = _changed(text, statements, head, missing)
    return _checked([changed], wanted, path, _no_own_table(text, path))


def without_toml_table(text: str, path: Sequence[str]) -> str:
    """Return the text without the table at `path` and those below it. Raises ValueError as `with_toml_table` does."""
    if text.startswith(_MARK):
        return _MARK + without_toml_table(text[1:], path)
    wanted = _said(text)
    above: Any = wanted
    for name in path[:-1]:
        above = above.get(name) if isinstance(above, dict) else None
    if not isinstance(above, dict) or path[-1] not in above:
        return text
    del above[path[-1]]
    statements, left = list(_statements(text)), text
    for start, end in reversed(list(_spans(statements, tuple(path)))):
        left = _joined(left[:start], left[end:])
    return _checked([left], wanted, path, _no_own_table(text, path))


def _no_own_table(text: str, path: Sequence[str]) -> str:
    """Return why the table at `path` can't be changed alone; where there is none, the last above it that there is."""
    named: list[str] = []
    held: Any = _said(text)
    for name in path:
        if not isinstance(held, dict) or name not in held:
            break
        held = held[name]
        named.append(name)
    spelt = ".".join(named or path)
    return f"{spelt} is not written there as a table of its own, under [{spelt}]"


def _spans(statements: Sequence[_Statement], path: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Yield where the table and those below it stand, those that follow one another as one."""
    heads = [at for at, one in enumerate(statements) if one.is_header]
    ours = [at for at in heads if statements[at].path[: len(path)] == path]
    for at in ours:
        following = next((head for head in heads if head > at), None)
        if following in ours:
            yield statements[at].start, statements[following].start
        else:
            yield statements[at].start, _end(statements, at)


def _changed(text: str, statements: Sequence[_Statement], head: int, missing: Mapping[str, str | Sequence[str]]) -> str:
    """Return the text with members set in the table that has this header: in place, or after its others."""
    body = _body(statements, head)
    standing = {one.path[0] for one in body if one.said}
    new = {key: value for key, value in missing.items() if key not in standing}
    if new:
        text = _inserted(text, _end(statements, head), _spelt(new, line_end(text)))
    for one in reversed(body):
        if one.said and one.path[0] in missing:
            start, stop = _value(text, one)
            text = text[:start] + _literal(missing[one.path[0]]) + text[stop:]
    return text


def _spelt(members: Mapping[str, str | Sequence[str]], end: str) -> str:
    return "".join(f"{key} = {_literal(value)}{end}" for key, value in members.items())


def _literal(value: str | Sequence[str]) -> str:
    import json

    # JSON's spelling of texts and of lists of them is TOML's, if it escapes this character and no others need two.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# ---- reading


def _said(text: str) -> Table:
    """Return what a text says, to be compared: floats as text, since what is not a number is not even itself."""
    import tomllib

    return tomllib.loads(text, parse_float=str)


def _statements(text: str) -> Iterator[_Statement]:
    start, depth = 0, 0
    for piece in _PIECE.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(piece.group(), 0)
        if (piece.group() == "\n" and not depth) or piece.end() == len(text):
            alone = text[start : piece.end()]
            is_header = alone.lstrip().startswith("[")
            yield _Statement(start=start, end=piece.end(), is_header=is_header, said=_said(alone))
            start = piece.end()


def _standing(statements: Sequence[_Statement], path: tuple[str, ...]) -> Iterator[int]:
    """Yield which statements give the key at `path` its value."""
    table: tuple[str, ...] = ()
    for at, one in enumerate(statements):
        if one.is_header:
            table = one.path
        elif one.said and (*table, *one.path) == path:
            yield at


def _heads(statements: Sequence[_Statement], path: Sequence[str]) -> Iterator[int]:
    """Yield which statements are headers of the table at `path`."""
    return (at for at, one in enumerate(statements) if one.is_header and one.path == tuple(path))


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


def _end(statements: Sequence[_Statement], head: int) -> int:
    """Return where the last statement of a header's table ends, be it the header."""
    return [statements[head], *_body(statements, head)][-1].end


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


# ---- writing


def _inserted(text: str, at: int, lines: str) -> str:
    """Return the text with lines put in where a statement ends."""
    return text[:at] + ("" if text[:at].endswith("\n") else line_end(text)) + lines + text[at:]


def _appended(text: str, path: Sequence[str], lines: str) -> str:
    """Return the text with a table behind all else, an empty line between."""
    end = line_end(text)
    before = text + ("" if not text or text.endswith("\n") else end) + (end if text.strip() else "")
    return before + f"[{'.'.join(path)}]{end}" + lines


def _joined(before: str, after: str) -> str:
    """Return both as one text, without the empty line that stood between what stood between them and one of them."""
    empty = re.search(r"(?:^|(?<=\n))\r?\n\Z", before)
    if empty is not None and (not after or re.match(r"\r?\n", after)):
        return before[: empty.start()] + after
    return before + (after if before else re.sub(r"\A\r?\n", "", after))


def _checked(candidates: Iterable[str], wanted: Table, path: Sequence[str], refusal: str) -> str:
    """Return the first text that says what is wanted; a table above ours may have stood there by ours alone."""
    for candidate in candidates:
        try:
            found = _said(candidate)
        except ValueError:
            continue
        if _pruned(found, path) == _pruned(wanted, path):
            return candidate
    raise ValueError(refusal)


def _pruned(said: Table, path: Sequence[str]) -> Table:
    return {name: value for name, value in said.items() if name != path[0] or value != {}}
