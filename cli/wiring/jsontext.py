"""JSON as people write it in settings files, with comments and trailing commas: changed in place, all else kept.

Every function takes a text and returns one. What a function doesn't name keeps its bytes: comments, order, spacing.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["JsonInvalid", "appended", "discarded", "loaded", "with_member", "without_member"]

_SKIPPED: Final = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR: Final = re.compile(r"-?[0-9][0-9eE+.\-]*|true|false|null")
_INDENT: Final = re.compile(r"\n([ \t]+)\S")
_DEEPEST: Final = 200


class JsonInvalid(ValueError):
    """The text is no JSON, not even with comments."""


@dataclass(slots=True, kw_only=True)
class _Node:
    """A value, where it stands, and what is in it."""

    start: int
    end: int = 0
    value: Any = None
    starts: list[int] = field(default_factory=list)  # of a container: where each member or item begins
    nodes: list["_Node"] = field(default_factory=list)  # of a container: what each is
    keys: list[str] = field(default_factory=list)  # of an object


def loaded(text: str) -> Any:  # noqa: ANN401 - whatever the document holds
    """Return the document's value; an empty text is an empty object. Raises JsonInvalid."""
    return _parsed(text).value if text.strip() else {}


def with_member(text: str, path: Sequence[str], value: object) -> str:
    """Return the text with the member at `path` set; objects on the way are made. Raises JsonInvalid."""
    text = text if text.strip() else "{}\n"
    node, depth = _deepest(_parsed(text), path)
    if depth == len(path):
        return text if node.value == value else text[: node.start] + _spelt(value, text, depth) + text[node.end :]
    if not isinstance(node.value, dict):
        raise JsonInvalid(f"{'.'.join(path[:depth])} is no object")
    for key in reversed(path[depth + 1 :]):
        value = {key: value}
    return _inserted(text, node, f"{json.dumps(path[depth])}: {_spelt(value, text, depth + 1)}", depth)


def appended(text: str, path: Sequence[str], value: object) -> str:
    """Return the text with `value` as the last item of the array at `path`, unless it is in there already.

    Raises JsonInvalid.
    """
    text = text if text.strip() else "{}\n"
    node, depth = _deepest(_parsed(text), path)
    if depth < len(path):
        return with_member(text, path, [value])
    if not isinstance(node.value, list):
        raise JsonInvalid(f"{'.'.join(path)} is no array")
    return text if value in node.value else _inserted(text, node, _spelt(value, text, depth + 1), depth)


def without_member(text: str, path: Sequence[str]) -> str:
    """Return the text without the member at `path`, and without objects that are empty then. Raises JsonInvalid."""
    if not text.strip():
        return text
    above, depth = _deepest(_parsed(text), path[:-1])
    if depth < len(path) - 1 or path[-1] not in above.keys:
        return text
    if len(above.keys) == 1 and len(path) > 1:
        return without_member(text, path[:-1])
    return _cut(text, above, above.keys.index(path[-1]))


def discarded(text: str, path: Sequence[str], is_ours: Callable[[Any], bool]) -> str:
    """Return the text without the items of the array at `path` that are ours, and without what is empty then.

    Raises JsonInvalid.
    """
    if not text.strip():
        return text
    node, depth = _deepest(_parsed(text), path)
    if depth < len(path) or not isinstance(node.value, list):
        return text
    ours = [at for at, item in enumerate(node.value) if is_ours(item)]
    if ours and len(ours) == len(node.value):
        return without_member(text, path)
    for at in reversed(ours):
        node, _ = _deepest(_parsed(text), path)
        text = _cut(text, node, at)
    return text


# ---- reading


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


def _deepest(node: _Node, path: Sequence[str]) -> tuple[_Node, int]:
    """Return the last value on the path that there is, and how many of the path's keys lead to it."""
    for depth, key in enumerate(path):
        if not isinstance(node.value, dict) or key not in node.keys:
            return node, depth
        node = node.nodes[node.keys.index(key)]
    return node, len(path)


# ---- writing


def _indent(text: str) -> str:
    found = _INDENT.search(text)
    return found.group(1) if found is not None else "  "


def _spelt(value: object, text: str, depth: int) -> str:
    """Return a value as it stands at some depth of the text, laid out as the text is."""
    step = _indent(text)
    return json.dumps(value, indent=step, ensure_ascii=False).replace("\n", "\n" + step * depth)


def _inserted(text: str, node: _Node, spelt: str, depth: int) -> str:
    """Return the text with one more member or item at the end of a container."""
    step = _indent(text)
    line = "\n" + step * (depth + 1) + spelt
    if not node.nodes:
        inside = text[node.start + 1 : node.end - 1]
        kept = inside.rstrip() if inside.strip() else ""
        return text[: node.start + 1] + kept + line + "\n" + step * depth + text[node.end - 1 :]
    last = node.nodes[-1].end
    rest = text[last : node.end - 1]
    comma = _skipped(text, last)
    if text.startswith(",", comma):
        return text[: comma + 1] + line + text[comma + 1 :]
    if "\n" not in rest and "\n" not in text[node.start : last]:
        return text[:last] + ", " + spelt + text[last:]
    return text[:last] + "," + line + rest + text[node.end - 1 :]


def _cut(text: str, node: _Node, at: int) -> str:
    """Return the text without one member or item of a container, its comma and its line."""
    start, end = node.starts[at], node.nodes[at].end
    comma = _skipped(text, end)
    if text.startswith(",", comma):
        end = comma + 1
    elif at > 0:
        # The last one takes the comma before it along, unless a comment stands between.
        before = node.nodes[at - 1].end
        comma = _skipped(text, before)
        text = text[:comma] + text[comma + 1 :]
        start, end = start - 1, end - 1
        if not text[comma:start].strip(" "):
            start = comma
    line = start - len(text[:start]) + len(text[:start].rstrip(" \t"))
    if text[line - 1 : line] == "\n" and text[end : end + 1] in {"\n", ""}:
        start = line - 1
    elif text[end : end + 1] == " ":
        end += 1
    return text[:start] + text[end:]
