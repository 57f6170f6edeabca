"""Test that fastclass values behave like frozen, slotted, keyword-only dataclasses."""

import copy
import dataclasses
import inspect
import pickle
import typing
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass
from typing import Any

import pytest

from objstore.values.fastclass import NamedTuple, field, replace, value, variable


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
    """The same class, made by the standard library."""

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


@pytest.mark.parametrize("at", [0, 5, 39])
def test_first_instances_behave_like_later_ones(at: int) -> None:
    @value
    class Fresh:
        name: str
        count: int

    instances: list[Fresh] = []
    for number in range(40):
        if number == at:
            for wrong in ({"name": "a"}, {"name": "a", "count": 1, "more": 2}):
                with pytest.raises(TypeError):
                    Fresh(**wrong)
        instances.append(Fresh(count=number, name=str(number)))
    assert [(one.name, one.count) for one in instances] == [(str(number), number) for number in range(40)]
    assert Fresh(name="0", count=0) == instances[0]
    assert hash(Fresh(name="39", count=39)) == hash(instances[39])


@pytest.mark.parametrize("cls", BOTH)
def test_value_and_dataclass_refuse_the_same_arguments(cls: Any) -> None:  # noqa: ANN401 -- either class
    known = cls(name="a")
    with pytest.raises(TypeError, match="name"):
        cls()
    with pytest.raises(TypeError, match="positional"):
        cls("a")
    with pytest.raises(TypeError, match="other"):
        cls(name="a", other=1)
    with pytest.raises(FrozenInstanceError, match="name"):
        known.name = "b"
    with pytest.raises(FrozenInstanceError, match="name"):
        del known.name
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        known.unheard = 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(known)
    assert not hasattr(known, "__dict__")


def test_value_and_dataclass_have_the_same_repr_and_fields() -> None:
    for _ in range(100):
        Ours(name="a")  # a class gets an `__init__` of its own, with its parameters, after some instances
    ours, theirs = (cls(name="a", count=7) for cls in BOTH)
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


def test_default_factory_runs_for_each_instance() -> None:
    first, second = Ours(name="a"), Ours(name="b")
    first.notes["x"] = 1
    assert second.notes == {}


def test_replace_and_match_use_the_fields() -> None:
    assert replace(Ours(name="a"), count=5) == dataclasses.replace(Ours(name="a"), count=5) == Ours(name="a", count=5)
    match Ours(name="a", count=5):
        case Ours(count=count):
            assert count == 5
    assert Ours(name="a", count=4).double == 8


def test_own_method_overrides_the_generated_one() -> None:
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


def test_variable_is_mutable_and_unhashable() -> None:
    known = Changing(name="a")
    known.name = "b"
    known.notes.append(1)
    assert known == Changing(name="b", notes=[1])
    assert Changing(name="b").notes == []
    with pytest.raises(TypeError, match="unhashable"):
        hash(known)
    assert not hasattr(known, "__dict__")


# ---- named tuples


class OurPair(NamedTuple):
    """A named tuple with a default and a method."""

    name: str
    size: int = 3

    @property
    def double(self) -> int:
        return 2 * self.size


class TheirPair(typing.NamedTuple):
    """The same class, made by the standard library."""

    name: str
    size: int = 3

    @property
    def double(self) -> int:
        return 2 * self.size


PAIRS: Any = [OurPair, TheirPair]


@pytest.mark.parametrize("cls", PAIRS)
def test_a_named_tuple_is_a_tuple_with_names(cls: Any) -> None:  # noqa: ANN401 -- either class
    pair = cls("a", size=4)
    assert pair == ("a", 4) == cls(name="a", size=4) == cls._make(iter(["a", 4])) == cls("b")._replace(name="a", size=4)
    assert (pair.name, pair.size, pair.double, pair[1], len(pair), hash(pair)) == ("a", 4, 8, 4, 2, hash(("a", 4)))
    assert (cls("a"), cls(name="a")) == (("a", 3), ("a", 3))
    assert repr(pair) == f"{cls.__name__}(name='a', size=4)"
    assert (pair._asdict(), cls._fields, cls._field_defaults) == (
        {"name": "a", "size": 4},
        ("name", "size"),
        {"size": 3},
    )
    assert not hasattr(pair, "__dict__")
    assert pickle.loads(pickle.dumps(pair)) == copy.copy(pair) == pair  # noqa: S301 -- its own
    match pair:
        case cls(name, size):
            assert (name, size) == ("a", 4)
        case _:
            pytest.fail("no match")
    with pytest.raises(AttributeError):
        pair.size = 5


@pytest.mark.parametrize("cls", PAIRS)
@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), (("a", 1, 2), {}), (("a",), {"name": "b"}), (("a",), {"other": 1}), ((), {"size": 1})],
)
def test_a_named_tuple_has_a_value_for_each_field_and_no_other(
    cls: Any,  # noqa: ANN401 -- either class
    values: tuple[Any, ...],
    named: dict[str, Any],
) -> None:
    with pytest.raises(TypeError):
        cls(*values, **named)


@pytest.mark.parametrize("at", [0, 5, 39])
def test_first_instances_of_a_named_tuple_behave_like_later_ones(at: int) -> None:
    class Fresh(NamedTuple):
        name: str
        size: int = 3
        notes: tuple[int, ...] = ()

    instances: list[Any] = []
    for number in range(40):
        if number == at:
            cases: Any = [((), {}), ((), {"size": 1}), ((), {"name": "a", "more": 2}), (("a",), {"name": "b"})]
            for values, named in cases:
                with pytest.raises(TypeError):
                    Fresh(*values, **named)
        instances += [Fresh(str(number)), Fresh(notes=(), name=str(number)), Fresh(str(number), 3, notes=())]
    assert instances == [(str(number), 3, ()) for number in range(40) for _ in range(3)]
    assert {type(one) for one in instances} == {Fresh}
    assert instances[-1]._replace(size=4) == Fresh._make(["39", 4, ()])
    assert copy.copy(instances[-1]) == instances[-1]


def test_a_named_tuple_class_compiles_no_constructor_before_it_is_used() -> None:
    class Unused(NamedTuple):
        name: str

    assert Unused.__new__ is NamedTuple.__new__
