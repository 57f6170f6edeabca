"""Unified diffs: which are accepted or refused, and which bytes of a file are unchanged."""

import re
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, example, given, reject, strategies as st

from mcptools.edit.patch_parser import InvalidPatch, joined_parts, parse_patch, parse_patches
from mcptools.edit.unified_diff import (
    AmbiguousContext,
    Applied,
    ContextMismatch,
    DiffOutcome,
    FilePatch,
    HunksOverlap,
    PatchHunk,
    apply_patch,
)
from objstore.text.diff import diff_lines
from objstore.text.hunks import Span, hunks_fit, hunks_from_spans
from objstore.text.unified_diff import numbered_diff, quoted_name, unified_diff
from tests.support.call_counts import count_calls

HEAD = "--- a/f\n+++ b/f\n"
ABC = b"a\nb\nc\n"


def apply(content: bytes, hunks: str) -> DiffOutcome:
    return apply_patch(content, parse_patch(HEAD + hunks))


APPLICABLE = {
    "a line replaced": (ABC, "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", b"a\nB\nc\n"),
    "counts of one left out": (b"b\n", "@@ -1 +1 @@\n-b\n+B\n", b"B\n"),
    "a section heading behind the counts": (ABC, "@@ -2 +2 @@ def f():\n-b\n+B\n", b"a\nB\nc\n"),
    "a line deleted": (ABC, "@@ -1,3 +1,2 @@\n a\n-b\n c\n", b"a\nc\n"),
    "a line inserted": (ABC, "@@ -1,2 +1,3 @@\n a\n+x\n b\n", b"a\nx\nb\nc\n"),
    "a line inserted above the first": (ABC, "@@ -1,1 +1,2 @@\n+x\n a\n", b"x\na\nb\nc\n"),
    "a line inserted below the last": (ABC, "@@ -3,1 +3,2 @@\n c\n+d\n", b"a\nb\nc\nd\n"),
    "all lines deleted": (ABC, "@@ -1,3 +0,0 @@\n-a\n-b\n-c\n", b""),
    "lines inserted into an empty file": (b"", "@@ -0,0 +1,2 @@\n+a\n+b\n", b"a\nb\n"),
    "two hunks": (
        b"1\n2\n3\n4\n5\n6\n7\n8\n9\n",
        "@@ -1,2 +1,3 @@\n 1\n+x\n 2\n@@ -8,2 +9,1 @@\n 8\n-9\n",
        b"1\nx\n2\n3\n4\n5\n6\n7\n8\n",
    ),
    "additions above removals": (ABC, "@@ -2,1 +2,2 @@\n+x\n+y\n-b\n", b"a\nx\ny\nc\n"),
    "removed lines that look like headers": (b"-- x\n", "@@ -1 +1 @@\n--- x\n+++ y\n", b"++ y\n"),
    "an empty context line with its space": (b"a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n \n-b\n+B\n", b"a\n\nB\n"),
    "an empty context line without its space": (b"a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+B\n", b"a\n\nB\n"),
    "no newline at the end of the patch": (ABC, "@@ -3,1 +3,2 @@\n c\n+d", b"a\nb\nc\nd\n"),
    "blank lines below the patch": (ABC, "@@ -2 +2 @@\n-b\n+B\n\n\n", b"a\nB\nc\n"),
    "a final newline kept missing": (
        b"a\nb",
        "@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n",
        b"A\nb",
    ),
    "a final newline added": (b"a\nb", "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+b\n", b"a\nb\n"),
    "a final newline removed": (ABC, "@@ -3 +3 @@\n-c\n+c\n\\ No newline at end of file\n", b"a\nb\nc"),
    "a missing newline on both sides": (
        b"a\nb",
        "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n",
        b"a\nc",
    ),
    "a line below one without its newline": (
        b"a\nb",
        "@@ -2 +2,2 @@\n-b\n\\ No newline at end of file\n+b\n+c\n",
        b"a\nb\nc\n",
    ),
    "CRLF in file and patch": (b"a\r\nb\r\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+B\r\n", b"a\r\nB\r\n"),
    "CRLF in every line of the patch": (
        b"a\r\nb\r\n",
        "@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+B\r\n",
        b"a\r\nB\r\n",
    ),
    "CRLF in the file, LF in the patch": (
        b"a\r\nb\r\nc\r\n",
        "@@ -1,3 +1,4 @@\n a\n-b\n+B\n+x\n c\n",
        b"a\r\nB\r\nx\r\nc\r\n",
    ),
    "CRLF in the file, LF inserted above the first line": (
        b"a\r\n",
        "@@ -1 +1,2 @@\n+x\n a\n",
        b"x\r\na\r\n",
    ),
    "CRLF in the file, LF inserted below a last line without an ending": (
        b"a\r\nb",
        "@@ -1,2 +1,3 @@\n a\n-b\n\\ No newline at end of file\n+b\n+c\n",
        b"a\r\nb\r\nc\r\n",
    ),
    "CRLF in the file, LF inserted below a last line without an ending, no context": (
        b"a\r\nb",
        "@@ -2 +2,2 @@\n-b\n\\ No newline at end of file\n+b\n+c\n",
        b"a\r\nb\r\nc\r\n",
    ),
    "CRLF in the file, LF inserted above a last line without an ending": (
        b"a\r\nb",
        "@@ -2 +2,2 @@\n+x\n b\n\\ No newline at end of file\n",
        b"a\r\nx\r\nb",
    ),
    "LF above a last line without an ending, CRLF elsewhere": (
        b"a\r\nb\nc",
        "@@ -3 +3,2 @@\n-c\n\\ No newline at end of file\n+c\n+d\n",
        b"a\r\nb\nc\nd\n",
    ),
    "no line ending in the file": (
        b"a",
        "@@ -1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n",
        b"a\nb\n",
    ),
    "mixed endings, each line's own kept": (
        b"a\nb\r\nc\nd\r\n",
        "@@ -1,4 +1,5 @@\n a\n-b\n-c\n+B\n+C\n+x\n d\n",
        b"a\nB\r\nC\nx\nd\r\n",
    ),
    "CRLF turned into LF on purpose": (b"a\r\nb\r\n", "@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n", b"a\nb\r\n"),
    "LF turned into CRLF on purpose": (b"a\nb\n", "@@ -1,2 +1,2 @@\n-a\n+a\r\n b\n", b"a\r\nb\n"),
    "an LF hunk in a file with CRLF elsewhere": (
        b"a\r\nb\nc\n",
        "@@ -2,2 +2,2 @@\n-b\n+B\n c\n",
        b"a\r\nB\nc\n",
    ),
    "a lone CR inside a line": (b"a\rz\nb\n", "@@ -1,2 +1,2 @@\n a\rz\n-b\n+B\n", b"a\rz\nB\n"),
    "form feed, NEL and line separator are no line ends": (
        "a\f\x85\u2028z\nb\n".encode(),
        "@@ -1,2 +1,2 @@\n a\f\x85\u2028z\n-b\n+B\n",
        "a\f\x85\u2028z\nB\n".encode(),
    ),
    "a byte order mark outside the hunk": (
        b"\xef\xbb\xbfa\nb\n",
        "@@ -2 +2 @@\n-b\n+B\n",
        b"\xef\xbb\xbfa\nB\n",
    ),
    "a byte order mark inside the hunk": (
        b"\xef\xbb\xbfa\nb\n",
        "@@ -1,2 +1,2 @@\n \ufeffa\n-b\n+B\n",
        b"\xef\xbb\xbfa\nB\n",
    ),
    "bytes that are not UTF-8 outside the hunk": (
        b"\xff\xfe\nb\n",
        "@@ -2 +2 @@\n-b\n+B\n",
        b"\xff\xfe\nB\n",
    ),
    "at another line, where the hunk is unique": (
        b"0\n0\na\nb\nc\n",
        "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
        b"0\n0\na\nB\nc\n",
    ),
    "at the stated line, though it fits elsewhere too": (
        b"a\nb\na\nb\n",
        "@@ -3,2 +3,2 @@\n a\n-b\n+B\n",
        b"a\nb\na\nB\n",
    ),
    "CRLF, LF in the patch, at another line": (
        b"0\r\na\r\nb\r\n",
        "@@ -1,2 +1,2 @@\n a\n-b\n+B\n",
        b"0\r\na\r\nB\r\n",
    ),
}


@pytest.mark.parametrize("case", APPLICABLE)
def test_correct_patch_applies(case: str) -> None:
    content, hunks, expected = APPLICABLE[case]
    outcome = apply(content, hunks)
    assert isinstance(outcome, Applied), outcome
    assert outcome.content == expected


@pytest.mark.parametrize(
    ("content", "hunks", "line", "expected", "found"),
    [
        pytest.param(ABC, "@@ -1,3 +1,3 @@\n x\n-b\n+B\n c\n", 1, b"x\n", b"a\n", id="context above"),
        pytest.param(ABC, "@@ -1,3 +1,3 @@\n a\n-b\n+B\n x\n", 3, b"x\n", b"c\n", id="context below"),
        pytest.param(ABC, "@@ -1,3 +1,3 @@\n a\n-x\n+B\n c\n", 2, b"x\n", b"b\n", id="removed line"),
        pytest.param(ABC, "@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n", 4, b"d\n", None, id="beyond the end"),
        pytest.param(b"a b\n", "@@ -1 +1 @@\n-a  b\n+x\n", 1, b"a  b\n", b"a b\n", id="white space counts"),
        pytest.param(b"a\n", "@@ -1 +1 @@\n-a\r\n+x\r\n", 1, b"a\r\n", b"a\n", id="CRLF in the patch only"),
        pytest.param(
            b"a\r\nb\r\n", "@@ -1,2 +1,2 @@\n-a\r\n+A\r\n b\n", 2, b"b\n", b"b\r\n", id="patch with mixed endings"
        ),
        pytest.param(b"a", "@@ -1 +1 @@\n-a\n+x\n", 1, b"a\n", b"a", id="the file has no final newline"),
        pytest.param(
            ABC,
            "@@ -3 +3 @@\n-c\n\\ No newline at end of file\n+x\n",
            3,
            b"c",
            b"c\n",
            id="the file has a final newline",
        ),
        pytest.param(
            ABC,
            "@@ -2 +2 @@\n-b\n+x\n\\ No newline at end of file\n",
            3,
            b"",
            b"c\n",
            id="missing newline before the last line",
        ),
        pytest.param(b"\xef\xbb\xbfa\n", "@@ -1 +1 @@\n-a\n+x\n", 1, b"a\n", b"\xef\xbb\xbfa\n", id="byte order mark"),
        pytest.param(ABC, "@@ -1,2 +1,3 @@\n a\n b\n+x\n", 3, b"", b"c\n", id="lines added below the end of the patch"),
        pytest.param(b"0\na\nb\nc\n", "@@ -1,2 +1,3 @@\n a\n b\n+x\n", 4, b"", b"c\n", id="and the context has moved"),
    ],
)
def test_patch_whose_lines_differ_from_the_file_is_refused(
    content: bytes, hunks: str, line: int, expected: bytes, found: bytes | None
) -> None:
    outcome = apply(content, hunks)
    assert isinstance(outcome, ContextMismatch), outcome
    assert (outcome.line, outcome.expected, outcome.found) == (line, expected, found)


def test_hunk_that_fits_twice_but_not_at_its_stated_line_is_refused() -> None:
    outcome = apply(b"0\na\nb\na\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n")
    assert outcome == AmbiguousContext(hunk=1, places=(2, 4))


def test_stated_lines_are_ignored_after_a_hunk_has_moved() -> None:
    # The first hunk has moved, so the second one fits at its stated line only by coincidence.
    outcome = apply(b"0\n1\na\nx\na\n", "@@ -1 +1 @@\n-1\n+2\n@@ -3 +3 @@\n-a\n+A\n")
    assert outcome == AmbiguousContext(hunk=2, places=(3, 5))


@pytest.mark.parametrize(
    ("content", "hunks", "expected"),
    [
        pytest.param(
            b"2\n1\n", "@@ -5 +5 @@\n-1\n+x\n@@ -7 +7 @@\n-2\n+y\n", b"y\nx\n", id="lines the other way round"
        ),
        pytest.param(ABC, "@@ -1 +1 @@\n-a\n+A\n@@ -1 +1 @@\n-c\n+C\n", b"A\nb\nC\n", id="the same number twice"),
        pytest.param(ABC, "@@ -5 +5 @@\n-a\n+A\n@@ -1 +1 @@\n-c\n+C\n", b"A\nb\nC\n", id="numbers that descend"),
        pytest.param(ABC, "@@ -3 +3 @@\n-c\n+C\n@@ -1 +1 @@\n-a\n+A\n", b"A\nb\nC\n", id="right numbers that descend"),
        pytest.param(
            b"a\nb\nc",
            "@@ -1 +1 @@\n-c\n\\ No newline at end of file\n+C\n@@ -5 +5 @@\n-a\n+A\n",
            b"A\nb\nC\n",
            id="the end of the file first",
        ),
        pytest.param(b"a\nb\na\nb\n", "@@ -9,2 +9,3 @@\n a\n b\n+x\n", b"a\nb\na\nb\nx\n", id="lines added at the end"),
    ],
)
def test_each_hunk_is_placed_by_its_lines_whatever_its_number(content: bytes, hunks: str, expected: bytes) -> None:
    outcome = apply(content, hunks)
    assert isinstance(outcome, Applied), outcome
    assert outcome.content == expected
    patch = parse_patch(HEAD + hunks).at(outcome.moved).reverse
    reverted = apply_patch(expected, patch)
    assert isinstance(reverted, Applied), reverted
    assert reverted.content == content


@pytest.mark.parametrize(
    ("hunks", "overlap"),
    [
        ("@@ -1,2 +1,2 @@\n a\n-b\n+B\n@@ -2,2 +2,2 @@\n b\n-c\n+C\n", HunksOverlap(hunk=2, prior=1, line=2)),
        ("@@ -1,2 +1 @@\n b\n-c\n@@ -3 +2 @@\n-c\n+x\n", HunksOverlap(hunk=2, prior=1, line=3)),
        ("@@ -9,2 +9,2 @@\n b\n-c\n+C\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n", HunksOverlap(hunk=1, prior=2, line=2)),
    ],
)
def test_hunks_that_need_the_same_line_are_refused(hunks: str, overlap: HunksOverlap) -> None:
    assert apply(ABC, hunks) == overlap


@pytest.mark.parametrize("hunk", ["@@ -2,0 +3,1 @@\n+x\n", "@@ -0,0 +1,1 @@\n+x\n"])
def test_hunk_without_old_lines_fits_only_an_empty_file(hunk: str) -> None:
    assert apply(ABC, hunk) == AmbiguousContext(hunk=1, places=())


def test_moved_hunk_is_reported_with_its_offset() -> None:
    outcome = apply(b"0\n0\na\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")
    assert isinstance(outcome, Applied)
    assert outcome.moved == (2,)


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        pytest.param("", "empty", id="empty"),
        pytest.param("\n \n", "empty", id="blank"),
        pytest.param("just text\n", "missing --- header", id="text only"),
        pytest.param("@@ -1 +1 @@\n-a\n+b\n", "missing --- header", id="no headers"),
        pytest.param("+++ b\n@@ -1 +1 @@\n-a\n+b\n", "missing --- header", id="no source header"),
        pytest.param(HEAD, "no hunks", id="headers alone"),
        pytest.param(HEAD + "@@ @@\n-a\n+b\n", "without line numbers", id="no numbers"),
        pytest.param(HEAD + "@@ -1,3 +1,3 @@\n a\n-b\n+c\n", "shorter", id="truncated"),
        pytest.param(HEAD + "@@ -1,1 +1,1 @@\n a\n-b\n+c\n", "beyond the counts", id="more lines than counted"),
        pytest.param(HEAD + "@@ -1 +1 @@\n-b\n+c\n+d\n", "beyond the counts", id="one added line too many"),
        pytest.param(HEAD + "@@ -1,2 +1,2 @@\n-a\n-b\n-c\n+d\n", "longer", id="one removed line too many"),
        pytest.param(HEAD + "@@ -1,2 +1,2 @@\n a\n*b\n+c\n", "line", id="an unknown mark"),
        pytest.param(HEAD + "@@ -1,3 +1,3 @@\n a\n\rx\n-b\n+c\n", "neither context", id="CR instead of a mark"),
        pytest.param(HEAD + "@@ -1,2 +1,2 @@\n a\n b\n", "changes nothing", id="context alone"),
        pytest.param(HEAD + "@@ -0,1 +0,1 @@\n-a\n+b\n", "line 0", id="line 0"),
        pytest.param(HEAD + "@@ -1 +1 @@\n-a\n+b\nThat is all.\n", "beyond the counts", id="text below"),
        pytest.param(HEAD + "@@ -1 +1 @@\n-a\n+b\nand\n@@ -5 +5 @@\n-c\n+d\n", "text between", id="text between hunks"),
        pytest.param(
            HEAD + "@@ -1,2 +1,2 @@\n-a\n\\ No newline at end of file\n-b\n+a\n+c\n",
            "missing newline",
            id="missing newline in the middle",
        ),
        pytest.param(
            HEAD + "@@ -1 +1 @@\n\\ No newline at end of file\n-a\n+b\n",
            "missing newline",
            id="newline mark without a line",
        ),
        pytest.param(
            HEAD + "@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n\\ No newline at end of file\n",
            "missing newline",
            id="newline mark twice",
        ),
        pytest.param(
            HEAD + "@@ -1 +1 @@\n-a\n+b\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n",
            "more than one file",
            id="two files",
        ),
        pytest.param(
            "diff --git a/f b/g\nsimilarity index 90%\nrename from f\nrename to g\n--- a/f\n+++ b/g\n"
            "@@ -1 +1 @@\n-a\n+b\n",
            "only changes to lines",
            id="rename",
        ),
        pytest.param(
            "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
            "only changes to lines",
            id="mode",
        ),
        pytest.param("Binary files a/f and b/f differ\n", "only changes to lines", id="binary"),
        pytest.param("Binary file f has changed\n", "only changes to lines", id="binary, in Mercurial's wording"),
        pytest.param("Binary file " + " and x" * 100_000, "only changes to lines", id="binary, very long"),
        pytest.param(HEAD + f"@@ -1,{'9' * 5000} +1 @@\n-a\n+b\n", "without line numbers", id="line count too large"),
        pytest.param(
            HEAD + "@@ -1 +1 @@\n-a\n+b\ndiff --git --git a/g b/g\n@@ -5 +5 @@\n-c\n+d\n",
            "missing --- header",
            id="git header inside a patch",
        ),
        pytest.param(HEAD + "@@ -1 +1 @@\n-a\n+\ud800\n", "UTF-8", id="half a surrogate pair"),
    ],
)
def test_ambiguous_or_malformed_patch_is_refused(patch: str, reason: str) -> None:
    with pytest.raises(InvalidPatch, match="Invalid patch format: ") as refusal:
        parse_patch(patch)
    assert reason in str(refusal.value)


@pytest.mark.parametrize(
    "checks",
    [
        "rename from g",
        "rename to g",
        "copy from g",
        "copy to g",
        "old mode 100644",
        "new mode 100755",
        "new file mode 100755",
        "deleted file mode 100644",
        "Binary files a/f and b/f differ",
        "GIT binary patch",
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_header_that_asks_for_more_than_line_changes_is_named_with_its_line(checks: str, ending: str) -> None:
    patch = f"diff --git a/f b/f\n{checks}\n{HEAD}@@ -1 +1 @@\n-a\n+b\n".replace("\n", ending)
    with pytest.raises(InvalidPatch) as refusal:
        parse_patch(patch)
    assert str(refusal.value) == (
        f"Invalid patch format: only changes to lines can be applied, not {checks!r} at line 2"
    )


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ("words\n@@ -1 +1 @@\n-a\n+b\n", "missing --- header at line 2"),
        ("+++ b\n@@ -1 +1 @@\n-a\n+b\n", "missing --- header at line 1"),
        ("words\n+++ b\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n", "missing --- header at line 2"),
        (HEAD + "@@ -1 +1 @@\n-a\n+b\nand\n@@ -5 +5 @@\n-c\n+d\n", "text between two hunks at line 6"),
        (HEAD + "@@ -1,2 +1,2 @@\n a\n b\n", "a hunk that changes nothing at line 4"),
        (HEAD + "@@ -0,1 +0,1 @@\n-a\n+b\n", "a hunk with lines that starts at line 0 at line 4"),
        (
            HEAD + "@@ -1 +1 @@\n\\ No newline at end of file\n-a\n+b\n",
            "a mark for a missing newline without a line before it",
        ),
        (HEAD + "@@ -1 +1 @@\n-a\n+b\ndiff of more\n", "a line beyond the counts in its hunk's @@ header at line 6"),
        (HEAD + "@@ -1 +1 @@\n-a\n+b\nindex 12..34\n", "a line beyond the counts in its hunk's @@ header at line 6"),
        ("", "the patch is empty"),
    ],
)
def test_refusal_states_the_fault_and_its_line(patch: str, message: str) -> None:
    with pytest.raises(InvalidPatch) as refusal:
        parse_patch(patch)
    assert str(refusal.value) == f"Invalid patch format: {message}"


def test_surplus_line_is_reported_with_a_corrected_header() -> None:
    for hunk, line in (("-a\n+b\n+c\n", 6), ("-a\n\\ No newline at end of file\n+b\n+c\n", 7)):
        patch = f"{HEAD}@@ -1 +1 @@\n{hunk}@@ -5,1 +5,1 @@\n-d\n+e\n"
        for variant in (patch, patch.replace("\n", "\r\n")):
            with pytest.raises(
                InvalidPatch, match=f"a line beyond the counts in its hunk's @@ header at line {line}"
            ) as refusal:
                parse_patch(variant)
            assert "the header at line 3 of the patch is @@ -1,1 +1,2 @@" in refusal.value.hint


@pytest.mark.parametrize(
    "between", ["", "diff -u f g\n", "index 12..34\n", "Index: g\n=====\n", "=====\n", "Index: g\n"]
)
def test_text_that_programs_write_between_files_is_skipped(between: str) -> None:
    first, second = parse_patches(f"{HEAD}@@ -1 +1 @@\n-a\n+b\n{between}--- g\n+++ g\n@@ -1 +1 @@\n-c\n+d\n")
    assert ([len(part.hunks) for part in (first, second)], second.names) == ([1, 1], ("g", "g"))


def test_patch_with_crlf_lines_names_the_same_files() -> None:
    patch = f"{HEAD}@@ -1,1 +1,1 @@\n-a\n+b\n\n".replace("\n", "\r\n")
    (part,) = parse_patches(patch)
    assert (part.source, part.target, len(part.hunks)) == ("a/f", "b/f", 1)


@pytest.mark.parametrize("name", ["é.txt", "a\tb", 'a"b', "a\\b", "a b", "\a\b\n\v\f\r", "\udcff", "日本/é", '"', ""])
def test_quoted_names_are_decoded(name: str) -> None:
    octal = '"' + "".join(f"\\{byte:03o}" for byte in f"a/{name}".encode("utf-8", "surrogateescape")) + '"'
    for source in (octal, quoted_name(f"a/{name}").decode()):
        part = parse_patch(f"--- {source}\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
        assert part.names == (name, "x")


@pytest.mark.parametrize("name", ['"a', 'a"', '"a"b"', '"a\\"', '"\\q"', '"\\8"', '"\\777"', '"\\12"', '"'])
def test_invalid_quoting_is_taken_literally(name: str) -> None:
    assert parse_patch(f"--- {name}\n+++ {name}\n@@ -1 +1 @@\n-a\n+b\n").names == (name, name)


def test_prefixes_are_stripped_only_if_both_names_have_them() -> None:
    hunk = "@@ -1 +1 @@\n-a\n+b\n"
    for source, target, names in (
        ("a/f", "b/f", ("f", "f")),
        ("a/f", "f", ("a/f", "f")),
        ("f", "b/f", ("f", "b/f")),
        ("/dev/null", "b/f", ("/dev/null", "f")),
        ("a/f", "/dev/null", ("f", "/dev/null")),
    ):
        assert parse_patch(f"--- {source}\n+++ {target}\n{hunk}").names == names


def test_patch_is_reverted_at_the_same_place_among_equal_lines() -> None:
    before = b"x\n" * 12
    patch = parse_patch(HEAD + "@@ -2,1 +2,3 @@\n+a\n+b\n x\n@@ -6,2 +8,1 @@\n x\n-x\n@@ -10,1 +11,1 @@\n-x\n+y\n")
    applied = apply_patch(before, patch)
    assert isinstance(applied, Applied)
    reverted = apply_patch(applied.content, patch.reverse)
    assert isinstance(reverted, Applied)
    assert (reverted.content, reverted.moved) == (before, (0, 0, 0))


def test_hunk_that_moved_to_the_first_line_is_found() -> None:
    outcome = apply_patch(ABC, parse_patch(HEAD + "@@ -3,1 +3,1 @@\n-a\n+A\n"))
    assert isinstance(outcome, Applied)
    assert (outcome.content, outcome.moved) == (b"A\nb\nc\n", (-2,))


def test_adjacent_matches_are_ambiguous() -> None:
    patch = parse_patch(HEAD + "@@ -9,1 +9,1 @@\n-\n+x\n")
    assert apply_patch(b"\n\na\n", patch) == AmbiguousContext(hunk=1, places=(1, 2))


def test_inserted_line_gets_the_ending_of_the_line_above() -> None:
    patch = parse_patch(HEAD + "@@ -1,3 +1,4 @@\n a\n b\n+x\n c\n")
    for before, after in (
        (b"a\nb\r\nc\n", b"a\nb\r\nx\r\nc\n"),
        (b"a\r\nb\nc\r\n", b"a\r\nb\nx\nc\r\n"),
    ):
        outcome = apply_patch(before, patch)
        assert isinstance(outcome, Applied)
        assert outcome.content == after


def test_only_the_first_twenty_matches_are_reported() -> None:
    outcome = apply_patch(b"x\ny\n" * 25, parse_patch(HEAD + "@@ -2,1 +2,1 @@\n-x\n+z\n"))
    assert outcome == AmbiguousContext(hunk=1, places=tuple(range(1, 41, 2)))


@pytest.mark.parametrize(
    "text_above",
    ["Some words first.\n\n", "diff --git a/f b/f\nindex 0123abc..4567def 100644\n", "Index: f\n=====\n"],
)
def test_text_above_the_headers_is_ignored(text_above: str) -> None:
    outcome = apply_patch(ABC, parse_patch(text_above + HEAD + "@@ -2 +2 @@\n-b\n+B\n"))
    assert isinstance(outcome, Applied)
    assert outcome.content == b"a\nB\nc\n"


def test_creation_and_deletion_are_recognized_by_their_headers() -> None:
    assert parse_patch("--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n").source is None
    assert parse_patch("--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n").target is None


# ---- parts

LINES = "--- a/c.py\n+++ b/c.py\n@@ -1 +1 @@\n-x\n+y\n"
GIT = f"diff --git a/c.py b/c.py\nindex 0123abc..4567def 100644\n{LINES}"
PROPERTIES = (
    f"\nProperty changes on: c.py\n{'_' * 67}\nAdded: svn:eol-style\n## -0,0 +1 ##\n+native\n"
    "\\ No newline at end of property\n"
)
MAIL = f"From {'0123456789' * 4} Mon Sep 17 00:00:00 2001\nSubject: [PATCH] rename from\n\n--- it\n---\n"
OTHERS = {
    "a rename": (
        "diff --git a/o b/n\nsimilarity index 100%\nrename from o\nrename to n\n",
        ("o", "n"),
        "rename from o",
    ),
    "a renamed name with blanks": (
        "diff --git a/o o b/n\nrename from o o\nrename to n\n",
        ("o o", "n"),
        "rename from o o",
    ),
    "a copy": ("diff --git a/c.py b/n\ncopy from c.py\ncopy to n\n", ("c.py", "n"), "copy from c.py"),
    "a mode": ("diff --git a/a b b/a b\nold mode 100644\nnew mode 100755\n", ("a b", "a b"), "old mode 100644"),
    "a mode, no prefixes": ("diff --git o o\nold mode 100644\nnew mode 100755\n", ("o", "o"), "old mode 100644"),
    "a new empty file": ("diff --git a/e b/e\nnew file mode 100644\nindex 0..e69de29\n", ("/dev/null", "e"), None),
    "an empty file that goes": (
        "diff --git a/e b/e\ndeleted file mode 100644\nindex e69de29..0\n",
        ("e", "/dev/null"),
        None,
    ),
    "git's binary file": (
        "diff --git a/i b/i\nindex 12..34 100644\nBinary files a/i and b/i differ\n",
        ("i", "i"),
        "Binary files a/i and b/i differ",
    ),
    "git's binary bytes": (
        "diff --git a/i b/i\nnew file mode 100644\nGIT binary patch\nliteral 4\nLcmZQz\n\nliteral 0\nHcmV?d00001\n\n",
        ("/dev/null", "i"),
        "GIT binary patch",
    ),
    "GNU diff's binary file": (
        "diff -r -u a/i b/i\nBinary files a/i and b/i differ\n",
        ("i", "i"),
        "Binary files a/i and b/i differ",
    ),
    "Bazaar's rename": ("=== renamed file 'o' => 'n'\n", ("o", "n"), "=== renamed file 'o' => 'n'"),
    "Bazaar's modes": (
        "=== modified file 'o' (properties changed: -x to +x)\n",
        ("o", "o"),
        "=== modified file 'o' (properties changed: -x to +x)",
    ),
    "Bazaar's new file": (
        "=== added file 'n'\n--- n\t1970-01-01 00:00:00 +0000\n+++ n\t2009-10-10 10:10:10 +0000\n@@ -0,0 +1 @@\n+x\n",
        ("/dev/null", "n"),
        None,
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_parts_are_judged_one_by_one(case: str) -> None:
    other, names, more = OTHERS[case]
    for ending in ("\n", "\r\n"):
        for patch in (GIT + other, other + GIT, LINES + other):
            parts = parse_patches(patch.replace("\n", ending))
            (lines,) = (part for part in parts if part.names == ("c.py", "c.py"))
            (beside,) = (part for part in parts if part is not lines)
            assert (lines.more, len(lines.hunks)) == (None, 1)
            assert beside.names == names
            assert (beside.more is None) == (more is None)
            assert more is None or repr(more) in str(beside.more)


@pytest.mark.parametrize(
    "around",
    [
        (MAIL, "-- \n2.40.0\n\n"),
        ("", f"-- \n2.40.0\n\n{MAIL}{GIT.replace('c.py', 'd.py')}-- \n2.40.0\n"),
        (
            "# HG changeset patch\n# User me\n",
            f"# HG changeset patch\n# User me\nwords\n\n{GIT.replace('c.py', 'd.py')}",
        ),
        ("=== modified file 'c.py'\n", f"\n=== modified file 'd.py'\n{LINES.replace('c.py', 'd.py')}"),
        ("diff -ru a/c.py b/c.py\n", "Only in b: z\n"),
        ("Index: c.py\n=====\n", "Index: e\n=====\n"),
        ("Index: c.py\n=====\n", f"{PROPERTIES}\nIndex: d.py\n=====\n{LINES.replace('c.py', 'd.py')}{PROPERTIES}"),
    ],
)
@pytest.mark.parametrize("lines", [GIT, LINES])
def test_words_of_mails_and_programs_around_the_parts_are_skipped(lines: str, around: tuple[str, str]) -> None:
    above, below = around
    parts = parse_patches(above + lines + below)
    assert [(part.names[0], len(part.hunks), part.more) for part in parts] == [
        (name, 1, None) for name in ("c.py", "d.py")[: len(parts)]
    ]


@pytest.mark.parametrize("below", ["-- \n", "-- \n+x\n", "-- \n\n", "--\n2.40.0\n"])
def test_line_that_may_be_a_removed_one_is_no_signature(below: str) -> None:
    with pytest.raises(InvalidPatch, match="beyond the counts"):
        parse_patches(GIT + below)


@pytest.mark.parametrize(
    ("time", "is_none"),
    [
        ("1970-01-01 00:00:00.000000000 +0000", True),
        ("1970-01-01 01:00:00 +0100", True),
        ("1969-12-31 19:00:00.000000000 -0500", True),
        ("1970-01-01 00:00:00 +0100", False),
        ("1970-01-01 00:00:01 +0000", False),
        ("2026-01-01 00:00:00 +0000", False),
        ("1970-01-01 00:00:00", False),
        ("(working copy)", False),
        ("0000-99-99 00:00:00 +0000", False),
    ],
)
def test_beginning_of_1970_means_no_file_where_the_patch_has_no_line_of_it(time: str, *, is_none: bool) -> None:
    names = f"--- f\t{time}\n+++ f\t{time}\n"
    assert (parse_patch(f"{names}@@ -1 +0,0 @@\n-a\n").target is None) == is_none
    assert (parse_patch(f"{names}@@ -0,0 +1 @@\n+a\n").source is None) == is_none
    both = parse_patch(f"{names}@@ -1 +1 @@\n-a\n+b\n")
    assert (both.source, both.target) == ("f", "f")


# ---- laws

lines = st.sampled_from(
    ["a", "b", "", " ", "-x", "+x", "@@", "\\ No", "--- a", "+++ b", "\r", "q\rz", "é\u2028\x85", "\f"]
)
texts = st.builds(
    lambda parts, tail: "".join(line + ending for line, ending in parts) + tail,
    st.lists(st.tuples(lines, st.sampled_from(["\n", "\r\n"])), max_size=30),
    st.one_of(st.just(""), lines),
)


def diff(before: bytes, after: bytes, context: int) -> str:
    return unified_diff(before, after, path_before="f", path_after="f", context=context).decode()


@given(texts, texts, st.integers(1, 3))
def test_applying_the_diff_of_two_texts_to_the_first_gives_the_second(old: str, new: str, context: int) -> None:
    before, after = old.encode(), new.encode()
    assume(before != after)
    outcome = apply_patch(before, parse_patch(diff(before, after, context)))
    assert isinstance(outcome, Applied), outcome
    assert outcome.content == after
    assert outcome.moved == (0,) * len(outcome.moved)


@given(texts, texts, st.integers(1, 3))
def test_applying_a_patch_and_then_its_reverse_is_identity(old: str, new: str, context: int) -> None:
    before, after = old.encode(), new.encode()
    assume(before != after)
    patch = parse_patch(diff(before, after, context))
    assert patch.reverse.reverse == patch
    outcome = apply_patch(after, patch.reverse)
    assert isinstance(outcome, Applied), outcome
    assert outcome.content == before


@given(texts, texts, st.integers(1, 3))
def test_diff_with_hunk_names_applies_like_a_plain_diff(old: str, new: str, context: int) -> None:
    before, after = old.encode(), new.encode()
    assume(before != after)
    hunks = diff_lines(before, after)
    named = numbered_diff(
        before,
        after,
        path_before="f",
        path_after="f",
        hunks=hunks,
        newline=False,
        label=lambda number: f"1:{number} pending",
        context=context,
    ).decode()
    labels = ", ".join(re.findall(r"^@@ -[0-9,]+ \+[0-9,]+ @@ (1:[0-9, pending:]+)$", named, re.MULTILINE))
    numbers = re.findall(r"1:([0-9]+) pending", labels)
    assert labels == ", ".join(f"1:{number} pending" for number in numbers)
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)]
    assert len(hunks) <= len(numbers) <= len(hunks) + 1  # one more than hunks if only the final newline differs
    outcome = apply_patch(before, parse_patch(named))
    if isinstance(outcome, AmbiguousContext):
        reject()  # a hunk that only inserts may have no context of its own
    assert isinstance(outcome, Applied), outcome
    assert outcome.content == after


@given(st.lists(st.tuples(texts, texts), max_size=4))
def test_patch_of_several_files_is_parsed_as_one_part_for_each(pairs: list[tuple[str, str]]) -> None:
    patches = [diff(old.encode(), new.encode(), 3) for old, new in pairs if old != new]
    parts = parse_patches("".join(patches))
    assert len(parts) == len(patches)
    for part, patch in zip(parts, patches, strict=True):
        parsed_alone = parse_patch(patch)
        assert [[(line.mark, line.text) for line in hunk.lines] for hunk in part.hunks] == [
            [(line.mark, line.text) for line in hunk.lines] for hunk in parsed_alone.hunks
        ]


@given(texts, texts, st.integers(1, 3))
def test_bytes_outside_the_hunks_are_unchanged(old: str, new: str, context: int) -> None:
    before, after = old.encode(), new.encode()
    assume(before != after)
    outcome = apply_patch(before, parse_patch(diff(before, after, context)))
    assert isinstance(outcome, Applied), outcome
    spans = [Span(*span) for span in outcome.spans]
    assert hunks_fit(before, after, hunks_from_spans(before, after, spans))


@given(texts, texts, st.data())
def test_text_that_differs_within_a_hunk_is_refused(old: str, new: str, data: st.DataObject) -> None:
    before, after = old.encode(), new.encode()
    assume(before != after and before)
    patch = parse_patch(diff(before, after, 3))
    hunk = data.draw(st.sampled_from(patch.hunks))
    assume(hunk.old)
    number = hunk.start + data.draw(st.integers(0, len(hunk.old) - 1))
    split = before.split(b"\n")
    split[number] = b"never" + split[number]
    assert not isinstance(apply_patch(b"\n".join(split), patch), Applied)


@given(texts, texts, st.integers(1, 5))
def test_moved_hunks_apply_completely_or_not_at_all(old: str, new: str, shift: int) -> None:
    before, after = old.encode(), new.encode()
    assume(before != after)
    patch = parse_patch(diff(before, after, 3))
    prefix = b"".join(b"new line %d\n" % number for number in range(shift))
    outcome = apply_patch(prefix + before, patch)
    if not isinstance(outcome, Applied):
        reject()
    assert outcome.content == prefix + after


@given(
    st.lists(st.sampled_from("abcdef"), unique=True, min_size=1),
    st.lists(st.sampled_from("abcdefXYZ"), unique=True),
    st.tuples(st.booleans(), st.booleans()),
)
def test_patch_in_lf_changes_a_crlf_file_as_an_lf_file(
    old: list[str], new: list[str], final_newlines: tuple[bool, bool]
) -> None:
    before, after = (
        ("\n".join(side) + "\n" * (bool(side) and has_end)).encode()
        for side, has_end in zip((old, new), final_newlines, strict=True)
    )
    assume(before != after and b"\n" in before)  # otherwise the file can't be recognized as CRLF
    outcome = apply_patch(before.replace(b"\n", b"\r\n"), parse_patch(diff(before, after, 3)))
    assert isinstance(outcome, Applied), outcome
    assert outcome.content == after.replace(b"\n", b"\r\n")


@given(st.text(alphabet="-+ @\\\n\r,0123ab/ ", max_size=60))
def test_any_text_is_parsed_or_refused(noise: str) -> None:
    for patch in (noise, HEAD + noise, HEAD + "@@ -1,2 +1,2 @@\n" + noise):
        with suppress(InvalidPatch):
            apply_patch(ABC, parse_patch(patch))


MISCOUNTED = {
    "counts too high": "@@ -1,7 +1,7 @@\n-a\n+b\n",
    "counts too low": "@@ -1 +1 @@\n-a\n+b\n+c\n",
    "the second of two": "@@ -1,2 +1,2 @@\n a\n-b\n+B\n@@ -9,1 +9,9 @@\n-b\n+B\n+C\n",
    "the first of two": "@@ -1,9 +1,2 @@ def f():\n a\n-b\n+B\n@@ -9,1 +9,2 @@\n-b\n+B\n+C\n",
    "a blank line inside": "@@ -1,2 +1,9 @@\n a\n\n-b\n+B\n",
    "blank lines below": "@@ -1,2 +1,9 @@\n a\n-b\n+B\n\n\n",
    "no newline at the end": "@@ -1,1 +1,9 @@\n-b\n\\ No newline at end of file\n+B\n\\ No newline at end of file\n",
    "removed lines that look like headers": "@@ -1,1 +1,9 @@\n--- x\n++ y\n",
    "another file below": "@@ -1,9 +1,9 @@\n-a\n+b\n--- a/g\n+++ b/g\n@@ -1,1 +1,1 @@\n-a\n+b\n",
    "carriage returns": "@@ -1,9 +1,9 @@\r\n-a\r\n+b\r\n",
}


@pytest.mark.parametrize("hunks", MISCOUNTED.values(), ids=MISCOUNTED)
def test_header_suggested_by_a_refusal_makes_the_patch_valid(hunks: str) -> None:
    patch = HEAD + hunks
    with pytest.raises(InvalidPatch) as refusal:
        parse_patches(patch)
    named = re.search(r"line (\d+) of the patch is (@@ .* @@)", refusal.value.hint)
    assert named is not None, refusal.value.hint
    lines = patch.splitlines(keepends=True)
    index = int(named[1]) - 1
    lines[index] = re.sub(r"^@@ .* @@", lambda _: named[2], lines[index])
    assert parse_patches("".join(lines))[0].hunks


def test_refusal_not_about_counts_suggests_no_header() -> None:
    for patch in ("no patch", HEAD + "@@ @@\n-a\n+b\n", "--- f\n"):
        with pytest.raises(InvalidPatch) as refusal:
            parse_patches(patch)
        assert refusal.value.hint == ""


@pytest.mark.parametrize("line", ["b", "*b", "\tb", "b\r"])
def test_line_without_a_mark_is_reported_with_the_valid_marks(line: str) -> None:
    with pytest.raises(InvalidPatch, match="neither context, removed nor added at line 5") as refusal:
        parse_patches(f"{HEAD}@@ -1,3 +1,3 @@\n a\n{line}\n-c\n+d\n")
    assert "as context, with a blank" in refusal.value.hint


@pytest.mark.parametrize(
    ("patch", "message", "hint"),
    [
        ("*** Begin Patch\n*** Update File: a\n@@\n-1\n+2\n*** End Patch\n", "*** Begin Patch", "--- FILE, +++ FILE"),
        ("\n*** Begin Patch\n*** Add File: a\n+2\n*** End Patch", "*** Begin Patch at line 2", "--- FILE, +++ FILE"),
        ("<<<<<<< SEARCH\n1\n=======\n2\n>>>>>>> REPLACE\n", "<<<<<<< SEARCH", "--- FILE, +++ FILE"),
        (
            "```diff\n--- a\n+++ a\n@@ -1 +1 @@\n-1\n+2\n```\n",
            "inside a code fence at line 1",
            "without the lines of ```",
        ),
        ("\ufeff--- a\n+++ a\n@@ -1 +1 @@\n-1\n+2\n", "begins with a byte-order mark", "without the mark"),
    ],
)
def test_patch_in_another_format_is_refused_with_the_expected_format(patch: str, message: str, hint: str) -> None:
    for parse in (parse_patch, parse_patches):
        with pytest.raises(InvalidPatch) as refusal:
            parse(patch)
        assert message in str(refusal.value)
        assert hint in refusal.value.hint


def test_markers_of_other_formats_above_a_valid_patch_are_ignored() -> None:
    for prefix in ("*** Begin Patch\n", "```diff\n", "<<<<<<< SEARCH\n", "\ufeff\n"):
        assert parse_patch(f"{prefix}--- a\n+++ a\n@@ -1 +1 @@\n-1\n+2\n").names == ("a", "a")


# ---- costs


@example([], "", ["+a"], "")
@given(
    st.lists(st.sampled_from(["a\n", "b\n", "a\r\n"]), max_size=8),
    st.sampled_from(["", "a", "b", "a\r"]),
    st.lists(st.sampled_from([" a", " b", "-a", "-b", "+a"]), min_size=1, max_size=4),
    st.sampled_from(["", "-a", "+a", " a", "-a\n\\ No newline at end of file\n+a"]),
)
def test_hunk_is_found_exactly_where_its_lines_occur(lines: list[str], rest: str, body: list[str], last: str) -> None:
    marked = f"{last}\n\\ No newline at end of file\n" if last else ""
    text = "".join(f"{line}\n" for line in body) + marked
    old = sum(line[0] in " -" for line in text.splitlines())
    new = sum(line[0] in " +" for line in text.splitlines())
    try:
        patch = parse_patch(f"--- f\n+++ f\n@@ -999,{old} +999,{new} @@\n{text}")
    except InvalidPatch:
        return
    content = ("".join(lines) + rest).encode()
    hunk = patch.hunks[0]
    found = positions_of(content, hunk) if hunk.old else []
    outcome = apply_patch(content, patch)
    match outcome:
        case Applied(moved=(moved,)):
            assert [998 + moved] == found
        case AmbiguousContext(places=positions):
            assert [position - 1 for position in positions] == found
        case _:
            assert found == []


def positions_of(content: bytes, hunk: PatchHunk) -> list[int]:
    """Return the positions at which a hunk fits, by comparing at every line."""
    old, new = hunk.old, hunk.new
    # A hunk that adds lines below its last line of context belongs at the end.
    is_last = re.search(r" \++$", "".join(line.mark for line in hunk.lines)) is not None
    lines = content.splitlines(keepends=True) if b"\r" not in content else re.findall(rb"[^\n]*\n|[^\n]+", content)
    expected = [{line.text, line.text[:-1] + b"\r\n" if line.text.endswith(b"\n") else line.text} for line in old]
    return [
        index
        for index in range(len(lines) - len(old) + 1)
        if all(line in texts for line, texts in zip(lines[index:], expected, strict=False))
        and (index + len(old) == len(lines) or not (is_last or (new and not new[-1].text.endswith(b"\n"))))
    ]


@pytest.mark.parametrize(
    "change",
    [
        "-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
        "-a\n+b\n\\ No newline at end of file\n",
        "-a\n\\ No newline at end of file\n+b\n",
        "-a\n+b\n",
    ],
)
def test_cost_of_finding_a_hunk_among_similar_lines_is_linear(change: str) -> None:
    size, file = 200, 2000
    patch = parse_patch(f"--- f\n+++ f\n@@ -7,{size} +7,{size} @@\n" + " a\n" * (size - 1) + change)
    content = b"a\n" * 6 + b"c\n" + b"a\n" * file
    assert count_calls(lambda: apply_patch(content, patch)) < 20 * (size + file)


@pytest.mark.parametrize("line", ["new file mode 100644", "deleted file mode 100644"])
def test_cost_of_repeated_git_headers_is_linear(line: str) -> None:
    def read(count: int) -> None:
        with suppress(InvalidPatch):
            parse_patches(f"{line}\n" * count + "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+b\n")

    assert count_calls(lambda: read(2000)) < 2.1 * count_calls(lambda: read(1000))


def test_parsing_of_a_patch_can_be_cancelled() -> None:
    patch = "words\n" * 3000 + HEAD + "@@ -1,3000 +1,3000 @@\n" + " a\n" * 2999 + "-a\n+b\n"
    checks = list[int]()
    parse_patch(patch, between=lambda: checks.append(0))
    assert len(checks) > 20  # its lines are read three times, and those of the hunk once more

    def read(remaining: list[int]) -> None:
        with pytest.raises(IndexError):
            parse_patch(patch, between=remaining.pop)

    for count in range(len(checks)):
        read([0] * count)


def test_application_of_a_patch_can_be_cancelled_between_hunks() -> None:
    checks = 0

    def between() -> None:
        nonlocal checks
        checks += 1
        if checks == 2:
            raise InterruptedError

    patch = parse_patch("--- f\n+++ f\n@@ -5 +5 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n+d\n")
    with pytest.raises(InterruptedError):
        apply_patch(b"a\nc\n", patch, between=between)


def parts_of(patch: str) -> FilePatch:
    (part,) = joined_parts(parse_patches(patch))
    return part


@given(st.lists(st.text("ab", max_size=8).map("\n".join), min_size=2, max_size=4), st.sampled_from([1, 3]))
def test_parts_made_one_after_the_other_apply_and_are_reverted_as_such(texts: list[str], context: int) -> None:
    versions = ["".join(f"{line}\n" for line in (*"12", *text.split("\n"), *"34")).encode() for text in texts]
    patch = "".join(diff(before, after, context) for before, after in pairwise(versions) if before != after)
    assume(patch)
    part = parts_of(patch)
    outcome = apply_patch(versions[0], part)
    if not isinstance(outcome, Applied):  # one of the parts is a repeated one, or its context is at several places
        assert len(versions) > 2
        return
    assert outcome.content == versions[-1]
    hunks = hunks_from_spans(versions[0], versions[-1], outcome.spans)
    assert hunks_fit(versions[0], versions[-1], hunks)
    made = replace(part.at(outcome.moved), later=part.later if outcome.in_turn else ())
    back = apply_patch(versions[-1], made.reverse)
    assert isinstance(back, Applied)
    assert back.content == versions[0]


def test_parts_that_two_ways_place_differently_are_refused() -> None:
    patch = "--- f\n+++ f\n@@ -1 +1,3 @@\n-a\n+x\n+y\n+z\n--- f\n+++ f\n@@ -4,2 +4,2 @@\n }\n-b\n+c\n"
    file = b"a\n}\nb\n}\nb\n"
    assert apply_patch(file, parts_of(patch)) == AmbiguousContext(hunk=2, places=(6, 4))
    assert isinstance(apply_patch(b"a\n-\nb\n}\nb\n", parts_of(patch)), Applied)


def test_a_part_sent_twice_is_not_applied_twice() -> None:
    once = "--- f\n+++ f\n@@ -1 +1,2 @@\n+new\n a\n"
    assert isinstance(apply_patch(b"a\n", parts_of(once)), Applied)
    assert isinstance(apply_patch(b"a\n", parts_of(once * 2)), HunksOverlap)
