"""Take a picture of each screen of the review page for docs/web.md: `python -m tests.screenshots` writes docs/web/.

Each is taken at 390 and 1,440 pixels, light and dark, from a real server of a project in which agents have worked.
"""

import io
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PIL import Image

from tests.support.hooked_agents import ClaudeCode
from tests.support.review_browser import ReviewPage, browser
from tests.support.review_project import agents_worked, changed_outside, new_project
from tests.support.review_server import ReviewServer, review_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "web"
SIZES: Final = {390: 844, 1440: 900}
COLOURS: Final = 64
"""Colours of a picture: a page has few, and a picture of it is then a quarter as large."""
SETTLING: Final = 300
"""Milliseconds until colours and images have arrived."""


def queue(review: ReviewPage) -> None:
    """Show the queue."""
    review.go("#/")
    review.page.locator("section.turn").first.wait_for()


def changes(review: ReviewPage) -> None:
    """Show the changes of a file."""
    review.go("#/file/1")
    review.current.wait_for()
    review.page.locator(".keyword").first.wait_for()


def comment(review: ReviewPage) -> None:
    """Show how a comment is written."""
    changes(review)
    review.page.get_by_role("button", name="Line 30", exact=True).click()
    review.press("c")
    review.sheet.get_by_role("textbox").fill("Is 85 % what marketing wants?\nI thought of 90 %.")


def edits(review: ReviewPage) -> None:
    """Show the single edits behind a change."""
    changes(review)
    review.page.get_by_role("button", name="Line 34", exact=True).click()
    review.press("e")
    review.sheet.get_by_role("button", name="Accept 1:2").wait_for()


def split(review: ReviewPage) -> None:
    """Show how a hunk is split."""
    changes(review)
    review.page.get_by_role("button", name="Line 44", exact=True).click()
    review.press("s")
    review.sheet.get_by_role("button", name="Take this part out").first.wait_for()


def conflict(review: ReviewPage) -> None:
    """Show what else needs what is rejected."""
    changes(review)
    review.page.get_by_role("button", name="Line 34", exact=True).click()
    review.press("e")
    review.sheet.get_by_role("button", name="Reject 1:2").click()
    review.sheet.get_by_role("button", name="Leave it").wait_for()


def outside(review: ReviewPage) -> None:
    """Show a change outside that is in the way."""
    review.go("#/file/3")
    review.current.wait_for()
    review.press("x")
    review.sheet.get_by_role("button", name="Keep the changes").wait_for()


def running(review: ReviewPage) -> None:
    """Show that an agent is at work on what is rejected."""
    review.go("#/file/6")
    review.current.wait_for()
    review.press("x")
    review.sheet.get_by_role("button", name="Wait for the end").wait_for()


def blame(review: ReviewPage) -> None:
    """Show the prompt behind each line."""
    review.go("#/blame/shop/cart.py?line=34")
    review.page.locator(".row.asked").wait_for()


def timeline(review: ReviewPage) -> None:
    """Show the history of a file."""
    review.go("#/timeline/shop/cart.py")
    review.page.get_by_role("button", name="Earlier").click()
    review.page.locator(".pad .row").first.wait_for()


def store(review: ReviewPage) -> None:
    """Show the store."""
    review.go("#/store")
    review.page.locator(".plot img").first.wait_for()


def search(review: ReviewPage) -> None:
    """Show what a search found."""
    review.go("#/search?q=saved&in=text")
    review.page.locator(".hits .row").first.wait_for()


def rendered(review: ReviewPage) -> None:
    """Show a document as it is read."""
    review.go("#/file/7")
    review.page.get_by_role("button", name="Rendered").click()
    review.page.frame_locator("iframe").locator("h2:visible, h1:visible, p:visible").first.wait_for()


def image(review: ReviewPage) -> None:
    """Show an image before and after."""
    review.go("#/file/8")
    review.page.locator(".images img").nth(1).wait_for()


def keys(review: ReviewPage) -> None:
    """Show all keys."""
    queue(review)
    review.press("?")
    review.sheet.wait_for()


SCREENS: Final[dict[str, Callable[[ReviewPage], None]]] = {
    "queue": queue,
    "changes": changes,
    "comment": comment,
    "edits": edits,
    "split": split,
    "conflict": conflict,
    "outside": outside,
    "running": running,
    "rendered": rendered,
    "image": image,
    "blame": blame,
    "timeline": timeline,
    "search": search,
    "store": store,
    "keys": keys,
}


def take(chromium: "Browser", server: ReviewServer, names: Sequence[str]) -> None:
    """Take the pictures of the named screens, in each size and scheme."""
    for width, height in SIZES.items():
        for scheme in ("light", "dark"):
            context = chromium.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if scheme == "dark" else "light",
                reduced_motion="reduce",
            )
            review = ReviewPage(context.new_page(), server).open()
            for name in names:
                SCREENS[name](review)
                review.page.wait_for_timeout(SETTLING)
                picture = Image.open(io.BytesIO(review.page.screenshot(caret="initial")))
                few = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
                few.save(FOLDER / f"{name}-{width}-{scheme}.png", optimize=True)
                if review.sheet.count():
                    review.press("Escape")
                if review.wrong:
                    raise AssertionError(f"{name}: {review.wrong}")
            context.close()


def main(names: list[str]) -> int:
    """Take the pictures of the named screens, or of all; return 0."""
    wanted = names or list(SCREENS)
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        root = new_project(Path(folder) / "shop")
        agents_worked(root)
        changed_outside(root)
        with review_server(root, settings={"LOGNAME": "you"}) as server:
            take(chromium, server, [name for name in wanted if name != "running"])
            agent = ClaudeCode(root, "third")
            agent.start()
            agent.ask("Run the tests until they are green.")
            agent.tell(agent.another_call(is_shell=True, command="pytest")[0])
            take(chromium, server, [name for name in wanted if name == "running"])
    print(f"{sum(path.stat().st_size for path in FOLDER.iterdir()) / 1e6:.2f} MB in {FOLDER}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
