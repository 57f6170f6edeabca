"""What docs/comparison.md says is what the tests of the stories show."""

import sys

from tests.comparison.stories import CLAUDE_CODE, PAGE, STORIES, TRIED, with_table


def test_the_page_has_the_words_of_the_stories() -> None:
    page = PAGE.read_text()
    assert with_table(page) == page, "`python -m tests.comparison.stories` writes the table again"


def test_each_story_that_the_page_calls_tried_has_a_test() -> None:
    for module, cells in TRIED.values():
        tests = {name for name in vars(sys.modules[module]) if name.startswith("test_")}
        assert tests == {f"test_{story}" for story in cells}
        assert set(cells) <= set(STORIES)
    assert set(CLAUDE_CODE) == set(STORIES)
