"""Edit JSON as people write it in settings files, with comments and trailing commas: change in place, keep the rest.

Every function takes a text and returns one. Everything that a function doesn't name keeps its bytes: comments, order,
spacing.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias

__all__ = [
    "JsonInvalid",
    "Key",
    "appended",
    "discarded",
    "loaded",
    "with_member",
    "with_members",
    "without_member",
]

Key: TypeAlias = str | int
"""One step of a path: a member's name, or an item's index."""

_SKIPPED: Final = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR: Final = re.compile(r"-?[0-9][0-9eE+.\-]*|true|false|null")
_TRAILING_COMMENTS: Final = re.compile(r"(?:[ \t]*(?:/\*[^\n]*?\*/|//[^\r\n]*))*")
"""Comments on the line on which something ends: they are about it."""

_LINE_ENDS: Final = re.compile(r"\r?\n|\Z")
_INDENT: Final = re.compile(r"\n([ \t]+)\S")
_DEEPEST: Final = 200


class JsonInvalid(ValueError):
    """Raised when the text is no JSON, not even with comments."""


@dataclass(slots=True, kw_only=True)
class _Node:
    """A value, its place in the text, and its children."""

    start: int
    end: int = 0
    value: Any = None
    starts: list[int] = field(default_factory=list)  # of a container: where each member or item begins
    nodes: list["_Node"] = field(default_factory=list)  # of a container: the value of each
    keys: list[str] = field(default_factory=list)  # of an object


def loaded(text: str) -> Any:  # noqa: ANN401 - whatever the document holds
    """Return the document's value, not to be changed; an empty text is an empty object. Raises JsonInvalid."""
    return _parsed(text).value if text.strip() else {}


def with_member(text: str, path: Sequence[Key], value: object) -> str:
    """Return the text with the member at `path` set; missing objects are created. Raises JsonInvalid."""
    text = text if text.strip() else "{}\n"
    node, depth = _deepest(_parsed(text), path)
    if depth == len(path):
        return text if node.value == value else text[: node.start] + _formatted(value, text, depth) + text[node.end :]
    if not isinstance(node.value, dict):
        raise JsonInvalid(f"{_named(path[:depth])} is no object")
    for key in reversed(path[depth + 1 :]):
        value = {key: value}
    return _inserted(text, node, f"{json.dumps(path[depth])}: {_formatted(value, text, depth + 1)}", depth)


def with_members(text: str, path: Sequence[Key], members: Mapping[str, object]) -> str:
    """Return the text with these members in the object at `path`; its other members stay, and it is created if needed.

    Raises JsonInvalid.
    """
    node, depth = _deepest(_parsed(text if text.strip() else "{}"), path)
    if depth < len(path) or not isinstance(node.value, dict):
        return with_member(text, path, members)
    for key, value in members.items():
        if key not in node.value or node.value[key] != value:
            text = with_member(text, [*path, key], value)
    return text


def appended(text: str, path: Sequence[Key], value: object) -> str:
    """Return the text with `value` as the last item of the array at `path`, unless it already contains it.

    Raises JsonInvalid.
    """
    text = text if text.strip() else "{}\n"
    node, depth = _deepest(_parsed(text), path)
    if depth < len(path):
        return with_member(text, path, [value])
    if not isinstance(node.value, list):
        raise JsonInvalid(f"{_named(path)} is no array")
    return text if value in node.value else _inserted(text, node, _formatted(value, text, depth + 1), depth)


def without_member(text: str, path: Sequence[Key]) -> str:
    """Return the text without the member at `path`, and without objects that become empty, also of comments.

    Raises JsonInvalid.
    """
    if not text.strip():
        return text
    above, depth = _deepest(_parsed(text), path[:-1])
    at = _place(above, path[-1]) if depth == len(path) - 1 else None
    if at is None:
        return text
    if len(above.nodes) == 1 and len(path) > 1 and not _has_comments(text, above):
        return without_member(text, path[:-1])
    return _cut(text, above, at)


def discarded(text: str, path: Sequence[Key], is_ours: Callable[[Any], bool]) -> str:
    """Return the text without the items of the array at `path` that are ours, and without containers that become empty.

    A container with a comment is not empty. Raises JsonInvalid.
    """
    if not text.strip():
        return text
    node, depth = _deepest(_parsed(text), path)
    if depth < len(path) or not isinstance(node.value, list):
        return text
    ours = [at for at, item in enumerate(node.value) if is_ours(item)]
    if ours and len(ours) == len(node.value) and not _has_comments(text, node):
        return without_member(text, path)
    for at in reversed(ours):
        node, _ = _deepest(_parsed(text), path)
        text = _cut(text, node, at)
    return text


# ---- reading


@lru_cache(maxsize=4)  # a setup edits one text for every event, and each edit looks at it several times
def _parsed(text: str) -> _Node:
    node = _value(text, _skipped(text, 0), 0)
    if _skipped(text, node.end) != len(text):
        raise JsonInvalid(f"something follows the document at character {node.end}")
    return node


def _skipped(text: str, at: int) -> int:
    found = _SKIPPED.match(text, at)
    return at if found is None else found.end()


def _value(text: str, at: int, depth: int) -> _Node:
    if depth > _DEEPEST:
        raise JsonInvalid("it is nested too deeply")
    if text.startswith(("{", "["), at):
        return _container(text, at, depth)
    found = _STRING.match(text, at) or _SCALAR.match(text, at)
    if found is None:
        raise JsonInvalid(f"no value at character {at}")
    try:
        return _Node(start=at, end=found.end(), value=json.loads(found.group()))
    except ValueError as error:
        raise JsonInvalid(f"no value at character {at}: {error}") from error


def _container(text: str, at: int, depth: int) -> _Node:
    node = _Node(start=at, value={} if text[at] == "{" else [])
    closing = "}" if text[at] == "{" else "]"
    at = _skipped(text, at + 1)
    while not text.startswith(closing, at):
        node.starts.append(at)
        if closing == "}":
            key = _STRING.match(text, at)
            colon = _skipped(text, key.end()) if key is not None else at
            if key is None or not text.startswith(":", colon):
                raise JsonInvalid(f"no member at character {at}")
            node.keys.append(json.loads(key.group()))
            at = _skipped(text, colon + 1)
        found = _value(text, at, depth + 1)
        node.nodes.append(found)
        if isinstance(node.value, dict):
            node.value[node.keys[-1]] = found.value
        else:
            node.value.append(found.value)
        at = _skipped(text, found.end)
        if text.startswith(",", at):
            at = _skipped(text, at + 1)
        elif not text.startswith(closing, at):
            raise JsonInvalid(f"neither a comma nor the end at character {at}")
    node.end = at + 1
    return node


def _deepest(node: _Node, path: Sequence[Key]) -> tuple[_Node, int]:
    """Return the last existing value on the path, and how many of the path's keys lead to it."""
    for depth, key in enumerate(path):
        at = _place(node, key)
        if at is None:
            return node, depth
        node = node.nodes[at]
    return node, len(path)


def _place(node: _Node, key: Key) -> int | None:
    """Return the index of the child that the key names; None: none, or the container is of another kind."""
    if isinstance(key, int):
        return key if isinstance(node.value, list) and key < len(node.nodes) else None
    if key not in node.keys:
        return None
    if node.keys.count(key) > 1:
        raise JsonInvalid(f"{json.dumps(key)} appears more than once, and programs use only one of them")
    return node.keys.index(key)


def _has_comments(text: str, node: _Node) -> bool:
    """Return whether a container has comments between its children."""
    starts = [node.start + 1, *(inner.end for inner in node.nodes)]
    ends = [*node.starts, node.end - 1]
    return any("/" in text[start:end] for start, end in zip(starts, ends, strict=True))


def _named(path: Sequence[Key]) -> str:
    return ".".join(str(key) for key in path) or "the document"


# ---- writing


def _line_end(text: str) -> str:
    """Return the line ending of the first line; a line feed if there is only one line."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _indent(text: str) -> str:
    found = _INDENT.search(text)
    return found.group(1) if found is not None else "  "


def _formatted(value: object, text: str, depth: int) -> str:
    """Return a value as text at some depth, laid out like the rest of the text."""
    step = _indent(text)
    return json.dumps(value, indent=step, ensure_ascii=False).replace("\n", _line_end(text) + step * depth)


def _inserted(text: str, node: _Node, entry: str, depth: int) -> str:
    """Return the text with one more member or item at the end of a container."""
    step, end = _indent(text), _line_end(text)
    line = end + step * (depth + 1) + entry
    if not node.nodes:
        inside = text[node.start + 1 : node.end - 1]
        kept = inside.rstrip() if inside.strip() else ""
        return text[: node.start + 1] + kept + line + end + step * depth + text[node.end - 1 :]
    last = node.nodes[-1].end
    comma = _skipped(text, last)
    is_trailing = text.startswith(",", comma)
    if not is_trailing and "\n" not in text[node.start : node.end]:
        return text[:last] + ", " + entry + text[last:]
    after_comments = _after_comments(text, comma + 1 if is_trailing else last)
    before = text[:after_comments] if is_trailing else text[:last] + "," + text[last:after_comments]
    return before + line + ("," if is_trailing else "") + text[after_comments:]


def _after_comments(text: str, at: int) -> int:
    found = _TRAILING_COMMENTS.match(text, at)
    return at if found is None else found.end()


def _cut(text: str, node: _Node, at: int) -> str:
    """Return the text without one member or item of a container, its comma and its line."""
    start, end = node.starts[at], node.nodes[at].end
    comma = _skipped(text, end)
    if text.startswith(",", comma):
        end = comma + 1
    elif at > 0:
        # The last one takes the comma before it along, unless a comment is between them.
        before = node.nodes[at - 1].end
        comma = _skipped(text, before)
        text = text[:comma] + text[comma + 1 :]
        start, end = start - 1, end - 1
        if not text[comma:start].strip(" "):
            start = comma
    line = len(text[:start].rstrip(" \t"))
    if text[line - 1 : line] == "\n" and _LINE_ENDS.match(text, end):
        start = line - (2 if text[line - 2 : line] == "\r\n" else 1)
    elif text[end : end + 1] == " ":
        end += 1
    return text[:start] + text[end:]
