"""`cas export --patch`: a series that `git am` and `patch` apply, with the current files as the result."""

import subprocess
from pathlib import Path

import pytest

from objstore import Call, Operation
from tests.support.command_runner import PATIENCE, CommandRunner, environment

BASE = b"".join(b"line %d\n" % number for number in range(1, 21))


@pytest.fixture
def other(runner: CommandRunner, tmp_path: Path) -> Path:
    """Return a Git repository with the files from before the first edit."""
    for path in runner.folder.rglob("*"):
        assert ".cas" in path.parts, "the fixture must run before any file exists"
    folder = tmp_path / "other"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "base")
    return folder


def git(folder: Path, *words: str, stdin: bytes = b"") -> bytes:
    settings = environment({"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"})
    options = ["-c", "user.name=Tester", "-c", "user.email=t@localhost", "-c", "core.autocrlf=false"]
    return run(["git", *options, *words], folder, settings, stdin)


def run(command: list[str], folder: Path, settings: dict[str, str], stdin: bytes) -> bytes:
    ran = subprocess.run(
        command, cwd=folder, env=settings, input=stdin, capture_output=True, timeout=PATIENCE, check=False
    )
    assert ran.returncode == 0, (command, ran.stdout, ran.stderr)
    return ran.stdout


def executable_files(folder: Path) -> dict[str, tuple[bytes, bool]]:
    """Return every file with its bytes and whether it may be executed."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), bool(path.stat().st_mode & 0o100))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not {".git", ".cas"} & set(path.relative_to(folder).parts)
    }


def edits_of_every_kind(runner: CommandRunner) -> None:
    """Record edits of every kind that a text patch can express."""
    runner.write("poem", BASE)
    runner.write("my file.txt", b"no newline")
    runner.write("my file.txt", b"no newline, still")
    runner.write("trail ", b"1\n")
    runner.write("trail ", b"1\n2\n")
    runner.write(" lead/in ", b"1\n")
    runner.write("run", b"#!/bin/sh\n", mode=0o644)
    runner.write("run", b"#!/bin/sh\necho\n", mode=0o755)
    runner.write("empty", b"")
    runner.write("umläut", "größe\n".encode())
    runner.write("gone", b"for a while\n")
    runner.delete("gone")
    runner.edit("poem", b"line 3\n", b"LINE 3\n")
    runner.edit("poem", b"line 15\n", b"")
    runner.move("poem", "sub/poem")
    runner.edit("sub/poem", b"line 20\n", b"line 20\nthe end")


@pytest.mark.parametrize(
    ("agent", "author"),
    [
        ("joe@box", "joe at box"),
        ("@scope/agent", "at scope/agent"),
        ("größe@box", "größe at box"),
        ("a, b (c)", "a, b (c)"),
        (".", "record"),
        ("'", "record"),
        ("<;>", "record"),
        ("a (b", "a [b"),
        ("a) (b", "a] [b"),
        (r"a (b\)", r"a [b\]"),
        ('say "hi', "say 'hi"),
        ("=?utf-8?", "=?utf-8?"),
    ],
)
def test_the_author_of_a_commit_is_the_agent_under_any_name(
    runner: CommandRunner, other: Path, agent: str, author: str
) -> None:
    runner.done("record")
    (runner.folder / "f").write_bytes(b"1\n")
    runner.done("record", "--agent", agent)
    git(other, "am", "-q", stdin=runner.done("export", "--patch").out)
    assert git(other, "log", "-1", "--format=%an|%ae").decode() == f"{author}|cas@localhost\n"


def test_a_file_name_that_resembles_an_encoded_word_is_kept(runner: CommandRunner, other: Path) -> None:
    runner.write("=?f?=", b"1\n")
    git(other, "am", "-q", stdin=runner.done("export", "--patch").out)
    assert executable_files(other) == executable_files(runner.folder)
    assert git(other, "log", "-1", "--format=%s").decode() == "create =?f?= (edit 1)\n"


def test_git_am_applies_the_series_to_the_same_files(runner: CommandRunner, other: Path, tmp_path: Path) -> None:
    edits_of_every_kind(runner)
    runner.write("picture", bytes(range(256)) * 3)
    runner.write("picture", bytes(range(255, -1, -1)) * 3)
    written = runner.done("export", "--patch", "-o", str(tmp_path / "series")).text.splitlines()
    git(other, "am", "-q", "--keep-cr", *written)
    assert executable_files(other) == executable_files(runner.folder)
    log = git(other, "log", "--format=%an|%s", "--reverse").decode().splitlines()
    assert log[1] == "write_file|create poem (edit 1)"
    assert len(log) == len(written) + 1


def test_git_am_applies_the_series_from_standard_input_with_crlf(runner: CommandRunner, other: Path) -> None:
    runner.write("dos", b"one\r\ntwo\r\n")
    runner.edit("dos", b"two", b"2")
    ran = runner.cas("export", "--patch")
    assert "--keep-cr" in ran.said
    git(other, "am", "-q", "--keep-cr", stdin=ran.out)
    assert executable_files(other) == executable_files(runner.folder)


def test_patch_applies_the_series_to_the_same_files(runner: CommandRunner, other: Path, tmp_path: Path) -> None:
    edits_of_every_kind(runner)
    for written in runner.done("export", "--patch", "-o", str(tmp_path / "series")).text.splitlines():
        patch = ["patch", "-p1", "--no-backup-if-mismatch", "--binary", "--input", written]
        run(patch, other, environment({}), b"")
    assert executable_files(other) == executable_files(runner.folder)


@pytest.mark.parametrize(
    "names", [("a b", "c d/e f"), ("plain", "with space"), ("with space", "plain"), ('a "b"', "a\\ b")]
)
def test_names_with_spaces_are_created_moved_and_deleted_by_git_and_patch(
    runner: CommandRunner, other: Path, tmp_path: Path, names: tuple[str, str]
) -> None:
    old, new = names
    runner.write(old, b"")
    runner.move(old, new)
    runner.write(new, b"text\n")
    runner.move(new, old)
    runner.write("gone too", b"")
    runner.delete("gone too")
    written = runner.done("export", "--patch", "-o", str(tmp_path / "series")).text.splitlines()
    git(other, "am", "-q", *written)
    assert executable_files(other) == executable_files(runner.folder)
    by_patch = tmp_path / "by-patch"
    by_patch.mkdir()
    for name in written:
        run(["patch", "-p1", "--no-backup-if-mismatch", "--input", name], by_patch, environment({}), b"")
    assert executable_files(by_patch) == executable_files(runner.folder)


def test_an_edit_that_other_live_edits_cancel_has_no_patch_and_says_so(runner: CommandRunner) -> None:
    (runner.folder / "f").write_bytes(b"a\nb\nc\n")
    runner.edit("f", b"b", b"B", conversation="conv_one")
    runner.edit("f", b"B", b"b", conversation="conv_two")
    runner.write("g", b"y\n", conversation="conv_one")
    notice = "no patch for edit 1: the other live edits already have the same result.\n"
    ran = runner.cas("export", "--patch", "1")
    assert (ran.status, ran.out, ran.said) == (0, b"", f"cas: {notice}")
    ran = runner.cas("export", "--patch", "--conversation", "conv_one")
    assert (ran.status, "+y\n" in ran.text, ran.said) == (0, True, f"cas: {notice}")
    assert runner.done("export", "--patch").text.count("\nSubject:") == 3
    runner.done("reject", "2")
    runner.done("reject", "1")
    ran = runner.cas("export", "--patch", "1", "2")
    assert ran.said == "cas: no live edit was selected, so there is no patch.\n"


def test_a_mode_that_git_does_not_record_has_no_patch_and_says_so(runner: CommandRunner, other: Path) -> None:
    runner.write("a", b"one\n", mode=0o644)
    runner.write("a", b"one\n", mode=0o600)
    runner.write("a", b"two\n")
    ran = runner.cas("export", "--patch")
    assert (ran.status, "no patch for edit 2: git records no more of a mode" in ran.said) == (0, True)
    git(other, "am", "-q", stdin=ran.out)
    assert executable_files(other) == executable_files(runner.folder)
    assert git(other, "log", "--format=%s").decode().splitlines()[:2] == ["replace a (edit 3)", "create a (edit 1)"]
    alone = runner.cas("export", "--patch", "2")
    assert (alone.out, "nothing that is live" in alone.said) == (b"", False)


def test_rejected_hunks_are_in_no_patch(runner: CommandRunner, other: Path) -> None:
    runner.write("poem", BASE)

    def two_hunks(call: Call) -> None:
        call.write("poem", BASE.replace(b"line 2\n", b"two\n").replace(b"line 18\n", b"eighteen\n"))

    runner.call(two_hunks)
    runner.edit("poem", b"line 10\n", b"ten\n")
    runner.done("reject", "2:1")
    ran = runner.done("export", "--patch")
    assert b"two" not in ran.out
    git(other, "am", "-q", stdin=ran.out)
    assert executable_files(other) == executable_files(runner.folder)


def test_patches_of_a_conversation_apply_to_the_result_of_the_other_edits(runner: CommandRunner, other: Path) -> None:
    runner.write("poem", BASE, conversation="conv_base")
    runner.edit("poem", b"line 2\n", b"two\n", conversation="conv_a")
    runner.edit("poem", b"line 10\n", b"ten\n", conversation="conv_b")
    runner.edit("poem", b"line 18\n", b"eighteen\n", conversation="conv_a")
    (other / "poem").write_bytes(BASE.replace(b"line 10\n", b"ten\n"))
    git(other, "add", "poem")
    git(other, "commit", "-q", "-m", "everything else")
    ran = runner.done("export", "--patch", "--conversation", "conv_a")
    git(other, "am", "-q", stdin=ran.out)
    assert executable_files(other) == executable_files(runner.folder)


def test_a_selection_that_other_live_edits_depend_on_is_refused(runner: CommandRunner) -> None:
    runner.write("poem", BASE)
    runner.edit("poem", b"line 2\n", b"two\n")
    runner.edit("poem", b"two\n", b"zwei\n")
    ran = runner.cas("export", "--patch", "2")
    assert (ran.status, ran.out) == (1, b"")
    assert ran.said.startswith("cas: Edit 3 depends on edit 2, but was not chosen")


def test_names_and_notes_cannot_forge_a_patch(runner: CommandRunner, other: Path) -> None:
    conversation = "c\n---\ndiff --git a/x b/x\nnew file mode 100644\n"
    runner.write('quote"d\nname', b"From me\n--- a/x\n+++ b/x\n", conversation=conversation)
    git(other, "am", "-q", stdin=runner.done("export", "--patch").out)
    assert executable_files(other) == executable_files(runner.folder)


def test_an_existing_patch_file_is_not_overwritten(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("a", b"1\n")
    (written,) = runner.done("export", "--patch", "-o", str(tmp_path / "series")).text.splitlines()
    Path(written).write_text("mine")
    ran = runner.cas("export", "--patch", "-o", str(tmp_path / "series"))
    assert ran.status == 1
    assert ran.said.endswith("; nothing was written. Name a new folder.\n")
    assert Path(written).read_text() == "mine"


def test_json_lists_the_patches(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("a", b"1\n")
    (shape,) = runner.done("export", "--patch", "-o", str(tmp_path / "series"), "--json").lines()
    assert shape["name"] == "0001-create-a-edit-1.patch"
    assert Path(shape["file"]).stat().st_size == shape["bytes"]


@pytest.mark.parametrize("words", [[], ["--patch", "--bundle", "x"], ["--bundle", "x", "1"]])
def test_an_export_without_or_with_contradicting_options_is_refused(runner: CommandRunner, words: list[str]) -> None:
    assert runner.cas("export", *words).status == 2


def test_an_unrecorded_file_is_refused(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("poem", BASE)
    message = "cas: No recorded file is named 'peom' here.\nDid you mean poem?\n"
    for words in ((), ("--json",), ("-o", str(tmp_path / "out")), ("1",)):
        ran = runner.cas("export", "--patch", "--file", "peom", *words)
        assert (ran.status, ran.out, ran.said) == (1, b"", message)
    assert not (tmp_path / "out").exists()


def test_patches_follow_the_order_of_dependence(runner: CommandRunner, other: Path) -> None:
    """An edit that was rejected and accepted again still has its own patch in its place."""
    runner.write("a", b"1\n2\n3\n")
    runner.edit("a", b"2", b"two")
    runner.done("reject", "2")
    runner.call(lambda call: call.write("a", b"1\n2\n3\nfour\n", operation=Operation.EDIT))
    runner.done("accept", "2")
    git(other, "am", "-q", stdin=runner.done("export", "--patch").out)
    assert executable_files(other) == executable_files(runner.folder)


@pytest.mark.parametrize("again", ["b", "b/inner"])
def test_a_patch_whose_base_would_have_two_files_at_one_path_is_refused(
    runner: CommandRunner, other: Path, again: str
) -> None:
    runner.write("b", b"one\n")
    runner.move("b", "c")
    runner.write(again, b"two\n")
    ran = runner.cas("export", "--patch", "2")
    assert (ran.status, ran.out) == (1, b"")
    assert ran.said.startswith("cas: Edit 3 depends on edit 2, but was not chosen")
    git(other, "am", "-q", stdin=runner.done("export", "--patch", "1..3").out)
    assert executable_files(other) == executable_files(runner.folder)
