"""Read and check the parameters of a request's address, or the fields of its JSON body.

A field that is unknown, has another type or is out of bounds is refused by name, before anything is done.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar
from urllib.parse import unquote_to_bytes

from cli.web.on_screen import OnScreen, Rows
from objstore import MAX_INT, MAX_TEXT, OnExternal, Seq, Status, Unit, value

__all__ = ["Answer", "BadRequest", "Fields", "NotThere", "body_of"]

_UNIT: Final = re.compile(r"([1-9][0-9]{0,17}):(0|[1-9][0-9]{0,8})")
_KEY: Final = re.compile(r"[0-9a-f]{32}")

_MOST_SHOWN: Final = 100_000
"""Most changes and hunks of which a request says that they were shown."""

Choice = TypeVar("Choice", bound=str)


@value
class Answer:
    """What a reviewer answers to what was shown in place of a decision."""

    on_external: OnExternal  # what to do about changes from outside
    ticket: str  # of what was shown; "": nothing was


class BadRequest(Exception):
    """Raised when a request is not valid; its text says why."""


class NotThere(Exception):
    """Raised when a request names something that does not exist, or no longer exists; its text says what."""


class Fields:
    """The parameters of a request's address, or the fields of its body."""

    def __init__(self, given: Mapping[str, object], known: Sequence[str], *, are_texts: bool = False) -> None:
        """Take the fields of a request. `known`: the names that are allowed. `are_texts`: numbers come as texts.

        Raises BadRequest for a name that is not known.
        """
        unknown = [name for name in given if name not in known]
        if unknown:
            raise BadRequest(f"There is no field {unknown[0]!r}. Known: {', '.join(known) or 'none'}.")
        self._given: Final = given
        self._are_texts: Final = are_texts

    def has(self, name: str) -> bool:
        """Return whether a field was given."""
        return name in self._given

    def is_null(self, name: str) -> bool:
        """Return whether a field is null. Raises BadRequest if it is not given."""
        if name not in self._given:
            raise BadRequest(f"{name} has to be given.")
        return self._given[name] is None

    def number(self, name: str, otherwise: int | None = None, *, least: int = 0, most: int = MAX_INT) -> int:
        """Return a whole number within bounds. `otherwise`: if it is not given (None: it must be)."""
        if name not in self._given and otherwise is not None:
            return otherwise
        found = self._given.get(name)
        if self._are_texts and isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 20:  # noqa: PLR2004 -- MAX_INT has 19 digits
            found = int(found)
        if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
            raise BadRequest(f"{name} has to be a whole number from {least} to {most}.")
        return found

    def text(self, name: str, otherwise: str | None = None, *, most: int = MAX_TEXT) -> str:
        """Return a text of at most so many characters. `otherwise`: if it is not given (None: it must be)."""
        found = self._given.get(name, otherwise)
        if not isinstance(found, str) or len(found) > most:
            raise BadRequest(f"{name} has to be a text of at most {most} characters.")
        try:
            found.encode()
        except UnicodeEncodeError:
            raise BadRequest(f"{name} has to be valid Unicode.") from None
        return found

    def flag(self, name: str) -> bool:
        """Return true or false; false if it is not given."""
        found = self._given.get(name, False)
        if not isinstance(found, bool):
            raise BadRequest(f"{name} has to be true or false.")
        return found

    def choice(self, name: str, choices: Sequence[str], otherwise: str | None = None) -> str:
        """Return one of `choices`. `otherwise`: if it is not given (None: it must be)."""
        found = self._given.get(name, otherwise)
        if not isinstance(found, str) or found not in (*choices, otherwise):
            raise BadRequest(f"{name} has to be one of {', '.join(choices)}.")
        return found

    def answer(self) -> Answer:
        """Return what is answered, in the fields on_external and ticket."""
        choice = OnExternal(self.choice("on_external", [each.value for each in OnExternal], OnExternal.ABORT.value))
        found = Answer(on_external=choice, ticket=self.text("ticket", "", most=100))
        if choice is not OnExternal.ABORT and not found.ticket:
            raise BadRequest("on_external answers what was shown: give its ticket.")
        return found

    def path(self, name: str) -> str:
        """Return a path, which is percent-encoded byte by byte."""
        encoded = self.text(name)
        found = unquote_to_bytes(encoded)
        if not found or b"\0" in found or not encoded.isascii():
            raise BadRequest(f"{name} has to be a percent-encoded path.")
        return found.decode("utf-8", "surrogateescape")

    def keys(self, name: str) -> list[bytes]:
        """Return the keys of net changes; [] if the field is not given."""
        found = self._items(name)
        if not all(isinstance(key, str) and _KEY.fullmatch(key) for key in found):
            raise BadRequest(f"{name} has to be a list of keys of changes.")
        return [bytes.fromhex(str(key)) for key in dict.fromkeys(found)]

    def key(self, name: str) -> bytes:
        """Return the key of a net change; b"" if the field is not given."""
        found = self._given.get(name, "")
        if not isinstance(found, str) or not (_KEY.fullmatch(found) or not found):
            raise BadRequest(f"{name} has to be the key of a change.")
        return bytes.fromhex(found)

    def units(self, name: str) -> list[Unit]:
        """Return hunks, from a list or from a text with commas; [] if the field is not given."""
        found = self._given.get(name, [])
        names = found.split(",") if isinstance(found, str) else self._items(name)
        return [_unit(name, each) for each in dict.fromkeys(names)]

    def shown_units(self, name: str) -> dict[Unit, Status]:
        """Return hunks with the statuses that were shown; {} if the field is not given."""
        found = self._given.get(name, {})
        if not isinstance(found, dict) or not all(status in set(Status) for status in found.values()):
            raise BadRequest(f"{name} has to have a status for each hunk.")
        return {_unit(name, each): Status(status) for each, status in found.items()}

    def on_screen(self, name: str) -> OnScreen:
        """Return the rows of changes and hunks that were on the screen; none if the field is not given."""
        found = self._given.get(name, {})
        if not isinstance(found, dict) or len(found) > _MOST_SHOWN:
            raise BadRequest(f"{name} has to have ranges of rows for at most {_MOST_SHOWN} changes and hunks.")
        rows = {each: _ranges(name, ranges) for each, ranges in found.items()}
        return OnScreen(
            changes={bytes.fromhex(each): own for each, own in rows.items() if _KEY.fullmatch(each)},
            units={_unit(name, each): own for each, own in rows.items() if not _KEY.fullmatch(each)},
        )

    def seqs(self, name: str) -> list[Seq]:
        """Return numbers of edits."""
        found = self._items(name)
        if not found or not all(isinstance(seq, int) and not isinstance(seq, bool) and seq > 0 for seq in found):
            raise BadRequest(f"{name} has to be a list of numbers of edits.")
        return [Seq(seq) for seq in found if isinstance(seq, int)]

    def positions(self, name: str) -> frozenset[int]:
        """Return positions in a list, from 0."""
        found = self._items(name)
        if not found or not all(isinstance(at, int) and not isinstance(at, bool) and at >= 0 for at in found):
            raise BadRequest(f"{name} has to be a list of numbers from 0 on.")
        return frozenset(at for at in found if isinstance(at, int))

    def lines(self, name: str) -> tuple[int, int]:
        """Return the first and the last line of a range, from 1; (0, 0) if the field is not given."""
        match self._given.get(name, [0, 0]):
            case [bool(), _] | [_, bool()]:  # a bool is an int, too
                pass
            case [int(first), int(last)] if 0 <= first <= last <= MAX_INT and (first or not last):
                return first, last
        raise BadRequest(f"{name} has to be the first and the last line of a range.")

    def _items(self, name: str) -> list[object]:
        found = self._given.get(name, [])
        if not isinstance(found, list):
            raise BadRequest(f"{name} has to be a list.")
        if any(isinstance(each, (dict, list)) for each in found):
            raise BadRequest(f"{name} has to be a list without lists or objects in it.")
        return found


def body_of(content: bytes) -> dict[str, object]:
    """Return the fields of a JSON object. Raises BadRequest."""
    try:
        found = json.loads(content, parse_constant=_refused_constant, object_pairs_hook=_without_twins)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"The body is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadRequest("The body has to be a JSON object.")
    return found


def _unit(name: str, spelling: object) -> Unit:
    found = _UNIT.fullmatch(spelling) if isinstance(spelling, str) else None
    if found is None:
        raise BadRequest(f"{name} has to name hunks, such as 12:2.")
    return Unit(Seq(int(found[1])), int(found[2]))


def _ranges(name: str, ranges: object) -> Rows:
    """Return ranges of rows from a list of pairs."""
    found: list[tuple[int, int]] = []
    for each in ranges if isinstance(ranges, list) else [None]:
        match each:
            case [bool(), _] | [_, bool()]:  # a bool is an int, too
                pass
            case [int(start), int(end)] if 0 <= start < end <= MAX_INT:
                found.append((start, end))
                continue
        raise BadRequest(f"{name} has to have a list of ranges of rows, such as [[0, 2]], for each change.")
    return tuple(found)


def _refused_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _without_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field is given twice")
    return found
