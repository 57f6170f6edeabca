"""`cas pin`: what a person wants kept is kept until they say otherwise."""

from objstore import RetentionLimits, blob_id
from tests.cli.desk import Desk

EVERYTHING = RetentionLimits(older_than=0, max_size=None)
LATER = 1 << 60


def expired(desk: Desk) -> list[int]:
    """Let go whatever may go, and return the edits that have expired."""
    with desk.workspace() as workspace:
        workspace.expire(EVERYTHING, moment=LATER)
        return [view.seq for view in workspace.edits() if view.expired is not None]


def three_edits(desk: Desk) -> None:
    for content in (b"1\n", b"2\n", b"3\n"):
        desk.write("f", content)
    desk.write("g", b"g\n", conversation="conv_two")
    desk.done("accept", "--all")


def test_a_pinned_edit_stays_with_all_that_came_after_it(desk: Desk) -> None:
    desk.write("f", b"1\n")
    desk.done("accept", "1")
    for content in (b"2\n", b"3\n"):
        desk.write("f", content)
        desk.done("accept", "--all")
    ran = desk.done("pin", "add", "2", "--title", "for the audit")
    assert "edits 2" in ran.text
    assert "for the audit" in ran.text
    assert expired(desk) == [1]
    assert desk.done("reject", "3").status == 0
    assert desk.done("pin").text == ran.text


def test_a_pin_that_is_taken_out_keeps_nothing(desk: Desk) -> None:
    three_edits(desk)
    desk.done("pin", "add", "conv_one")
    assert expired(desk) == [4]
    (gone,) = desk.done("pin", "remove", "1", "--json").lines()
    assert (gone["number"], gone["edits"]) == (1, [1, 2, 3])
    assert desk.cas("pin").text == ""
    assert expired(desk) == [1, 2, 3, 4]


def test_a_pinned_state_keeps_its_bytes(desk: Desk) -> None:
    three_edits(desk)
    (made,) = desk.done("pin", "add", "f@2", "--json").lines()
    assert made["blobs"] == [blob_id(b"2\n").hex()]
    assert expired(desk) == [1, 2, 3, 4]
    assert desk.done("cat", blob_id(b"2\n").hex()).out == b"2\n"
    assert desk.done("fsck", "--json").json()["sound"]


def test_what_is_not_there_is_not_pinned(desk: Desk) -> None:
    three_edits(desk)
    assert desk.cas("pin", "add", "17").status == 1
    assert desk.cas("pin", "add").status == 2
    assert desk.cas("pin", "remove", "1").status == 1
    expired(desk)
    assert "Edit 2 expired on " in desk.cas("pin", "add", "2").said
    assert desk.cas("pin").text == ""
