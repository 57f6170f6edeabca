"""`cas pin`: pinned edits and blobs are kept until the pin is removed."""

from objstore import RetentionLimits, blob_id
from tests.support.command_runner import CommandRunner

EVERYTHING = RetentionLimits(older_than=0, max_size=None)
LATER = 1 << 60


def expired_edits(runner: CommandRunner) -> list[int]:
    """Expire everything that may expire, and return the numbers of the expired edits."""
    with runner.workspace() as workspace:
        workspace.retention.expire(EVERYTHING, moment=LATER)
        return [view.seq for view in workspace.history.edits() if view.expired is not None]


def three_edits(runner: CommandRunner) -> None:
    for content in (b"1\n", b"2\n", b"3\n"):
        runner.write("f", content)
    runner.write("g", b"g\n", conversation="conv_two")
    runner.done("accept", "--all")


def test_a_pinned_edit_is_kept_with_all_later_edits_of_its_file(runner: CommandRunner) -> None:
    runner.write("f", b"1\n")
    runner.done("accept", "1")
    for content in (b"2\n", b"3\n"):
        runner.write("f", content)
        runner.done("accept", "--all")
    ran = runner.done("pin", "add", "2", "--title", "for the audit")
    assert "edits 2" in ran.text
    assert "for the audit" in ran.text
    assert expired_edits(runner) == [1]
    assert runner.done("reject", "3").status == 0
    assert runner.done("pin").text == ran.text


def test_a_removed_pin_keeps_nothing(runner: CommandRunner) -> None:
    three_edits(runner)
    runner.done("pin", "add", "conv_one")
    assert expired_edits(runner) == [4]
    (removed,) = runner.done("pin", "remove", "1", "--json").lines()
    assert (removed["number"], removed["edits"]) == (1, [1, 2, 3])
    assert runner.cas("pin").text == ""
    assert expired_edits(runner) == [1, 2, 3, 4]


def test_a_pinned_state_keeps_its_blob(runner: CommandRunner) -> None:
    three_edits(runner)
    (pin,) = runner.done("pin", "add", "f@2", "--json").lines()
    assert pin["blobs"] == [blob_id(b"2\n").hex()]
    assert expired_edits(runner) == [1, 2, 3, 4]
    assert runner.done("cat", blob_id(b"2\n").hex()).out == b"2\n"
    assert runner.done("fsck", "--json").json()["sound"]


def test_unknown_and_expired_edits_cannot_be_pinned(runner: CommandRunner) -> None:
    three_edits(runner)
    assert runner.cas("pin", "add", "17").status == 1
    assert runner.cas("pin", "add").status == 2
    assert runner.cas("pin", "remove", "1").status == 1
    expired_edits(runner)
    assert "Edit 2 expired on " in runner.cas("pin", "add", "2").said
    assert runner.cas("pin").text == ""
