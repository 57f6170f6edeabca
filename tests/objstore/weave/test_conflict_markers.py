"""Conflict markers as pictures: ours, the base and theirs where they differ, and nothing where they agree.

A picture is the text's lines in a row; `<ours`, `|base`, `=` and `>theirs` represent the markers.
"""

from __future__ import annotations

import re

import pytest

from objstore.text.diff import Hunk
from objstore.weave.conflict_markers import Labels, MarkedText, labels_in, regions_in
from objstore.weave.dependents import cascade
from objstore.weave.line_weave import BASE, UnitIndex, Weave
from tests.support.history_diagrams import History, history, text
from tests.support.weave_statuses import set_live

LABELS = Labels(ours=b"ours", base=b"base", theirs=b"theirs")


def marked(h: History, *edits: int, accept: bool = False) -> MarkedText | None:
    """Return the text after a decision on `edits`, with markers around what conflicts with it."""
    flips = {unit: accept for edit in edits for unit in h.units(edit)}
    theirs = h.weave.visibility()
    assert not cascade(h.weave, flips).blocked
    h.weave.flip(dict.fromkeys(flips, not accept))
    base = h.weave.visibility()
    h.weave.flip(flips)
    return h.weave.marked(base, theirs, lambda _: LABELS)


def drawn(found: MarkedText | None) -> str:
    if found is None:
        return "none"
    content = re.sub(rb"^([<|>])\1{6} ", rb"\1", found.content, flags=re.MULTILINE)
    content = re.sub(rb"^={7}$", b"=", content, flags=re.MULTILINE)
    return " ".join(content.decode().split()) + ("" if content.endswith(b"\n") else "~")


REJECTED = [
    (history("p x q", "p A B q", "p A C q"), (1,), "p <ours x |base A B = A C >theirs q"),
    # an edit's other hunks, and what others did elsewhere, need no markers
    (history("p x q r z", "P x A q r z", "P x C q R z"), (1,), "p x <ours |base A = C >theirs q R z"),
    # an insertion whose both sides go
    (history("a b", "a x b", "a x y b", "a x n y b"), (1, 2), "a <ours |base x y = x n y >theirs b"),
    # a deletion of what was written, and a second change further down the line
    (history("p x q", "p A q", "p B q", "p C q"), (1,), "p <ours x |base A = C >theirs q"),
    (history("p X q", "p q", "p N q"), (1,), "p <ours X |base = N >theirs q"),
    # two places
    (
        history("p x q r y s", "p A q r B s", "p C q r D s"),
        (1,),
        "p <ours x |base A = C >theirs q r <ours y |base B = D >theirs s",
    ),
    # where the text begins and ends, and where its last line has no newline
    (history("x", "A", "B"), (1,), "<ours x |base A = B >theirs"),
    (history("x~", "A~", "B~"), (1,), "<ours x |base A = B >theirs"),
    (history("x q~", "A q~", "B q~"), (1,), "<ours x |base A = B >theirs q~"),
    # no text, no markers
    (history("-", "a b", "a B"), (1,), "none"),
    (history("a b", "-", "x y"), (1,), "none"),
]


@pytest.mark.parametrize(("h", "edits", "wanted"), REJECTED, ids=[wanted for *_, wanted in REJECTED])
def test_edits_that_need_a_rejected_one_are_shown_next_to_the_text_without_it(
    h: History, edits: tuple[int, ...], wanted: str
) -> None:
    found = marked(h, *edits)
    assert drawn(found) == wanted
    if found is not None:
        units = h.weave.record(found.content, found.hunks)
        without = set_live(h.weave, dict.fromkeys(units, False))
        assert (without, h.weave.conflicts()) == ((), ())
        assert not any(hunk.old_count for hunk in found.hunks)


def test_edits_that_exclude_an_accepted_one_are_shown_next_to_it() -> None:
    h = history("p a q", "p A q")
    h.reject(1)
    h.then("p B q")
    assert drawn(marked(h, 1, accept=True)) == "p <ours A |base a = B >theirs q"


def test_nothing_between_markers_is_nothing_to_mark() -> None:
    assert marked(history("a b c", "a B c"), 1) is None


def test_lines_that_look_like_markers_make_markers_longer() -> None:
    h = history("p x q", "p <<<<<<< q", "p >>>>>>>> q")
    found = marked(h, 1)
    assert found is not None
    assert found.content.decode().split("\n")[1:8:2] == [
        "<<<<<<<<< ours",
        "||||||||| base",
        "=========",
        ">>>>>>>>> theirs",
    ]


def test_a_marker_has_a_length_that_no_line_begins_with() -> None:
    h = history("p x q", "p <<<<<<<a =========b <<<<<<<<c q", "p C q")
    found = marked(h, 1)
    assert found is not None
    assert [line for line in found.content.split(b"\n") if line.endswith((b"ours", b"base", b"theirs"))] == [
        sign * 10 + b" " + label for sign, label in ((b"<", b"ours"), (b"|", b"base"), (b">", b"theirs"))
    ]


@pytest.mark.parametrize(
    "h",
    [
        history("p q", "p a b q", "p a B q"),  # who put a line in
        history("p x q", "p A q", "p q"),  # who took one out
    ],
    ids=["inserted", "deleted"],
)
def test_labels_get_every_unit_that_inserted_or_deleted_a_line(h: History) -> None:
    asked: list[set[UnitIndex]] = []

    def labels(units: set[UnitIndex]) -> Labels:
        asked.append(units)
        return LABELS

    one, two = h.edits[1][1], h.edits[2][1]
    theirs = h.weave.visibility()
    h.weave.flip({one: False, two: False})
    ours = h.weave.visibility()
    h.weave.flip({one: True})
    base = h.weave.visibility()
    h.weave.flip({one: False})
    assert h.weave.visibility() == ours
    assert h.weave.marked(base, theirs, labels) is not None
    assert [units - {BASE} for units in asked] == [{one, two}]


def test_markers_use_the_line_ending_of_the_region() -> None:
    weave = Weave(b"p\r\nx\r\n")
    one = weave.record(b"p\r\nA\r\n", (Hunk(1, 1, 1, 1),))
    two = weave.record(b"p\r\nB\r\n", (Hunk(1, 1, 1, 1),))
    theirs = weave.visibility()
    weave.flip(dict.fromkeys(two, False))
    base = weave.visibility()
    weave.flip(dict.fromkeys(one, False))
    found = weave.marked(base, theirs, lambda _: LABELS)
    assert found is not None
    assert found.content.count(b"\r\n") == found.content.count(b"\n") == 8


# ---- found again


def found_again(content: str) -> list[range]:
    found = marked(history("p x q", "p A B q", "p A C q"), 1)
    assert found is not None
    openings, closings = labels_in(found.content, found.hunks)
    assert (openings, closings) == ([b"<<<<<<< ours"], [b">>>>>>> theirs"])
    return regions_in(
        (text(content) or b"").replace(b"<ours", openings[0]).replace(b">theirs", closings[0]), openings, closings
    )


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("p <ours x = A >theirs q", [range(1, 6)]),
        ("p x q", []),
        ("p x = >theirs q", [range(3, 4)]),
        ("p <ours x q", [range(1, 2)]),
        ("<ours >theirs <ours x >theirs", [range(2), range(2, 5)]),
        ("<ours <ours >theirs", [range(1), range(1, 3)]),
    ],
)
def test_markers_are_found_by_the_lines_that_open_and_close_them(content: str, wanted: list[range]) -> None:
    assert found_again(content) == wanted
