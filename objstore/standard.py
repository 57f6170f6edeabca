"""Standard: words of the standard library without the modules that bring them, for what a status or a hook imports.

`contextlib`, `enum` and the classes that `enum` makes take a twentieth of a status of 20,000 files. Here is what such a
command needs of them. Type checkers are shown what they know. docs/decisions/0025-imports.md has the figures.
"""

from objstore.annotations import TYPE_CHECKING

__all__ = ["IntEnum", "StrEnum", "closing", "contextmanager", "nullcontext", "suppress"]

if TYPE_CHECKING:
    from contextlib import closing, contextmanager, nullcontext, suppress
    from enum import IntEnum, StrEnum
else:
    # ---- contexts

    class _Generated:
        """The context that a generator makes: what it does before its one `yield` is done first, the rest last."""

        __slots__ = ("_steps",)

        def __init__(self, steps):
            self._steps = steps

        def __enter__(self):
            for given in self._steps:
                return given
            raise RuntimeError("generator didn't yield")

        def __exit__(self, _, error, trace):
            steps = self._steps
            if error is None:
                for _ in steps:
                    steps.close()
                    raise RuntimeError("generator didn't stop")
                return False
            try:
                steps.throw(error)
            except StopIteration as ended:
                # One that was raised inside is not the generator's end.
                return ended is not error
            except BaseException as raised:
                # Python makes a RuntimeError of a StopIteration that leaves a generator.
                is_made_of_it = isinstance(raised, RuntimeError) and isinstance(error, StopIteration)
                if raised is not error and not (is_made_of_it and raised.__cause__ is error):
                    raise
                error.__traceback__ = trace
                return False
            steps.close()
            raise RuntimeError("generator didn't stop after throw()")

    def contextmanager(make):
        """Return what makes a context of each generator that `make` returns."""

        def made(*given, **named):
            return _Generated(make(*given, **named))

        made.__name__, made.__qualname__, made.__module__ = make.__name__, make.__qualname__, make.__module__
        made.__doc__, made.__wrapped__ = make.__doc__, make
        return made

    class suppress:  # noqa: N801 - as `contextlib` calls it
        """Goes on behind the block when one of these is raised in it."""

        __slots__ = ("_kinds",)

        def __init__(self, *kinds):
            self._kinds = kinds

        def __enter__(self):
            return None

        def __exit__(self, kind, _, __):
            return kind is not None and issubclass(kind, self._kinds)

    class closing:  # noqa: N801 - as above
        """Closes something at the end of the block."""

        __slots__ = ("_open",)

        def __init__(self, opened):
            self._open = opened

        def __enter__(self):
            return self._open

        def __exit__(self, *_):
            self._open.close()

    class nullcontext:  # noqa: N801 - as above
        """Does nothing."""

        __slots__ = ("_given",)

        def __init__(self, given=None):
            self._given = given

        def __enter__(self):
            return self._given

        def __exit__(self, *_):
            return None

    # ---- enumerations

    class _Kind(type):
        """Makes each plain value in the body of a class a member of it: the only one with that value."""

        def __new__(cls, name, bases, made):
            plain = next(each for each in bases[0].__mro__ if each in (str, int))
            values = {key: given for key, given in made.items() if type(given) is plain and not key.startswith("_")}
            enum = super().__new__(cls, name, bases, {key: made[key] for key in made if key not in values})
            members = {key: plain.__new__(enum, given) for key, given in values.items()}
            for key, member in members.items():
                vars(member).update(name=key, value=values[key])
                type.__setattr__(enum, key, member)
            type.__setattr__(enum, "__members__", members)
            type.__setattr__(enum, "_by_value", {member.value: member for member in members.values()})
            return enum

        def __call__(cls, value):
            try:
                return cls._by_value[value]
            except (KeyError, TypeError):
                raise ValueError(f"{value!r} is not a valid {cls.__qualname__}") from None

        def __iter__(cls):
            return iter(cls.__members__.values())

        def __len__(cls):
            return len(cls.__members__)

        def __getitem__(cls, name):
            return cls.__members__[name]

        def __setattr__(cls, name, given):
            if name in cls.__members__:
                raise AttributeError(f"cannot reassign member {name!r}")
            super().__setattr__(name, given)

    def _shown(self):
        return f"<{type(self).__name__}.{self.name}: {self.value!r}>"

    def _again(self, _=None):
        """Return what makes the same member of its value, not one like it: for copies."""
        return type(self), (self.value,)

    class StrEnum(str, metaclass=_Kind):  # noqa: SLOT000 - a member has its name and value as any object has
        """Text of which there are some."""

        __repr__ = _shown
        __reduce_ex__ = _again

        def __str__(self):
            return self.value

    class IntEnum(int, metaclass=_Kind):
        """Numbers of which there are some."""

        __repr__ = _shown
        __reduce_ex__ = _again

        def __str__(self):
            return str(self.value)
