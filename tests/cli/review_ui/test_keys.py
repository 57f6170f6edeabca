"""One table of keys: what the docs list, what the page does, and what the terminal has more."""

import re
from pathlib import Path

from cli.review_ui.keys import ASKED, KEYS, TERMINAL_KEYS

ROOT = Path(__file__).parents[3]

PAGE_SAYS = {
    "j": "next change", "k": "previous change", "J": "next file", "K": "previous file",
    "a": "accept this change", "x": "reject this change", "X": "say why", "c": "comment",
    "s": "split", "e": "single edits", ".": "seen", "u": "undo", "U": "redo",
    "t": "whole turn", "f": "whole file", "/": "search", "?": "keys", "q": "leave",
}  # fmt: skip
"""A word of what each key does on the page."""


def test_the_page_has_the_keys_of_the_terminal() -> None:
    source = (ROOT / "cli/web/static/keys.js").read_text()
    on_page = dict(re.findall(r'key: "([^"]+)", words: "([^"]*)"', source))
    assert PAGE_SAYS.keys() == KEYS.keys()
    assert {key: words for key, words in PAGE_SAYS.items() if words not in on_page.get(key, "").lower()} == {}
    assert not TERMINAL_KEYS.keys() & on_page.keys()


def test_the_docs_of_the_page_list_its_keys() -> None:
    (table,) = re.findall(r"\| key \| what it does \|\n(.*?)\n\n", (ROOT / "docs/web.md").read_text(), re.DOTALL)
    first = "".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE))
    assert set(re.findall(r"`(.+?)`", first)) == {*KEYS, "b", "h", "H", "↓", "↑", "Escape"}


def test_the_docs_list_every_key() -> None:
    page = (ROOT / "docs/review.md").read_text()
    rows = [(key if key.strip() else "Space", meaning) for key, meaning in {**KEYS, **TERMINAL_KEYS}.items()]
    shown = [f"| {key if key == 'Space' else f'`{key}`'} | {meaning} |" for key, meaning in rows]
    assert "\n".join(shown[: len(KEYS)]) in page
    assert "\n".join(shown[len(KEYS) :]) in page


def test_a_question_names_keys_that_exist() -> None:
    assert set(ASKED.split(",")) < set(KEYS)
