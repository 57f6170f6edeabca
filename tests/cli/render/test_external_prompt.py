"""Changes from outside: shown before a decision, then kept or discarded, or the decision is aborted."""

import os
from collections.abc import Callable
from shlex import split

import pytest

from objstore import Origin, Status
from tests.cli.commands.reviewing.test_accept_reject_undo import file_snapshots
from tests.support.command_runner import CommandRunner
from tests.support.hooked_agents import shell
from tests.support.sampling import sampled_product

PENDING, ACCEPTED, REJECTED = Status.PENDING, Status.ACCEPTED, Status.REJECTED


def changed_outside(runner: CommandRunner) -> None:
    """Edit 2 changes the first line; then a person changes the last line."""
    runner.write("a", b"1\n2\n3\n")
    runner.edit("a", b"1", b"one")
    (runner.folder / "a").write_bytes(b"one\n2\nmine\n")


def test_without_a_terminal_the_decision_is_refused(runner: CommandRunner) -> None:
    changed_outside(runner)
    before = file_snapshots(runner.folder)
    ran = runner.cas("reject", "2")
    assert (ran.status, ran.out) == (1, b"")
    assert ran.said == (
        "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n one\n 2\n-3\n+mine\n"
        "cas: refused, nothing was changed: a changed outside since the last recorded state.\n"
        "See `cas diff --unrecorded`. "
        "Pass --my-changes keep to record it and continue, or --my-changes drop to drop it.\n"
    )
    assert file_snapshots(runner.folder) == before
    assert set(runner.statuses().values()) == {PENDING}
    assert runner.cas("reject", "2", "--on-external", "abort") == ran


def test_refusal_shows_the_first_lines_of_many_changes_and_of_long_lines(runner: CommandRunner) -> None:
    for name in ("a", "b"):
        runner.write(name, b"".join(b"%d\n" % number for number in range(30)))
    (runner.folder / "a").write_bytes(b"x" * 2000 + b"\n\x1b[31mred\n")
    (runner.folder / "b").write_bytes(b"")
    for words in (["reject", "1", "2"], ["reject", "--all", "--dry-run"]):
        ran = runner.cas(*words)
        *shown, dots, refusal, advice = ran.said.splitlines()
        assert (ran.status, len(shown), dots) == (1, 20, "...")
        assert shown[:3] == ["diff --git a/a b/a", "--- a/a", "+++ b/a"]
        assert refusal.startswith("cas: refused, nothing was changed: a, b changed outside")
        assert advice.startswith("See `cas diff --unrecorded`.")
    (runner.folder / "a").write_bytes(b"0\n" + b"x" * 2000 + b"\x1b[31mred\n")
    ran = runner.cas("reject", "1")
    assert max(map(len, ran.said.splitlines())) < 600
    (runner.folder / "a").write_bytes(b"\x1b[31m0\n" + runner.bytes("a"))
    assert "\x1b" not in runner.cas("reject", "1").said


@pytest.mark.parametrize("kind", ["deleted", "a link", "a folder", "a named pipe", "binary", "unreadable"])
def test_refusal_shows_a_change_of_any_kind(runner: CommandRunner, kind: str) -> None:
    changed_outside(runner)
    file = runner.folder / "a"
    match kind:
        case "binary":
            file.write_bytes(b"\0\1\2")
        case "unreadable":
            file.chmod(0)
        case _:
            file.unlink()
    if kind == "a link":
        file.symlink_to("b")
    if kind == "a folder":
        file.mkdir()
    if kind == "a named pipe":
        os.mkfifo(file)
    ran = runner.cas("reject", "2")
    assert ran.status == 1
    assert "Traceback" not in ran.said
    assert ran.said.splitlines()[0] != ""
    if kind in {"a link", "a folder", "a named pipe"}:
        assert f"{kind} is now at a." in ran.said.replace("A ", "a ") or f"{kind} is in the place of a." in ran.said


def test_json_of_a_change_from_outside(runner: CommandRunner) -> None:
    changed_outside(runner)
    ran = runner.cas("reject", "2", "--json")
    assert ran.status == 1
    document = ran.json()
    assert document["outcome"] == "external-changes"
    assert [change["change"] for change in document["external_changes"]] == ["modified"]


def test_keep_records_the_change_and_decides(runner: CommandRunner) -> None:
    changed_outside(runner)
    ran = runner.done("reject", "2", "--on-external", "keep")
    assert ran.text == ("Rejected edit 2.\nRecorded the change from outside to a as edit 3.\nRewrote a\n")
    assert runner.bytes("a") == b"1\n2\nmine\n"
    with runner.workspace() as workspace:
        assert workspace.history.edit(3).edit.origin is Origin.EXTERNAL
        assert workspace.review.external_changes() == ()


def test_discard_restores_the_recorded_state_and_keeps_the_content_in_the_store(runner: CommandRunner) -> None:
    changed_outside(runner)
    runner.done("reject", "2", "--on-external", "discard")
    assert runner.bytes("a") == b"1\n2\n3\n"
    assert runner.done("cat", "a@3").out == b"one\n2\nmine\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("accept 2", "Accepted edit 2."),
        ("reject 2", "Rejected edit 2."),
        ("reset 1", "Made pending again: edit 1."),
        ("undo", "Undid the acceptance of edit 1."),
    ],
)
def test_a_dropped_change_is_reported_only_as_dropped(runner: CommandRunner, words: str, message: str) -> None:
    runner.write("a", b"1\n2\n3\n")
    runner.edit("a", b"1", b"one")
    runner.done("accept", "1")
    (runner.folder / "a").write_bytes(b"one\n2\nmine\n")
    planned = runner.done(*words.split(), "--dry-run", "--on-external", "discard").text.splitlines()
    assert "Would drop the change from outside to a." in planned
    assert not any("3" in line for line in planned[: planned.index("Would drop the change from outside to a.")])
    output = runner.done(*words.split(), "--on-external", "discard").text
    assert output == f"{message}\nDropped the change from outside to a, recorded as edit 3.\nRewrote a\n"


@pytest.mark.parametrize("choice", ["keep", "discard"])
def test_a_dry_run_shows_the_outcome_of_a_choice_and_records_nothing(runner: CommandRunner, choice: str) -> None:
    changed_outside(runner)
    before = file_snapshots(runner.folder)
    last = {"keep": " mine\n", "discard": "-mine\n+3\n"}[choice]
    text = runner.done("reject", "2", "--dry-run", "--on-external", choice).text
    assert text.endswith(f"@@ -1,3 +1,3 @@\n-one\n+1\n 2\n{last}")
    assert file_snapshots(runner.folder) == before
    assert len(runner.done("log", "--json").lines()) == 2


@pytest.mark.parametrize(
    ("choice", "change"),
    sampled_product(["keep", "discard"], ["echo 4 >> a", "rm a", "chmod 600 a", "printf '1\ntwo\n3' > a"]),
)
def test_a_dry_run_as_json_names_what_the_decision_changes(runner: CommandRunner, choice: str, change: str) -> None:
    runner.write("a", b"1\n2\n3\n")
    runner.edit("a", b"2", b"two")
    shell(change, folder=runner.folder)
    words = ("reject", "2", "--on-external", choice, "--json")
    planned, done = runner.cas(*words, "--dry-run"), runner.cas(*words)
    assert (planned.status, planned.said) == (done.status, done.said)
    for name in ("outcome", "changed", "conflicts"):
        assert planned.json()[name] == done.json()[name]
    assert len(planned.json()["files"]) == len(done.json()["files"])


def test_changes_in_other_files_do_not_stop_a_decision(runner: CommandRunner) -> None:
    changed_outside(runner)
    runner.write("b", b"x\n")
    runner.done("reject", "3")
    assert runner.bytes("a") == b"one\n2\nmine\n"


# ---- the question on a terminal


def test_on_a_terminal_the_diff_is_shown_and_enter_keeps(runner: CommandRunner) -> None:
    changed_outside(runner)
    status, shown = runner.typed("reject", "2", typed="\n")
    assert status == 0
    question = shown.index("Keep (record it and continue), drop (restore the recorded state), or abort? [K/d/a]")
    assert shown.index("-3\n+mine\n") < question < shown.index("Rejected edit 2.")
    assert runner.bytes("a") == b"1\n2\nmine\n"


@pytest.mark.parametrize("typed", ["d\n", "what?\nD\n", "drop\n", "discard\n"])
def test_on_a_terminal_d_drops(runner: CommandRunner, typed: str) -> None:
    changed_outside(runner)
    status, _ = runner.typed("reject", "2", typed=typed)
    assert status == 0
    assert runner.bytes("a") == b"1\n2\n3\n"


def test_on_a_terminal_a_aborts(runner: CommandRunner) -> None:
    changed_outside(runner)
    before = file_snapshots(runner.folder)
    status, shown = runner.typed("reject", "2", typed="a\n")
    assert status == 1
    assert "cas: refused, nothing was changed" in shown
    assert file_snapshots(runner.folder) == before


@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_interrupting_the_question_changes_nothing(runner: CommandRunner, key: str) -> None:
    changed_outside(runner)
    before = file_snapshots(runner.folder)
    status, shown = runner.typed_at("[K/d/a] ", lambda: key, "reject", "2")
    assert status == 130
    assert "Traceback" not in shown
    assert shown.endswith("\n")  # so that the shell's prompt has a line of its own
    assert file_snapshots(runner.folder) == before


def test_a_change_during_the_question_is_not_overwritten(runner: CommandRunner) -> None:
    changed_outside(runner)

    def change_and_discard() -> str:
        (runner.folder / "a").write_bytes(b"newer\n")
        return "d\n"

    status, shown = runner.typed_at("[K/d/a] ", change_and_discard, "reject", "2")
    assert status == 1
    assert "changed on disk since it was read" in shown
    assert runner.bytes("a") == b"newer\n"


@pytest.mark.parametrize("words", [("accept", "--all"), ("undo",)])
def test_a_decision_made_elsewhere_during_the_question_is_kept(runner: CommandRunner, words: tuple[str, ...]) -> None:
    runner.write("a", b"one\n")
    runner.write("b", b"one\n")
    runner.done("accept", "2")
    runner.done("reset", "2")
    (runner.folder / "b").write_bytes(b"one\nmine\n")

    def decide_and_keep() -> str:
        runner.done("reject", "1", "-m", "wrong")
        return "k\n"

    status, shown = runner.typed_at("[K/d/a] ", decide_and_keep, *words)
    assert status == 1
    assert "1:0 was decided elsewhere meanwhile (rejected now); nothing was changed" in shown
    assert runner.statuses() == {"1:0": REJECTED, "2:0": PENDING}


def changed_outside_over_an_edit(runner: CommandRunner) -> None:
    """Edit 2 changes the first line; then a person changes the same line."""
    runner.write("a", b"1\n2\n3\n")
    runner.edit("a", b"1", b"one")
    (runner.folder / "a").write_bytes(b"ONE\n2\n3\n")


def test_a_change_from_outside_to_rejected_lines_is_a_conflict(runner: CommandRunner) -> None:
    changed_outside_over_an_edit(runner)
    ran = runner.cas("reject", "2", "--on-external", "keep")
    assert ran.status == 1
    assert "the change from outside needs edit 2 (a:1)\n    - one\n    + ONE\n" in ran.said
    assert "--my-changes drop" in ran.said
    assert "cas reject 2 3" not in ran.said  # there is no edit 3
    (conflict,) = runner.cas("reject", "2", "--on-external", "keep", "--json").json()["conflicts"]
    assert (conflict["unit"], conflict["outside"]) == ("3:1", ["3:1"])
    assert runner.bytes("a") == b"ONE\n2\n3\n"
    runner.done("reject", "2", "--on-external", "discard")
    assert runner.bytes("a") == b"1\n2\n3\n"
    runner.done("undo")
    assert runner.bytes("a") == b"ONE\n2\n3\n"


def test_a_change_from_outside_to_rejected_lines_can_be_kept_with_conflict_markers(runner: CommandRunner) -> None:
    changed_outside_over_an_edit(runner)
    runner.done("reject", "2", "--on-external", "keep", "--markers")
    assert runner.bytes("a") == (
        b"<<<<<<< without edit 2 (conv_one)\n1\n"
        b"||||||| edit 2 (conv_one)\none\n"
        b"=======\nONE\n"
        b">>>>>>> edit 3 (external)\n"
        b"2\n3\n"
    )


def test_accepting_an_edit_of_lines_changed_outside_is_a_conflict(runner: CommandRunner) -> None:
    runner.write("a", b"1\n2\n")
    runner.edit("a", b"1", b"one")
    runner.done("reject", "2")
    (runner.folder / "a").write_bytes(b"ONE\n2\n")
    ran = runner.cas("accept", "2", "--on-external", "keep")
    assert ran.status == 1
    assert "edit 2 hunk 1 and the change from outside both change the same lines (a:1)" in ran.said
    runner.done("accept", "2", "--on-external", "discard")
    assert runner.bytes("a") == b"one\n2\n"


@pytest.mark.parametrize("answer", ["k", "d", "a"])
def test_a_file_that_changes_before_the_answer_is_left_alone(runner: CommandRunner, answer: str) -> None:
    changed_outside_over_an_edit(runner)

    def change_and_answer() -> str:
        (runner.folder / "a").write_bytes(b"newer\n")
        return f"{answer}\n"

    status, shown = runner.typed_at("[K/d/a]", change_and_answer, "reject", "2")
    assert status == 1, shown
    assert runner.bytes("a") == b"newer\n"
    assert runner.statuses() == {"1:0": PENDING, "2:1": PENDING}


@pytest.mark.parametrize("has_other_conflict", [False, True])
def test_other_conflicts_are_named_with_the_change_from_outside(
    runner: CommandRunner,
    has_other_conflict: bool,  # noqa: FBT001 - pytest gives parameters by name
) -> None:
    lines = [b"%d\n" % number for number in range(9)]
    runner.write("a", b"".join(lines))
    lines[0], lines[8] = b"first\n", b"last\n"
    runner.write("a", b"".join(lines))
    runner.done("reject", "2")
    if has_other_conflict:
        runner.edit("a", b"0\n", b"zero\n")
    (runner.folder / "a").write_bytes(runner.bytes("a").replace(b"8\n", b"eight\n"))
    message = runner.cas("accept", "2", "--on-external", "keep").said
    assert "The change from outside is in conflict: pass --my-changes drop" in message
    assert message.endswith("\nTo make room first:  cas reject 3 --my-changes drop\n") is has_other_conflict
    assert ("make room" in message) is has_other_conflict
    if has_other_conflict:
        runner.done(*advised_commands(message)[0])
        runner.done("accept", "2")
        assert runner.bytes("a") == b"".join(lines)


def test_markers_are_advised_only_where_they_apply_and_were_not_passed(runner: CommandRunner) -> None:
    lines = b"1\n2\n3\n"
    runner.write("a", lines)
    runner.edit("a", b"2\n", b"two\n")
    runner.write("new", b"new\n")
    runner.done("reject", "2")
    (runner.folder / "a").write_bytes(b"1\nzwei\n3\n")
    advice = "The change from outside is in conflict: pass --my-changes drop to drop it (it can still be restored)"
    assert f"{advice}.\n" in runner.cas("undo", "--on-external", "keep").said
    assert f"{advice},\nor --markers" in runner.cas("accept", "2", "--on-external", "keep").said
    (runner.folder / "new").write_bytes(b"new\nmine\n")
    assert f"{advice}.\n" in runner.cas("reject", "3", "--on-external", "keep").said
    assert f"{advice}.\n" in runner.cas("reject", "3", "--on-external", "keep", "--markers").said


def advised_commands(message: str) -> list[list[str]]:
    """Return the commands that a message advises, each as words after `cas`."""
    return [split(line.partition(":  cas ")[2]) for line in message.splitlines() if ":  cas " in line]


def moved_and_created_again(runner: CommandRunner) -> list[str]:
    """Edit 2 moves the file that edit 1 created, and edit 3 creates it again: rejecting only 1 and 3 is a conflict."""
    runner.write("a", b"1\n2\n", conversation="conv_two")
    runner.move("a", "b")
    runner.write("a", b"other\n", conversation="conv_two")
    runner.write("x", b"x\n", conversation="conv_two")
    (runner.folder / "x").write_bytes(b"mine\n")
    return ["reject", "--conversation", "conv_two"]


def changed_again(runner: CommandRunner) -> list[str]:
    """Edit 3 changes a line that edit 2 wrote, and a person changes another."""
    runner.write("a", b"1\n2\n3\n4\n5\n")
    runner.write("a", b"one\n2\n3\n4\nfive\n")
    runner.edit("a", b"one", b"ONE")
    (runner.folder / "a").write_bytes(b"ONE\n2\n3\n4\nFIVE\n")
    return ["reject", "2"]


def needs_a_rejected_edit(runner: CommandRunner) -> list[str]:
    """Edit 3 changes a line that edit 2 wrote; after both are rejected, edit 4 and a person change the same lines."""
    runner.write("a", b"1\n2\n3\n4\n5\n")
    runner.edit("a", b"1", b"one")
    runner.write("a", b"ONE\n2\n3\n4\nfive\n")
    runner.done("reject", "2", "3")
    runner.edit("a", b"1", b"eins")
    (runner.folder / "a").write_bytes(b"eins\n2\n3\n4\nfuenf\n")
    return ["accept", "3"]


@pytest.mark.parametrize(
    ("history", "advised"),
    [
        (moved_and_created_again, ["reject --cascade --conversation conv_two", "reject --conversation conv_two 2"]),
        (changed_again, ["reject --cascade 2", "reject 2 3"]),
        (needs_a_rejected_edit, ["reject 4", "accept 3 2"]),
    ],
)
def test_commands_advised_for_a_change_from_outside_work(
    runner: CommandRunner, history: Callable[[CommandRunner], list[str]], advised: list[str]
) -> None:
    words = history(runner)
    message = runner.cas(*words, "--on-external", "keep").said
    assert "The change from outside is in conflict: pass --my-changes drop" in message
    assert [" ".join(command) for command in advised_commands(message)] == [
        f"{words_advised} --my-changes drop" for words_advised in advised
    ]
    marked = runner.cas(*words, "--on-external", "keep", "--markers", "--dry-run")
    assert ("or --markers" in message) is (marked.status == 0)
    for command in advised_commands(message):
        # The commands of a reject are alternatives; those of an accept are run in order.
        runner.done(*command, *(["--dry-run"] if words[0] == "reject" else []))


@pytest.mark.parametrize("choice", ["keep", "discard"])
@pytest.mark.parametrize(
    ("words", "advised"),
    [
        ("reject 2", ["reject --cascade 2", "reject 2 3"]),
        (
            "reject --conversation conv_two",
            ["reject --cascade --conversation conv_two", "reject --conversation conv_two 3"],
        ),
        ("accept 3", ["accept 3 2"]),
    ],
)
def test_advised_commands_repeat_the_choice_about_a_change_from_outside(
    runner: CommandRunner, choice: str, words: str, advised: list[str]
) -> None:
    runner.write("a", b"1\n2\n3\n4\n5\n")
    runner.edit("a", b"1", b"one", conversation="conv_two")
    runner.edit("a", b"one", b"ONE")
    if words == "accept 3":
        runner.done("reject", "2", "3")
    (runner.folder / "a").write_bytes(runner.bytes("a").replace(b"5", b"mine"))
    message = runner.cas(*words.split(), "--on-external", choice).said
    assert [" ".join(command) for command in advised_commands(message)] == [
        f"{words_advised} --my-changes {'keep' if choice == 'keep' else 'drop'}" for words_advised in advised
    ]
    for command in advised_commands(message):
        runner.done(*command, "--dry-run")
