"""Cut long answers into pages that fit a client's limit, and say where the next page begins."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

__all__ = ["Page", "fitted", "page_of"]

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[ItemT]):
    """A page of consecutive items."""

    items: Sequence[ItemT]
    offset: int  # items before these
    next_offset: int  # the offset of the next page; 0: this is the last one
    total: int | None  # None: there are more, and they have not been counted

    @property
    def span(self) -> range:
        """Return the indices of the page's items, from 0."""
        return range(self.offset, self.offset + len(self.items))

    def note(self, items: str) -> tuple[str, ...]:
        """Return the note that tells a client how to get the next page, or that the offset is beyond the end.

        () if this is the last page.
        """
        if self.offset and not self.items and not self.next_offset:
            return (f"There are only {self.total} {items}.",)
        if not self.next_offset:
            return ()
        given = f"{self.offset + 1} to {self.next_offset}" if self.items else "0"
        all_of = ", and there are more" if self.total is None else f" of {self.total}"
        return (f"These are {items} {given}{all_of}. Go on with offset={self.next_offset}.",)

    def nothing(self, words: str) -> str:
        """Return `words` if there are no items at all, or "" if there are some, even if none is on this page."""
        return "" if self.items or self.total else words

    def of_many(self, skipped: int) -> "Page[ItemT]":
        """Return the page with offsets in a longer list, of which the first `skipped` items were not read."""
        next_offset = self.next_offset + skipped if self.next_offset else 0
        return replace(self, offset=self.offset + skipped, next_offset=next_offset, total=None)


def page_of(
    items: Sequence[ItemT], size: Callable[[ItemT], int], *, offset: int, limit: int, budget: int
) -> Page[ItemT]:
    """Return the page of items from `offset` on: at most `limit` (0: any number), of a total size of at most `budget`.

    A page has at least one item, even one larger than the budget; beyond the end, it is empty and the last.
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
    """Return a page's text cut to `budget` characters, and the note that says so if it had to be cut."""
    if len(text) <= budget:
        return text, ()
    return text[:budget], (f"The last line is cut: {len(text) - budget} more characters do not fit.",)
