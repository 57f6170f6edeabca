"""The same names mean the same units from the command line, by keys, on the page and in the chat, for random histories.

Several sessions change the same lines, create, move and delete files, and parts are decided. Then one decision is made
in copies of the workspace, each through another surface: the units, the refusal and what goes along are the same.
"""

import random
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from objstore import Action, CallInfo, CasError, ChangeKind, OnExternal, Selection, Surface, TurnInfo, Unit, Workspace
from tests.support.command_runner import cas
from tests.support.faulty_disk import WHOLE
from tests.support.mcp_agent import Agent
from tests.support.review_server import ReviewServer, review_server
from tests.support.terminal_driver import run_in_terminal
from tests.support.windowed_agent import allow_deciding, raw_call, ticket_of, windowed

KEY = {"accept": "a", "reject": "x"}
ALL_ROWS = [[0, 1_000_000_000]]
OUTCOMES = {"overtaken": "refused", "failed": "refused"}
"""What the page calls a refusal that `cas` reports as an error."""

SAME = ("changed", "edits", "accepted_edits", "taken_back", "recorded", "unmarked", "repeated", "taken_out", "older")
"""Fields of a decision that are the same on the page as with --json, whatever the folder is."""


def made(root: Path, seed: int) -> None:
    """Record a random history below a folder."""
    chance = random.Random(seed)
    assert cas("init", folder=root).status == 0
    with Workspace.open(str(root)) as workspace:
        workspace.decide_through(Surface.SCRIPT)
        texts = {name: [f"{name} {at}\n" for at in range(8)] for name in ("a", "b")}
        with workspace.call(CallInfo(tool="tool", conversation="conv 1")) as call:
            for name, lines in texts.items():
                call.write(name, "".join(lines).encode())
            call.commit()
        workspace.decide(Action.ACCEPT, [Unit(view.seq, 0) for view in workspace.history.edits()])
        for step in range(chance.randint(8, 16)):
            session = chance.randint(1, 3)
            turn = TurnInfo(session=f"session {session}", began=(step // 4 + 1) * 1_000_000 + session, prompt="?")
            info = CallInfo(tool="tool", conversation=f"conv {session}", turn=turn)
            kind = chance.choice(["edit"] * 6 + ["create", "move", "delete", "decide", "decide"])
            if kind == "decide":
                _decide(workspace, chance)
                texts = {path: (root / path).read_text().splitlines(keepends=True) for path in _files(root)}
                continue
            path = chance.choice(sorted(texts)) if texts and kind != "create" else f"file{step}"
            with workspace.call(info) as call:
                if kind == "delete" and path in texts:
                    call.delete(path)
                    del texts[path]
                elif kind == "move" and path in texts:
                    call.move(path, f"moved{step}")
                    texts[f"moved{step}"] = texts.pop(path)
                else:
                    lines = _changed(texts.get(path, []), chance, step)
                    call.write(path, "".join(lines).encode())
                    texts[path] = lines
                call.commit()


def _files(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if path.is_file())


def _changed(lines: list[str], chance: random.Random, step: int) -> list[str]:
    """Return lines of which one is replaced, removed or preceded by a new one; some read alike."""
    if not lines:
        return [f"line {at}\n" for at in range(chance.randint(1, 8))]
    at = chance.randrange(len(lines))
    new = [f"step {step}\n" if chance.random() < 0.8 else "alike\n"]
    return lines[:at] + (new if chance.random() < 0.8 else []) + lines[at + chance.randint(0, 1) :]


def _decide(workspace: Workspace, chance: random.Random) -> None:
    views = workspace.history.edits()
    if views:
        view = chance.choice(views)
        unit = Unit(view.seq, chance.choice(list(view.telling)))
        try:
            workspace.decide(chance.choice([Action.ACCEPT, Action.REJECT]), [unit], on_external=OnExternal.KEEP)
        except CasError:
            return  # nothing was decided


def state(root: Path) -> tuple[dict[str, str], dict[str, bytes]]:
    """Return the status of every hunk, and the bytes of every file."""
    with Workspace.open(str(root)) as workspace:
        views = workspace.history.edits()
    statuses = {str(Unit(view.seq, hunk)): view.units[hunk].value for view in views for hunk in view.telling}
    return statuses, {name: (root / name).read_bytes() for name in _files(root)}


def by_command(root: Path, action: str, *names: str) -> dict[str, Any]:
    """Return what `cas` decides."""
    ran = cas(action, *names, "--json", folder=root)
    if not ran.out:
        return {"outcome": "refused", "said": ran.said}  # a name that selects nothing, an edit that is taken out
    found: dict[str, Any] = ran.json()
    return {**found, "outcome": OUTCOMES.get(found["outcome"], found["outcome"])}


def by_keys(root: Path, keys: str, *names: str) -> dict[str, Any]:
    """Return what keys decide in a review in a terminal, and the edits that it asked about before.

    All lines are shown, a conflict is left as it is, and what goes along without one is agreed to.
    """
    left = list(keys)
    said = asked = ""
    stage = root.parent / f"{root.name}-stage"
    with run_in_terminal("plain", "review", *names, folder=root, scratch=stage) as terminal:
        while not (end := re.search(r"(left pending|is pending)[^\n]*\.\n", said)):
            said += terminal.wait_for(r"\n[^\n]*\] \Z|(left pending|is pending)[^\n]*\.\n")
            question = said.rpartition("\n")[2]
            if question.startswith("..."):
                terminal.type("G")
            elif "Decide on" in question:
                terminal.type(left.pop(0) if left else "q")
            elif "Accept [a] or reject [x] all" in question:
                asked += question
                terminal.type(left.pop(0))
            elif question.startswith(("Reject all of it", "Reject what depends")):
                asked += question
                terminal.type("y" if question.startswith("Reject all") else "n")
            else:
                terminal.type("z")  # nothing else is left: end
        assert terminal.wait_for_exit() == 0
    is_refused = re.search(r"^cas: ", said, re.MULTILINE)
    outcome = "conflict" if "refused, nothing was changed" in said else "refused" if is_refused else "decided"
    return {"outcome": outcome, "asked": asked, "said": said, "end": end.group()}


def edits_in(names: Iterable[str]) -> set[int]:
    """Return the edits that names of edits and hunks are of, such as "edits 1 3" and "hunk 4:1"."""
    return {int(found) for name in names for found in re.findall(r"(?<![\d:])\d+", name)}


def on_page(root: Path, action: str, **names: object) -> dict[str, Any]:
    """Return what the page decides, with all changes on the screen, and what it asked before.

    That is in `accepted`, and all that it listed, each unit with its status, in `listed`. Every question is agreed to.
    """
    listed: dict[str, str] = {}
    accepted: set[str] = set()
    with review_server(root) as server:
        screen = _screen(server)
        found: dict[str, Any] = server.decide(action, on_screen=screen, **names)
        if found["outcome"] == "unshown":  # hunks without a net effect are in no change
            screen |= dict.fromkeys(found["hunks"], ALL_ROWS)
            found = server.decide(action, on_screen=screen, **names)
        while found["outcome"] == "confirm":
            listed |= {each["name"]: each["status"] for each in found["listed"]}
            accepted.update(found["accepted"])
            found = server.decide(action, on_screen=screen, ticket=found["ticket"], **names)
    outcome = OUTCOMES.get(found["outcome"], found["outcome"])
    return {**found, "outcome": outcome, "accepted": sorted(accepted), "listed": listed}


def require_listed(shown: dict[str, Any], said: dict[str, Any], before: dict[str, str]) -> None:
    """Check that the page listed before a decision all that goes along by the command, with its statuses."""
    if said["outcome"] != "decided":
        return
    changed = {change["name"]: change for change in said["changed"]}
    along = {name for name, change in changed.items() if change["cascaded"] and name in before}
    taken = {name for name in changed if before.get(name) == "accepted" and changed[name]["status"] == "rejected"}
    assert set(said["taken_back"]) == taken
    assert along | taken <= set(shown["listed"])
    assert shown["listed"] == {name: before[name] for name in shown["listed"]}
    assert set(shown["accepted"]) == taken


def _screen(server: ReviewServer) -> dict[str, Any]:
    queue = server.queue()
    shown = [server.get("/api/file", document=file["document"]) for file in queue["files"]]
    turns = [turn for turn in queue["turns"] if turn["turn"]]
    shown += [
        server.get("/api/file", document=file["document"], turn=turn["turn"])
        for turn in turns
        for file in turn["files"]
    ]
    return {change["key"]: ALL_ROWS for file in shown for change in file["all"]}


def in_window(agent: Agent, shown: dict[str, Any], action: str, keys: list[str], text: str = "") -> dict[str, Any]:
    """Return the result of a decision in a window, which says yes to what goes along."""
    done = raw_call(agent, "review_decide", ticket=ticket_of(shown), action=action, keys=keys, text=text)
    if done["structuredContent"]["taken"]["outcome"] == "confirm":
        done = raw_call(agent, "review_decide", ticket=ticket_of(done), action=action, keys=keys, text=text)
    return done


def in_chat(root: Path, action: str, key: str, text: str = "") -> dict[str, Any]:
    """Return what the window of a chat program decides on one change."""
    allow_deciding(root)
    with windowed(root) as agent:
        shown = raw_call(agent, "review_edits", path=str(root))
        done = in_window(agent, shown, action=action, keys=[key], text=text)
    found: dict[str, Any] = done["structuredContent"]["taken"]
    return found


def copies(root: Path, *names: str) -> list[Path]:
    """Return copies of a workspace."""
    return [Path(shutil.copytree(root, root.parent / name, symlinks=True)) for name in names]


@pytest.mark.parametrize("seed", range(6 if WHOLE else 1))
def test_a_group_is_the_same_from_the_command_line_and_on_the_page(tmp_path: Path, seed: int) -> None:
    root = tmp_path / "made"
    root.mkdir()
    made(root, seed)
    with Workspace.open(str(root)) as workspace:
        turns = [turn.number for turn in workspace.sessions.turns()]
        sessions = [session.number for session in workspace.sessions.sessions()]
    chance = random.Random(seed)
    for at in range(3):
        action = chance.choice(["accept", "reject"])
        turn, session = chance.choice(turns), chance.choice(sessions)
        named: list[tuple[list[str], dict[str, Any]]] = [
            (["--turn", str(turn)], {"turn": turn}),
            (["--turn", str(turn)], {"turn": turn}),
            (["--session", str(session)], {"session": session}),
            (["--all"], {"all": True}),
        ]
        words, names = chance.choice(named)
        by_words, by_button, by_terminal = copies(root, f"words{at}", f"button{at}", f"terminal{at}")
        said, shown = by_command(by_words, action, *words), on_page(by_button, action, **names)
        assert shown["outcome"] == said["outcome"], (seed, action, words, said, shown)
        assert state(by_button) == state(by_words), (seed, action, words)
        if said["outcome"] == "conflict":
            assert (shown["accept_first"], shown["reject_first"]) == (said["accept_first"], said["reject_first"])
        if said["outcome"] == "decided":
            assert {name: shown[name] for name in SAME} == {name: said[name] for name in SAME}
        require_listed(shown, said, state(root)[0])
        if "turn" in names and _is_pending(root, turn):
            typed = by_keys(by_terminal, f"t{KEY[action]}", *words)
            assert typed["outcome"] == said["outcome"], (seed, action, words, typed)
            assert state(by_terminal) == state(by_words), (seed, action, words, typed)
            if action == "reject":
                asked = edits_in(re.findall(r"accepted edits? \(([^)]*)", typed["asked"]))
                assert asked == edits_in(shown["accepted"]), (typed, shown)


def _is_pending(root: Path, turn: int) -> bool:
    with Workspace.open(str(root)) as workspace:
        return bool(workspace.review.pending_units(Selection(turns=(turn,))))


@pytest.mark.parametrize("seed", range(6, 12 if WHOLE else 7))
def test_a_file_is_the_same_from_the_command_line_by_key_and_on_the_page(tmp_path: Path, seed: int) -> None:
    root = tmp_path / "made"
    root.mkdir()
    made(root, seed)
    with Workspace.open(str(root)) as workspace:
        files = workspace.review.changes()
    chance = random.Random(seed)
    for at, action in enumerate(["accept", "reject"]):
        path = chance.choice(files).path
        by_words, by_button, by_terminal = copies(root, f"words{at}", f"button{at}", f"terminal{at}")
        said, shown = by_command(by_words, action, path), on_page(by_button, action, path=path)
        typed = by_keys(by_terminal, f"f{KEY[action]}", path)
        assert (shown["outcome"], typed["outcome"]) == (said["outcome"], said["outcome"]), (seed, action, path, typed)
        assert state(by_button) == state(by_words), (seed, action, path)
        assert state(by_terminal) == state(by_words), (seed, action, path, typed)
        require_listed(shown, said, state(root)[0])


@pytest.mark.parametrize("seed", [6, 7, 9, 10, 13] if WHOLE else [7])
def test_a_change_is_the_same_everywhere(tmp_path: Path, seed: int) -> None:
    root = tmp_path / "made"
    root.mkdir()
    made(root, seed)
    with Workspace.open(str(root)) as workspace:
        files = workspace.review.changes()
        # Where two changes meet, a line names both.
        lines = [
            (file.path, change)
            for file in files
            for change in file.changes
            if change.inserted and change.kind is ChangeKind.LINES
        ]
    chance = random.Random(seed)
    path, change = chance.choice(lines)
    action = chance.choice(["accept", "reject"])
    by_words, by_button, by_window, by_terminal = copies(root, "words", "button", "window", "terminal")
    # At the first line of the change; a change that only removes lines is at the line below the gap.
    said = by_command(by_words, action, f"{path}:{change.line_after}")
    shown = on_page(by_button, action, keys=[change.key.hex()])
    told = in_chat(by_window, action, change.key.hex())
    assert shown["outcome"] == told["outcome"], (seed, action, path, change.units, shown, told)
    assert state(by_button) == state(by_window), (seed, action, path, change.units)
    assert shown["outcome"] == said["outcome"], (seed, action, path, change.units, said)
    assert state(by_button) == state(by_words), (seed, action, path, change.units)
    require_listed(shown, said, state(root)[0])
    typed = by_keys(by_terminal, KEY[action], f"{path}:{change.line_after}")
    assert state(by_terminal) == state(by_words), (seed, action, path, change.units, typed)
    assert typed["outcome"] == said["outcome"]


@pytest.mark.parametrize("by", ["hunk", "change", "file", "turn", "all"])
def test_what_goes_along_is_listed_before_whatever_the_decision_is_on(tmp_path: Path, by: str) -> None:
    root = tmp_path / "made"
    root.mkdir()
    made(root, 0)
    lines = [f"{at}\n" for at in range(10)]
    turn = TurnInfo(session="session 9", began=9_000_000, prompt="?")
    with Workspace.open(str(root)) as workspace:
        workspace.decide_through(Surface.SCRIPT)
        for text in (lines, [*lines[:2], "two\n", *lines[3:]]):
            with workspace.call(CallInfo(tool="tool", conversation="conv 9", turn=turn)) as call:
                call.write("amended", "".join(text).encode())
                call.commit()
            if text is lines:
                workspace.decide(Action.ACCEPT, [Unit(workspace.history.edits()[-1].seq, 0)])
        seq = workspace.history.edits()[-1].seq
    new = tmp_path / "new"
    new.write_text("".join([*lines[:2], "zwei\n", *lines[3:8], "acht\n", lines[9]]))
    assert cas("amend", str(seq), "--from", str(new), folder=root).status == 0
    with Workspace.open(str(root)) as workspace:
        change = next(file for file in workspace.review.changes() if file.path == "amended").changes[0]
        number = max(turn.number for turn in workspace.sessions.turns())
    named: dict[str, tuple[list[str], dict[str, Any]]] = {
        "hunk": ([f"{seq}:1"], {"units": {f"{seq}:1": "pending"}}),
        "change": ([f"amended:{change.line_after}"], {"keys": [change.key.hex()]}),
        "file": (["amended"], {"path": "amended"}),
        "turn": (["--turn", str(number)], {"turn": number}),
        "all": (["--all"], {"all": True}),
    }
    words, names = named[by]
    by_words, by_button, by_terminal, by_accepting = copies(root, "words", "button", "terminal", "accepting")
    if by in {"file", "change"}:  # what is accepted already does not go along with an acceptance
        assert not on_page(by_accepting, "accept", **names)["listed"]
    said, shown = by_command(by_words, "reject", *words), on_page(by_button, "reject", **names)
    assert shown["outcome"] == said["outcome"], (said, shown)
    keys = {"file": "fx", "change": "x", "hunk": "ex"}
    if by in keys:
        typed = by_keys(by_terminal, keys[by], *words)
        assert state(by_terminal) == state(by_words), typed
        assert "Reject all of it" in typed["asked"]
        assert "2 edits, 1 of them accepted: " in typed["said"]
    assert state(by_button) == state(by_words)
    require_listed(shown, said, state(root)[0])
    assert by == "all" or said["outcome"] == "decided"
    if said["outcome"] == "decided":
        assert {f"{seq + 1}:1", f"{seq + 1}:2"} <= set(shown["accepted"])


@pytest.mark.parametrize("seed", range(20, 26 if WHOLE else 21))
def test_a_hunk_is_the_same_from_the_command_line_by_keys_and_on_the_page(tmp_path: Path, seed: int) -> None:
    root = tmp_path / "made"
    root.mkdir()
    made(root, seed)
    chance = random.Random(seed)
    with Workspace.open(str(root)) as workspace:
        views = workspace.history.edits()
        units = [(Unit(view.seq, hunk), view.units[hunk]) for view in views for hunk in view.telling]
        changes = [(file.path, change) for file in workspace.review.changes() for change in file.changes]
    for at, action in enumerate(["accept", "reject", "reopen"]):
        unit, status = chance.choice(units)
        by_words, by_button = copies(root, f"words{at}", f"button{at}")
        said = by_command(by_words, action, str(unit))
        doing = "reset" if action == "reopen" else action
        shown = on_page(by_button, doing, units={str(unit): status.value})
        assert shown["outcome"] == said["outcome"], (seed, action, unit, said, shown)
        assert state(by_button) == state(by_words), (seed, action, unit)
        require_listed(shown, said, state(root)[0])
        if said["outcome"] == "conflict":
            assert (shown["accept_first"], shown["reject_first"]) == (said["accept_first"], said["reject_first"])
    lines = [(path, change) for path, change in changes if change.inserted and change.kind is ChangeKind.LINES]
    if lines:
        path, change = chance.choice(lines)
        action = chance.choice(["accept", "reject"])
        by_words, by_terminal = copies(root, "words", "terminal")
        said = by_command(by_words, action, str(change.units[0]))
        typed = by_keys(by_terminal, f"e{KEY[action]}", f"{path}:{change.line_after}")
        assert (typed["outcome"], state(by_terminal)) == (said["outcome"], state(by_words)), (seed, action, typed, said)


@pytest.mark.parametrize("seed", [30, 31, 32, 34] if WHOLE else [30])
def test_all_changes_of_a_turn_are_the_same_by_name_on_the_page_and_in_the_chat(tmp_path: Path, seed: int) -> None:
    root = tmp_path / "made"
    root.mkdir()
    made(root, seed)
    chance = random.Random(seed)
    with Workspace.open(str(root)) as workspace:
        changed = {unit for file in workspace.review.changes() for change in file.changes for unit in change.units}
        turns = [
            turn.number
            for turn in workspace.sessions.turns()
            if not changed.isdisjoint(workspace.review.pending_units(Selection(turns=(turn.number,))))
        ]
    turn = chance.choice(turns)  # not one whose edits undid each other: no change of it is shown
    action = chance.choice(["accept", "reject"])
    by_words, by_button, by_window = copies(root, "words", "button", "window")
    allow_deciding(by_window)
    with windowed(by_window) as agent:
        shown = raw_call(agent, "review_edits", turn=turn)
        changes = shown["structuredContent"]["changes"]
        assert len(changes) == shown["structuredContent"]["total"]
        keys = [change["key"] for change in changes]
        done = in_window(agent, shown, action=action, keys=keys)
    told = done["structuredContent"]["taken"]
    pressed = on_page(by_button, action, keys=keys)
    hunks = sorted({hunk for change in changes for hunk in change["hunks"]})
    said = by_command(by_words, action, *hunks)
    assert (pressed["outcome"], said["outcome"]) == (told["outcome"], told["outcome"]), (seed, action, told, pressed)
    assert state(by_button) == state(by_window), (seed, action, turn)
    assert state(by_words) == state(by_window), (seed, action, turn)


@pytest.mark.parametrize("seed", range(40, 44 if WHOLE else 41))
def test_a_comment_is_on_the_same_hunks_everywhere(tmp_path: Path, seed: int) -> None:
    root = tmp_path / "made"
    root.mkdir()
    made(root, seed)
    with Workspace.open(str(root)) as workspace:
        changes = [(file.path, change) for file in workspace.review.changes() for change in file.changes]
    _, change = random.Random(seed).choice(changes)
    by_words, by_button, by_window = copies(root, "words", "button", "window")
    for unit in change.units[:1]:
        assert cas("comment", str(unit), "-m", "Why?", folder=by_words).status == 0
    with review_server(by_button) as server:
        _screen(server)
        server.post("/api/comment", keys=[change.key.hex()], text="Why?")
    assert in_chat(by_window, "comment", change.key.hex(), text="Why?")["outcome"] == "commented"
    assert _commented(by_window) == _commented(by_button)
    assert _commented(by_words)[0] <= _commented(by_button)[0]


def _commented(root: Path) -> tuple[set[Unit], str]:
    with Workspace.open(str(root)) as workspace:
        (view,) = workspace.comments.all()
    return set(view.comment.units), view.comment.text


@pytest.mark.parametrize("seed", range(50, 56 if WHOLE else 51))
def test_an_undo_is_the_same_from_the_command_line_and_on_the_page(tmp_path: Path, seed: int) -> None:
    root = tmp_path / "made"
    root.mkdir()
    made(root, seed)
    by_words, by_button = copies(root, "words", "button")
    for _ in range(3):
        said = by_command(by_words, "undo")
        with review_server(by_button) as server:
            number = server.queue()["undo"]
            if said["outcome"] == "nothing-to-do":
                assert not number
                break
            shown = server.post("/api/undo", number=number)
        assert shown["outcome"] == said["outcome"], (seed, said, shown)
        assert {name: shown[name] for name in SAME} == {name: said[name] for name in SAME}
        assert state(by_button) == state(by_words), seed
        if shown["outcome"] != "decided":
            break
        assert (shown["act"] or {}).get("words") == (said["act"] or {}).get("words")
