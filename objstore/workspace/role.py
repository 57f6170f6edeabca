"""What the tasks of a workspace share: the open journal, and how a method locks, retries and asks for a person."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, TypeVar

from objstore.values.errors import StoreDamaged

if TYPE_CHECKING:
    from collections.abc import Callable

    from objstore.storage.store.object_store import Store
    from objstore.storage.transaction.journal import Journal

__all__ = ["Role", "decides", "reads", "uses_index", "writes"]

R = TypeVar("R", bound="Role")
P = ParamSpec("P")
T = TypeVar("T")


class Role:
    """A task that a workspace offers. Each public method says by its decorator what it does to the store."""

    def __init__(self, journal: Journal) -> None:
        """Wrap an open journal."""
        self._journal: Final = journal

    @property
    def _store(self) -> Store:
        """Return the store; in a method that reads, it is locked and up to date."""
        return self._journal.store

    def require_person(self) -> None:
        """Refuse what only a person may do if an agent's shell asks for it; every method that decides does so itself.

        Raises AgentDecides.
        """
        from objstore.review.calls.deciders import require_person

        require_person(self._journal)


def reads(method: Callable[Concatenate[R, P], T]) -> Callable[Concatenate[R, P], T]:
    """Lock the store for this thread while a method reads it, up to date with the log; it must not wait for others.

    The method runs again if a place that the index gave is gone because its segment was rewritten meanwhile, twice.
    """

    @wraps(method)
    def locked(self: R, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._journal.reading() as store:
            while True:
                generations = store.log.files.generations()
                try:
                    return method(self, *args, **kwargs)
                except StoreDamaged:
                    if not store.is_rewritten_since(generations):
                        raise
                store.catch_up()

    return locked


def uses_index(method: Callable[Concatenate[R, P], T]) -> Callable[Concatenate[R, P], T]:
    """Have errors of the index translated into ours in a method that takes the locks it needs, for a short time each.

    A damaged index is rebuilt before its next use.
    """

    @wraps(method)
    def translated(self: R, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._journal.translating_index_errors():
            return method(self, *args, **kwargs)

    return translated


def writes(method: Callable[Concatenate[R, P], T]) -> Callable[Concatenate[R, P], T]:
    """Rebuild the index and run a method again if it finds the index damaged before it has recorded anything."""

    @wraps(method)
    def repaired(self: R, /, *args: P.args, **kwargs: P.kwargs) -> T:
        from objstore.storage.transaction.index_repair import rebuild_index_and_retry

        def act() -> T:
            with self._journal.translating_index_errors():
                return method(self, *args, **kwargs)

        return rebuild_index_and_retry(self._journal, act)

    return repaired


def decides(method: Callable[Concatenate[R, P], T]) -> Callable[Concatenate[R, P], T]:
    """Let a method write as `writes` does, but only for a person: it decides, or narrows what is recorded.

    With `dry_run` it only looks, which agents may do as well. Raises AgentDecides.
    """
    write = writes(method)

    @wraps(method)
    def decided(self: R, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if not kwargs.get("dry_run"):
            self.require_person()
        return write(self, *args, **kwargs)

    return decided
