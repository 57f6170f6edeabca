"""Omissions: arguments that are null where they may be left out, as clients send them that leave none out."""

from collections.abc import Mapping
from typing import Any

__all__ = ["without_nulls"]


def without_nulls(given: Any, schema: Mapping[str, Any]) -> Any:  # noqa: ANN401 - whatever a client sends
    """Return what was given without what is null in it and, by a flat JSON schema, need not be there.

    Nothing else is touched: what is null and required, or unknown, is refused by whoever checks it.
    """
    if isinstance(given, list):
        return [without_nulls(item, schema.get("items", {})) for item in given]
    if not isinstance(given, dict):
        return given
    known, required = schema.get("properties", {}), schema.get("required", ())
    return {
        name: without_nulls(value, known.get(name, {}))
        for name, value in given.items()
        if value is not None or name not in known or name in required
    }
