"""`cas amend`: a person betters an edit's result, in an editor or from a file."""

from pathlib import Path

import pytest

from objstore import Status
from tests.support.command_runner import CommandRunner

PENDING, ACCEPTED, REJECTED = Status.PENDING, Status.ACCEPTED, Status.REJECTED


@pytest.fixture
def edited(runner: CommandRunner) -> CommandRunner:
    """Record a file and an edit of its second line."""
    runner.write("a", b"one\ntwo\nthree\n")
    runner.edit("a", b"two", b"2")
    return runner


def editor(folder: Path, script: str) -> str:
    """Return an editor that does to a file what the script does to $1."""
    program = folder / "editor"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


def kept(folder: Path, shown: str) -> bytes:
    """Return what was typed, from the one copy that is left of it, and which is named."""
    (copy,) = folder.glob("cas-amend-*/a")
    assert f"Your text is saved in {copy}\n" in shown
    return copy.read_bytes()


def test_an_amendment_from_a_file_is_bound_to_its_edit(edited: CommandRunner, tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.write_bytes(b"one\nzwei\nthree\n")
    assert edited.done("amend", "2", "--from", str(new)).text == "Recorded edit 3, which amends edit 2.\n"
    assert edited.bytes("a") == b"one\nzwei\nthree\n"
    assert edited.statuses() == {"1:0": PENDING, "2:1": PENDING, "3:1": ACCEPTED}
    assert "(amends 2)" in edited.done("log").text
    assert "amends        edit 2\n" in edited.done("show", "3").text
    assert edited.done("log", "--json", "-n", "1").json()["amends"] == 2
    said = edited.done("reject", "2").text
    assert said == "Rejected edit 2.\nAlso rejected edit 3, which depends on it.\nRewrote a\n"
    assert edited.bytes("a") == b"one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("named", "also"),
    [
        (["3:1"], "Also rejected 3:2, which depends on them.\n"),
        (["3:1", "3:2"], ""),
        (["3"], ""),
        ([], "Also rejected edit 3, which depends on it.\n"),
    ],
)
def test_of_an_amendment_only_what_was_not_named_is_said_to_go_along(
    edited: CommandRunner, tmp_path: Path, named: list[str], also: str
) -> None:
    new = tmp_path / "new"
    new.write_bytes(b"one\nzwei\nthree\nfour\n")
    edited.done("amend", "2", "--from", str(new))
    said = edited.done("reject", "2:1", *named).text.splitlines(keepends=True)
    assert "".join(said[1:-1]) == also


def test_rejecting_the_amendment_gives_the_edits_text_back(edited: CommandRunner, tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.write_bytes(b"one\nzwei\nthree\n")
    assert edited.done("amend", "2:1", "--from", str(new), "--json").json()["amends"] == 2
    edited.done("reject", "3")
    assert edited.bytes("a") == b"one\n2\nthree\n"


def test_an_editor_gets_the_file_as_it_stands(edited: CommandRunner, tmp_path: Path) -> None:
    status, shown = edited.typed("amend", "2", EDITOR=editor(tmp_path, 'sed -i s/2/II/ "$1"'), VISUAL="")
    assert (status, shown) == (0, "Recorded edit 3, which amends edit 2.\n")
    assert edited.bytes("a") == b"one\nII\nthree\n"


def test_an_editor_that_changes_nothing_records_nothing(edited: CommandRunner, tmp_path: Path) -> None:
    status, shown = edited.typed("amend", "2", EDITOR=editor(tmp_path, "true"), VISUAL="")
    assert (status, shown) == (0, "Nothing to do: a already has this content.\n")
    assert edited.statuses() == {"1:0": PENDING, "2:1": PENDING}


def test_an_editor_that_fails_changes_nothing(edited: CommandRunner, tmp_path: Path) -> None:
    program = editor(tmp_path, 'echo typed > "$1"; exit 3')
    status, shown = edited.typed("amend", "2", EDITOR=program, VISUAL="", TMPDIR=str(tmp_path))
    assert status == 1
    assert "\ncas: " in shown
    assert edited.bytes("a") == b"one\n2\nthree\n"
    assert kept(tmp_path, shown) == b"typed\n"


def test_an_editor_that_fails_before_anything_is_typed_leaves_nothing_behind(
    edited: CommandRunner, tmp_path: Path
) -> None:
    status, shown = edited.typed("amend", "2", EDITOR=editor(tmp_path, "exit 3"), VISUAL="", TMPDIR=str(tmp_path))
    assert status == 1
    assert shown.startswith("cas: ")
    assert not list(tmp_path.glob("cas-amend-*"))


def test_an_editor_with_an_open_quote_is_no_internal_error(edited: CommandRunner) -> None:
    status, shown = edited.typed("amend", "2", EDITOR="vi '", VISUAL="")
    assert status == 1
    assert shown == "cas: VISUAL or EDITOR is no valid command: No closing quotation\n"


def test_a_file_that_changes_while_the_editor_is_open_is_not_overwritten(edited: CommandRunner, tmp_path: Path) -> None:
    script = f'echo mine > "$1"; echo theirs > "{edited.folder / "a"}"'
    status, shown = edited.typed("amend", "2", EDITOR=editor(tmp_path, script), VISUAL="", TMPDIR=str(tmp_path))
    assert status == 1
    assert "changed on disk since it was read" in shown
    assert edited.bytes("a") == b"theirs\n"
    assert kept(tmp_path, shown) == b"mine\n"


def test_what_is_typed_beside_other_lines_that_change_meanwhile_is_carried_over(
    edited: CommandRunner, tmp_path: Path
) -> None:
    script = f'sed -i s/2/II/ "$1"; echo four >> "{edited.folder / "a"}"'
    program = editor(tmp_path, script)
    status, shown = edited.typed("amend", "2", EDITOR=program, VISUAL="", TMPDIR=str(tmp_path))
    assert (status, shown) == (
        0,
        "Recorded edit 4, which amends edit 2.\na changed meanwhile: your text was carried over to the new version.\n",
    )
    assert edited.bytes("a") == b"one\nII\nthree\nfour\n"
    assert not list(tmp_path.glob("cas-amend-*"))


def test_without_a_terminal_the_new_bytes_are_named(edited: CommandRunner) -> None:
    ran = edited.cas("amend", "2")
    assert ran.status == 2
    assert "--from FILE" in ran.said
    edited.done("reject", "2")
    ran = edited.cas("amend", "2", "--from", "-")
    assert (ran.status, ran.said) == (1, "cas: Edit 2 can't be amended: it is rejected.\n")
    assert edited.cas("amend", "1", "--from", "nowhere").status == 1
