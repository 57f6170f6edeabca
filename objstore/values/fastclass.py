"""Define frozen, keyword-only, slotted dataclasses without the cost that `dataclasses` has at import.

With the standard `dataclasses`, `cas reject` takes 35 ms longer and a hook event 28 ms: the module writes the source of
seven methods for each class and compiles them at every import, on Python 3.11 about a millisecond per class, after ten
for the module itself and its imports. Here a class gets its slots at once, its `__init__` is compiled only after it has
made some instances, and all classes share the other methods. The classes are dataclasses all the same: `replace`,
`fields` and `match` work on them, and type checkers treat them so. docs/decisions/0011-values.md has the figures.
"""

from collections.abc import Callable, Iterator
from operator import attrgetter, itemgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, dataclass_transform

__all__ = ["NamedTuple", "field", "replace", "value", "variable"]

T = TypeVar("T")
Class = TypeVar("Class", bound=type)


class _Fresh:
    """Takes the place of a default, and makes a new one for each instance."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], object]) -> None:
        self.make: Final = make


def field(*, default_factory: Callable[[], T]) -> T:
    """Declare a default that `default_factory` makes for each instance."""
    return cast("T", _Fresh(default_factory))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def value(cls: Class) -> Class:
    """Do to a class what `@dataclass(frozen=True, slots=True, kw_only=True)` does. Values can't be pickled.

    Every annotated name is a field. The class must have no base classes, and no subclasses.
    """
    return _slotted(cls, _FROZEN)


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def variable(cls: Class) -> Class:
    """Do to a class what `@dataclass(slots=True, kw_only=True)` does: as `value`, but the fields may change."""
    return _slotted(cls, _VARIABLE)


def _slotted(cls: Class, methods: dict[str, Any]) -> Class:
    """Return the class with slots for its fields, and with those of the methods that it does not define itself."""
    made = dict(cls.__dict__)
    for name in ("__dict__", "__weakref__"):
        made.pop(name, None)
    names = tuple(cls.__annotations__)
    defaults = {name: made.pop(name) for name in names if name in made}
    made = methods | made
    made |= {"__slots__": names, "__match_args__": (), _FIELDS: _Fields(defaults), _INIT: defaults}
    made[_KEY] = staticmethod(attrgetter(*names) if names else _nothing)
    slotted = type(cls)(cls.__name__, cls.__bases__, made)
    slotted.__qualname__ = cls.__qualname__
    return slotted


class _Fields:
    """The fields as `dataclasses` expects them, made on first use: for most classes, never."""

    def __init__(self, defaults: dict[str, Any]) -> None:
        self._defaults: Final = defaults
        self._made: dict[str, Any] | None = None

    def __get__(self, _: object, owner: type) -> dict[str, Any]:
        """Return the fields, by name."""
        if self._made is None:
            import dataclasses

            given = {
                name: dataclasses.field(default_factory=default.make) if isinstance(default, _Fresh) else default
                for name, default in self._defaults.items()
            }
            given |= {"__annotations__": owner.__annotations__, "__module__": owner.__module__}
            plain: Any = dataclasses.dataclass(kw_only=True, init=False, repr=False, eq=False)(type("", (), given))
            self._made = {each.name: each for each in dataclasses.fields(plain)}
        return self._made


if TYPE_CHECKING:
    from dataclasses import replace  # type checkers know what it takes
else:

    def replace(known: Any, /, **changes: Any) -> Any:  # noqa: ANN401 -- of any of these classes
        """Return a copy of a value or variable with some fields changed."""
        return type(known)(**{name: getattr(known, name) for name in type(known).__slots__} | changes)


if TYPE_CHECKING:
    from typing import NamedTuple  # type checkers know what one is
else:

    class _TupleType(type):
        """Gives a class properties that read its fields from the tuple, without compiling source."""

        def __new__(cls, name: str, bases: tuple[type, ...], made: dict[str, Any]) -> type:
            names = tuple(made.get("__annotations__", ()))
            defaults = {each: made.pop(each) for each in names if each in made}
            getters = {each: property(itemgetter(at)) for at, each in enumerate(names)}
            own = {"__slots__": (), "__match_args__": names, "_fields": names, "_field_defaults": defaults}
            return super().__new__(cls, name, bases, made | getters | own)

    class NamedTuple(tuple, metaclass=_TupleType):
        """A named tuple like that of `typing`, but cheap to define."""

        __slots__ = ()

        def __new__(cls, *values: Any, **named: Any) -> Any:  # noqa: ANN401 -- of any named tuple
            """Return the tuple with a value for each field."""
            if named or len(values) != len(cls._fields):
                values = _given(cls, values, named)
            return tuple.__new__(cls, values)

        @classmethod
        def _make(cls, values: Any) -> Any:  # noqa: ANN401 -- as above
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, not {len(made)}")
            return made

        def _replace(self, **named: Any) -> Any:  # noqa: ANN401 -- as above
            return type(self)(**dict(zip(self._fields, self, strict=True)) | named)

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            shown = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({shown})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

    def _given(cls: Any, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:  # noqa: ANN401 -- as above
        """Return the values of all fields. Raises TypeError for wrong arguments, as a call does.

        After enough calls that name fields or leave some out, compile the class's own `__new__` for those that follow.
        """
        left = _SLOW.get(cls, _SLOW_TIMES)
        if left:
            _SLOW[cls] = left - 1
        else:
            _compile_own_new(cls)
        if not values and tuple(named) == cls._fields:
            return tuple(named.values())
        if len(values) > len(cls._fields):
            raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, not {len(values)}")
        known = dict(zip(cls._fields, values, strict=False))
        wrong = [name for name in named if name in known or name not in cls._fields]
        if wrong:
            raise TypeError(f"{cls.__name__} has no field {wrong[0]!r}, or got it twice")
        known = cls._field_defaults | known | named
        missing = [name for name in cls._fields if name not in known]
        if missing:
            raise TypeError(f"{cls.__name__} lacks {', '.join(missing)}")
        return tuple(known[name] for name in cls._fields)

    def _compile_own_new(cls: Any) -> None:  # noqa: ANN401 -- as above
        """Compile the class's own `__new__`, which takes an eighth of the time, and set it on the class."""
        names: dict[str, Any] = {f"_d_{name}": default for name, default in cls._field_defaults.items()}
        names["_made"] = tuple.__new__
        taken = [f"{name}=_d_{name}" if name in cls._field_defaults else name for name in cls._fields]
        source = f"def __new__(_cls, {', '.join(taken)}): return _made(_cls, ({', '.join(cls._fields)},))"
        exec(source, names)  # noqa: S102 -- as in collections: the source has nothing but names of fields
        cls.__new__ = staticmethod(names["__new__"])
        _SLOW.pop(cls, None)


# ---- methods that all classes share

_FIELDS: Final = "__dataclass_fields__"
_KEY: Final = "_values_of"
"""The class attribute with the function that returns the values of all fields."""

_INIT: Final = "_defaults_of"
"""The class attribute with the defaults of the fields."""

_SLOW_TIMES: Final = 16
"""Instances that a class makes before its own `__init__` is compiled, which takes as long as making a hundred."""

_SLOW: Final[dict[type, int]] = {}
"""How many of those instances each class may still make."""


def _nothing(_: object) -> tuple[()]:
    return ()


def _first_init(self: Any, *given: Any, **named: Any) -> None:  # noqa: ANN401 -- of any of these classes
    """Set the fields if the arguments fit; otherwise, or after enough instances, compile the class's own `__init__`."""
    cls = type(self)
    left = _SLOW.get(cls, _SLOW_TIMES)
    defaults = getattr(cls, _INIT)
    if left and not given and named.keys() | defaults.keys() == set(cls.__slots__):
        _SLOW[cls] = left - 1
        for name, content in (defaults | named).items():
            object.__setattr__(self, name, content.make() if isinstance(content, _Fresh) else content)
    else:
        _own_init(cls)(self, *given, **named)


def _own_init(cls: Any) -> Callable[..., None]:  # noqa: ANN401 -- any of these classes
    """Compile the class's own `__init__`, set it on the class, and return it."""
    names: dict[str, Any] = {}
    lines = list(_init_lines(cls, getattr(cls, _INIT), names))
    listed = f", *, {', '.join(line for line, _ in lines)}" if lines else ""
    source = f"def __init__(self{listed}):\n" + ("\n".join(body for _, body in lines) or " pass")
    exec(source, names)  # noqa: S102 -- as in dataclasses: the source has nothing but names of fields
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    cls.__init__ = init
    _SLOW.pop(cls, None)
    return init


def _init_lines(cls: Any, defaults: dict[str, Any], names: dict[str, Any]) -> Iterator[tuple[str, str]]:  # noqa: ANN401 -- as above
    """Yield each field's parameter and the line that sets it; add the globals that they need to `names`."""
    is_frozen = cls.__setattr__ is not object.__setattr__
    for name in cls.__slots__:
        parameter, given = name, name
        if name in defaults:
            default = defaults[name]
            names[f"_d_{name}"] = default
            parameter = f"{name}=_d_{name}"
            if isinstance(default, _Fresh):
                given = f"_d_{name}.make() if {name} is _d_{name} else {name}"
        if is_frozen:
            # The slot's own setter, which does not have to look up the slot first.
            names[f"_set_{name}"] = getattr(cls, name).__set__
        yield parameter, f" _set_{name}(self, {given})" if is_frozen else f" self.{name} = {given}"


@recursive_repr()
def _repr(self: Any) -> str:  # noqa: ANN401 -- of any of these classes
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).__slots__)
    return f"{type(self).__qualname__}({shown})"


def _eq(self: Any, other: Any) -> Any:  # noqa: ANN401 -- as above; bool, or NotImplemented
    if type(other) is not type(self):
        return NotImplemented
    return self._values_of(self) == self._values_of(other)


def _hash(self: Any) -> int:  # noqa: ANN401 -- as above
    return hash(self._values_of(self))


def _setattr(_: object, name: str, __: object) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(_: object, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


_VARIABLE: Final[dict[str, Any]] = {"__init__": _first_init, "__repr__": _repr, "__eq__": _eq, "__hash__": None}
_FROZEN: Final[dict[str, Any]] = _VARIABLE | {"__hash__": _hash, "__setattr__": _setattr, "__delattr__": _delattr}
