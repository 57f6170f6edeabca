"""Drop null values of optional arguments, which some clients send instead of leaving the argument out."""

from collections.abc import Mapping
from typing import Any

__all__ = ["without_nulls"]


def without_nulls(given: Any, schema: Mapping[str, Any]) -> Any:  # noqa: ANN401 - whatever a client sends
    """Return the given arguments without null values of members that a flat JSON schema has as optional.

    Everything else stays: validation refuses members that are null and required, or unknown.
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
