"""A person decides: inside an agent's shell decisions are refused, or marked, and each record says through what."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from objstore import Decision, Origin, SettingChange, Status, Workspace
from tests.support.client_process import ClientProcess
from tests.support.command_runner import PROGRAM, CommandRunner
from tests.support.hooked_agents import hook
from tests.support.review_server import WHOLE, review_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes can be named on Linux alone")

DECISIONS = (
    ("accept", "--all"),
    ("accept", "1"),
    ("reject", "1"),
    ("reopen", "1"),
    ("undo",),
    ("redo",),
    ("claim", "1", "--mine"),
    ("rewind", "1", "--yes"),
    ("rewind", "1", "--exact", "--yes"),
    ("purge", "a.txt", "--yes", "--force"),
    ("config", "set", "record.exclude", "*"),
    ("config", "set", "review.by_agents", "mark"),
    ("config", "unset", "review.accept"),
    ("comment", "--resolve", "1"),
    ("comment", "1", "-m", "fine"),
    ("comment", "a.txt:2", "-m", "fine"),
    ("comment", "--reply", "1", "-m", "fine"),
    ("send", "1", "--any"),
    ("import", "mcpdiff", "."),
    ("restore", "a.txt@1^"),
    ("amend", "1", "--from", "other.txt"),
    ("gc",),
    ("setup", "--remove", "claude-code"),
    ("doctor", "--forget"),
    ("snapshot", "delete", "1"),
    ("snapshot", "restore", "1"),
    ("pin", "remove", "1"),
    ("reject", "1", "--check", "touch ran"),
    ("accept", "1", "--check", "echo ran > a.txt"),
    ("config", "set", "review.check", "true"),
)


@pytest.fixture
def runner(tmp_path: Path) -> CommandRunner:
    """Return a workspace with a pending edit of an agent's, an accepted one, and a comment."""
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / ".mcp" / "edit_history" / "logs").mkdir(parents=True)
    runner = CommandRunner(folder)
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "other.txt").write_text("other\n")
    runner.done("record")
    return runner


@pytest.fixture
def client(runner: CommandRunner) -> Iterator[ClientProcess]:
    """Return a client that has changed a file, and runs a shell now."""
    with ClientProcess(runner.folder) as client:
        client.begin()
        (runner.folder / "a.txt").write_text("one\nAGENT\n")
        client.end()
        runner.done("comment", "1", "-m", "why?")
        client.begin("cas")
        yield client


def log_of(runner: CommandRunner) -> list[object]:
    return runner.done("store", "records", "--json").lines()


def test_decision_inside_an_agents_shell_is_refused_and_changes_nothing(
    runner: CommandRunner, client: ClientProcess
) -> None:
    before = log_of(runner), (runner.folder / "a.txt").read_bytes()
    for words in DECISIONS:
        ran = client.cas(*words)
        assert (ran.status, ran.out) == (1, b""), ran
        assert "This is claude-code's shell; a person decides" in ran.said, words
        assert (log_of(runner), (runner.folder / "a.txt").read_bytes()) == before, words
        assert not (runner.folder / ".cas" / "config.toml").exists(), words


def test_looking_and_dry_runs_are_allowed_inside_an_agents_shell(client: ClientProcess) -> None:
    for words in (["status"], ["log"], ["show", "1"], ["diff"], ["accept", "1", "--dry-run"], ["config"]):
        assert client.cas(*words).status == 0


def test_a_person_decides_while_an_agents_shell_runs(runner: CommandRunner, client: ClientProcess) -> None:
    runner.done("accept", "1")
    assert client.cas("undo").status == 1


def test_decision_after_the_shells_end_is_the_persons(client: ClientProcess) -> None:
    client.end("cas")
    assert client.cas("accept", "1").status == 0  # as by `!` in Claude Code


def test_marked_decision_names_the_client_until_it_is_made_elsewhere(
    runner: CommandRunner, client: ClientProcess
) -> None:
    runner.done("config", "set", "review.by_agents", "mark")
    assert client.cas("accept", "1").status == 0
    runner.done("undo")
    with Workspace.open(runner.folder) as workspace:
        records = [view.record for view in workspace.history.records()]
    decisions = [record for record in records if isinstance(record, Decision)]
    assert [(made.action.value, made.via, made.agent) for made in decisions] == [
        ("accept", "script", "claude-code"),
        ("undo", "script", ""),
    ]


def test_comment_inside_a_shell_that_may_decide_names_the_client(runner: CommandRunner, client: ClientProcess) -> None:
    runner.done("config", "set", "review.by_agents", "mark")
    assert client.cas("comment", "1", "-m", "fine").status == 0
    assert "(in the shell of claude-code)" in runner.done("comment").text


def test_held_messages_are_sent_by_a_person_alone(runner: CommandRunner, client: ClientProcess) -> None:
    runner.done("config", "set", "review.send", "manual")
    refused = client.cas("send")
    assert (refused.status, "a person decides" in refused.said) == (1, True), refused
    assert "why?" not in client.event("UserPromptSubmit", prompt="next").text
    runner.done("send")
    assert "why?" in client.event("UserPromptSubmit", prompt="more").text


def test_what_a_shell_records_under_any_conversation_awaits_review(
    runner: CommandRunner, client: ClientProcess
) -> None:
    (runner.folder / "a.txt").write_text("one\nAGAIN\n")
    assert client.cas("record", "--conversation", "mine").status == 0
    with runner.workspace() as workspace:
        (edit,) = [view for view in workspace.history.edits() if view.seq > 1]
    assert (edit.edit.origin, edit.status) == (Origin.AGENT, Status.PENDING)


def test_mark_counts_only_as_a_person_set_it(runner: CommandRunner, client: ClientProcess) -> None:
    (runner.folder / ".cas" / "config.toml").write_text('[review]\nby_agents = "mark"\n')
    assert client.cas("accept", "1").status == 1
    assert "review.by_agents" in runner.done("status").text


def test_records_say_through_what_a_person_decided(runner: CommandRunner, client: ClientProcess) -> None:
    client.end("cas")
    runner.done("reject", "1")
    runner.done("undo", CAS_SURFACE="editor")
    assert runner.typed("accept", "1")[0] == 0
    runner.done("config", "set", "record.exclude", "*.log")
    records = [json.loads(line) for line in runner.done("store", "records", "--json").out.splitlines()]
    made = [record["via"] for record in records if record["kind"] == "decision"]
    assert made == ["script", "editor", "terminal"]
    with Workspace.open(runner.folder) as workspace:
        (changed,) = [view.record for view in workspace.history.records() if isinstance(view.record, SettingChange)]
    assert (changed.name, changed.after, changed.via) == ("record.exclude", "*.log", "script")


def decided(runner: CommandRunner, *words: str) -> list[tuple[object, ...]]:
    """Return who decided, as `cas ... --json` says it of the first object: action, surface, agent."""
    (edit, *_) = runner.done(*words, "--json").lines()
    found = edit["edits"][0] if words[0] == "show" else edit
    made = found["decided"] if isinstance(found["decided"], list) else [found["decided"]]
    return [(each["action"], each["via"], each["agent"]) for each in made]


def test_log_show_and_blame_name_who_decided_and_through_what(runner: CommandRunner, client: ClientProcess) -> None:
    client.end("cas")
    runner.done("accept", "1", LOGNAME="ada")
    assert runner.done("log").text.rstrip().endswith("  by ada (script)")
    assert "decided       accept by ada (script), " in runner.done("show", "1").text
    assert "  by ada (script)  " in runner.done("blame", "a.txt").text.splitlines()[1]
    runner.done("undo", CAS_SURFACE="editor")
    assert decided(runner, "log") == decided(runner, "show", "1") == [("undo", "editor", None)]
    assert "  by " not in runner.done("log").text  # it is pending again: no one has decided
    assert runner.typed("accept", "1")[0] == 0
    assert decided(runner, "log") == [("accept", "terminal", None)]
    blamed = [line["decided"] for line in runner.done("blame", "a.txt", "--json").lines()]
    assert [made and made["via"] for made in blamed] == [None, "terminal"]


def test_each_unit_names_the_newest_decision_on_it(runner: CommandRunner) -> None:
    runner.write("n.txt", b"1\n2\n3\n4\n5\n")
    runner.write("n.txt", b"one\n2\n3\n4\nfive\n")
    runner.done("accept", "2:1", LOGNAME="ada")
    runner.done("reject", "2:2", LOGNAME="bob")
    assert "  by ada (script), bob (script)" in runner.done("log", "-n", "1").text
    shown = runner.done("show", "2").text
    assert "2:1: accept by ada (script), " in shown
    assert "2:2: reject by bob (script), " in shown
    (edit, *_) = runner.done("log", "--json").lines()
    assert [(each["hunks"], each["who"]) for each in edit["decided"]] == [(["2:1"], "ada"), (["2:2"], "bob")]


def test_marked_decision_is_shown_with_the_agent(runner: CommandRunner, client: ClientProcess) -> None:
    runner.done("config", "set", "review.by_agents", "mark")
    assert client.cas("accept", "1").status == 0
    assert "(script in claude-code's shell)" in runner.done("log").text
    assert "(script in claude-code's shell)" in runner.done("show", "1").text
    assert "(script in claude-code's shell)" in runner.done("blame", "a.txt").text
    assert decided(runner, "log") == decided(runner, "show", "1") == [("accept", "script", "claude-code")]


def test_edit_that_was_recorded_as_accepted_names_no_decision(runner: CommandRunner) -> None:
    (runner.folder / "a.txt").write_text("mine\n")
    runner.done("record")
    assert decided(runner, "log") == []
    assert "  by " not in runner.done("log").text


# ---- what a person should hear of, until it is acknowledged


def cautions(runner: CommandRunner) -> list[object]:
    return [each["kind"] for each in runner.done("status", "--json").json()["cautions"]]


def test_marked_decision_is_in_status_and_doctor_until_a_person_acknowledges_it(
    runner: CommandRunner, client: ClientProcess
) -> None:
    runner.done("config", "set", "review.by_agents", "mark")
    assert client.cas("accept", "1").status == 0
    for _ in range(2):  # that it was printed is no acknowledgement
        shown = runner.done("status").text
        assert "accept of edit 1, by " in shown
        assert "(script in claude-code's shell)" in shown
        assert "review.by_agents: not set -> mark, by " in shown
        assert cautions(runner) == ["setting", "decision"]
    assert "BAD  decisions in agents' shells" in runner.cas("doctor").text
    client.end("cas")
    acknowledged = runner.cas("doctor", "--forget").text
    assert "acknowledged: " in acknowledged
    assert "accept of edit 1, by " in acknowledged
    assert cautions(runner) == []
    assert "no person has acknowledged" not in runner.done("status").text
    runner.done("config", "unset", "review.by_agents")
    assert cautions(runner) == ["setting"]


def test_agent_does_not_acknowledge_its_own_decisions(runner: CommandRunner, client: ClientProcess) -> None:
    runner.done("config", "set", "record.exclude", "*.log")
    assert client.cas("doctor", "--forget").status == 1
    assert cautions(runner) == ["setting"]


def test_next_stop_says_cautions_once(runner: CommandRunner, client: ClientProcess) -> None:
    client.end("cas")
    runner.done("config", "set", "record.exclude", "*.log")
    assert "1 decision or change of what is recorded" in client.event("Stop").text
    assert "change of what is recorded" not in client.event("Stop").text
    assert cautions(runner) == ["setting"]


def test_edit_of_a_persons_made_in_an_agents_shell_is_marked(runner: CommandRunner, client: ClientProcess) -> None:
    runner.done("config", "set", "review.by_agents", "mark")
    runner.done("doctor", "--forget", CAS_SURFACE="editor")
    runner.done("snapshot", "create")
    (runner.folder / "other.txt").write_text("changed\n")
    runner.done("record")
    assert client.cas("restore", "a.txt@1^").status == 0
    assert client.cas("amend", "1", "--from", "other.txt").status in {0, 1}
    assert client.cas("snapshot", "restore", "1").status == 0
    made = [each["notes"].get("shell") for each in runner.done("log", "--json").lines() if each["origin"] == "person"]
    assert set(made) == {"claude-code"}
    assert set(cautions(runner)) == {"decision"}  # each with the edits that it made
    assert all(each["record"]["agent"] for each in runner.done("status", "--json").json()["cautions"])


def test_purge_is_said_until_it_is_acknowledged(runner: CommandRunner) -> None:
    runner.write("n.txt", b"1\n")
    runner.done("purge", "n.txt", "--yes", "--force")
    assert "purged: edits 1" in runner.done("status").text
    assert "expiry" in cautions(runner)


@pytest.mark.parametrize("rules", [".casignore", ".gitignore"])
def test_rule_that_newly_leaves_out_a_covered_path_is_said_before_and_after_the_next_scan(
    rules: str, runner: CommandRunner
) -> None:
    (runner.folder / "lib").mkdir()
    (runner.folder / "lib" / "b.txt").write_text("b\n")
    (runner.folder / "never.log").write_text("log\n")
    (runner.folder / ".gitignore").write_text("*.log\n")
    runner.done("record")
    with (runner.folder / rules).open("a") as file:
        file.write("a.txt\nlib/\n*.log\n")
    expected = {"a.txt", "lib"}
    assert left_out(runner) == expected
    runner.done("record")
    assert left_out(runner) == expected
    runner.done("record")
    assert left_out(runner) == expected
    runner.cas("doctor", "--forget")
    assert left_out(runner) == set()
    assert (runner.folder / ".cas" / "agents" / "remarks").read_bytes() == b""
    (runner.folder / "c.txt").write_text("c\n")
    runner.done("record")
    with (runner.folder / rules).open("a") as file:
        file.write("c.txt\n")
    runner.done("record")
    assert left_out(runner) == {"c.txt"}  # which are counted again


def left_out(runner: CommandRunner) -> set[str]:
    found = runner.done("status", "--json").json()["cautions"]
    return {Path(each["file_path"]).name for each in found if each["kind"] == "left out"}


def test_damaged_acknowledgements_show_everything_again(runner: CommandRunner) -> None:
    runner.done("config", "set", "record.exclude", "*.log")
    runner.cas("doctor", "--forget")
    for held in (b"", b"{", b"[1]", b"[-1, 2, 3]", b'[99, "00", 99]', b"\xff\0"):
        (runner.folder / ".cas" / "agents" / "cautions-acknowledged").write_bytes(held)
        (runner.folder / ".cas" / "agents" / "remarks").write_bytes(b"\xff x\0no time\0" + held)
        assert "setting" in cautions(runner), held


# ---- the page

_CLIENT: Final = """
import json, signal, subprocess, sys
program, events = map(json.loads, sys.argv[1:3])
for event in events:
    subprocess.run([*program, "hook", "claude-code"], input=json.dumps(event).encode(), check=True)
web = subprocess.Popen([*program, *sys.argv[3:]])
signal.signal(signal.SIGTERM, lambda *_: web.terminate())
sys.exit(web.wait())
"""
"""A client that reports some events, and then starts the page as its own child."""


def test_page_that_an_agents_client_started_decides_nothing_while_a_call_runs(runner: CommandRunner) -> None:
    runner.write("n.txt", b"1\n")
    base = {"session_id": "s2", "cwd": str(runner.folder)}
    call = {**base, "tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "cas web"}}
    events = [
        {**base, "hook_event_name": "UserPromptSubmit", "prompt": "p"},
        {**call, "hook_event_name": "PreToolUse"},
    ]
    client = (sys.executable, "-c", _CLIENT, json.dumps(PROGRAM), json.dumps(events))
    with review_server(runner.folder, program=client) as page:
        keys = page.keys("n.txt")
        before = log_of(runner)
        for refused in (page.decide("accept", keys=keys), page.decide("reject", keys=keys, running="now")):
            assert "a person decides" in json.dumps(refused), refused
        seen = page.client.post("/api/seen", json={"keys": keys, "on_screen": dict.fromkeys(keys, WHOLE)})
        assert "a person decides" in seen.text, seen
        assert log_of(runner) == before
        assert runner.bytes("n.txt") == b"1\n"
        ended = {**call, "hook_event_name": "PostToolUse", "tool_response": {}}
        assert hook("claude-code", ended, folder=runner.folder).status == 0
        assert page.decide("accept", keys=keys)["outcome"] == "decided"
    assert decided(runner, "log") == [("accept", "page", None)]
    assert "(page)" in runner.done("show", "1").text
    assert "(page)" in runner.done("blame", "n.txt").text
