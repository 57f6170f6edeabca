"""Values: frozen, keyword-only, slotted dataclasses that cost little to define.

`dataclasses` writes the source of seven methods for each such class and compiles it whenever the class is imported: on
Python 3.11 about a millisecond a class, which for a command that needs forty of them is half of its start. Here only
`__init__` is compiled; what the others do can be said once for all. The classes are dataclasses all the same: `replace`
and `fields` work on them, and type checkers see what they know. docs/decisions/0011-values.md has the figures.
"""

from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, Final, TypeVar, cast, dataclass_transform

__all__ = ["value"]

Class = TypeVar("Class", bound=type)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def value(cls: Class) -> Class:
    """Make a class what `@dataclass(frozen=True, slots=True, kw_only=True)` makes it. Values can't be pickled."""
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=True)(cls)
    names = [each.name for each in fields(made)]
    made.__init__ = _init(made)
    setattr(made, _KEY, staticmethod(attrgetter(*names) if names else _nothing))
    for name, method in _METHODS.items():
        if name not in cls.__dict__:
            setattr(made, name, method)
    return cast("Class", made)


def _init(made: Any) -> Any:  # noqa: ANN401 -- any class, and a function whose signature is the class's own
    names: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING}
    parameters, lines = [], []
    for each in fields(made):
        given = each.name
        if each.default is not MISSING:
            names[f"_d_{each.name}"] = each.default
            parameters.append(f"{each.name}=_d_{each.name}")
        elif each.default_factory is not MISSING:
            names[f"_f_{each.name}"] = each.default_factory
            parameters.append(f"{each.name}=_missing")
            given = f"_f_{each.name}() if {each.name} is _missing else {each.name}"
        else:
            parameters.append(each.name)
        lines.append(f" _set(self, {each.name!r}, {given})")
    if hasattr(made, "__post_init__"):
        lines.append(" self.__post_init__()")
    listed = f", *, {', '.join(parameters)}" if parameters else ""
    source = f"def __init__(self{listed}):\n" + ("\n".join(lines) or " pass")
    exec(source, names)  # noqa: S102 -- as dataclasses does it: nothing is in the source but names of fields
    init = names["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init


# ---- what is the same for all

_KEY: Final = "_values_of"
"""Where a class keeps what takes the values of all its fields."""


def _nothing(_: object) -> tuple[()]:
    return ()


@recursive_repr()
def _repr(self: Any) -> str:  # noqa: ANN401 -- of any of these classes
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _eq(self: Any, other: Any) -> Any:  # noqa: ANN401 -- as above; bool, or NotImplemented
    if type(other) is not type(self):
        return NotImplemented
    return self._values_of(self) == self._values_of(other)


def _hash(self: Any) -> int:  # noqa: ANN401 -- as above
    return hash(self._values_of(self))


def _setattr(_: object, name: str, __: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(_: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


_METHODS: Final = {
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__setattr__": _setattr,
    "__delattr__": _delattr,
}
