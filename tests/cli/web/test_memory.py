"""A server gives memory back: what nothing refers to any more, and free pages."""

import gc
import weakref

from cli.web.memory import give_back, leave_program_out


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


def test_what_is_made_after_the_start_is_freed_and_the_program_is_not_gone_through() -> None:
    gc.disable()
    was_left_out = gc.get_freeze_count()
    try:
        of_program = weakref.ref(Ring())
        kept = of_program()
        leave_program_out()
        assert gc.get_freeze_count() > was_left_out
        del kept
        of_request = weakref.ref(Ring())
        give_back()
        left = [each() is not None for each in (of_program, of_request)]
        assert left == [True, False]
    finally:
        gc.unfreeze()
        if was_left_out:  # in a process of a test run, for the same reason
            gc.freeze()
        gc.enable()
