"""Take a picture of each screen of the review page for docs/web.md: `python -m tests.screenshots` writes docs/web/.

Each is taken at 390, 820 and 1,440 pixels, light and dark, from a real server of a project in which agents have worked;
one file has all six.
"""

import io
import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PIL import Image

from tests.support.hooked_agents import ClaudeCode
from tests.support.review_browser import ReviewPage, browser
from tests.support.review_project import agents_worked, changed_outside, new_project
from tests.support.review_server import ReviewServer, review_server
from tests.support.review_tour import SCREENS

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "web"
SIZES: Final = {390: 844, 820: 1100, 1440: 900}
LOOKS: Final = ("light", "dark")
COLOURS: Final = 128
"""Colours of a picture: a page has few, and a file is then half as large. With 64, red became brown."""
APART: Final = 24
"""Pixels between two pictures."""
SETTLING: Final = 300
"""Milliseconds until colours and images have arrived."""
ALONE: Final = "changes"
"""The screen that README shows, in the first of `LOOKS` at the widest size."""


def taken(chromium: "Browser", server: ReviewServer, names: Sequence[str]) -> dict[str, list[Image.Image]]:
    """Return the pictures of the named screens: of each the light ones, then the dark ones, the widest first."""
    found: dict[str, list[Image.Image]] = {name: [] for name in names}
    for look, (width, height) in product(LOOKS, sorted(SIZES.items(), reverse=True)):
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if look == "dark" else "light",
            reduced_motion="reduce",
        )
        review = ReviewPage(context.new_page(), server).open()
        for name in names:
            SCREENS[name](review)
            review.page.wait_for_timeout(SETTLING)
            picture = Image.open(io.BytesIO(review.page.screenshot(caret="initial")))
            few = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
            found[name].append(few.convert("RGB"))
            if review.sheet.count():
                review.press("Escape")
            if review.wrong:
                raise AssertionError(f"{name}: {review.wrong}")
        context.close()
    return found


def save(name: str, pictures: Sequence[Image.Image]) -> None:
    """Write the pictures of a screen into one file, and the one that README shows into its own."""
    width = sum(SIZES) + APART * (len(SIZES) - 1)
    row = max(SIZES.values())
    sheet = Image.new("RGB", (width, row * len(LOOKS) + APART), "#888b95")
    for at, picture in enumerate(pictures):
        line, place = divmod(at, len(SIZES))
        left = sum(each.width + APART for each in pictures[:place])
        sheet.paste(picture, (left, line * (row + APART)))
    sheet.save(FOLDER / f"{name}.webp", lossless=True)
    if name == ALONE:
        pictures[0].save(FOLDER / f"{name}-{pictures[0].width}-{LOOKS[0]}.webp", lossless=True)


def main(names: list[str]) -> int:
    """Take the pictures of the named screens, or of all; return 0."""
    wanted = names or list(SCREENS)
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        root = new_project(Path(folder) / "shop")
        agents_worked(root)
        changed_outside(root)
        with review_server(root, settings={"LOGNAME": "you"}) as server:
            found = taken(chromium, server, [name for name in wanted if name != "running"])
            agent = ClaudeCode(root, "third")
            agent.start()
            agent.ask("Run the tests until they are green.")
            agent.tell(agent.another_call(is_shell=True, command="pytest")[0])
            found |= taken(chromium, server, [name for name in wanted if name == "running"])
    for name, pictures in found.items():
        save(name, pictures)
    print(f"{sum(path.stat().st_size for path in FOLDER.iterdir()) / 1e6:.2f} MB in {FOLDER}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
