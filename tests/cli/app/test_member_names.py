"""`NAME/` before an edit, a hunk or nothing means another store, and a file of that name is still a file."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from cli.app.invocation import Command
from cli.app.member_names import Name, NumberName
from cli.shell.main import cas, main
from objstore import TurnInfo
from tests.support.command_runner import CommandRunner


@pytest.fixture
def lap(tmp_path: Path) -> CommandRunner:
    """Return a store that has pulled the store `desk`, with one edit of a turn."""
    runners = []
    for name in ("desk", "lap"):
        (tmp_path / name).mkdir()
        runners.append(CommandRunner(tmp_path / name))
    desk, lap = runners
    turn = TurnInfo(session="run", began=1, prompt="Write a")
    desk.call(lambda call: call.write("a.txt", b"one\ntwo\n"), conversation="talk", turn=turn)
    for runner in runners:
        runner.done("remote", "add", "team", f"file://{tmp_path}/bucket")
        runner.done("push")
    lap.done("pull")
    return lap


def test_names_of_another_store_are_looked_up_there(lap: CommandRunner) -> None:
    assert "a.txt" in lap.done("log", "desk/").text
    assert "a.txt" in lap.done("log", "desk/a.txt").text
    assert "+one" in lap.done("show", "desk/1").text
    assert "+two" in lap.done("show", "team/desk/1:0").text
    assert "+one" in lap.done("diff", "desk/").text
    assert "Write a" in lap.done("log", "--turns", "desk/").text
    assert "run" in lap.done("log", "--sessions", "--json", "desk/").text
    assert lap.done("cat", "desk/a.txt").text == lap.done("cat", "desk/a.txt@1").text == "one\ntwo\n"
    assert "Write a" in lap.done("blame", "desk/a.txt").text
    assert "two" in lap.done("blame", "team/desk/a.txt@1").text
    assert "'desk/b.txt'" in lap.cas("blame", "desk/b.txt").said
    assert lap.cas("cat", "desk/").status == lap.cas("blame", "desk/").status == 2
    assert lap.cas("log").out == b""


@pytest.mark.parametrize(
    "words", [("desk/1",), ("desk/1:0",), ("desk/a.txt",), ("desk/", "--turn", "1"), ("desk/", "--session", "run")]
)
def test_edit_hunk_path_turn_and_session_name_what_is_decided_there(lap: CommandRunner, words: tuple[str, ...]) -> None:
    assert "Would ask desk to reject desk/1:0." in lap.done("reject", *words, "--dry-run").text
    assert lap.cas("reject", words[0].replace("desk", "stranger"), *words[1:]).status == 1
    assert "asks desk to accept desk/1:0." in lap.done("accept", *words).text
    assert "desk/1:0 is decided: accept" in lap.cas("reject", *words).said


def test_turn_and_session_of_another_store_select_its_edits(lap: CommandRunner) -> None:
    for words in (("--turn", "1"), ("--session", "run")):
        assert "a.txt" in lap.done("log", "desk/", *words).text
        assert "+one" in lap.done("show", "desk/", *words).text
        assert "+one" in lap.done("diff", "desk/", *words).text
        assert lap.cas("log", *words).status == 1


def test_decision_that_changes_nothing_is_not_asked_for(lap: CommandRunner, tmp_path: Path) -> None:
    assert "already pending" in lap.done("reopen", "desk/1").text
    CommandRunner(tmp_path / "desk").done("accept", "1")
    CommandRunner(tmp_path / "desk").done("push")
    lap.done("pull")
    assert "already accepted" in lap.done("accept", "desk/1").text
    assert not (tmp_path / "bucket/log").exists()
    assert "asks desk to reopen desk/1:0." in lap.done("reopen", "desk/1").text


def test_dry_runs_say_what_would_be_done_and_do_nothing(lap: CommandRunner, tmp_path: Path) -> None:
    def bucket() -> set[Path]:
        return {path for path in (tmp_path / "bucket").rglob("*") if path.is_file()}

    desk, before = CommandRunner(tmp_path / "desk"), bucket()
    desk.write("b.txt", b"new\n")
    (wanted,) = desk.done("push", "--dry-run", "--json").lines()
    assert "Would send 1 object" in desk.done("push", "--dry-run").text
    assert bucket() == before
    (sent,) = desk.done("push", "--json").lines()
    assert (sent["objects"], sent["bytes"]) == (wanted["objects"], wanted["bytes"])
    (wanted,) = lap.done("pull", "--dry-run", "--json").lines()
    assert lap.cas("show", "desk/2").status == 1
    (fetched,) = lap.done("pull", "--json").lines()
    assert (fetched["bytes"], fetched["edits"]) == (wanted["bytes"], wanted["edits"]) == (sent["bytes"], 2)
    before = bucket()
    (wanted,) = desk.done("remote", "gc", "--purge", "--dry-run", "--json").lines()
    assert bucket() == before
    (removed,) = desk.done("remote", "gc", "--purge", "--json").lines()
    assert (removed["removed"], removed["removed_bytes"]) == (wanted["removed"], wanted["removed_bytes"])
    assert removed["removed"] > 0


def named_by(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], Command, click.Parameter]]:
    """Yield each parameter of each command below `group` that names an edit, a turn, a session or a file."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from named_by(command, *path, name)
        elif isinstance(command, Command):
            for parameter in command.params:
                if isinstance(parameter.type, Name | NumberName):
                    yield (*path, name), command, parameter


BESIDES = {
    "accept": ("--dry-run",),
    "amend": ("--from", "a.txt"),
    "bisect": ("true",),
    "claim": ("--mine",),
    "comment": ("--message", "Why?"),
    "export": ("--patch",),
    "reject": ("--dry-run",),
    "reopen": ("--dry-run",),
    "stats": ("--svg", "plots"),
    "try": ("true",),
}
"""What a command needs besides a name."""


def line_naming(path: tuple[str, ...], parameter: click.Parameter, store: str) -> list[str]:
    """Return a command line in which a parameter names what both stores have, in one of them."""
    options = BESIDES.get(path[-1], ())
    if isinstance(parameter, click.Option):
        name = {"file": "a.txt", "path": "a.txt", "conversation": "talk"}.get(parameter.name or "", "1")
        arguments = [f"{store}a.txt"] if path[-1] == "blame" else []
        return [*path, *arguments, parameter.opts[0], f"{store}{name}", *options]
    snapshot = ["1"] if path[0] == "snapshot" else []
    is_number = isinstance(parameter.type, NumberName) or re.search("(?<!@)EDIT", parameter.metavar or "")
    return [*path, *snapshot, f"{store}{1 if is_number else 'a.txt'}", *options]


def test_every_name_is_that_of_another_store_or_is_refused_with_one_sentence(
    lap: CommandRunner, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    turn = TurnInfo(session="mine", began=1, prompt="Write another")
    lap.call(lambda call: call.write("a.txt", b"what it would mean here\n"), conversation="talk", turn=turn)

    def answer(folder: Path, words: list[str]) -> tuple[int, bytes, str]:
        monkeypatch.chdir(folder)
        status = main(words)
        said = capfdbinary.readouterr()
        return status, said.out, said.err.decode()

    wrong = []
    for path, command, parameter in named_by(cas):
        words = line_naming(path, parameter, "desk/")
        status, out, said = answer(lap.folder, words)
        if not command.takes_others:
            is_right = (status, out) == (2, b"") and "takes nothing of another store: the files of desk are" in said
        elif path[-1] in {"accept", "reject", "reopen"}:
            is_right = (status, said) == (0, "") and (b"Would ask desk" in out or b"already pending" in out)
        elif parameter.name in {"reply", "resolve", "reopen"}:
            is_right = (status, out) == (2, b"") and "answered and resolved by desk (team), where the files are" in said
        elif path == ("comment",):
            is_right = (status, said) == (0, "") and b"is for desk" in out
        elif path == ("review",):
            is_right = "needs a terminal" in said
        else:
            there = answer(lap.folder.with_name("desk"), line_naming(path, parameter, ""))
            expected = 1 if path == ("bisect",) else 0  # nothing is live after edit 1
            is_right = (status, out, said) == there and status == expected
        if not is_right:
            wrong.append((words, status, out, said))
    assert wrong == []


def test_turn_session_conversation_and_file_of_another_store_are_values_of_options(lap: CommandRunner) -> None:
    for words in (
        ("--turn", "desk/1"),
        ("--session", "desk/run"),
        ("--conversation", "desk/talk"),
        ("--file", "desk/a.txt"),
    ):
        assert "a.txt" in lap.done("log", *words).text
        assert "Would ask desk to reject desk/1:0." in lap.done("reject", "--dry-run", *words).text
    assert "a.txt" in lap.done("log", "desk/a.txt", "--turn", "desk/1").text
    assert "No turn is named 'desk/2' here." in lap.cas("log", "--turn", "desk/2").said
    assert "'stranger/1' is not a valid number" in lap.cas("log", "--turn", "stranger/1").said
    lap.write("b.txt", b"b\n")
    for line in ("b.txt --turn desk/1", "--turn desk/1 --turn 1", "--session desk/"):
        assert lap.cas("log", *line.split()).status == 2


def test_shell_offers_other_stores_and_their_names_where_they_are_taken(
    lap: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lap.folder)

    def offered(*words: str) -> list[str]:
        *before, word = words
        return [item.value for item in ShellComplete(cas, {}, "cas", "_CAS_COMPLETE").get_completions(before, word)]

    assert offered("show", "") == ["desk/"]
    assert offered("show", "desk/") == ["desk/1", "desk/talk"]
    assert offered("log", "--turn", "desk/") == ["desk/1"]
    assert offered("log", "desk/a") == ["desk/a.txt"]
    assert offered("amend", "d") == []


def test_names_of_two_stores_are_refused(lap: CommandRunner) -> None:
    lap.write("b.txt", b"b\n")
    assert lap.cas("show", "desk/1", "1").status == 2
    assert lap.cas("reject", "desk/1", "1").status == 2


def test_file_in_a_folder_of_that_name_is_a_file(lap: CommandRunner) -> None:
    lap.write("desk/a.txt", b"mine\n")
    assert "+mine" in lap.done("diff", "desk/a.txt").text
    assert "+one" in lap.done("show", "desk/1").text


def test_file_whose_folder_of_that_name_is_gone_is_restored_by_the_name_that_the_refusal_gives(
    lap: CommandRunner,
) -> None:
    lap.write("desk/a.txt", b"mine\n")
    (first,) = lap.done("log", "./desk/a.txt", "--json").lines()
    (lap.folder / "desk/a.txt").unlink()
    (lap.folder / "desk").rmdir()
    lap.done("record")
    refused = lap.cas("restore", f"desk/a.txt@{first['seq']}")
    assert (refused.status, "A file here is named `./desk/...`." in refused.said) == (2, True)
    lap.done("restore", f"./desk/a.txt@{first['seq']}")
    assert lap.bytes("desk/a.txt") == b"mine\n"


def test_store_that_calls_itself_as_the_remote_does_not_take_the_place_of_another(
    lap: CommandRunner, tmp_path: Path
) -> None:
    assert "+one" in lap.done("show", "team/1").text  # the only other store
    (tmp_path / "liar").mkdir()
    liar = CommandRunner(tmp_path / "liar")
    liar.write("l.txt", b"lie\n")
    liar.done("remote", "add", "there", f"file://{tmp_path}/bucket", "--as", "team")
    liar.done("push")
    lap.done("pull")
    assert "+lie" in lap.done("show", "team-2/1").text
    assert lap.cas("show", "team/1").status == 1  # which of both is not clear any more


def test_unknown_store_is_a_path_that_does_not_exist(lap: CommandRunner) -> None:
    assert lap.cas("show", "nobody/1").status == 1
    assert lap.cas("log", "--turns", "nobody/").status == 2


def test_remotes_are_listed_although_a_mirror_is_gone_and_a_pull_brings_it_back(lap: CommandRunner) -> None:
    mirror = lap.folder / ".cas/remotes/team/members/desk"
    mirror.rename(lap.folder.with_name("moved"))
    assert "desk  1 edit, but the copy here can't be read" in lap.done("remote").text
    assert lap.done("remote", "--json").lines()[0]["stores"][0]["undecided"] is None
    lap.done("pull")
    assert "desk  1 edit, 1 undecided" in lap.done("remote").text


@pytest.mark.parametrize("harm", [lambda log: log[:-1], lambda log: log + b"x", lambda log: log[:90] + b"?" + log[91:]])
def test_pull_mends_a_damaged_mirror_although_nothing_is_new(
    lap: CommandRunner, harm: Callable[[bytes], bytes]
) -> None:
    segment = lap.folder / ".cas/remotes/team/members/desk/.cas/segments/00000001.seg"
    whole = segment.read_bytes()
    segment.write_bytes(harm(whole))
    assert "fetched" in lap.done("pull").text
    assert segment.read_bytes() == whole
    assert "nothing new" in lap.done("pull").text


def test_dry_run_of_a_clone_says_what_it_would_fetch_and_makes_nothing(lap: CommandRunner, tmp_path: Path) -> None:
    url, new = f"file://{tmp_path}/bucket", tmp_path / "above" / "new"
    assert "name one with --store" in lap.cas("clone", "--dry-run", url, str(new)).said
    words = ("clone", "--dry-run", url, str(new), "--store", "desk")
    (planned,) = lap.done(*words, "--json").lines()
    assert (planned["store"], planned["edits"]) == ("desk", 1)
    assert planned["bytes"] == sum(path.stat().st_size for path in (tmp_path / "desk/.cas/segments").iterdir())
    assert "desk, 1 edit." in lap.done(*words).text
    assert not new.parent.exists()
    assert lap.cas("clone", "--dry-run", url, str(lap.folder), "--store", "desk").status == 1


def test_remote_and_pull_say_what_is_undecided_there(lap: CommandRunner) -> None:
    assert "desk  1 edit, 1 undecided" in lap.done("remote").text
    lap.done("reject", "desk/1")
    assert "undecided" not in lap.done("remote").text
    (remote,) = lap.done("remote", "--json").lines()
    assert [(store["edits"], store["undecided"]) for store in remote["stores"]] == [(1, 0)]
    desk = CommandRunner(lap.folder.with_name("desk"))
    desk.write("b.txt", b"new\n")
    desk.done("push")
    assert "2 edits; 1 undecided (`cas review desk/`)." in lap.done("pull").text
