"""Find requests that the SDK misreads: an id of the wrong type, and half a surrogate pair in a tool's arguments.

The SDK takes a request with the wrong id for a notification and never answers it. It takes half a surrogate pair for
malformed JSON; such a call is passed on with a note in its `_meta`, so that its tool refuses it in words for the model.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from mcptools.edit.display import shown

__all__ = ["INVALID_ID", "broken_argument", "has_invalid_id", "is_text", "with_broken_argument_named"]

INVALID_ID: Final = "Invalid request: an id has to be a string or a whole number"

_NOTE: Final = "editledger/broken-argument"
"""The member of a call's `_meta` that names the broken argument."""


def has_invalid_id(message: object) -> bool:
    """Return whether a message is a request whose id is neither a string nor a whole number."""
    if not isinstance(message, dict) or not {"method", "id"}.issubset(message):
        return False
    return isinstance(message["id"], bool) or not isinstance(message["id"], int | str)


def with_broken_argument_named(message: Any) -> bytes | None:  # noqa: ANN401 - any JSON value
    """Return a tool call without its halves of surrogate pairs, and with a note of where the first was.

    None: the message is not a tool call, or has none in its arguments, or has some elsewhere too.
    """
    match message:
        case {"jsonrpc": "2.0", "method": "tools/call", "params": {"arguments": dict(arguments), **others}}:
            meta = others.get("_meta", {})
            where = _first_broken(arguments)
            if where is not None and isinstance(meta, dict) and is_text({**message, "params": [*others.items()]}):
                params = {**message["params"], "_meta": meta | {_NOTE: where}}
                return json.dumps({**message, "params": params}, ensure_ascii=False).encode(errors="replace")
    return None


def broken_argument(params: Mapping[str, Any] | None) -> str | None:
    """Return the argument that a call's note names, as names and numbers with dots between them; None: no note."""
    meta = (params or {}).get("_meta")
    where = meta.get(_NOTE) if isinstance(meta, dict) else None
    return where if isinstance(where, str) else None


def is_text(value: object) -> bool:
    """Return whether no text in a JSON value holds half a surrogate pair."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def _first_broken(arguments: dict[str, Any]) -> str | None:
    found: list[tuple[str, object]] = [("", arguments)]
    while found:
        where, value = found.pop()
        match value:
            case str() if not is_text(value):
                return where
            case dict():
                items = [(f"{where}.{shown(name)}".lstrip("."), name, item) for name, item in value.items()]
                found += reversed([(place, part) for place, name, item in items for part in (name, item)])
            case list():
                found += reversed([(f"{where}.{number}", item) for number, item in enumerate(value)])
    return None
