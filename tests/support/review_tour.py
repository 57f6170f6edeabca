"""Steps that lead to each screen of the review page, for pictures and for checks of all screens."""

from collections.abc import Callable
from typing import Final

from tests.support.review_browser import ReviewPage

__all__ = ["SCREENS"]


def shown(review: ReviewPage, document: int, name: str) -> None:
    """Show the changes of a file."""
    review.go(f"#/file/{document}")
    review.head_of(name).wait_for()
    review.current.wait_for()


def queue(review: ReviewPage) -> None:
    """Show the queue."""
    review.go("#/")
    review.page.locator(".queue-list section.turn").first.wait_for()


def changes(review: ReviewPage) -> None:
    """Show the changes of a file."""
    shown(review, 1, "cart.py")
    review.page.locator(".code .k").first.wait_for()


def comment(review: ReviewPage) -> None:
    """Show the dialog for a comment."""
    changes(review)
    review.page.get_by_role("button", name="Line 30", exact=True).click()
    review.press("c")
    review.sheet.get_by_role("textbox").fill("Is 85 % what marketing wants?\nI thought of 90 %.")


def edits(review: ReviewPage) -> None:
    """Show the single edits that make a change."""
    changes(review)
    review.page.get_by_role("button", name="Lines 34\u201335", exact=True).click()
    review.press("e")
    review.sheet.get_by_role("button", name="Accept 1:2").wait_for()


def split(review: ReviewPage) -> None:
    """Show the dialog that splits a hunk."""
    changes(review)
    review.page.get_by_role("button", name="Lines 44\u201347", exact=True).click()
    review.press("s")
    review.sheet.get_by_role("checkbox").first.check()


def conflict(review: ReviewPage) -> None:
    """Show the conflict of a rejection."""
    changes(review)
    review.page.get_by_role("button", name="Lines 34\u201335", exact=True).click()
    review.press("e")
    review.sheet.get_by_role("button", name="Reject 1:2").click()
    review.sheet.get_by_role("radio", name="Leave it").wait_for()


def outside(review: ReviewPage) -> None:
    """Show the question about a change outside."""
    shown(review, 3, "test_cart.py")
    review.press("x")
    review.sheet.get_by_role("button", name="Keep the changes").wait_for()


def running(review: ReviewPage) -> None:
    """Show the question about a running call."""
    shown(review, 6, "limits.ini")
    review.press("x")
    review.sheet.get_by_role("button", name="Wait for the end").wait_for()


def whole(review: ReviewPage) -> None:
    """Show the question about a whole turn."""
    shown(review, 7, "README.md")
    review.press("t")
    review.sheet.get_by_role("button", name="Accept 8 changes").wait_for()


def unshown(review: ReviewPage) -> None:
    """Show what a decision on a whole turn would cover that was not on the screen."""
    review.page.reload()  # nothing was shown yet
    whole(review)
    review.press("x")
    review.sheet.get_by_text("Here they are").wait_for()


def blame(review: ReviewPage) -> None:
    """Show the blame of a file."""
    review.go("#/blame/shop/cart.py?line=34")
    review.page.locator(".r.asked").wait_for()


def timeline(review: ReviewPage) -> None:
    """Show the history of a file."""
    review.go("#/timeline/shop/cart.py")
    review.page.get_by_role("button", name="Earlier").click()
    review.page.locator(".then .r").first.wait_for()


def store(review: ReviewPage) -> None:
    """Show the store."""
    review.go("#/store")
    review.page.locator(".figure img").first.wait_for()


def search(review: ReviewPage) -> None:
    """Show the results of a search."""
    review.go("#/search?q=saved&in=text")
    review.page.locator(".hits .r").first.wait_for()


def rendered(review: ReviewPage) -> None:
    """Show a rendered document."""
    shown(review, 7, "README.md")
    review.page.get_by_label("More to do with this file").click()
    review.page.get_by_role("button", name="Show it rendered").click()
    review.page.frame_locator("iframe").locator("h2:visible, h1:visible, p:visible").first.wait_for()


def image(review: ReviewPage) -> None:
    """Show an image before and after."""
    shown(review, 8, "logo.png")
    review.page.locator(".images img").nth(1).wait_for()


def keys(review: ReviewPage) -> None:
    """Show all keys."""
    queue(review)
    review.press("?")
    review.sheet.wait_for()


def done(review: ReviewPage) -> None:
    """Show what is decided, and what is left."""
    review.go("#/done")
    review.page.locator(".done-page h1").wait_for()


SCREENS: Final[dict[str, Callable[[ReviewPage], None]]] = {
    "queue": queue,
    "changes": changes,
    "comment": comment,
    "edits": edits,
    "split": split,
    "conflict": conflict,
    "outside": outside,
    "running": running,
    "whole": whole,
    "unshown": unshown,
    "rendered": rendered,
    "image": image,
    "blame": blame,
    "timeline": timeline,
    "search": search,
    "store": store,
    "keys": keys,
    "done": done,
}
"""By name. "running" shows a sheet only while an agent's call is open."""
