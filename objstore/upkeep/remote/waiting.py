"""Wait for a network in a way that Ctrl-C ends, which a call into `obstore` alone would not notice until it returns.

After Ctrl-C such a call goes on in its thread until it is answered or the process ends; it does not keep the process
from ending. So it may do nothing that a killed process may not leave half done.
"""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from threading import Thread, current_thread, main_thread
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from objstore.model.basic_types import Progress

__all__ = ["AT_ONCE", "answered", "in_parallel", "started"]

AT_ONCE: Final = 6
"""Pieces that are sent or fetched at once: 48 MB of memory at most."""

T = TypeVar("T")
ItemT = TypeVar("ItemT")


def started(work: Callable[[], T]) -> Future[T]:
    """Begin work on a thread of its own, and return what waits for it."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - whoever waits raises it
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future


def answered(ask: Callable[[], T]) -> T:
    """Return the answer to one request, and raise what it raises."""
    # Signals come to the main thread alone; on another one, whoever waits for that thread notices them.
    return started(ask).result() if current_thread() is main_thread() else ask()


def in_parallel(work: Callable[[ItemT], int], items: Iterable[ItemT], progress: Progress | None, total: int) -> None:
    """Do work that waits for a network on several items at once; it returns how many bytes are done.

    The first error ends it, once what has begun is over; Ctrl-C ends it at once.
    """
    done = 0
    running: set[Future[int]] = set()

    def take(most: int) -> None:
        nonlocal done, running
        while len(running) > most:
            over, running = wait(running, return_when=FIRST_COMPLETED)
            done += sum(each.result() for each in over)
            if progress is not None:
                progress("bytes", done, total)

    try:
        for item in items:
            running.add(started(partial(work, item)))
            take(AT_ONCE - 1)
        take(0)
    except KeyboardInterrupt:
        raise
    except BaseException:
        wait(running)
        raise
