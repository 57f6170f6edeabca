"""The words of the standard library that we have without its modules behave as the standard library's."""

import contextlib
import copy
import enum
import inspect
import json
import pickle
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, TypeAlias

import msgpack
import pytest

from objstore import standard
from objstore.terms import Status

BOTH: Any = [standard, contextlib]


class Mark(Exception):
    """Raised in a block."""


class Other(Exception):
    """Raised by what a block is in."""


def going_on(told: list[str]) -> Iterator[int]:
    told.append("in")
    yield 1
    told.append("out")


def cleaning(told: list[str]) -> Iterator[int]:
    told.append("in")
    try:
        yield 1
    finally:
        told.append("out")


def swallowing(told: list[str]) -> Iterator[int]:
    try:
        yield 1
    except BaseException as error:  # noqa: BLE001 - that is what it is for
        told.append(type(error).__name__)


def replacing(_: list[str]) -> Iterator[int]:
    try:
        yield 1
    except BaseException as error:
        raise Other("instead") from error


def raising_late(_: list[str]) -> Iterator[int]:
    yield 1
    raise Other("late")


def raising_early(_: list[str]) -> Iterator[int]:
    if GENERATORS:
        raise Other("early")
    yield 1


def never_yielding(_: list[str]) -> Iterator[int]:
    yield from ()


def yielding_twice(told: list[str]) -> Iterator[int]:
    try:
        yield 1
        yield 2
    finally:
        told.append("closed")


def yielding_again(told: list[str]) -> Iterator[int]:
    try:
        yield 1
    except Mark:
        yield 2
    finally:
        told.append("closed")


def raising_again(_: list[str]) -> Iterator[int]:
    try:
        yield 1
    except BaseException as error:  # noqa: TRY203 - the same error, raised by the generator itself
        raise error  # noqa: TRY201 - as above


GENERATORS = [
    going_on,
    cleaning,
    swallowing,
    replacing,
    raising_late,
    raising_early,
    never_yielding,
    yielding_twice,
    yielding_again,
    raising_again,
]
RAISED = [None, Mark("m"), StopIteration("s"), RuntimeError("r"), KeyboardInterrupt(), GeneratorExit()]


def passed(home: ModuleType, make: Callable[[list[str]], Iterator[int]], raised: BaseException | None) -> list[object]:
    """Return all that can be seen of a block in such a context."""
    seen: list[Any] = []
    told: list[str] = []
    try:
        with home.contextmanager(make)(told) as given:
            seen.append(given)
            if raised is not None:
                raise raised  # noqa: TRY301 - the block is what raises
            seen.append("through")
        seen.append("after")
    except BaseException as error:  # noqa: BLE001 - whatever comes is what is compared
        cause = error.__cause__
        seen += [type(error), str(error), error is raised, cause is raised, type(cause)]
    return [*seen, *told]


@pytest.mark.parametrize("raised", RAISED, ids=repr)
@pytest.mark.parametrize("make", GENERATORS, ids=lambda make: make.__name__)
def test_a_block_in_a_generator_goes_as_the_standard_librarys(
    make: Callable[[list[str]], Iterator[int]], raised: BaseException | None
) -> None:
    assert passed(standard, make, raised) == passed(contextlib, make, raised)


def test_an_error_that_passes_shows_where_it_came_from_and_no_step_of_ours() -> None:
    def lines(home: ModuleType) -> list[str]:
        with pytest.raises(Mark) as caught, home.contextmanager(cleaning)([]):
            raise Mark
        return [entry.name for entry in caught.traceback]

    assert lines(standard) == lines(contextlib) == ["lines"]


def test_what_makes_a_context_can_be_asked_what_it_is() -> None:
    @standard.contextmanager
    def counted(first: int, *, last: int = 3) -> Iterator[int]:
        """Count."""
        yield first + last

    assert (counted.__name__, counted.__doc__) == ("counted", "Count.")
    assert list(inspect.signature(counted).parameters) == ["first", "last"]
    with counted(1, last=2) as given:
        assert given == 3


@pytest.mark.parametrize("home", BOTH)
def test_only_what_is_named_is_suppressed(home: ModuleType) -> None:
    with home.suppress(OSError, ValueError):
        int("no number")
    with home.suppress(OSError):
        pass
    with pytest.raises(KeyError), home.suppress(OSError, ValueError):
        raise KeyError
    with pytest.raises(KeyError), home.suppress():
        raise KeyError


@pytest.mark.parametrize("home", BOTH)
def test_what_is_to_be_closed_is_closed_whatever_happens(home: ModuleType) -> None:
    class Door:
        closed = 0

        def close(self) -> None:
            self.closed += 1

    door = Door()
    with home.closing(door) as opened:
        assert opened is door
        assert not door.closed
    with pytest.raises(Mark), home.closing(door):
        raise Mark
    assert door.closed == 2


@pytest.mark.parametrize("home", BOTH)
def test_a_context_that_does_nothing_does_nothing(home: ModuleType) -> None:
    with home.nullcontext(5) as given:
        assert given == 5
    with pytest.raises(Mark), home.nullcontext():
        raise Mark


class OurWord(standard.StrEnum):
    """Words."""

    ONE = "one"
    TWO = "two"

    @property
    def loud(self) -> str:
        return self.upper()


class TheirWord(enum.StrEnum):
    """Words."""

    ONE = "one"
    TWO = "two"

    @property
    def loud(self) -> str:
        return self.upper()


class OurNumber(standard.IntEnum):
    """Numbers."""

    ONE = 1
    TWO = 2


class TheirNumber(enum.IntEnum):
    """Numbers."""

    ONE = 1
    TWO = 2


Kind: TypeAlias = Any  # any of these classes
KINDS: Any = [(OurWord, TheirWord), (OurNumber, TheirNumber)]


def shown(kind: Kind) -> list[object]:
    """Return all that can be seen of such a kind."""
    members = [
        [member.name, member.value, str(member), f"{member}", json.dumps(member), msgpack.packb(member), hash(member)]
        for member in kind
    ]
    return [members, len(kind), list(kind.__members__), [repr(member).replace("Their", "Our") for member in kind]]


@pytest.mark.parametrize(("ours", "theirs"), KINDS)
def test_members_are_as_the_standard_librarys(ours: Kind, theirs: Kind) -> None:
    assert shown(ours) == shown(theirs)
    assert ours.__doc__ == theirs.__doc__
    for mine, their in zip(ours, theirs, strict=True):
        assert isinstance(mine, ours)
        assert mine == their == their.value == mine.value
        assert {mine: 1}[their.value] == 1


@pytest.mark.parametrize("kind", [kind for both in KINDS for kind in both])
def test_there_is_one_member_of_each_value(kind: Kind) -> None:
    for member in kind:
        assert kind(member.value) is kind(member) is kind[member.name] is getattr(kind, member.name) is member
        assert copy.copy(member) is copy.deepcopy(member) is pickle.loads(pickle.dumps(member)) is member  # noqa: S301 - just dumped
    wrong: object
    for wrong in ("three", 3, None, [], b"one"):
        with pytest.raises(ValueError, match="is not a valid"):
            kind(wrong)
    with pytest.raises(AttributeError):
        kind.ONE = "other"


def test_words_may_do_something() -> None:
    assert OurWord.TWO.loud == TheirWord.TWO.loud == "TWO"


def test_members_match_and_are_their_values() -> None:
    match Status("pending"):
        case Status.ACCEPTED | Status.REJECTED:
            pytest.fail("it is neither")
        case Status.PENDING:
            pass
    words: dict[str, int] = {"pending": 1}
    assert words[Status.PENDING] == 1
