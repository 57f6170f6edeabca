"""Share one database connection among everything that queries an index, and answer what all of these need.

The index may be opened again in another file, so no query holds a connection of its own.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from objstore.model.basic_types import MAX_INT, Seq
from objstore.storage.index.database import INTACT, malformed, unusable
from objstore.storage.index.rows import NewestNumbers

__all__ = ["RecordNumbers", "SharedConnection", "is_utf8", "numbered_row", "numbered_rows", "rows_by_number"]

_VALUES_AT_ONCE: Final = 500
"""Number of values in one query."""

_NEWEST: Final = """
SELECT edits, decisions, snapshots, pins, turns, comments,
    (SELECT ifnull(max(seq), 0) FROM edits), (SELECT ifnull(max(number), 0) FROM decisions),
    (SELECT ifnull(max(number), 0) FROM snapshots), (SELECT ifnull(max(number), 0) FROM pins),
    (SELECT ifnull(max(number), 0) FROM turns), (SELECT ifnull(max(number), 0) FROM comments)
FROM position
"""


class SharedConnection:
    """The open database of one index.

    `execute` and `executemany` are the connection's own methods, so sharing it costs a query nothing. There is no
    connection before the first call of `use`.
    """

    connection: sqlite3.Connection
    execute: Callable[..., sqlite3.Cursor]
    executemany: Callable[..., sqlite3.Cursor]

    def use(self, connection: sqlite3.Connection) -> None:
        """Send all later queries to this database."""
        self.connection = connection
        self.execute = connection.execute
        self.executemany = connection.executemany

    @contextmanager
    def one_state(self) -> Iterator[None]:
        """Read everything inside from one state of the database, whatever others write meanwhile. Don't write.

        Other processes may change the database between any two statements. A query that combines several would see what
        never was, and one that compares them would take that for damage.
        """
        is_held = self.connection.in_transaction
        if is_held:
            yield
            return
        try:
            self.execute("BEGIN")
            yield
        finally:
            # A generator that was left in the middle may end after the database was closed, and the state with it.
            with suppress(sqlite3.ProgrammingError):
                if self.connection.in_transaction:
                    self.execute("COMMIT")

    def number(self, query: str, *values: int | str | bytes) -> int:
        """Return the number in the first row of a query; 0 if there is no row or it is NULL. Raises IndexUnusable."""
        row = self.execute(query, values).fetchone()
        if row is None or row[0] is None:
            return 0
        if not isinstance(row[0], int):
            raise unusable(f"{row[0]!r} is no number")
        return row[0]


class RecordNumbers:
    """The newest and the next number of each kind of record."""

    def __init__(self, db: SharedConnection) -> None:
        """Query one index."""
        self._db: Final = db

    def newest(self) -> NewestNumbers:
        """Return the newest number of each kind of record.

        Writers take their numbers from this, and a number that is used twice or skipped makes the log unreadable for
        good. So two pages of the database must agree. Raises the error that SQLite raises for a damaged file.
        """
        row = self._db.execute(_NEWEST).fetchone()
        kinds = len(NewestNumbers._fields)
        if row is None or row[:kinds] != row[kinds:]:
            raise malformed("what it has for the newest numbers are not those of its rows")
        return NewestNumbers(*row[:kinds])

    def next_seq(self) -> Seq:
        """Return the number of the next edit."""
        return Seq(self.newest().edits + 1)

    def next_decision(self) -> int:
        """Return the number of the next decision."""
        return self.newest().decisions + 1

    def next_snapshot(self) -> int:
        """Return the number of the next snapshot."""
        return self.newest().snapshots + 1

    def next_pin(self) -> int:
        """Return the number of the next pin."""
        return self.newest().pins + 1

    def next_turn(self) -> int:
        """Return the number of the next turn."""
        return self.newest().turns + 1

    def next_comment(self) -> int:
        """Return the number of the next comment."""
        return self.newest().comments + 1


def is_utf8(text: str) -> bool:
    """Return whether SQLite accepts a text: it must be UTF-8, as every recorded text is."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def numbered_row(
    db: SharedConnection, numbers: RecordNumbers, table: str, columns: str, number: int
) -> tuple[Any, ...] | None:
    """Return some columns of the row with a number (None: no record has this number, or not yet).

    Raises IndexUnusable if the row is missing or damaged.
    """
    # A caller may pass any number, and SQLite accepts none above MAX_INT.
    if not 0 < number <= MAX_INT:
        return None
    key = "seq" if table == "edits" else "number"
    query = f"SELECT {columns}, {INTACT[table]} FROM {table} WHERE {key} = ?"  # noqa: S608 - names of the schema
    row = db.execute(query, (number,)).fetchone()
    if row is None:
        with db.one_state():
            newest: int = getattr(numbers.newest(), table)
            row = db.execute(query, (number,)).fetchone()
        if row is None and number > newest:
            return None
    if row is not None and row[-1]:
        found: tuple[Any, ...] = row[:-1]
        return found
    raise unusable(f"row {number} of {table} is not what was put in")


def rows_by_number(db: SharedConnection, table: str, columns: str, numbers: Sequence[int]) -> list[tuple[Any, ...]]:
    """Return some columns of the rows with these numbers, in this order.

    Raises IndexUnusable if a row is missing or damaged. For numbers that must have rows: no secondary index is used.
    """
    key = "seq" if table == "edits" else "number"
    found: dict[int, tuple[Any, ...]] = {}
    for at in range(0, len(numbers), _VALUES_AT_ONCE):
        asked = numbers[at : at + _VALUES_AT_ONCE]
        marks = ",".join("?" * len(asked))
        query = f"SELECT {key}, {INTACT[table]}, {columns} FROM {table} NOT INDEXED WHERE {key} IN ({marks})"  # noqa: S608 - names of the schema
        for number, is_sound, *values in db.execute(query, asked):
            if is_sound:
                found[number] = tuple(values)
    if len(found) != len(numbers):
        raise unusable(f"not all of rows {numbers!r} of {table} are what was put in")
    return [found[number] for number in numbers]


def numbered_rows(db: SharedConnection, numbers: RecordNumbers, table: str, columns: str) -> list[tuple[Any, ...]]:
    """Return some columns of every row of a table, by number. Raises IndexUnusable if a row is missing or damaged.

    The numbers have no gap, so the newest of them is also how many rows there must be.
    """
    query = f"SELECT {columns}, {INTACT[table]} FROM {table} ORDER BY number"  # noqa: S608 - names of the schema
    with db.one_state():
        newest: int = getattr(numbers.newest(), table)
        rows = db.execute(query).fetchall()
    if len(rows) != newest or not all(row[-1] for row in rows):
        raise unusable(f"not all {newest} rows of {table} are what was put in")
    return [row[:-1] for row in rows]
