"""Which edits a text brings back, and how many sets of statuses are tried to find out."""

from __future__ import annotations

import pytest

from objstore import Seq, Status
from objstore.weave.document import Document
from objstore.weave.returning import Returning, returning
from tests.support.call_counts import count_calls
from tests.support.document_histories import document_of, next_edit

EDITS = 40


def edited(texts: list[bytes]) -> Document:
    """Return a document with these texts, one after the other; all edits but the first text's are away."""
    document = document_of(texts[0])
    for seq, text in enumerate(texts[1:], 1):
        document.add(next_edit(document, seq, text), text)
    document.set_statuses({unit: Status.AWAY for seq in range(1, len(texts)) for unit in document.units(Seq(seq))})
    return document


def brought_back(document: Document, text: bytes) -> Returning:
    """Return what a text brings back of edits that were pending."""
    earlier = {unit: Status.PENDING for seq in range(1, document.last + 1) for unit in document.units(Seq(seq))}
    return returning(document, earlier, text, path=document.version().path, may_be_agents=False)


def in_many_places(count: int) -> list[bytes]:
    """Return a text of lines, and what edits make of it that each change another line."""
    lines = [b"base line %d\n" % number for number in range(2 * count)]
    texts = [b"".join(lines)]
    for number in range(count):
        lines[2 * number] = b"changed line %d\n" % number
        texts.append(b"".join(lines))
    return texts


def in_one_place(count: int) -> list[bytes]:
    """Return a text, and what edits make of it that all change the same line."""
    return [b"above\nvalue %d\nbelow\n" % number for number in range(count + 1)]


def back_and_forth(count: int) -> list[bytes]:
    """Return texts of which the same lines come and go."""
    return [
        b"above\n" + b"common\n" * (number % 3) + b"other %d\nbelow\n" % (number % 5) for number in range(count + 1)
    ]


@pytest.mark.parametrize(
    ("texts", "most"), [(in_many_places(EDITS), 10), (in_one_place(EDITS), 3 * EDITS), (back_and_forth(EDITS), 3000)]
)
def test_a_text_without_the_lines_of_edits_that_are_away_is_soon_known_to_have_none(
    texts: list[bytes], most: int
) -> None:
    document = edited(texts)
    text = texts[0] + b"typed\n"
    assert count_calls(lambda: brought_back(document, text), of=Document.set_statuses.__code__) <= most
    assert document.text() == texts[0]


def test_edits_whose_lines_are_back_are_found_among_many_that_are_away() -> None:
    texts = in_many_places(EDITS)
    document = edited(texts)
    text = texts[0].replace(b"base line 8\n", b"changed line 4\n").replace(b"base line 60\n", b"changed line 30\n")
    back = brought_back(document, text + b"typed\n")
    assert {unit.seq for unit in back.verdicts} == {5, 31}
    assert document.text() == text


def test_an_edit_that_is_back_brings_back_those_that_it_needs() -> None:
    texts = in_one_place(EDITS)
    document = edited(texts)
    back = brought_back(document, texts[20] + b"typed\n")
    assert {unit.seq for unit in back.verdicts} == set(range(1, 21))
    assert document.text() == texts[20]
