"""Both texts are shown side by side, rendered in a process with a time limit."""

import hashlib
import re
from base64 import b64encode
from pathlib import Path

import pytest

from cli.web.rendering.render_process import MOST_BYTES, Renderer
from cli.web.rendering.rendered_page import POLICY, rendered_page


def rows(page: str) -> list[str]:
    """Return the rows of a page in order: `=` for the same on both sides, `-`, `+` or `-+` for changes."""
    found = []
    for row in re.findall(
        r'<div class="row ?(same)?"[^>]*>(.*?)(?=<div class="row|<details|</details|</main)', page, re.DOTALL
    ):
        signs = ("-" if '"side old"' in row[1] else "") + ("+" if '"side new"' in row[1] else "")
        found.append("=" if row[0] else signs)
    return found


def test_blocks_that_differ_are_marked_on_their_sides() -> None:
    page = rendered_page("a.md", "markdown", "# A\n\none\n\ntwo\n\nthree\n", "# A\n\none!\n\nthree\n\nfour\n")
    assert rows(page) == ["=", "-+", "-", "=", "+"]
    assert "3 blocks differ." in page
    assert page.count('role="group" aria-label="Change 1 of 2"') == 2


@pytest.mark.parametrize(("before", "after", "expected"), [(None, "a\n", ["+"]), ("a\n", None, ["-"]), ("", "", [])])
def test_files_that_come_and_go_have_one_side(before: str | None, after: str | None, expected: list[str]) -> None:
    assert rows(rendered_page("a.md", "markdown", before, after)) == expected


def test_what_renders_alike_says_so() -> None:
    page = rendered_page("a.md", "markdown", "a  b\n\n\n\nc\n", "a  b\n\nc\n")
    assert "Nothing differs as it is rendered" in page


def test_a_changed_reference_changes_the_block_that_uses_it() -> None:
    page = rendered_page("a.md", "markdown", "[x]\n\n[x]: https://a\n", "[x]\n\n[x]: https://b\n")
    assert rows(page) == ["-+"]


def test_many_blocks_without_a_change_are_folded() -> None:
    same = "".join(f"block {number}\n\n" for number in range(40))
    page = rendered_page("a.md", "markdown", f"{same}old\n\n{same}", f"{same}new\n\n{same}")
    assert page.count("<details>") == page.count("</details>") == 2
    assert page.count("38 without a change") == 2
    assert rows(page) == ["="] * 40 + ["-+"] + ["="] * 40


def test_the_policy_names_the_styles_of_the_page_and_nothing_else() -> None:
    page = rendered_page("<b>\u202e\udcff.md", "markdown", "a", "b")
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in POLICY
    assert "default-src 'none'" in POLICY
    assert "; sandbox;" in POLICY
    assert not re.search(r" style=|<script|<link|<img|\bsrc=|url\(", page)
    assert r"<title>&lt;b&gt;\u202e\xff.md, rendered</title>" in page


def test_a_process_renders_the_same() -> None:
    found = Renderer().rendered("a.md", "markdown", b"# A\n", b"# B\n\n\xff \xed\xa0\x80\n")
    assert rows(found) == ["-+", "+"]
    assert "\N{REPLACEMENT CHARACTER}" in found


def test_a_large_text_is_not_rendered() -> None:
    assert "more than 1 MB is not rendered" in Renderer().rendered("a.md", "markdown", b"a", b"b" * (MOST_BYTES + 1))


def test_what_takes_too_long_is_ended() -> None:
    hostile = b"a\n" * (MOST_BYTES // 2)
    assert "took more than 0.01 seconds and was ended" in Renderer().rendered(
        "a.md", "markdown", None, hostile, seconds=0.01
    )


def test_modules_of_the_folder_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("open('ran', 'w').close()\n")
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "__init__.py").write_text("open('ran', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    assert rows(Renderer().rendered("a.md", "markdown", b"a", b"b")) == ["-+"]
    assert not (tmp_path / "ran").exists()
