"""What is shown is what is decided: whatever a reader presses, each line of a decided change was on the screen."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from objstore import Status, Workspace
from tests.cli.web.browser.conftest import Opener
from tests.support.command_runner import cas
from tests.support.faulty_disk import WHOLE
from tests.support.hooked_agents import ClaudeCode
from tests.support.review_browser import ReviewPage, expect, needs_browser
from tests.support.review_project import done
from tests.support.review_server import ReviewServer

pytestmark = needs_browser

TOKEN = re.compile(r"w\d+q")

WITNESS = """
const seen = new Set();
globalThis.witnessed = () => [...seen];
const look = () => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const words = texts.currentNode.data.match(/w\\d+q/g)?.filter((word) => !seen.has(word));
    if (words?.length && texts.currentNode.parentElement.checkVisibility({ visibilityProperty: true })) {
      for (const word of words) seen.add(word);
    }
  }
};
addEventListener("DOMContentLoaded", () => {
  const what = { subtree: true, childList: true, attributes: true, characterData: true };
  new MutationObserver(look).observe(document.body, what);
});
"""
"""A script that notes every word of the shape `w1q` that was in the document and visible."""

KEYS = "jjjkJKaaxx.uUtfesX"
ENDS = re.compile("Close|Leave|Cancel")
VERDICTS = re.compile("^(Accept|Reject|Mark)(?!.*(reason|why))", re.IGNORECASE)


class Words:
    """Words that occur once each, so that a word identifies its line."""

    def __init__(self) -> None:
        self.number = 0

    def line(self, length: int = 0) -> str:
        """Return a line with two new words, the second one at its end."""
        self.number += 2
        return f"w{self.number}q {'x' * length} w{self.number + 1}q\n"


def change(lines: list[str], rng: random.Random, words: Words) -> None:
    """Change lines of a file at a place."""
    at = rng.randrange(len(lines))
    match rng.randrange(6):
        case 0:
            lines[at : at + rng.randint(1, 3)] = [words.line() for _ in range(rng.randint(0, 3))]
        case 1:
            lines[at:at] = [words.line() for _ in range(rng.choice([1, 2, 500]))]
        case 2:
            del lines[at : at + 2]
        case 3:
            lines[at] = lines[at].replace(" ", "   ", 1)  # only white space
        case 4:
            lines[at] = words.line(3_000)
        case _:
            lines[at] = words.line()


def worked(root: Path, rng: random.Random) -> None:
    """Make a workspace in which two agents have changed some files, here and there the same lines.

    They have also created, moved and deleted files, and a person has decided on some of that.
    """
    root.mkdir()
    words = Words()
    for name in "abcd":
        (root / name).write_text("".join(words.line() for _ in range(30)))
    done(root, "init")
    done(root, "record")
    agents = [ClaudeCode(root, name) for name in ("one", "two")]
    for agent in agents:
        agent.start()
    for turn in range(5):
        agent = rng.choice(agents)
        agent.ask(f"prompt {turn}")
        for name in rng.sample("abcd", 2):
            lines = (root / name).read_text().splitlines(keepends=True)
            for _ in range(rng.randint(1, 4)):
                change(lines, rng, words)
            agent.write(name, "".join(lines))
        agent.write(f"new{turn}", "".join(words.line() for _ in range(3)))
        if turn == 1 and (root / "new0").exists():
            agent.run(rng.choice(["mv new0 moved0", "rm new0", "mv new0 moved0 && echo more >> moved0"]))
        agent.stop()
        if turn in {0, 2}:
            pending = [*pending_changes(root).values()]
            cas(rng.choice(["accept", "reject"]), rng.choice(pending)[0].split()[0], folder=root)  # unless it conflicts


def decided(root: Path, before: dict[bytes, tuple[str, list[str]]]) -> dict[bytes, list[str]]:
    """Return the words of the changes that were decided, or are seen now, and are wholly or partly as before."""
    with Workspace.open(root) as workspace:
        seen = workspace.review.seen_changes()
        pending = {change.key for file in workspace.review.changes() for change in file.changes}
        found: dict[bytes, list[str]] = {}
        for key, (units, words) in before.items():
            statuses = set()
            for unit in units.split():
                seq, hunk = map(int, unit.split(":"))
                statuses.add(workspace.history.edit(seq).units[hunk])
            if key in seen or (key not in pending and statuses != {Status.PENDING}):
                found[key] = words
        return found


def pending_changes(root: Path) -> dict[bytes, tuple[str, list[str]]]:
    """Return the units and words of each pending change, by key."""
    with Workspace.open(root) as workspace:
        return {
            change.key: (
                " ".join(map(str, change.units)),
                TOKEN.findall((change.removed + change.inserted).decode()),
            )
            for file in workspace.review.changes()
            for change in file.changes
        }


def press(review: ReviewPage, rng: random.Random) -> str:
    """Press a key or a button that the page offers, at random; return which."""
    page = review.page
    if review.sheet.count():
        buttons = review.sheet.get_by_role("button", disabled=False)
        names = [each.inner_text() for each in buttons.all()]
        at = rng.choice([at for at, name in enumerate(names) if not ENDS.search(name)] or range(len(names)))
        buttons.nth(at).click()
        return f"dialog: {names[at]}"
    buttons = page.get_by_role("button", name=VERDICTS, disabled=False).locator("visible=true")
    if rng.random() < 0.3 and buttons.count():
        button = buttons.nth(rng.randrange(buttons.count()))
        name = button.inner_text()
        button.click()
        return f"button: {name}"
    key = rng.choice(KEYS)
    page.keyboard.press(key)
    return f"key: {key}"


@pytest.mark.parametrize("seed", range(20 if WHOLE else 2))
def test_each_line_of_each_decided_change_was_on_the_screen(
    tmp_path: Path, serve: Callable[..., ReviewServer], opened: Opener, seed: int
) -> None:
    rng = random.Random(seed)
    root = tmp_path / "work"
    worked(root, rng)
    review = opened(serve(root))
    review.page.add_init_script(WITNESS)
    review.page.reload()
    review.page.get_by_role("link", name=re.compile("^[a-d]")).first.click()
    review.current.wait_for()
    made: list[str] = []
    for _ in range(40 if WHOLE else 12):
        before = pending_changes(root)
        made.append(press(review, rng))
        review.settle()
        found = decided(root, before)
        # Asked for after that: a key that was kept may show and decide a change meanwhile.
        shown = set(review.page.evaluate("witnessed()"))
        for words in found.values():
            assert set(words) <= shown, (seed, made, sorted(set(words) - shown)[:5])
    assert made


def test_a_decision_on_a_turn_shows_first_what_was_not_on_the_screen(
    project: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    review = opened(serve(project))
    review.file("README.md", turn=2)
    review.press("t")
    review.sheet.get_by_role("button", name="Accept").click()
    expect(review.sheet).to_contain_text("not on the screen, so nothing was decided")
    expect(review.sheet).to_contain_text("price=9000")
    assert review.server.queue()["undo"] == 0
    review.sheet.get_by_role("button", name="Accept").click()
    expect(review.said).to_contain_text("Accepted")


def test_a_decision_on_a_change_of_many_rows_shows_first_those_that_were_not_drawn(
    tmp_path: Path, serve: Callable[..., ReviewServer], opened: Opener
) -> None:
    root = tmp_path / "large"
    root.mkdir()
    done(root, "init")
    agent = ClaudeCode(root, "one")
    agent.start()
    agent.ask("Write much")
    agent.write("a.txt", "".join(f"line {number}\n" for number in range(8_000)) + "x" * 250_000 + "end\n")
    agent.stop()
    review = opened(serve(root))
    review.file("a.txt")
    review.press("x")
    expect(review.sheet).to_contain_text("not on the screen, so nothing was decided")
    expect(review.sheet).to_contain_text("xxxend")
    assert (root / "a.txt").exists()
    review.sheet.get_by_role("button", name="Reject").click()
    expect(review.said).to_contain_text("Rejected")
    assert not (root / "a.txt").exists()
