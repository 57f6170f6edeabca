"""A creation with a person's lines in it is rejected, and the file stays with these lines."""

import stat

import pytest

from objstore import Status
from tests.support.command_runner import CommandRunner

AGENTS = b"a1\na2\na3\n"


@pytest.fixture
def created(runner: CommandRunner) -> CommandRunner:
    """Return a workspace in which an agent created a file, and a person wrote into it."""
    runner.write("sub/new", AGENTS)
    person_writes(runner, b"a1\nmine\na2 fixed\na3\nmy end\n")
    return runner


def person_writes(runner: CommandRunner, content: bytes) -> None:
    """Let a person write the file, and record that."""
    (runner.folder / "sub/new").write_bytes(content)
    runner.done("record")


def statuses(runner: CommandRunner) -> list[str]:
    return [row["status"] for row in runner.done("log", "--json", "--reverse").lines()]


def test_a_refused_rejection_names_the_command_that_keeps_and_the_one_that_drops(created: CommandRunner) -> None:
    refused = created.cas("reject", "1")
    assert refused.status == 1
    assert "To keep the file with the lines of others:  cas reject --keep-lines 1\n" in refused.said
    assert "To reject what depends on it too:  cas reject --cascade 1\n" in refused.said
    assert created.cas("reject", "1", "--json").json()["can_keep_lines"] is True
    rewind = created.cas("reject", "--all")
    assert "cas reject --keep-lines --all\n" in rewind.said


def test_the_lines_of_a_person_stay_and_those_of_the_agent_go(created: CommandRunner) -> None:
    said = created.done("reject", "1", "--keep-lines").text
    assert said == "Rejected edit 1.\nKept sub/new with 3 lines of edit 2, as edit 3.\nRewrote sub/new\n"
    assert created.bytes("sub/new") == b"mine\na2 fixed\nmy end\n"
    rows = created.done("log", "--json").lines()
    assert [(row["seq"], row["status"], row["origin"]) for row in rows][:1] == [(3, "accepted", "person")]
    assert created.done("fsck").status == 0
    assert "0 pending" in created.done("status").text


def test_a_dry_run_shows_what_stays_and_changes_nothing(created: CommandRunner) -> None:
    before = created.bytes("sub/new")
    said = created.done("reject", "1", "--keep-lines", "--dry-run").text
    assert "Would keep sub/new with 3 lines of edit 2.\n" in said
    assert "-a1\n mine\n" in said
    shape = created.done("reject", "1", "--keep-lines", "--dry-run", "--json").json()
    assert [(kept["edit"], kept["lines"], kept["units"]) for kept in shape["kept"]] == [(None, 3, ["2:1", "2:2"])]
    assert created.bytes("sub/new") == before
    assert len(statuses(created)) == 2


def test_undo_and_redo_of_a_rejection_that_keeps_lines_are_inverse(created: CommandRunner) -> None:
    before, all_before = created.bytes("sub/new"), created.statuses()
    created.done("reject", "1", "--keep-lines")
    kept, all_kept = created.bytes("sub/new"), created.statuses()
    for _ in range(2):
        created.done("undo")
        assert created.bytes("sub/new") == before
        assert {name: status for name, status in created.statuses().items() if name in all_before} == all_before
        assert created.statuses()["3:0"] is Status.REJECTED
        created.done("redo")
        assert (created.bytes("sub/new"), created.statuses()) == (kept, all_kept)
    assert created.done("fsck").status == 0


def test_what_was_kept_is_an_ordinary_edit(created: CommandRunner) -> None:
    created.done("reject", "1", "--keep-lines")
    created.edit("sub/new", b"mine\n", b"yours\n")
    created.done("reject", "4")
    assert created.bytes("sub/new") == b"mine\na2 fixed\nmy end\n"
    created.done("reject", "3")
    assert not (created.folder / "sub/new").exists()


def test_lines_that_are_not_recorded_yet_are_kept_too(runner: CommandRunner) -> None:
    runner.write("new", AGENTS)
    (runner.folder / "new").write_bytes(b"mine\n" + AGENTS)
    refused = runner.cas("reject", "1", "--my-changes", "keep")
    assert "cas reject --keep-lines 1 --my-changes keep\n" in refused.said
    runner.done("reject", "--keep-lines", "1", "--my-changes", "keep")
    assert runner.bytes("new") == b"mine\n"


def test_undecided_lines_of_another_agent_are_not_decided_by_it(created: CommandRunner) -> None:
    created.edit("sub/new", b"mine\n", b"mine\ntheirs\n", conversation="conv_two")
    refused = created.cas("reject", "1")
    assert "--keep-lines" not in refused.said
    before = created.bytes("sub/new")
    refused = created.cas("reject", "1", "--keep-lines")
    assert refused.status == 1
    assert "--keep-lines doesn't solve this" in refused.said
    assert created.bytes("sub/new") == before


@pytest.mark.parametrize("others", [b"a1\na3\n", b"\0" + AGENTS])
def test_nothing_is_offered_where_no_line_of_text_would_stay(runner: CommandRunner, others: bytes) -> None:
    (runner.folder / "sub").mkdir()
    runner.write("sub/new", AGENTS)
    person_writes(runner, others)
    assert runner.cas("reject", "1", "--json").json().get("can_keep_lines") is False


def test_mode_and_later_path_of_the_file_stay(created: CommandRunner) -> None:
    created.move("sub/new", "moved")
    created.done("accept", "3")
    (created.folder / "moved").chmod(0o600)
    created.done("record")
    created.done("reject", "1", "--keep-lines")
    assert created.bytes("moved") == b"mine\na2 fixed\nmy end\n"
    assert stat.S_IMODE((created.folder / "moved").stat().st_mode) == 0o600
    created.done("undo")
    assert created.bytes("moved") == b"a1\nmine\na2 fixed\na3\nmy end\n"


def test_a_file_that_comes_back_to_the_path_is_not_overwritten(runner: CommandRunner) -> None:
    runner.write("old", b"old\n")
    runner.done("accept", "1")
    runner.move("old", "away")
    runner.write("old", AGENTS)
    (runner.folder / "old").write_bytes(AGENTS + b"mine\n")
    runner.done("record")
    refused = runner.cas("reject", "2", "3", "--keep-lines")
    assert refused.status == 1
    assert (runner.bytes("old"), runner.bytes("away")) == (AGENTS + b"mine\n", b"old\n")


def test_keep_lines_excludes_the_other_ways_out(created: CommandRunner) -> None:
    for other in ("--cascade", "--markers"):
        refused = created.cas("reject", "1", "--keep-lines", other)
        assert (refused.status, "exclude each other" in refused.said) == (2, True)


def test_a_line_that_a_person_added_and_took_out_again_hinders_no_rejection(runner: CommandRunner) -> None:
    (runner.folder / "sub").mkdir()
    runner.write("sub/new", AGENTS)
    person_writes(runner, b"a1\nmine\na2\na3\n")
    person_writes(runner, AGENTS)
    assert "Removed sub/new" in runner.done("reject", "1").text
    runner.done("undo")
    assert runner.bytes("sub/new") == AGENTS
