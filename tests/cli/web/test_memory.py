"""A server gives memory back: what nothing refers to any more, and free pages."""

import gc
import weakref

from cli.web.memory import give_back


class Ring:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.own = self


def test_objects_that_refer_to_each_other_are_freed() -> None:
    gc.disable()
    try:
        known = weakref.ref(Ring())
        assert known() is not None
        give_back()
        assert known() is None
    finally:
        gc.enable()
