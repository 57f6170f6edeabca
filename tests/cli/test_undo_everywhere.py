"""Undo takes back the newest thing that was done, whatever it was: by command, by key and on the page, with one result.

In the chat a person takes back what was decided in that window, and nothing else.
"""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from objstore import CallInfo, Origin, Status, TurnInfo, Unit, Workspace
from tests.cli.commands.reviewing.test_claim import record_found
from tests.support.command_runner import CommandRunner, cas
from tests.support.git_repository import git
from tests.support.review_server import WHOLE, review_server
from tests.support.terminal_driver import run_in_terminal
from tests.support.windowed_agent import allow_deciding, raw_call, ticket_of, windowed

State = tuple[dict[str, str], dict[str, bytes]]

TEXT = b"".join(b"%d\n" % number for number in range(1, 10))


def changed(text: bytes, *numbers: int) -> bytes:
    """Return a text with some of its lines changed."""
    for number in numbers:
        text = text.replace(b"%d\n" % number, b"line %d\n" % number)
    return text


def wrote(runner: CommandRunner, line: int, turn: TurnInfo, conversation: str) -> None:
    """Record a change of a line of the file in a turn."""
    content = changed(runner.bytes("f"), line)
    runner.call(lambda call: call.write("f", content), conversation=conversation, turn=turn)


@pytest.fixture
def worked(runner: CommandRunner) -> CommandRunner:
    """Return a workspace with a snapshot, two turns, decisions, an unattributed edit 4, and a pending file 5."""
    runner.write("f", TEXT)
    runner.done("accept", "1")
    runner.done("snapshot")
    for number, line in enumerate((2, 5), 1):
        turn = TurnInfo(session=f"s{number}", began=time.time_ns() // 1000, prompt=f"prompt {number}")
        wrote(runner, line, turn, f"c{number}")
    runner.done("accept", "2")
    (runner.folder / "f").write_bytes(changed(runner.bytes("f"), 8))
    record_found(runner.folder, "f", CallInfo(tool="", origin=Origin.UNATTRIBUTED, notes={"candidates": "s1\ns2"}))
    runner.write("other", b"waits\n")
    return runner


def commit(runner: CommandRunner) -> None:
    """Let git commit the file, which accepts what is pending in it."""
    git(runner.folder, "add", "f")
    git(runner.folder, "commit", "-q", "-m", "one")
    runner.done("status")


def amend(runner: CommandRunner) -> None:
    """Change the text of an edit."""
    new = runner.folder.parent / "new"
    new.write_bytes(runner.bytes("f").replace(b"line 5\n", b"five\n"))
    runner.done("amend", "3", "--from", str(new))


def by_command(*words: str) -> Callable[[CommandRunner], None]:
    """Return what runs a command."""

    def run(runner: CommandRunner) -> None:
        runner.done(*words)

    return run


ACTS: dict[str, tuple[Callable[[CommandRunner], None], str]] = {
    "acceptance": (by_command("accept", "3"), "acceptance of "),
    "rejection": (by_command("reject", "3"), "rejection of "),
    "reopening": (by_command("reopen", "2"), "edit 2"),
    "restore": (by_command("restore", "f@1"), "restore of f"),
    "rewind": (by_command("rewind", "1"), "rejection of edit 2"),
    "exact rewind": (by_command("rewind", "1", "--exact"), "rewind to before turn 1"),
    "snapshot restore": (by_command("snapshot", "restore", "1"), "restore of snapshot 1"),
    "claim": (by_command("claim", "4", "--mine"), "claim of edit 4"),
    "claim for a session": (by_command("claim", "4", "--session", "2"), "claim of edit 4"),
    "amendment": (amend, "amendment of edit 3"),
    "commit": (commit, "acceptance by commit "),
}


def state(root: Path, seqs: int) -> State:
    """Return the statuses and owners of the first edits, and the bytes of all files."""
    with Workspace.open(str(root)) as workspace:
        views = [view for view in workspace.history.edits() if view.seq <= seqs]
    statuses = {
        str(Unit(view.seq, hunk)): f"{view.units[hunk].value} {view.owner}" for view in views for hunk in view.telling
    }
    return statuses, {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()}


def undone_by_command(root: Path, _: str) -> str:
    """Undo by `cas undo`, after a dry run that changes nothing; return what is said."""
    before = state(root, 1_000)
    planned = cas("undo", "--dry-run", folder=root)
    assert planned.status == 0, planned.said
    assert state(root, 1_000) == before
    done = cas("undo", folder=root)
    assert done.status == 0, done.said
    assert f"Would undo {done.text.splitlines()[0].removeprefix('Undid ')}\n" in planned.text
    return done.text


def undone_by_key(root: Path, _: str) -> str:
    """Undo by `u` in a review in a terminal."""
    with run_in_terminal("plain", "review", folder=root, scratch=root.parent / "stage") as terminal:
        terminal.wait_for(r"Decide on .*\] $")
        terminal.type("u")
        said = terminal.wait_for(r"Undid [^$]*Decide on .*\] $")
        terminal.type("q")
        assert terminal.wait_for_exit() == 0
    return said


def undone_on_page(root: Path, _: str) -> str:
    """Undo on the page, which names the newest thing in its queue."""
    with review_server(root) as server:
        outcome = server.post("/api/undo", number=server.queue()["undo"])
        assert outcome["outcome"] == "decided", outcome
        assert outcome["act"] is not None
    return str(outcome["message"])


SURFACES = (undone_by_command, undone_by_key, undone_on_page)


@pytest.mark.parametrize("name", ACTS)
def test_undo_takes_back_the_newest_act_on_every_surface(worked: CommandRunner, name: str) -> None:
    act, words = ACTS[name]
    if name == "commit":
        git(worked.folder, "init", "-q")
        (worked.folder / "first").touch()
        git(worked.folder, "add", "first")
        git(worked.folder, "commit", "-q", "-m", "first")
        worked.done("record")
    with worked.workspace() as workspace:
        seqs = workspace.history.next_edit() - 1
    before = state(worked.folder, seqs)
    act(worked)
    assert state(worked.folder, seqs) != before
    for surface in SURFACES:
        root = Path(shutil.copytree(worked.folder, worked.folder.parent / surface.__name__, symlinks=True))
        said = surface(root, words)
        assert "Undid the " in said, (surface.__name__, said)
        assert words in said, (surface.__name__, said)
        assert state(root, seqs) == before, surface.__name__


def test_the_chat_takes_back_what_was_decided_in_its_window_and_no_other_act(worked: CommandRunner) -> None:
    root = worked.folder
    allow_deciding(root)
    with windowed(root) as agent:
        shown = raw_call(agent, "review_edits", path=str(root / "other"))
        (key,) = [change["key"] for change in shown["structuredContent"]["changes"]]
        before = state(root, 5)
        done = raw_call(agent, "review_decide", ticket=ticket_of(shown), action="reject", keys=[key])
        made = done["structuredContent"]["taken"]
        assert (made["message"], made["decision"] > 0) == ("Rejected edit 5, of other. Removed other.", True)
        worked.done("restore", "f@1")
        restored = state(root, 5)
        newest = cas("undo", "--dry-run", "--json", folder=root).json()["act"]["decision"]
        refused = raw_call(agent, "review_undo", ticket=ticket_of(done), number=newest)
        said = refused["structuredContent"]["taken"]
        assert said["outcome"] == "refused"
        assert "Only a decision that was made here" in said["message"]
        assert state(root, 5) == restored
        undone = raw_call(agent, "review_undo", ticket=ticket_of(refused), number=made["decision"])
        assert undone["structuredContent"]["taken"]["message"].startswith("Undid the rejection of edit 5.")
        assert state(root, 5)[0] == before[0]
        assert state(root, 5)[1]["f"] == TEXT


# ---- what a rejection takes back


def counted_on_turn(root: Path, *, makes: bool) -> str:
    """Return what the page says of a rejection of a turn: before, or when it is made."""
    with review_server(root) as server:
        documents = [file["document"] for file in server.queue()["files"]]
        shown = [server.get("/api/file", document=document)["all"] for document in documents]
        screen = {change["key"]: WHOLE for changes in shown for change in changes}
        asked = server.decide("reject", turn=1, on_screen=screen)
        assert asked["outcome"] == "confirm", asked
        if not makes:
            return str(asked["message"])
        made = server.decide("reject", turn=1, on_screen=screen, ticket=asked["ticket"])
        assert (made["outcome"], made["accepted_edits"]) == ("decided", 1), made
        return " ".join(made["notes"])


def counted_by_key(root: Path, *, makes: bool) -> str:
    """Return what a review in a terminal says of a rejection of a turn: before, or when it is made."""
    with run_in_terminal("plain", "review", "--turn", "1", folder=root, scratch=root.parent / "stage") as terminal:
        terminal.wait_for(r"Decide on .*\] $")
        terminal.type("t")
        said = terminal.wait_for(r"Accept \[a\] or reject \[x\] all.*\] $")
        terminal.type("x" if makes else "z")
        if makes:
            said = terminal.wait_for(r"u undoes that\.")
        terminal.type("q")
        terminal.wait_for_exit()
    return said


def test_accepted_edits_in_a_rejection_are_counted_before_and_after_on_every_surface(runner: CommandRunner) -> None:
    turn = TurnInfo(session="s", began=1_000_000, prompt="prompt")
    runner.write("f", TEXT)
    runner.done("accept", "1")
    for line in (2, 8):
        wrote(runner, line, turn, "c")
    runner.done("accept", "2")
    root, counted = runner.folder, "2 edits, 1 of them accepted"
    copies = [Path(shutil.copytree(root, root.parent / f"copy {number}", symlinks=True)) for number in range(4)]
    assert counted in cas("reject", "--turn", "1", "--dry-run", folder=copies[0]).text
    assert counted in cas("reject", "--turn", "1", folder=copies[0]).text
    assert "1 accepted edit (edit 2)" in counted_by_key(copies[1], makes=False)
    assert counted in counted_by_key(copies[1], makes=True)
    # The chat takes what is pending: that edit 2, which is accepted, goes along would be a conflict to be shown first.
    allow_deciding(copies[2])
    with windowed(copies[2]) as agent:
        shown = raw_call(agent, "review_edits", turn=1)
        keys = [change["key"] for change in shown["structuredContent"]["changes"]]
        done = raw_call(agent, "review_decide", ticket=ticket_of(shown), action="reject", keys=keys)
        assert done["structuredContent"]["taken"]["message"].startswith("Rejected edit 3, of f.")
    assert CommandRunner(copies[2]).statuses()["2:1"] is Status.ACCEPTED
    assert counted in counted_on_turn(copies[3], makes=False)
    assert counted in counted_on_turn(copies[3], makes=True)


def by_command_at_a_terminal(runner: CommandRunner, action: str, answer: str) -> str:
    return runner.typed_at("[y/N]", lambda: f"{answer}\n", action)[1]


def by_key(runner: CommandRunner, action: str, answer: str) -> str:
    key = {"undo": "u", "redo": "U"}[action]
    with run_in_terminal("plain", "review", folder=runner.folder, scratch=runner.folder.parent / "stage") as terminal:
        terminal.wait_for(r"Decide on .*\] $")
        terminal.type(key)
        said = terminal.wait_for(r"\[y\], or leave it.*\] $")
        terminal.type(answer)
        terminal.wait_for(r"Decide on .*\] $")
        terminal.type("q")
        assert terminal.wait_for_exit() == 0
    return said


def on_the_page(runner: CommandRunner, action: str, answer: str) -> str:
    with review_server(runner.folder) as server:
        names = {"number": server.queue()["undo"]} if action == "undo" else {}
        asked = server.post(f"/api/{action}", **names)
        assert (asked["outcome"], asked["action"]) == ("confirm", action)
        assert asked["listed"] == [{"name": "5:1", "status": "accepted"}]
        if answer == "y":
            assert server.post(f"/api/{action}", ticket=asked["ticket"], **names)["outcome"] == "decided"
    return str(asked["message"])


RESOLVED = TEXT.replace(b"2\n", b"deux\n")


def resolve(runner: CommandRunner) -> None:
    """Resolve a conflict by hand, so that an undo of the rejection takes that along, and let a file wait."""
    runner.write("f", TEXT)
    runner.done("accept", "1")
    runner.edit("f", b"2\n", b"two\n")
    runner.edit("f", b"two\n", b"zwei\n")
    runner.done("reject", "2", "--markers")
    (runner.folder / "f").write_bytes(RESOLVED)
    runner.done("record")
    runner.write("other", b"waits\n")


@pytest.mark.parametrize("surface", [by_command_at_a_terminal, by_key, on_the_page])
def test_what_goes_along_with_an_undo_is_listed_before_it(
    runner: CommandRunner, surface: Callable[[CommandRunner, str, str], str]
) -> None:
    runner.prepared(resolve)
    before = runner.statuses()
    assert before["5:1"] is Status.ACCEPTED
    said = surface(runner, "undo", "n")
    assert "Would undo the rejection of edits 2 3. Would also reject edit 5, which depends on them." in said
    assert "It is accepted." in said
    assert (runner.bytes("f"), runner.statuses()) == (RESOLVED, before)
    shape = runner.done("undo", "--dry-run", "--json").json()
    assert (shape["accepted_edits"], shape["taken_back"]) == (1, ["5:1"])
    surface(runner, "undo", "y")
    assert runner.bytes("f") == TEXT.replace(b"2\n", b"zwei\n")
    assert runner.statuses()["5:1"] is Status.REJECTED


def test_nothing_is_asked_before_an_undo_with_yes(runner: CommandRunner) -> None:
    runner.prepared(resolve)
    status, said = runner.typed("undo", "--yes")
    assert (status, "Go ahead?" in said, "Also rejected edit 5" in said) == (0, False, True), said


def test_a_yes_undoes_only_what_the_question_was_about(runner: CommandRunner, tmp_path: Path) -> None:
    runner.prepared(resolve)
    with run_in_terminal("plain", "review", folder=runner.folder, scratch=tmp_path / "stage") as terminal:
        terminal.wait_for(r"Decide on .*\] $")
        terminal.type("u")
        terminal.wait_for(r"\[y\], or leave it.*\] $")
        runner.done("accept", "6")
        decided = runner.statuses()
        terminal.type("y")
        assert "6:0 was decided elsewhere meanwhile" in terminal.wait_for(r"\S\n[^\n]*(\] $|pending\.)")
        assert runner.statuses() == decided


def test_a_yes_on_the_page_redoes_only_what_the_question_was_about(runner: CommandRunner) -> None:
    runner.write("f", TEXT)
    runner.done("accept", "1")
    runner.edit("f", b"2\n", b"two\n")
    runner.edit("f", b"two\n", b"zwei\n")
    runner.done("reject", "2", "--markers")
    runner.done("reject", "3")  # this removes the markers
    runner.done("undo")
    (runner.folder / "f").write_bytes(RESOLVED)
    runner.done("record")
    runner.write("other", b"waits\n")
    with review_server(runner.folder) as server:
        asked = server.post("/api/redo")
        assert (asked["outcome"], asked["listed"]) == ("confirm", [{"name": "5:1", "status": "accepted"}])
        runner.done("accept", "6")
        runner.done("undo")
        decided = runner.statuses()
        assert server.post("/api/redo", ticket=asked["ticket"])["outcome"] == "overtaken"
        assert runner.statuses() == decided
