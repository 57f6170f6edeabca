"""`cas comment` records and lists comments; `cas show` has them next to their hunks; `cas send` says who gets them."""

import re
from pathlib import Path

import pytest

from tests.support.command_runner import CommandRunner, on_terminal

POEM = b"".join(b"line %d\n" % number for number in range(1, 31))


@pytest.fixture
def poem(runner: CommandRunner) -> CommandRunner:
    runner.write("poem", POEM)
    runner.write("poem", POEM.replace(b"line 3\n", b"LINE 3\n").replace(b"line 20\n", b"LINE 20\nmore\n"))
    return runner


def test_a_comment_on_a_hunk_is_listed_with_its_lines(poem: CommandRunner) -> None:
    said = poem.done("comment", "2:2", "-m", "Why two lines?\nOne is enough.").text
    assert re.fullmatch(r"comment 1 open  poem:20-21  .+, .+\n    Why two lines\?\n    One is enough\.\n", said)
    assert poem.done("comment").text == said
    (shape,) = poem.done("comment", "--json").lines()
    assert (shape["line"], shape["line_count"], shape["hunks"], shape["state"]) == (19, 2, ["2:2"], "open")
    assert (shape["file_path"], shape["text"]) == (str(poem.folder / "poem"), "Why two lines?\nOne is enough.")


def test_a_comment_on_lines_moves_with_them(poem: CommandRunner) -> None:
    poem.done("comment", "poem:20-21", "-m", "here")
    poem.done("comment", "poem:7", "-m", "and here")
    poem.done("comment", "poem", "-m", "in general")
    poem.write("poem", b"first\n" + (poem.folder / "poem").read_bytes())
    places = [line.split()[3] for line in poem.done("comment").text.splitlines() if line.startswith("comment")]
    assert places == ["poem:21-22", "poem:8", "poem"]


def test_lines_are_those_on_disk_even_if_not_recorded_yet(poem: CommandRunner) -> None:
    (poem.folder / "poem").write_bytes(b"typed by hand\n" + (poem.folder / "poem").read_bytes())
    assert "poem:4 " in poem.done("comment", "poem:4", "-m", "the agent's").text
    assert poem.done("comment", "--json").lines()[0]["hunks"] == ["2:1"]


def test_show_has_comments_below_their_hunk_at_a_terminal(poem: CommandRunner) -> None:
    poem.done("comment", "2:1", "-m", "too loud")
    _, screen = on_terminal(["show", "2"], folder=poem.folder)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", screen)
    assert re.search(r"\+LINE 3\r?\n( .*\r?\n)+comment 1 open  poem:3  .*\r?\n    too loud\r?\n@@ ", shown)
    plain = poem.done("show", "2").text
    assert plain.index("too loud") < plain.index("--- a/poem")
    assert [each["text"] for each in poem.done("show", "2", "--json").json()["edits"][0]["comments"]] == ["too loud"]
    assert "too loud" not in poem.done("show", "2:2").text


def test_comments_are_resolved_reopened_and_answered(poem: CommandRunner) -> None:
    poem.done("comment", "2:1", "-m", "too loud")
    assert "answer 2" in poem.done("comment", "--reply", "1", "-m", "Or is it?").text
    assert "\ncomments: 1 open (see `cas comment`)\n" in poem.done("status").text
    assert poem.done("comment", "--resolve", "1").text.startswith("comment 1 resolved")
    assert poem.done("status", "--json").json()["comments"] == {"open": 0, "sent": 0, "answered": 0}
    assert poem.cas("comment").said == "No open comments.\n"
    assert poem.done("comment", "--all").text.startswith("comment 1 resolved")
    assert poem.done("comment", "--reopen", "1").text.startswith("comment 1 open")


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["comment", "9:9", "-m", "x"], 1, "No edit is named '9'"),
        (["comment", "2:9", "-m", "x"], 1, "No hunk is named '2:9'"),
        (["comment", "poem:99", "-m", "x"], 1, "poem has no line 99: it has 31 lines."),
        (["comment", "poem:5-4", "-m", "x"], 2, "5-4 is no range of lines"),
        (["comment", "gone:5", "-m", "x"], 1, "No recorded file is named 'gone'"),
        (["comment", "poem:5"], 2, "give the text with -m TEXT"),
        (["comment", "-m", "x"], 2, "Name what the comment is on"),
        (["comment", "--resolve", "7"], 1, "No comment is named '7' here. `cas comment --all` lists them."),
        (["comment", "2", "--resolve", "1", "-m", "x"], 2, "Give one of these"),
        (["send", "1"], 2, "Say who gets these comments"),
    ],
)
def test_refusals_say_why_and_record_nothing(poem: CommandRunner, words: list[str], status: int, says: str) -> None:
    refused = poem.cas(*words)
    assert refused.status == status
    assert says in " ".join(refused.said.split())
    assert poem.cas("comment", "--all", "--json").text == ""


def test_an_editor_writes_the_comment(poem: CommandRunner, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\n{ echo "from the editor"; cat "$1"; } > "$1.new" && mv "$1.new" "$1"\n')
    editor.chmod(0o755)
    on_terminal(["comment", "2:1"], folder=poem.folder, settings={"VISUAL": str(editor)})
    assert [each["text"] for each in poem.done("comment", "--json").lines()] == ["from the editor"]


def test_send_says_who_gets_a_comment_and_can_choose_another(poem: CommandRunner) -> None:
    assert poem.done("send").text == "Nothing waits to be sent.\n"
    poem.done("comment", "2:1", "-m", "too loud")
    assert "  goes to " in poem.done("send").text
    assert "agent that works next" not in poem.done("send").text
    assert " has no hooks: it gets 1 comment when it lists its edits.\n" in poem.done("send").text
    shown = poem.done("send", "--any").text
    assert "  goes to the agent that works next\n" in shown
    assert shown.endswith("\n1 comment goes to the agent that works next at its next prompt or tool.\n")
    assert [each["comment"] for each in poem.done("send", "--json").lines()] == [1]
