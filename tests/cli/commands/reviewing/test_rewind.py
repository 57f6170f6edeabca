"""`cas rewind` takes out what a session did from a turn on, and nothing of others."""

import json
import subprocess
import time
from pathlib import Path
from random import Random

import pytest

from objstore import Status, TurnInfo
from tests.cli.commands.reviewing.conftest import turn
from tests.support.command_runner import CommandRunner, cas
from tests.support.git_repository import git
from tests.support.hooked_agents import ClaudeCode, recorded_project, shell
from tests.support.mounts import can_mount

ALL = b"1\ntwo\nthree\n4\n"


def rejected(runner: CommandRunner) -> set[int]:
    return {int(name.partition(":")[0]) for name, status in runner.statuses().items() if status is Status.REJECTED}


def test_rewind_rejects_the_session_s_edits_from_the_turn_on(turns: CommandRunner) -> None:
    turns.write("mine", b"by a session without turns\n", conversation="other")
    said = turns.done("rewind", "2", "-m", "start over").text
    assert said.startswith("Rejected edits 2 3 5.\n")
    assert turns.bytes("a") == b"1\n2\n3\n4\n"
    assert not (turns.folder / "b").exists()
    assert turns.bytes("mine") == b"by a session without turns\n"
    assert rejected(turns) == {2, 3, 5}
    assert {row["reason"] for row in turns.done("log", "--status", "rejected", "--json").lines()} == {"start over"}


def test_undo_takes_a_rewind_back_in_one_step(turns: CommandRunner) -> None:
    turns.done("accept", "2")
    turns.done("rewind", "1", "--cascade")
    assert not (turns.folder / "a").exists()
    turns.done("undo")
    assert (turns.bytes("a"), turns.bytes("b"), rejected(turns)) == (ALL, b"b\n", set())
    assert [row["seq"] for row in turns.done("log", "--status", "accepted", "--json").lines()] == [2]
    turns.done("redo")
    assert not (turns.folder / "a").exists()


def test_rewind_that_other_sessions_edits_need_is_a_conflict(turns: CommandRunner) -> None:
    refused = turns.cas("rewind", "1")
    assert refused.status == 1
    assert "cas rewind --cascade 1" in refused.said
    assert "name them together" not in refused.said
    assert turns.bytes("a") == ALL
    turns.done("rewind", "1", "--cascade")
    assert rejected(turns) == {1, 2, 3, 4, 5}


def test_dry_run_of_a_rewind_changes_nothing(turns: CommandRunner) -> None:
    said = turns.done("rewind", "4", "--dry-run").text
    assert "Would reject edit 5." in said
    assert "-three" in said
    assert (turns.bytes("a"), rejected(turns)) == (ALL, set())


def test_list_says_what_going_back_to_before_each_turn_would_do(turns: CommandRunner) -> None:
    turns.done("accept", "5")
    rows = [" ".join(row.split()) for row in turns.done("rewind").text.splitlines()]
    assert rows[1::2] == [
        "cas rewind 4: 1 file, +1 -1 (1 edit, accepted)",
        "cas rewind 2: 2 files, +2 -3 (3 edits, 1 of them accepted)",
        "cas rewind 1: 1 conflict (--dry-run shows)",
    ]
    assert [row.split()[0] for row in rows[::2]] == ["4", "2", "1"]
    of_two = turns.done("rewind", "--session", "two").text.splitlines()
    assert of_two[1].strip() == "cas rewind 3: 1 file, +0 -1"
    found = turns.done("rewind", "--json").lines()
    assert [(row["turn"], row["rewind"]["outcome"], row["rewind"]["paths"]) for row in found] == [
        (4, "decided", ["a"]),
        (2, "decided", ["a", "b"]),
        (1, "conflict", []),
    ]


def test_list_says_that_files_changed_outside_or_that_nothing_is_left(turns: CommandRunner) -> None:
    turns.done("reject", "5")
    (turns.folder / "a").write_bytes(b"outside\n")
    rows = turns.done("rewind").text.splitlines()
    assert rows[1].strip() == "nothing to take out"
    assert rows[3].strip() == "cas rewind 2: 1 file changed outside first (see `cas diff`)"
    assert turns.cas("rewind", "2").status == 1


def test_rewind_asks_at_a_terminal_with_the_count(turns: CommandRunner) -> None:
    question = "This rejects 3 edits: what claude-code 1 did from turn 2 on. Go ahead? [y/N]"
    status, said = turns.typed_at("[y/N]", lambda: "n\n", "rewind", "2")
    assert question in said
    assert (status, rejected(turns)) == (130, set())
    status, _ = turns.typed_at("[y/N]", lambda: "y\n", "rewind", "2")
    assert (status, rejected(turns)) == (0, {2, 3, 5})
    turns.done("undo")
    status, said = turns.typed("rewind", "2", "--yes")
    assert "Go ahead" not in said
    assert (status, rejected(turns)) == (0, {2, 3, 5})


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["9"], 1, "No turn is named '9' here"),
        (["0"], 2, "0"),
        (["--session", "9"], 1, "No session is named '9' here"),
        (["2", "--session", "2"], 2, "Turn 2 is of session 1"),
        (["--cascade"], 2, "Name the turn"),
    ],
)
def test_rewind_refuses_what_names_no_turn(
    turns: CommandRunner,
    words: list[str],
    status: int,
    said: str,
) -> None:
    refused = turns.cas("rewind", *words)
    assert refused.status == status
    assert said in refused.said


def test_rewind_without_recorded_turns_says_so(runner: CommandRunner) -> None:
    assert runner.cas("rewind").said == "cas: No turn of an agent is recorded yet.\n"
    runner.write("a", b"a\n")
    assert runner.cas("rewind").said == "cas: No turn of an agent is recorded yet.\n"
    assert "cas reject --session 1" in runner.cas("rewind", "--session", "1").said


def test_edits_of_the_session_without_a_turn_count_by_their_time(turns: CommandRunner) -> None:
    turns.call(lambda call: call.write("c", b"c\n"), conversation="one")
    turns.done("rewind", "4")
    assert rejected(turns) == {5, 6}


def test_rewind_takes_out_a_file_that_the_turn_created(turns: CommandRunner) -> None:
    turns.call(lambda call: call.write("d", b"d\n"), conversation="one", turn=turn("one", 6, "Write d"))
    turns.done("rewind", "5")
    assert not (turns.folder / "d").exists()


# ---- --exact


def prepare_lived(runner: CommandRunner) -> None:
    def write(path: str, content: bytes, session: str, began: int) -> None:
        info = TurnInfo(session=session, began=began, prompt=f"Write {path}", client="claude-code")
        runner.call(lambda call: call.write(path, content), conversation=session, turn=info)

    write("a", b"1\n", "one", now())
    write("gone", b"soon\n", "one", now())
    second = now()
    write("a", b"1\n2\n", "one", second)
    write("b", b"b\n", "two", now())
    runner.call(
        lambda call: call.delete("gone"),
        conversation="one",
        turn=TurnInfo(session="one", began=second, client="claude-code"),
    )
    (runner.folder / "a").write_bytes(b"0\n1\n2\n")
    runner.done("record")


@pytest.fixture
def lived(runner: CommandRunner) -> CommandRunner:
    """Return a workspace in which an agent's two turns and a person changed files, in real time."""
    return runner.prepared(prepare_lived)


def now() -> int:
    return time.time_ns() // 1_000


def files(runner: CommandRunner) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in runner.folder.iterdir() if path.is_file()}


THEN = {"a": b"1\n", "gone": b"soon\n"}
NOW = {"a": b"0\n1\n2\n", "b": b"b\n"}


def test_exact_rewind_restores_all_files_as_edits_of_the_person(lived: CommandRunner) -> None:
    said = lived.done("rewind", "3", "--exact").text
    assert "Removed b\n" in said
    assert said.endswith("Recorded as edits 7 8 9 of yours; `cas undo` takes that back.\n")
    assert files(lived) == THEN
    shown = lived.done("show", "7..9", "--json").json()["edits"]
    assert {(edit["origin"], edit["status"], edit["tool_name"]) for edit in shown} == {("person", "accepted", "rewind")}
    assert lived.done("status", "--json").json()["pending"] == 5


def test_undo_takes_an_exact_rewind_back_in_one_step(lived: CommandRunner) -> None:
    lived.done("rewind", "3", "--exact")
    lived.done("undo")
    assert files(lived) == NOW
    lived.done("redo")
    assert files(lived) == THEN
    lived.done("undo")
    assert files(lived) == NOW
    assert lived.done("fsck").status == 0


def test_undo_of_a_later_decision_leaves_an_exact_rewind(lived: CommandRunner) -> None:
    lived.done("rewind", "3", "--exact")
    lived.done("accept", "1")
    lived.done("undo")
    assert files(lived) == THEN
    lived.done("undo")
    assert files(lived) == NOW


def test_dry_run_of_an_exact_rewind_shows_the_diff_and_changes_nothing(lived: CommandRunner) -> None:
    said = lived.done("rewind", "3", "--exact", "--dry-run").text
    assert said.startswith("Dry run: nothing was changed.\n")
    assert "-2\n" in said
    assert files(lived) == NOW
    assert len(lived.done("rewind", "3", "--exact", "--dry-run", "--json").json()["files"]) == 3


def test_exact_rewind_without_a_difference_says_so(lived: CommandRunner) -> None:
    lived.done("rewind", "3", "--exact")
    said = lived.done("rewind", "3", "--exact").text
    assert said == "No file changed: all recorded files are as they were then.\n"


@pytest.mark.parametrize("change", ["a", "never edited", "a is gone", "never edited is gone"])
def test_exact_rewind_stops_where_only_an_unrecorded_change_differs_from_then(
    runner: CommandRunner, change: str
) -> None:
    for name in ("a", "never edited"):
        (runner.folder / name).write_bytes(b"1\n")
    runner.done("record")
    began = TurnInfo(session="one", began=now(), client="claude-code")
    runner.call(lambda call: call.write("a", b"agent\n"), conversation="one", turn=began)
    runner.done("rewind", "1", "--exact")
    then = files(runner)
    (runner.folder / "new").write_bytes(b"unrecorded and new\n")
    name = change.removesuffix(" is gone")
    if name == change:
        (runner.folder / name).write_bytes(b"mine\n")
    else:
        (runner.folder / name).unlink()
    refused = runner.cas("rewind", "1", "--exact")
    assert refused.status == 1
    assert f"{name} changed outside since the last recorded state" in refused.said or f"{name} was" in refused.said
    said = runner.done("rewind", "1", "--exact", "--on-external", "keep").text
    assert f"Recorded the change from outside to {name} as edit" in said
    assert files(runner) == {**then, "new": b"unrecorded and new\n"}
    assert runner.done("rewind", "1", "--exact").text == "No file changed: all recorded files are as they were then.\n"
    runner.done("undo")
    assert files(runner) != {**then, "new": b"unrecorded and new\n"}


def test_exact_rewind_stops_at_an_unrecorded_change_unless_it_is_kept(lived: CommandRunner) -> None:
    (lived.folder / "a").write_bytes(b"mine\n")
    refused = lived.cas("rewind", "3", "--exact")
    assert refused.status == 1
    assert "a changed outside since the last recorded state" in refused.said
    assert files(lived)["a"] == b"mine\n"
    said = lived.done("rewind", "3", "--exact", "--on-external", "keep").text
    assert "Recorded the change from outside to a as edit 7." in said
    assert files(lived) == THEN
    lived.done("undo")
    assert files(lived) == {**NOW, "a": b"mine\n"}


def test_exact_rewind_asks_at_a_terminal_with_the_count(lived: CommandRunner) -> None:
    status, said = lived.typed_at("[y/N]", lambda: "n\n", "rewind", "3", "--exact")
    assert "This restores 3 files as before turn 3. Go ahead? [y/N]" in said
    assert (status, files(lived)) == (130, NOW)


def test_exact_rewind_refuses_options_of_a_rejection(lived: CommandRunner) -> None:
    for option in (["--cascade"], ["-m", "no"]):
        assert lived.cas("rewind", "3", "--exact", *option).status == 2


@pytest.mark.parametrize("rule", ["*.log", "logs/"])
@pytest.mark.parametrize("is_new_folder", [True, False])
@pytest.mark.parametrize("remover", ["person", "agent", "git"])
def test_exact_rewind_keeps_a_file_that_an_ignore_rule_hid_at_the_prompt(
    tmp_path: Path, rule: str, remover: str, *, is_new_folder: bool
) -> None:
    folder = recorded_project(tmp_path / "project", "a.txt")
    for words in ("init -q", "add a.txt", "commit -q -m one", "checkout -q -b other"):
        git(folder, *words.split())
    (folder / ".gitignore").write_text(f"{rule}\n")
    git(folder, "add", ".gitignore")
    git(folder, "commit", "-q", "-m", "two")
    log = folder / "logs/app.log"
    if not is_new_folder:
        log.parent.mkdir()
    assert cas("record", folder=folder).status == 0
    log.parent.mkdir(exist_ok=True)
    log.write_text("old\n")
    agent = ClaudeCode(folder)
    agent.start()
    agent.ask("begin")
    agent.run("echo 4 >> a.txt")
    agent.stop()
    if remover == "person":
        (folder / ".gitignore").unlink()
    elif remover == "git":
        git(folder, "stash", "-q")
        git(folder, "checkout", "-q", "-")
    agent.ask("go on")
    if remover == "agent":
        agent.run("rm .gitignore")
    agent.run("echo new >> logs/app.log")
    agent.stop()
    ran = cas("rewind", "1", "--exact", "-y", folder=folder)
    assert (ran.status, ran.err) == (0, b"")
    assert log.read_text() == "old\n"


@pytest.mark.parametrize(
    ("source", "command"),
    [
        (".env", "mv .env seen"),
        (".env", "ln .env seen && rm .env"),
        ("build/made", "mv build/made seen"),
        ("../outside", "mv ../outside seen && echo more >> seen"),
    ],
)
def test_what_came_into_sight_under_another_name_is_kept_and_named(tmp_path: Path, source: str, command: str) -> None:
    folder = recorded_project(tmp_path / "project", "a.txt")
    (folder / ".gitignore").write_text("build/\n")
    (folder / "build").mkdir()
    (folder / source).write_text("person's\n")
    assert cas("record", folder=folder).status == 0
    agent = ClaudeCode(folder)
    agent.start()
    agent.ask("begin")
    agent.run("echo new > made && ln a.txt linked")
    agent.run(command)
    agent.write("seen", "agent's\n")
    agent.stop()
    refused = cas("reject", "4", folder=folder)
    assert (refused.status, b"may be older" in refused.err) == (1, True)
    ran = cas("rewind", "1", "--exact", "-y", folder=folder)
    assert (ran.status, b"Kept seen: it came into sight later" in ran.out) == (0, True)
    assert (folder / "seen").read_text().startswith("person's\n")
    assert not (folder / "made").exists()
    assert not (folder / "linked").exists()


_WAYS = {
    "mv {source} {name}": True,
    "ln {source} {name}": True,
    "ln {source} {name} && rm {source}": True,
    "sed s/s/S/ {source} > {name} && rm {source}": True,
    "sed -i s/s/S/ {source} && mv {source} {name}": True,
    "mkdir d.{name} && mv {source} d.{name}/{name}": True,
    "cp -p {source} {name} && rm {source}": True,
    "cp -p build/{name} {name} && rm build/{name}": True,
    "echo new > {name}": False,
    "touch {name}": False,
    "cp a.txt {name}": False,
    "cp -p a.txt {name}": False,
    "ln a.txt {name}": False,
    "mv b.txt {name}": False,
    "mv noted.txt {name}": False,
    "mkdir d.{name} && mv noted.txt d.{name}/{name}": False,
}
"""Commands that make a file, each with whether it is, or may be, one that existed before."""


@pytest.mark.parametrize("seed", range(4))
def test_an_exact_rewind_removes_no_file_that_existed_then_whatever_way_it_came_into_sight(
    tmp_path: Path, seed: int
) -> None:
    draw = Random(seed)
    folder = recorded_project(tmp_path / "project", "a.txt", "b.txt")
    (folder / ".gitignore").write_text("*.log\nbuild/\n")
    (folder / "build").mkdir()
    for number in range(6):
        (folder / f"build/seen{number}").write_text(f"person's {number}\n")
    sources = [".env", "one.log", "two.log", "three.log"]
    for name in sources:
        (folder / name).write_text(f"person's {name}\n")
    (folder / "noted.txt").write_text("1\n2\n3\n")
    assert cas("record", folder=folder).status == 0
    agent = ClaudeCode(folder)
    agent.start()
    agent.ask("begin")
    ways = draw.sample(sorted(_WAYS), 6)
    older: set[str] = set()
    new: set[str] = set()
    for number, way in enumerate(ways):
        source = draw.choice(sources)
        if "{source}" in way and not (folder / source).exists():
            continue
        if "noted.txt" in way and not (folder / "noted.txt").exists():
            continue
        name = f"seen{number}"
        agent.run(way.format(source=source, name=name))
        (older if _WAYS[way] else new).add(f"d.{name}/{name}" if "mkdir" in way else name)
    if draw.random() < 0.5:
        agent.run("rm .gitignore")
        older |= {path.name for path in folder.glob("*.log")}
    agent.stop()
    inodes = {name: (folder / name).stat().st_ino for name in older}
    ran = cas("rewind", "1", "--exact", "-y", folder=folder)
    assert (ran.status, ran.err) == (0, b"")
    assert {name: (folder / name).stat().st_ino for name in older} == inodes
    assert [name for name in new if (folder / name).exists()] == []
    assert {name: (folder / name).read_text() for name in ("a.txt", "b.txt", "noted.txt")} == dict.fromkeys(
        ("a.txt", "b.txt", "noted.txt"), "1\n2\n3\n"
    )


@pytest.mark.parametrize(
    ("source", "command"),
    [
        (".env", "sed s/s/S/ .env > seen && rm .env"),
        (".env", "sed -i s/s/S/ .env && mv .env seen"),
        (".env", "cat .env a.txt > sub/seen && rm .env && mv sub/seen seen"),
        ("sub/.env", "sed s/s/S/ sub/.env > seen && rm -r sub"),
        ("build/made", "mv build seen.d && sed s/s/S/ seen.d/made > seen && rm -r seen.d"),
    ],
)
@pytest.mark.parametrize("is_hooked", [True, False])
def test_a_new_file_is_kept_if_it_may_hold_what_an_unread_file_held(
    tmp_path: Path, source: str, command: str, *, is_hooked: bool
) -> None:
    """A file rewritten while it is renamed has a new name, inode and content: only that its old name is gone shows."""
    folder = recorded_project(tmp_path / "project", "a.txt")
    (folder / ".gitignore").write_text("build/\n")
    for name in ("build", "sub"):
        (folder / name).mkdir()
    (folder / source).write_text("person's\n")
    assert cas("record", folder=folder).status == 0
    agent = ClaudeCode(folder)
    agent.start()
    agent.ask("begin")
    agent.run("echo new > made")
    if is_hooked:
        agent.run(command)
    else:
        shell(command, folder=folder)
        assert cas("record", folder=folder).status == 0
    agent.run("echo new > made2; cp a.txt copied")
    agent.stop()
    ran = cas("rewind", "1", "--exact", "-y", folder=folder)
    assert (ran.status, ran.err) == (0, b"")
    assert b"Kept seen: it came into sight later" in ran.out
    assert "per" in (folder / "seen").read_text()
    assert [(folder / name).exists() for name in ("made", "made2", "copied")] == [False] * 3
    creation = next(
        row["seq"]
        for row in (json.loads(line) for line in cas("log", "--json", folder=folder).out.splitlines())
        if row["file_path"] == str(folder / "seen")
    )
    assert cas("reject", str(creation), folder=folder).status == 0
    assert not (folder / "seen").exists()
    assert cas("undo", folder=folder).status == 0
    assert (folder / "seen").exists()


@pytest.mark.parametrize("is_recorded_in_the_call", [True, False])
def test_an_exact_rewind_keeps_what_was_made_before_the_prompt_and_recorded_after_it(
    runner: CommandRunner, *, is_recorded_in_the_call: bool
) -> None:
    for name in ("a", "b"):
        (runner.folder / name).write_bytes(b"1\n")
    runner.done("record")
    (runner.folder / "notes").write_text("person's\n")
    turn = TurnInfo(session="one", began=now(), client="claude-code")
    time.sleep(0.05)  # more than a tick: no hook has compared the clock with that of files
    runner.call(lambda call: call.write("made", b"new\n"), conversation="one", turn=turn)
    if is_recorded_in_the_call:
        runner.call(lambda call: call.write("notes", b"person's\nagent's\n"), conversation="one", turn=turn)
    (runner.folder / "later").write_text("person's\n")
    runner.done("record")
    said = runner.done("rewind", "1", "--exact", "-y").text
    assert "Kept notes: it came into sight later" in said
    assert sorted(path.name for path in runner.folder.iterdir() if path.name != ".cas") == ["a", "b", "notes"]


def test_where_no_time_of_birth_is_known_an_exact_rewind_removes_only_what_a_tool_created(tmp_path: Path) -> None:
    folder = tmp_path / "ram"
    folder.mkdir()
    if not can_mount(folder):
        pytest.skip("mounts are not permitted")
    subprocess.run(["mount", "-t", "ramfs", "none", str(folder)], check=True)
    try:
        recorded_project(folder / "p", "a.txt")
        agent = ClaudeCode(folder / "p")
        agent.start()
        agent.ask("begin")
        agent.run("echo new > made; touch empty; cp a.txt copied")
        agent.write("written", "agent's\n")
        agent.stop()
        ran = cas("rewind", "1", "--exact", "-y", folder=folder / "p")
        assert (ran.status, ran.err) == (0, b"")
        assert b"Kept made: it came into sight later" in ran.out
        assert {path.name for path in (folder / "p").iterdir()} >= {"a.txt", "made"}
        assert not {path.name for path in (folder / "p").iterdir()} & {"empty", "copied", "written"}
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
