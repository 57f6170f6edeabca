"""Values behave as frozen, slotted, keyword-only dataclasses do."""

import dataclasses
import inspect
import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from objstore.values import field, replace, value, variable


@value
class Ours:
    """A value with every kind of field."""

    name: str
    count: int = 3
    notes: dict[str, int] = field(default_factory=dict)

    @property
    def double(self) -> int:
        return 2 * self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Theirs:
    """The same, as the standard library makes it."""

    name: str
    count: int = 3
    notes: dict[str, int] = dataclasses.field(default_factory=dict)


BOTH: Any = [Ours, Theirs]


@value
class Hashable:
    name: str
    count: int = 0


@value
class Empty:
    pass


@pytest.mark.parametrize("made", BOTH)
def test_what_one_refuses_the_other_refuses(made: Any) -> None:  # noqa: ANN401 -- either class
    known = made(name="a")
    with pytest.raises(TypeError, match="name"):
        made()
    with pytest.raises(TypeError, match="positional"):
        made("a")
    with pytest.raises(TypeError, match="other"):
        made(name="a", other=1)
    with pytest.raises(FrozenInstanceError, match="name"):
        known.name = "b"
    with pytest.raises(FrozenInstanceError, match="name"):
        del known.name
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        known.unheard = 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(known)
    assert not hasattr(known, "__dict__")


def test_both_say_the_same() -> None:
    ours, theirs = (made(name="a", count=7) for made in BOTH)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert [each.name for each in fields(ours)] == [each.name for each in fields(theirs)]
    assert [each.default for each in fields(ours)] == [each.default for each in fields(theirs)]
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert inspect.signature(Ours).parameters.keys() == inspect.signature(Theirs).parameters.keys()
    assert is_dataclass(Ours)
    assert Ours.__doc__ == "A value with every kind of field."


def test_equal_fields_make_equal_values_of_one_class() -> None:
    assert Ours(name="a") == Ours(name="a", count=3, notes={})
    assert Ours(name="a") != Ours(name="b")
    theirs: object = Theirs(name="a")
    assert Ours(name="a") != theirs
    assert {Hashable(name="a"), Hashable(name="a"), Hashable(name="b")} == {Hashable(name="a"), Hashable(name="b")}
    assert Empty() == Empty()
    assert len({Empty(), Empty()}) == 1


def test_a_default_is_made_anew_for_each() -> None:
    first, second = Ours(name="a"), Ours(name="b")
    first.notes["x"] = 1
    assert second.notes == {}


def test_replace_and_match_know_the_fields() -> None:
    assert replace(Ours(name="a"), count=5) == dataclasses.replace(Ours(name="a"), count=5) == Ours(name="a", count=5)
    match Ours(name="a", count=5):
        case Ours(count=count):
            assert count == 5
    assert Ours(name="a", count=4).double == 8


def test_a_method_of_its_own_counts() -> None:
    @value
    class Named:
        name: str

        def __repr__(self) -> str:
            return f"<{self.name}>"

    assert repr(Named(name="x")) == "<x>"


@variable
class Changing:
    name: str
    notes: list[int] = field(default_factory=list)


def test_a_variable_changes_and_has_no_hash() -> None:
    known = Changing(name="a")
    known.name = "b"
    known.notes.append(1)
    assert known == Changing(name="b", notes=[1])
    assert Changing(name="b").notes == []
    with pytest.raises(TypeError, match="unhashable"):
        hash(known)
    assert not hasattr(known, "__dict__")


def test_a_value_is_made_without_the_module_dataclasses() -> None:
    told = "import sys; from objstore.values import value; import objstore; objstore.Workspace; objstore.EditView"
    told += "; assert not {'dataclasses', 'inspect'} & sys.modules.keys(), 'loaded'"
    ran = subprocess.run([sys.executable, "-c", told], check=False, capture_output=True, cwd=Path(__file__).parents[1])
    assert ran.stderr == b""
