"""Paging: how much of a long answer is given at once, and where the rest begins."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

__all__ = ["Page", "fitted", "page_of"]

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[ItemT]):
    """Some of many items."""

    items: Sequence[ItemT]
    offset: int  # items before these
    next_offset: int  # items up to the end of these; 0: nothing is left
    total: int | None  # None: there are more, and nobody has counted them

    @property
    def span(self) -> range:
        """Return which of the items these are, counted from 0."""
        return range(self.offset, self.offset + len(self.items))

    def note(self, items: str) -> tuple[str, ...]:
        """Return what tells a client how to go on, or that it went too far: nothing where nothing is left."""
        if self.offset and not self.items and not self.next_offset:
            return (f"There are only {self.total} {items}.",)
        if not self.next_offset:
            return ()
        given = f"{self.offset + 1} to {self.next_offset}" if self.items else "0"
        all_of = ", and there are more" if self.total is None else f" of {self.total}"
        return (f"These are {items} {given}{all_of}. Go on with offset={self.next_offset}.",)

    def nothing(self, words: str) -> str:
        """Return the words for an answer without any item; "" where there are some, though not on this page."""
        return "" if self.items or self.total else words

    def of_many(self, skipped: int) -> "Page[ItemT]":
        """Return the page as one of a list of which only some items behind the first `skipped` ones were read."""
        next_offset = self.next_offset + skipped if self.next_offset else 0
        return replace(self, offset=self.offset + skipped, next_offset=next_offset, total=None)


def page_of(
    items: Sequence[ItemT], size: Callable[[ItemT], int], *, offset: int, limit: int, budget: int
) -> Page[ItemT]:
    """Return the items from `offset` on: at most `limit` (0: any number), of at most `budget` in all, but one at least.

    Of an offset beyond the end the page is empty, and the last.
    """
    end, used = offset, 0
    stop = min(len(items), offset + limit) if limit else len(items)
    while end < stop:
        used += size(items[end])
        if used > budget and end > offset:
            break
        end += 1
    return Page(items=items[offset:end], offset=offset, next_offset=end if end < len(items) else 0, total=len(items))


def fitted(text: str, budget: int) -> tuple[str, tuple[str, ...]]:
    """Return a page's text, and what has to be said where even one line is longer than an answer may be."""
    if len(text) <= budget:
        return text, ()
    return text[:budget], (f"The last line is cut: {len(text) - budget} more characters do not fit.",)
