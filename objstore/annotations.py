"""Annotations: the words of `typing` without `typing` itself, for what a status, a hook or a completion imports.

`typing` takes 8 ms to import, with `re` and all else that it brings: as long as a look at five thousand files. Type
checkers are shown what they know. When the program runs, a word here only stands in annotations, where nobody looks at
it, and a new type is the type that it is made of. docs/decisions/0025-imports.md has the figures.
"""

TYPE_CHECKING = False
"""Type checkers take this for true."""

__all__ = ["TYPE_CHECKING", "Any", "Final", "NewType", "Self", "TypeAlias", "TypeVar", "cast", "dataclass_transform"]

if TYPE_CHECKING:
    from typing import Any, Final, NewType, Self, TypeAlias, TypeVar, cast, dataclass_transform
else:

    class Any:
        """Any type."""

    class Final:
        """A name that is given once."""

        def __class_getitem__(cls, _: object) -> type:
            return cls

    class Self:
        """The type of the object itself."""

    class TypeAlias:
        """Another name for a type."""

    def NewType(_name: str, base: type) -> type:  # noqa: N802 - as `typing` calls it
        """Return what a new type is made of."""
        return base

    def TypeVar(_name: str, **_bounds: object) -> type:  # noqa: N802 - as above
        """Return what may stand for any type."""
        return Any

    def cast(_kind: object, given: object) -> object:
        """Return what is given: only type checkers hear of another type."""
        return given

    def dataclass_transform(**_said: object) -> object:
        """Return what leaves alone what it decorates: only type checkers hear that it makes values."""
        return lambda decorator: decorator
