"""One press decides once, and on what was on the screen when it began: double clicks, held keys, two tabs at once."""

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from objstore import Workspace
from tests.cli.web.browser.conftest import Opener
from tests.cli.web.browser.test_shown import WITNESS, decided, pending_changes, worked
from tests.support.faulty_disk import WHOLE
from tests.support.hooked_agents import ClaudeCode
from tests.support.review_browser import ReviewPage, expect, needs_browser
from tests.support.review_server import ReviewServer

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Route

pytestmark = needs_browser

ACCEPT: Final = re.compile("^(Accept|Reject)(?! with)")


@pytest.fixture
def review(project: Path, serve: Callable[..., ReviewServer], opened: Opener) -> ReviewPage:
    """Return the page of a project in which agents have worked."""
    review = opened(serve(project))
    review.current.wait_for()
    return review


def decisions(root: Path) -> int:
    """Return how many decisions were made, undone ones included."""
    with Workspace.open(root) as workspace:
        return workspace.history.end().next_decision - 1


def in_bar(review: ReviewPage, name: str) -> "Locator":
    """Return a button of the bar of the current change."""
    return review.page.locator(".change-bar").get_by_role("button", name=name, exact=True)


def hold(review: ReviewPage, key: str, times: int = 4) -> None:
    """Hold a key until it has been sent so many times."""
    for _ in range(times):
        review.page.keyboard.down(key)
        review.settle()
    review.page.keyboard.up(key)


def test_a_double_click_decides_once(review: ReviewPage, project: Path) -> None:
    in_bar(review, "Accept").dblclick()
    expect(review.progress).to_have_text("1 of 14 changes decided")
    review.settle()
    in_bar(review, "Accept").click(click_count=3)
    expect(review.progress).to_have_text("2 of 14 changes decided")
    review.settle()
    assert decisions(project) == 2
    review.page.get_by_role("button", name="Undo").dblclick()
    expect(review.progress).to_have_text("1 of 14 changes decided")
    review.settle()
    assert decisions(project) == 3
    review.file("shop/cart.py")
    in_bar(review, "Next change").dblclick()  # it only moves
    expect(review.page.locator(".change-bar")).to_contain_text("Change 3 of")


def test_a_held_key_decides_once_and_moves_on_and_on(review: ReviewPage, project: Path) -> None:
    review.file("shop/cart.py")
    hold(review, "j", 3)
    expect(review.page.locator(".change-bar")).to_contain_text("Change 4 of")
    hold(review, "a")
    expect(review.progress).to_have_text("1 of 14 changes decided")
    review.press("a")
    expect(review.progress).to_have_text("2 of 14 changes decided")
    hold(review, "u")
    expect(review.progress).to_have_text("1 of 14 changes decided")
    in_bar(review, "Accept").focus()
    hold(review, "Enter")
    expect(review.progress).to_have_text("2 of 14 changes decided")
    assert decisions(project) == 4


def test_a_key_right_after_the_button_of_a_dialog_decides_nothing_more(review: ReviewPage, project: Path) -> None:
    def late(route: "Route") -> None:
        review.page.wait_for_timeout(300)
        route.continue_()

    review.page.route("**/api/decide", late)
    review.file("README.md", turn=2)
    review.press("f")
    review.sheet.get_by_role("button", name="Accept 2 changes").click(no_wait_after=True)
    review.press("a")
    expect(review.progress).to_have_text("2 of 14 changes decided")
    for key in "faa":
        review.press(key)
    expect(review.progress).to_have_text("3 of 14 changes decided")
    review.settle()
    assert decisions(project) == 2
    review.press("a")
    expect(review.progress).to_have_text("4 of 14 changes decided")


def test_enter_and_a_click_on_one_button_decide_once(review: ReviewPage, project: Path) -> None:
    review.file("README.md", turn=2)
    review.press("f")
    button = review.sheet.get_by_role("button", name="Reject 2 changes")
    box = review.box(button)
    button.focus()
    review.press("Enter")
    review.page.mouse.click(box["x"] + 5, box["y"] + 5)
    expect(review.progress).to_have_text("2 of 14 changes decided")
    review.settle()
    assert decisions(project) == 1


def test_a_press_on_another_button_during_a_decision_is_said_to_have_done_nothing(
    review: ReviewPage, project: Path
) -> None:
    held: list[Route] = []

    def hold_back(route: "Route") -> None:
        held.append(route)

    review.page.route("**/api/decide", hold_back)
    review.file("shop/cart.py")
    third = review.heads.nth(2).get_by_role("button", name="Accept")
    in_bar(review, "Accept").click()
    third.click()
    expect(review.failure).to_have_text("Nothing was done: the decision before is still being made.")
    held[0].continue_()
    expect(review.progress).to_have_text("1 of 14 changes decided")
    expect(review.failure).to_contain_text("Accepted 1 change in cart.py. What you pressed meanwhile did nothing.")
    expect(review.page.get_by_role("button", name="Undo")).to_be_visible()
    assert len(held) == decisions(project) == 1
    review.page.unroute_all()
    third.click()
    expect(review.progress).to_have_text("2 of 14 changes decided")
    expect(review.failure).to_have_count(0)
    # The same request is what a double press sends, by a key and the button.
    review.page.route("**/api/decide", hold_back)
    review.heads.nth(1).click()
    for _ in range(2):
        in_bar(review, "Reject").click()
    held[1].continue_()
    expect(review.progress).to_have_text("3 of 14 changes decided")
    expect(review.failure).to_have_count(0)
    assert len(held) == 2
    assert decisions(project) == 3


def test_a_press_that_began_before_the_change_was_replaced_decides_nothing(
    review: ReviewPage, project: Path, opened: Opener
) -> None:
    review.file("README.md")
    other = opened(review.server)
    other.file("README.md")
    box = review.box(in_bar(review, "Accept"))
    review.page.mouse.move(box["x"] + 5, box["y"] + 5)
    review.page.mouse.down()
    other.press("x")
    expect(review.current).to_contain_text("Lines 11")
    expect(review.said).to_contain_text("was decided or taken back meanwhile")
    review.page.mouse.up()
    review.settle()
    assert decisions(project) == 1
    in_bar(review, "Accept").click()
    expect(review.progress).to_have_text("2 of 14 changes decided")


def test_a_button_pressed_while_the_page_is_refreshed_is_not_lost(review: ReviewPage, project: Path) -> None:
    review.file("shop/cart.py")
    button = review.heads.nth(2).get_by_role("button", name="Accept")
    box = review.box(button)
    review.page.mouse.move(box["x"] + 5, box["y"] + 5)
    review.page.mouse.down()
    agent = ClaudeCode(project, "third")
    agent.start()
    agent.ask("More")
    agent.write("another.txt", "new\n")
    expect(review.page.locator(".queue")).to_contain_text("another.txt")
    review.page.mouse.up()
    expect(review.progress).to_have_text("1 of 15 changes decided")


def tap(review: ReviewPage, rng: random.Random) -> str:
    """Press something twice in a moment, or hold it.

    A key and a click are two presses if the first one's answer is on the screen before the second one begins.
    """
    page = review.page
    place = review.sheet if review.sheet.count() else page.locator(".change-bar")
    buttons = place.get_by_role("button", name=ACCEPT, disabled=False)
    way = rng.choice(["double", "triple", "held", "enter", "both", "key and click"])
    key = rng.choice("ax")
    # Handles, because the other tab's decision may take the buttons away at any moment.
    handles = buttons.element_handles()
    box = rng.choice(handles).bounding_box() if handles else None
    match way:
        case "double" | "triple" if box is not None:
            count = 2 if way == "double" else 3
            page.mouse.click(box["x"] + 5, box["y"] + 5, click_count=count, delay=rng.choice([0, 30, 120]))
        case "enter" | "both" if box is not None:
            handles[0].evaluate("button => button.focus()")
            page.keyboard.down("Enter")
            if way == "enter":
                page.keyboard.down("Enter")
            page.keyboard.up("Enter")
            if way == "both":
                page.mouse.click(box["x"] + 5, box["y"] + 5)
                return "both, perhaps two"
        case "key and click" if box is not None:
            page.keyboard.press(key)
            page.mouse.click(box["x"] + 5, box["y"] + 5)
            return "key and click, perhaps two"
        case _:
            for _ in range(3):
                page.keyboard.down(key)
                page.wait_for_timeout(rng.choice([0, 30]))
            page.keyboard.up(key)
    return way


@pytest.mark.parametrize("seed", range(20 if WHOLE else 1))
def test_random_presses_of_two_tabs_decide_once_each_and_only_what_was_shown(
    tmp_path: Path, serve: Callable[..., ReviewServer], opened: Opener, seed: int
) -> None:
    rng = random.Random(seed)
    root = tmp_path / "work"
    worked(root, rng)
    server = serve(root)
    tabs = [opened(server), opened(server)]
    for tab in tabs:
        tab.page.add_init_script(WITNESS)
        tab.page.reload()
        tab.current.wait_for()
    agent = ClaudeCode(root, "three")
    agent.start()
    agent.ask("Meanwhile")
    made: list[str] = []
    for step in range(20 if WHOLE else 7):
        before, count = pending_changes(root), decisions(root)
        used = rng.choice([tabs, tabs[:1], tabs[1:]])
        if rng.random() < 0.3:
            name = rng.choice("abcd")
            agent.write(name, f"w{100_000 + step}q\n" + (root / name).read_text())
            before |= pending_changes(root)
        made.append(" | ".join(tap(tab, rng) for tab in used))
        for tab in used:
            tab.settle()
        most = sum(2 if "two" in each else 1 for each in made[-1].split(" | "))
        assert decisions(root) - count <= most, (seed, made)
        shown = {word for tab in tabs for word in tab.page.evaluate("witnessed()")}
        for words in decided(root, before).values():
            assert set(words) <= shown, (seed, made, sorted(set(words) - shown)[:5])
        for tab in tabs:
            if tab.sheet.count() and rng.random() < 0.5:
                tab.press("Escape")
