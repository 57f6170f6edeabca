"""`cas amend`: correct an edit's result in an editor or from a file."""

from pathlib import Path

import pytest

from objstore import Status
from tests.support.command_runner import CommandRunner

PENDING, ACCEPTED, REJECTED = Status.PENDING, Status.ACCEPTED, Status.REJECTED


@pytest.fixture
def runner_with_edit(runner: CommandRunner) -> CommandRunner:
    """Record a file and an edit of its second line."""
    runner.write("a", b"one\ntwo\nthree\n")
    runner.edit("a", b"two", b"2")
    return runner


def editor(folder: Path, script: str) -> str:
    """Return the path of an editor that runs the script with the file as $1."""
    program = folder / "editor"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


def saved_text(folder: Path, shown: str) -> bytes:
    """Return the edited text from the one saved copy, which the output must name."""
    (copy,) = folder.glob("cas-amend-*/a")
    assert f"Your text is saved in {copy}\n" in shown
    return copy.read_bytes()


def test_an_amendment_from_a_file_is_decided_with_its_edit(runner_with_edit: CommandRunner, tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.write_bytes(b"one\nzwei\nthree\n")
    assert runner_with_edit.done("amend", "2", "--from", str(new)).text == "Recorded edit 3, which amends edit 2.\n"
    assert runner_with_edit.bytes("a") == b"one\nzwei\nthree\n"
    assert runner_with_edit.statuses() == {"1:0": PENDING, "2:1": PENDING, "3:1": ACCEPTED}
    assert "(amends 2)" in runner_with_edit.done("log").text
    assert "amends        edit 2\n" in runner_with_edit.done("show", "3").text
    assert runner_with_edit.done("log", "--json", "-n", "1").json()["amends"] == 2
    output = runner_with_edit.done("reject", "2").text
    counted = "2 edits, 1 of them accepted: edit 3.\n"
    assert output == f"Rejected edit 2.\n{counted}Also rejected edit 3, which depends on it.\nRewrote a\n"
    assert runner_with_edit.bytes("a") == b"one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("names", "also"),
    [
        (["3:1"], "Also rejected 3:2, which depends on them.\n"),
        (["3:1", "3:2"], ""),
        (["3"], ""),
        ([], "Also rejected edit 3, which depends on it.\n"),
    ],
)
def test_only_unnamed_hunks_of_an_amendment_are_listed_as_also_rejected(
    runner_with_edit: CommandRunner, tmp_path: Path, names: list[str], also: str
) -> None:
    new = tmp_path / "new"
    new.write_bytes(b"one\nzwei\nthree\nfour\n")
    runner_with_edit.done("amend", "2", "--from", str(new))
    lines = runner_with_edit.done("reject", "2:1", *names).text.splitlines(keepends=True)
    assert "".join(lines[1:-1]) == f"2 edits, 1 of them accepted: edit 3.\n{also}"


def test_rejecting_an_amendment_restores_the_edits_text(runner_with_edit: CommandRunner, tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.write_bytes(b"one\nzwei\nthree\n")
    assert runner_with_edit.done("amend", "2:1", "--from", str(new), "--json").json()["amends"] == 2
    runner_with_edit.done("reject", "3")
    assert runner_with_edit.bytes("a") == b"one\n2\nthree\n"


def test_an_amendment_names_the_change_from_outside_that_it_records_first(
    runner_with_edit: CommandRunner, tmp_path: Path
) -> None:
    new = tmp_path / "new"
    new.write_bytes(b"one\nzwei\nthree\nfour\n")
    (runner_with_edit.folder / "a").write_bytes(b"one\n2\nthree\nfour\n")
    assert runner_with_edit.done("amend", "2", "--from", str(new)).text == (
        "Recorded the change from outside to a as edit 3.\nRecorded edit 4, which amends edit 2.\n"
    )


def test_an_editor_gets_the_current_file(runner_with_edit: CommandRunner, tmp_path: Path) -> None:
    status, shown = runner_with_edit.typed("amend", "2", EDITOR=editor(tmp_path, 'sed -i s/2/II/ "$1"'), VISUAL="")
    assert (status, shown) == (0, "Recorded edit 3, which amends edit 2.\n")
    assert runner_with_edit.bytes("a") == b"one\nII\nthree\n"


def test_an_editor_that_changes_nothing_records_nothing(runner_with_edit: CommandRunner, tmp_path: Path) -> None:
    status, shown = runner_with_edit.typed("amend", "2", EDITOR=editor(tmp_path, "true"), VISUAL="")
    assert (status, shown) == (0, "Nothing to do: a already has this content.\n")
    assert runner_with_edit.statuses() == {"1:0": PENDING, "2:1": PENDING}


def test_an_editor_that_fails_changes_nothing(runner_with_edit: CommandRunner, tmp_path: Path) -> None:
    program = editor(tmp_path, 'echo typed > "$1"; exit 3')
    status, shown = runner_with_edit.typed("amend", "2", EDITOR=program, VISUAL="", TMPDIR=str(tmp_path))
    assert status == 1
    assert "\ncas: " in shown
    assert runner_with_edit.bytes("a") == b"one\n2\nthree\n"
    assert saved_text(tmp_path, shown) == b"typed\n"


def test_an_editor_that_fails_without_a_change_leaves_no_copy(runner_with_edit: CommandRunner, tmp_path: Path) -> None:
    status, shown = runner_with_edit.typed(
        "amend", "2", EDITOR=editor(tmp_path, "exit 3"), VISUAL="", TMPDIR=str(tmp_path)
    )
    assert status == 1
    assert shown.startswith("cas: ")
    assert not list(tmp_path.glob("cas-amend-*"))


@pytest.mark.parametrize("words", [("amend", "2"), ("comment", "a")])
@pytest.mark.parametrize(
    ("program", "did"),
    [
        (
            "nowhere-to-be-found",
            "could not be started (No such file or directory): set VISUAL or EDITOR to another one",
        ),
        ("false", "ended with an error"),
    ],
)
def test_a_failure_names_the_editor_and_what_to_do(
    runner_with_edit: CommandRunner, words: tuple[str, ...], program: str, did: str
) -> None:
    status, shown = runner_with_edit.typed(*words, EDITOR=program, VISUAL="")
    assert (status, shown) == (1, f"cas: The editor {program} {did}\n")


def test_an_editor_with_an_open_quote_is_refused(runner_with_edit: CommandRunner) -> None:
    status, shown = runner_with_edit.typed("amend", "2", EDITOR="vi '", VISUAL="")
    assert status == 1
    assert shown == "cas: VISUAL or EDITOR is no valid command: No closing quotation\n"


def test_a_file_that_changes_while_the_editor_is_open_is_not_overwritten(
    runner_with_edit: CommandRunner, tmp_path: Path
) -> None:
    script = f'echo mine > "$1"; echo theirs > "{runner_with_edit.folder / "a"}"'
    status, shown = runner_with_edit.typed(
        "amend", "2", EDITOR=editor(tmp_path, script), VISUAL="", TMPDIR=str(tmp_path)
    )
    assert status == 1
    assert "changed on disk since it was read" in shown
    assert runner_with_edit.bytes("a") == b"theirs\n"
    assert saved_text(tmp_path, shown) == b"mine\n"


def test_an_amendment_is_rebased_when_other_lines_change_meanwhile(
    runner_with_edit: CommandRunner, tmp_path: Path
) -> None:
    script = f'sed -i s/2/II/ "$1"; echo four >> "{runner_with_edit.folder / "a"}"'
    program = editor(tmp_path, script)
    status, shown = runner_with_edit.typed("amend", "2", EDITOR=program, VISUAL="", TMPDIR=str(tmp_path))
    assert (status, shown) == (
        0,
        (
            "Recorded the change from outside to a as edit 3.\nRecorded edit 4, which amends edit 2.\n"
            "a changed meanwhile: your text was carried over to the new version.\n"
        ),
    )
    assert runner_with_edit.bytes("a") == b"one\nII\nthree\nfour\n"
    assert not list(tmp_path.glob("cas-amend-*"))


def test_without_a_terminal_amend_requires_the_option_from(runner_with_edit: CommandRunner) -> None:
    ran = runner_with_edit.cas("amend", "2")
    assert ran.status == 2
    assert "--from FILE" in ran.said
    runner_with_edit.done("reject", "2")
    ran = runner_with_edit.cas("amend", "2", "--from", "-")
    assert (ran.status, ran.said) == (1, "cas: Edit 2 can't be amended: it is rejected.\n")
    assert runner_with_edit.cas("amend", "1", "--from", "nowhere").status == 1
