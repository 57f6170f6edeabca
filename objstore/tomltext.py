"""TOML as text: one value set or taken out, with comments and everything else left as a person wrote it.

An edit is tried where the key seems to stand, and counts only if the text it gives, read by a real parser, says
exactly what was wanted and nothing else. So a line that only looks like the key (in a text of several lines, say)
can't mislead it; what can't be edited so is refused.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

__all__ = ["Table", "parsed", "with_value", "without_value"]

Table: TypeAlias = dict[str, Any]
"""What a TOML document says."""

_VALUE: Final = r"""(?P<value>"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s#"',\[\]{}]+)"""
_REST: Final = r"(?P<rest>[ \t]*(?:#[^\n]*)?\r?\n?)"
_HEADER: Final = re.compile(r"[ \t]*\[")


def parsed(text: str) -> Table:
    """Return what a TOML document says. Raises ValueError."""
    import tomllib

    return tomllib.loads(text)


def with_value(text: str, name: str, literal: str) -> str:
    """Return `text` with `literal` as the value of `name` (`table.key`).

    Raises ValueError where `text` is no TOML, or the value can't be set without touching anything else.
    """
    wanted = parsed(text)
    table, _, key = name.rpartition(".")
    place = wanted.setdefault(table, {}) if table else wanted
    if not isinstance(place, dict):
        raise ValueError(f"{table} is no table there")  # noqa: TRY004 - it is what the text says that is wrong
    place[key] = parsed(f"x = {literal}")["x"]
    return _checked(_settings(text, table, key, literal), wanted)


def without_value(text: str, name: str) -> str:
    """Return `text` without the value of `name` (`table.key`); as it is where there is none.

    Raises ValueError where `text` is no TOML, or the value can't be taken out without touching anything else.
    """
    wanted = parsed(text)
    table, _, key = name.rpartition(".")
    place = wanted.get(table, {}) if table else wanted
    if not isinstance(place, dict) or key not in place:
        return text
    del place[key]
    return _checked(_removals(text, table, key), wanted)


def _checked(candidates: Iterator[str], wanted: Table) -> str:
    for candidate in candidates:
        try:
            found = parsed(candidate)
        except ValueError:
            continue
        if _filled(found) == _filled(wanted):
            return candidate
    raise ValueError("it is written in a way that can't be changed without touching the rest; edit the file by hand")


def _filled(document: Table) -> Table:
    """Return a document without its empty tables: a header may stay when its last key goes."""
    return {key: value for key, value in document.items() if value != {}}


def _settings(text: str, table: str, key: str, literal: str) -> Iterator[str]:
    """Yield the ways to set a value, the nearest to how the text is written first."""
    lines = text.splitlines(keepends=True)
    for at, found in _assignments(lines, table, key):
        line = found["head"] + literal + found["rest"]
        yield "".join([*lines[:at], line, *lines[at + 1 :]])
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += end
    for at in _headers(lines, table):
        behind = _last_line(lines, at) + 1
        yield "".join([*lines[:behind], f"{key} = {literal}{end}", *lines[behind:]])
    # The table may have been begun with dotted keys; then a header is no way to go on with it.
    gap = [end] if lines and lines[-1].strip() else []
    header = [f"[{table}]{end}"] if table else []
    yield "".join([*lines, *gap, *header, f"{key} = {literal}{end}"])
    yield "".join([f"{table}.{key} = {literal}{end}", *lines])


def _removals(text: str, table: str, key: str) -> Iterator[str]:
    lines = text.splitlines(keepends=True)
    for at, _ in _assignments(lines, table, key):
        left = [*lines[:at], *lines[at + 1 :]]
        for header in _headers(left, table) if table else ():
            if left[header].strip() == f"[{table}]" and _is_empty(left, header):
                # The empty line above it was put there with it.
                above = header - (header > 0 and not left[header - 1].strip())
                yield "".join([*left[:above], *left[header + 1 :]])
        yield "".join(left)


def _is_empty(lines: list[str], header: int) -> bool:
    """Return whether no key stands below a header, and no comment right above or below it."""
    beside = [*lines[max(0, header - 1) : header], *lines[header + 1 : header + 2]]
    is_commented = any(line.lstrip().startswith("#") for line in beside)
    return _last_line(lines, header) == header and not is_commented


def _assignments(lines: list[str], table: str, key: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the lines that seem to give the key its value."""
    dotted = r"[ \t]*\.[ \t]*".join(map(_spellings, (table, key) if table else (key,)))
    for spelling in (_spellings(key), dotted):
        assignment = re.compile(rf"(?P<head>[ \t]*{spelling}[ \t]*=[ \t]*){_VALUE}{_REST}")
        for at, line in enumerate(lines):
            found = assignment.fullmatch(line)
            if found is not None:
                yield at, found


def _headers(lines: list[str], table: str) -> Iterator[int]:
    """Yield the lines that seem to begin the table."""
    header = re.compile(rf"[ \t]*\[[ \t]*{_spellings(table)}[ \t]*\]{_REST}")
    yield from (at for at, line in enumerate(lines) if header.fullmatch(line))


def _last_line(lines: list[str], header: int) -> int:
    """Return the last line of the table that begins at `header`, before the empty and comment lines of the next."""
    end = header + 1
    while end < len(lines) and not _HEADER.match(lines[end]):
        end += 1
    last = end - 1
    while last > header and (not lines[last].strip() or lines[last].lstrip().startswith("#")):
        last -= 1
    return last


def _spellings(key: str) -> str:
    """Return what matches a key in each way of writing it."""
    bare = re.escape(key)
    return rf"""(?:{bare}|"{bare}"|'{bare}')"""
