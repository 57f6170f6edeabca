"""At a terminal `cas` lists what goes along with a decision before it, and asks; a script reads it afterwards."""

import pytest

from objstore import Status, TurnInfo
from tests.support.command_runner import Answer, CommandRunner, on_terminal

TEN = b"".join(b"%d\n" % number for number in range(10))
AMENDED = TEN.replace(b"2\n", b"zwei\n").replace(b"9\n", b"neun\n")


def prepare(runner: CommandRunner) -> None:
    runner.write("a", TEN)
    runner.done("accept", "1")
    content = TEN.replace(b"2\n", b"two\n")
    turn = TurnInfo(session="s", began=1_000_000, prompt="prompt")
    runner.call(lambda call: call.write("a", content), conversation="c", turn=turn)
    (runner.folder / "new").write_bytes(AMENDED)
    runner.done("amend", "2", "--from", "new")
    (runner.folder / "new").unlink()


@pytest.fixture
def amended(runner: CommandRunner) -> CommandRunner:
    """Return a workspace in which an accepted amendment of pending edit 2 also changes line 10."""
    return runner.prepared(prepare)


@pytest.mark.parametrize("names", [("2",), ("2:1",), ("a",), ("a:3",), ("--turn", "1"), ("--all",)])
def test_accepted_hunks_that_go_along_are_listed_at_a_terminal_before_they_are_rejected(
    amended: CommandRunner, names: tuple[str, ...]
) -> None:
    before = amended.bytes("a"), amended.statuses()
    status, said = amended.typed_at("[y/N]", lambda: "n\n", "reject", *names)
    shown = said.partition("Go ahead?")[0]
    number = "3 edits, 2" if names == ("--all",) else "2 edits, 1"
    assert f"This rejects {number} of them accepted: " in shown
    assert status == 130
    assert (amended.bytes("a"), amended.statuses()) == before
    status, said = amended.typed_at("[y/N]", lambda: "y\n", "reject", *names)
    assert (status, said.count("Go ahead?")) == (0, 1), said
    assert amended.statuses()["3:2"] is Status.REJECTED


def test_nothing_is_asked_of_who_says_yes_before_or_names_all_of_it(amended: CommandRunner) -> None:
    status, said = amended.typed("reject", "2", "--yes")
    assert (status, "Go ahead?" in said, "2 edits, 1 of them accepted: edit 3." in said) == (0, False, True)
    amended.done("undo")
    status, said = amended.typed("reject", "2", "3")
    assert (status, "Go ahead?" in said) == (0, False)
    amended.done("undo")
    status, said = amended.typed("reject", "2", "--dry-run")
    assert (status, "Go ahead?" in said, "Would also reject edit 3" in said) == (0, False, True)


def test_a_script_is_not_asked(amended: CommandRunner) -> None:
    assert "Also rejected edit 3, which depends on it." in amended.done("reject", "2").text


def test_dependents_are_listed_before_a_cascade(amended: CommandRunner) -> None:
    amended.edit("a", b"zwei\n", b"deux\n")
    status, said = amended.typed_at("[y/N]", lambda: "n\n", "reject", "2", "--cascade")
    assert status == 130
    assert "Would also reject edits 3 4, which depend on it.\nGo ahead?" in said, said
    assert amended.statuses()["2:1"] is Status.PENDING


def test_a_change_from_outside_is_asked_about_once(amended: CommandRunner) -> None:
    (amended.folder / "a").write_bytes(AMENDED.replace(b"5\n", b"mine\n"))
    keep, go = Answer(after="[K/d/a] ", typed=lambda: "k\n"), Answer(after="[y/N]", typed=lambda: "y\n")
    status, said = on_terminal(("reject", "2"), keep, go, folder=amended.folder)
    assert (status, said.count("[K/d/a]"), said.count("[y/N]")) == (0, 1, 1), said
    assert amended.bytes("a") == TEN.replace(b"5\n", b"mine\n")


def test_what_is_decided_during_a_question_is_not_decided_again(amended: CommandRunner) -> None:
    amended.write("b", TEN)
    amended.done("accept", "2", "4")
    (amended.folder / "a").write_bytes(AMENDED.replace(b"5\n", b"mine\n"))

    def answer() -> str:
        amended.done("reject", "4")
        return "k\n"

    status, said = amended.typed_at("[K/d/a] ", answer, "reopen", "2", "b")
    assert (status, "4:0 was decided elsewhere meanwhile" in said) == (1, True), said
    assert amended.statuses()["4:0"] is Status.REJECTED
