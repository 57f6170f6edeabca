"""Edit TOML files and keep a person's comments, order and formatting.

tomlkit does the work. `tomllib` then parses the result, and an edit that changes more than was requested is refused.
tomlkit takes 70 ms to import, so it is imported only where a text changes.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tomlkit import TOMLDocument
    from tomlkit.container import Container
    from tomlkit.items import Table

__all__ = ["toml_value", "with_toml", "without_toml"]

_BOM: Final = "\ufeff"


def toml_value(text: str, path: Sequence[str]) -> Any:  # noqa: ANN401 - whatever the file holds
    """Return the value at `path`; None if there is none. Raises ValueError for text that is not TOML."""
    found: Any = _parsed(text)
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def with_toml(text: str, path: Sequence[str], values: Mapping[str, Any]) -> str:
    """Return the text with these values in the table at `path`, which is added if it is missing.

    Raises ValueError for text that is not TOML, and if the values can't be set without changing anything else.
    """
    wanted = held = _parsed(text)
    for depth, name in enumerate(path, 1):
        held = held.setdefault(name, {})
        if not isinstance(held, dict):
            raise ValueError(f"{'.'.join(path[:depth])} is not a table")  # noqa: TRY004 - the text is at fault
    changed = {key: value for key, value in values.items() if held.get(key) != value}
    if not changed:
        return text
    if table := next((key for key in changed if isinstance(held.get(key), dict)), None):
        raise ValueError(f"{'.'.join([*path, table])} is a table")
    held.update(changed)
    return _first_exact_edit(
        text, wanted, lambda text: _set_in_place(text, path, changed), lambda text: _added(text, path, changed)
    )


def without_toml(text: str, path: Sequence[str]) -> str:
    """Return the text without the value or table at `path`; a table's header is removed with its last value.

    Raises ValueError as `with_toml` does.
    """
    wanted: Any = _parsed(text)
    held = wanted
    for name in path[:-1]:
        held = held.get(name) if isinstance(held, dict) else None
    if not isinstance(held, dict) or path[-1] not in held:
        return text
    del held[path[-1]]
    return _first_exact_edit(text, wanted, lambda text: _removed(text, path))


# ---- inside


def _parsed(text: str) -> dict[str, Any]:
    return tomllib.loads(text.removeprefix(_BOM), parse_float=str)  # as text, because nan is not equal to itself


def _first_exact_edit(text: str, wanted: dict[str, Any], *methods: Callable[[str], str | None]) -> str:
    """Return the result of the first method whose text parses to `wanted`."""
    from tomlkit.exceptions import TOMLKitError

    bare = text.removeprefix(_BOM)
    whole = bare if not bare or bare.endswith("\n") else f"{bare}\n"
    is_crlf = "\r\n" in whole and whole.count("\n") == whole.count("\r\n")
    for method in methods:
        try:
            changed = method(whole)
            if changed is not None and _without_empty_tables(_parsed(changed)) == _without_empty_tables(wanted):
                if is_crlf:
                    changed = changed.replace("\r\n", "\n").replace("\n", "\r\n")
                return text[: len(text) - len(bare)] + changed
        except (TOMLKitError, ValueError):
            continue
    raise ValueError("it is written in a way that can't be changed without touching the rest; edit the file by hand")


def _without_empty_tables(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table without the empty tables in it."""
    inner = {key: _without_empty_tables(value) if isinstance(value, dict) else value for key, value in table.items()}
    return {key: value for key, value in inner.items() if value != {}}


def _set_in_place(text: str, path: Sequence[str], values: Mapping[str, Any]) -> str | None:
    """Return the text with the values set in its existing table; None if it has no such table."""
    from tomlkit.items import InlineTable, Table

    document = _document(text)
    held: Any = document
    for name in path:
        if name not in held and not isinstance(held, InlineTable):
            return None
        held = held.setdefault(name, {})
    for key, value in values.items():
        if isinstance(held, Table) and key not in held:
            held.raw_append(key, value)  # `held[key] = value` would indent it as the header's comment is
        else:
            held[key] = value
    return document.as_string()


def _added(text: str, path: Sequence[str], values: Mapping[str, Any]) -> str:
    """Return the text with a new table after the last one with the same parent, or else at the end."""
    import tomlkit
    from tomlkit.items import Whitespace

    table: Mapping[str, Any] = values
    for name in reversed(path):
        table = {name: table}
    added = ("\n" if text.strip() else "") + tomlkit.dumps(table)
    document = _document(text)
    siblings = [(container, at) for container, at, found, _ in _tables(document) if found[:-1] == tuple(path[:-1])]
    if not siblings or len(path) == 1:
        return text + added
    container, at = siblings[-1]
    container.body.insert(at + 1, (None, Whitespace(added)))
    return document.as_string()


def _removed(text: str, path: Sequence[str]) -> str:
    from tomlkit.items import Whitespace

    document = _document(text)
    fragments = [found for found in _tables(document) if found[2] == tuple(path)]
    for container, at, _, table in fragments:
        lead = table.trivia.indent  # a comment above the header may be about something else
        container.body[at] = (None, Whitespace(f"{lead.rstrip()}\n" if lead.strip() else ""))
    if not fragments:
        above: Any = document
        for name in path[:-1]:
            above = above[name]
        del above[path[-1]]
    changed = document.as_string()
    if not fragments and any(
        found == tuple(path[:-1]) and not table.value.as_string().strip() and not table.trivia.comment
        for _, _, found, table in _tables(_document(changed))
    ):
        return _removed(changed, path[:-1])
    return changed if text[0].isspace() else changed.lstrip("\r\n")


def _document(text: str) -> "TOMLDocument":
    """Return the text as a document in which comments above a header belong to that header.

    tomlkit keeps such comments at the end of the table before, so that they would be removed with that table, and a new
    value would be added after them.
    """
    import tomlkit
    from tomlkit.items import Whitespace

    document = tomlkit.parse(text)
    lead = _pop_trailing_trivia(document)
    for _, _, _, table in list(_tables(document)):
        if not table.is_super_table():
            table.trivia.indent = lead + table.trivia.indent
            lead = ""
        lead += _pop_trailing_trivia(table.value)
    document.body.append((None, Whitespace(lead)))
    if document.as_string() != text:
        raise ValueError("tomlkit would change the order")  # as it does with a table between two tables of an array
    return document


def _pop_trailing_trivia(container: "Container") -> str:
    """Remove the empty lines and comments after a table's last value, and return them."""
    from tomlkit.items import AoT, Comment, Null, Table, Whitespace

    taken: list[int] = []
    has_value = False
    for at, (key, item) in enumerate(container.body):
        is_table = isinstance(item, AoT) or (isinstance(item, Table) and key is not None and not key.is_dotted())
        # Keep a comment below the header of an empty table: it is about that table.
        if isinstance(item, Whitespace) or (isinstance(item, Comment) and (has_value or taken)):
            taken.append(at)
        elif key is not None and not is_table:
            taken, has_value = [], True
    end = "".join(container.body[at][1].as_string() for at in taken)
    for at in taken:
        container.body[at] = (None, Null())
    return end


def _tables(
    container: "Container", above: tuple[str, ...] = ()
) -> "Iterator[tuple[Container, int, tuple[str, ...], Table]]":
    """Yield each table that is not inline, in the order of the text: its container, index there, path, and itself."""
    from tomlkit.items import AoT, Table

    for at, (key, item) in enumerate(container.body):
        if key is None or key.is_dotted():
            continue
        path = (*above, key.key)
        for table in item.body if isinstance(item, AoT) else [item]:
            if isinstance(table, Table):
                yield container, at, path, table
                yield from _tables(table.value, path)
