"""Patterns mean what they mean in a .gitignore file, for files of reviews and for names that scans leave out."""

import pytest
from hypothesis import assume, given, strategies as st

from objstore.disk.config.path_patterns import PathPatterns, escaped


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
    assert PathPatterns(patterns.split()).names_file(path) is matches


@pytest.mark.parametrize("pattern", ["/", "!", "a//b", "../a", "**/**/**/**/**/a"])
def test_a_pattern_that_matches_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="matches no path"):
        PathPatterns([pattern])


@pytest.mark.parametrize(
    ("patterns", "path", "is_left_out"),
    [
        ("*.pem", "a/b.pem", True),
        ("*.pem", "a/B.PEM", True),
        (".ENV", "a/.env", True),
        (".ssh/", ".ssh/known", True),
        (".ssh/", "a/.ssh", False),  # no folder
        ("/conf/app.ini", "conf/app.ini", True),
        ("/conf/app.ini", "a/conf/app.ini", False),
        ("conf/*.ini", "conf/a/app.ini", False),
        ("conf/**/*.ini", "conf/a/app.ini", True),
        ("build/**", "build/a/b", True),
        ("build/**", "build", False),
        ("*.env !test.env", "a/test.env", False),
        ("*.env !test.env", "a/other.env", True),
        (".ssh/ !*.example", ".ssh/a.example", True),  # below a folder that is left out, no exception counts
        ("id_* !*.pub", "id_map.pub", False),
        ("[ab].key", "B.key", True),
        ("", "a", False),
    ],
)
def test_names_are_left_out_in_any_case_and_with_all_below_a_folder(
    patterns: str, path: str, *, is_left_out: bool
) -> None:
    assert PathPatterns(patterns.split()).leaves_out_path(path) is is_left_out


def test_an_exception_below_a_folder_counts_for_files_of_reviews_only() -> None:
    patterns = PathPatterns(["docs/", "!docs/api.md"])
    assert patterns.names_file("docs/a.md")
    assert not patterns.names_file("docs/api.md")
    assert patterns.leaves_out_path("docs/api.md")


def test_case_counts_for_files_of_reviews() -> None:
    assert not PathPatterns(["docs/**"]).names_file("Docs/a.md")


@given(st.text(st.sampled_from("a.*?[]!/-é\n"), min_size=1, max_size=12))
def test_an_escaped_path_matches_exactly_itself(name: str) -> None:
    parts = [part for part in name.split("/") if part not in {"", ".", ".."}]
    assume(parts)
    path = "/".join(parts)
    patterns = PathPatterns([escaped(path)])
    assert patterns.names_file(path)
    assert patterns.leaves_out_path(path)
    assert not patterns.names_file(f"x{path}")
