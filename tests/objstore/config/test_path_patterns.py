"""Patterns of paths mean what they mean in a .gitignore file."""

import pytest

from objstore.config.path_patterns import PathPatterns


@pytest.mark.parametrize(
    ("patterns", "path", "matches"),
    [
        ("docs/**", "docs/a/b.md", True),
        ("docs/**", "docs", False),
        ("docs/**", "src/docs/a", False),
        ("docs/", "src/docs/a", True),
        ("docs/", "docs", False),
        ("docs", "docs", True),
        ("docs", "docs/a", True),
        ("/docs", "src/docs/a", False),
        ("*.md", "a/b/c.md", True),
        ("*.md", "a/b.mdx", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/a/b.py", False),
        ("src/**/test_*.py", "src/test_a.py", True),
        ("src/**/test_*.py", "src/a/b/test_a.py", True),
        ("**/generated/", "a/generated/b", True),
        ("docs/** !docs/api.md", "docs/api.md", False),
        ("docs/** !docs/api.md", "docs/b.md", True),
        ("[ab].txt", "c/b.txt", True),
        ("", "a", False),
    ],
)
def test_patterns_match_as_in_gitignore(patterns: str, path: str, *, matches: bool) -> None:
    assert PathPatterns(patterns.split()).match(path) is matches


@pytest.mark.parametrize("pattern", ["/", "!", "a//b", "../a", "**/**/**/**/**/a"])
def test_a_pattern_that_matches_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="matches no path"):
        PathPatterns([pattern])
