"""Markdown becomes blocks of HTML without scripts or requests."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, strategies as st

from cli.web.rendering.markdown_blocks import markdown_blocks
from tests.support.faulty_disk import WHOLE

ATTRIBUTES = {
    "a": {"href", "title", "target", "rel"},
    "code": {"class"},
    "pre": {"class"},
    "span": {"class", "title"},
    "ol": {"start"},
    "td": {"class"},
    "th": {"class"},
}
TAGS = {
    *("h1", "h2", "h3", "h4", "h5", "h6", "p", "ul", "ol", "li", "blockquote", "hr", "br", "em", "strong", "s"),
    *("a", "code", "pre", "span", "table", "thead", "tbody", "tr", "td", "th"),
}
VOID = {"br", "hr"}
"""Elements that have no end tag."""


class Elements(HTMLParser):
    """Collects the elements of a piece of HTML, which must all be closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)


def checked(text: str) -> Elements:
    """Render a text, and check what must hold for every text."""
    html = "".join(markdown_blocks(text))
    found = Elements(html)
    assert found.open == []
    for tag, attributes in found.found:
        assert tag in TAGS
        assert set(attributes) <= ATTRIBUTES.get(tag, set()), (tag, attributes)
        if "href" in attributes:
            assert re.match(r"(https?://|mailto:|#)", attributes["href"] or "", re.IGNORECASE)
    assert html.replace("\n", "").replace("\t", "").isprintable()
    return found


def test_blocks_are_those_of_the_text() -> None:
    blocks = markdown_blocks("# One\n\ntwo *three*\n\n- a\n- b\n\n| x | y |\n|:-:|--:|\n| 1 | 2 |\n\n---\n")
    assert len(blocks) == 5
    assert blocks[0] == "<h1>One</h1>\n"
    assert blocks[1] == "<p>two <em>three</em></p>\n"
    assert '<th class="center">x</th>' in blocks[3]
    assert '<td class="right">2</td>' in blocks[3]


def test_a_block_of_a_text_with_carriage_returns_is_the_same() -> None:
    assert markdown_blocks("# One\r\n\r\ntwo\r\n") == markdown_blocks("# One\n\ntwo\n")


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "<!-- a --> <?b?> <!DOCTYPE c> <![CDATA[d]]>",
        "<iframe src=http://a></iframe>\n\n<style>*{}</style>",
        '<a href="javascript:alert(1)">x</a>',
        "</div></main></body><script>1</script>",
    ],
)
def test_markup_is_shown_as_text(text: str) -> None:
    found = checked(text)
    assert "<" in found.text
    assert {tag for tag, _ in found.found} <= {"p"}


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "  javascript:alert(1)",
        "java&#10;script:alert(1)",
        "&#106;avascript:alert(1)",
        "vbscript:x",
        "data:text/html,%3Cscript%3Ealert(1)%3C/script%3E",
        "data:image/png;base64,AAAA",
        "file:///etc/passwd",
        "//evil.example/x",
        "/api/queue",
        "docs/page.md",
        "?token=x",
        "http:evil",
    ],
)
def test_other_links_than_to_the_web_are_only_named(address: str) -> None:
    found = checked(f"[name](<{address}>) and [other][r]\n\n[r]: <{address}>\n")
    assert "name and other" in found.text
    assert {tag for tag, _ in found.found} <= {"p", "span"}


@pytest.mark.parametrize("address", ["https://example.org/a?b=c&d=%22", "HTTP://x", "mailto:a@example.org", "#here"])
def test_links_to_the_web_stay(address: str) -> None:
    ((_, attributes),) = [each for each in checked(f"[name]({address} 'a title')").found if each[0] == "a"]
    assert attributes["rel"] == "noopener noreferrer nofollow"


def test_autolinks_are_links_like_others_and_bare_addresses_are_text() -> None:
    found = checked("<https://example.org> <javascript:alert(1)> https://example.com")
    assert [attributes["href"] for tag, attributes in found.found if tag == "a"] == ["https://example.org"]


def test_images_are_named_and_never_fetched() -> None:
    found = checked('![a "b" <c>](http://evil.example/x.png "t") ![](data:image/svg+xml,<svg/onload=1>)')
    assert {tag for tag, _ in found.found} == {"p", "span"}
    assert 'image: a "b" <c> (http://evil.example/x.png)' in found.text


def test_invisible_characters_are_escaped_however_they_are_written() -> None:
    found = checked("a\u202eb &#x202e; &#8203; \x1b[31m `c\u2066` [t](https://e.org 'x\u202e')")
    assert r"\u202e" in found.text
    assert "\u202e" not in found.text


COLUMNS = 2_000 if WHOLE else 400
"""Width of the largest table: that of `make crash` has more cells than the parser adds to short rows."""


@pytest.mark.parametrize(
    "text",
    [
        ">" * 20_000,
        "> " * 20_000 + "a",
        "- " * 20_000 + "a",
        "1. " * 5_000 + "a",
        "> - " * 5_000 + "a",
        "".join(f"{'  ' * depth}- a\n" for depth in range(300)),
        "[" * 5_000,
        "![" * 3_000 + "](x" * 3_000,
        "*a **b " * 3_000,
        "`" * 20_000,
        "<" * 5_000,
        "&" * 5_000,
        "\\" * 20_000,
        "|a" * COLUMNS + "|\n" + "|-" * COLUMNS + "|\n" + "x\n" * (COLUMNS // 10),
        "[a]: <" * 2_000,
        "~~" * 10_000,
    ],
)
def test_deep_nesting_ends(text: str) -> None:
    checked(text)


@given(st.text(alphabet="ab <>&\"'`*_[]()!#|-\\\n\t:/~0123\u202e\x00\x1b", max_size=200))
def test_no_text_makes_other_elements(text: str) -> None:
    checked(text)
