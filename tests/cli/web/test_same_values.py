"""A field that the page has under the name that it has in `--json` has the same value there."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.command_runner import cas
from tests.support.hooked_agents import ClaudeCode, recorded_project
from tests.support.review_server import ReviewServer, review_server

NAMED_OTHERWISE: Final = {"changes", "comments", "hunks"}
"""Fields that are counts, as in `cas status`, or lists of documents with more fields on the page."""


@pytest.fixture
def worked(tmp_path: Path) -> Path:
    """Return a workspace with changes of all kinds, of two agents and a person, and claimed ones."""
    root = recorded_project(tmp_path / "work", "edited", "moved", "deleted", "claimed", "either", "given")
    one, two = ClaudeCode(root, "one"), ClaudeCode(root, "two")
    for agent in (one, two):
        agent.start()
        agent.ask("Change it")
    one.write("edited", "1\nzwei\n3\n4\n")
    two.write("edited", "1\nzwei!\n3\n4\n")
    one.write("created", "new\n")
    one.run("rm deleted")
    one.run("mv moved away; chmod 755 claimed; ln -s away link; printf '\\0' > bytes")
    calls = [agent.another_call(is_shell=True) for agent in (one, two)]
    for agent, (begins, _) in zip((one, two), calls, strict=True):
        agent.tell(begins)
    for name in ("claimed", "either", "given"):
        (root / name).write_text("of either agent\n")
    for agent, (_, ends) in zip((one, two), calls, strict=True):
        agent.tell(ends)
    seqs = {Path(edit["file_path"]).name: str(edit["seq"]) for edit in lines(root, "log", "--reverse")}
    assert cas("claim", seqs["claimed"], "--mine", folder=root).status == 0
    assert cas("claim", seqs["given"], "--session", "2", folder=root).status == 0
    assert cas("comment", "edited:2", "-m", "Why?", folder=root).status == 0
    return root


def lines(root: Path, *words: str) -> list[dict[str, Any]]:
    """Return what a command prints with --json."""
    return list(cas(*words, "--json", folder=root).lines())


def require_same(shown: Mapping[str, Any], printed: Mapping[str, Any]) -> None:
    """Check that fields with the same name have the same value."""
    both = (shown.keys() & printed.keys()) - NAMED_OTHERWISE
    assert both
    assert {name: shown[name] for name in both} == {name: printed[name] for name in both}


def test_what_the_page_shows_has_the_values_of_json(worked: Path) -> None:
    with review_server(worked) as server:
        queue = server.queue()
        turns = {turn["turn"]: turn for turn in lines(worked, "log", "--turns")}
        sessions = {session["session"]: session for session in lines(worked, "log", "--sessions")}
        for turn in queue["turns"]:
            if turn["turn"]:
                require_same(turn, turns[turn["turn"]])
        for session in queue["sessions"]:
            require_same(session, sessions[session["session"]])
        files = {Path(file["file_path"]).name: file for file in lines(worked, "diff")}
        assert {file["name"] for file in queue["files"]} == files.keys()
        assert {"created", "deleted", "away", "link", "bytes", "either", "given"} <= files.keys()
        for name, printed in files.items():
            require_same_file(server, name, printed)
        for edit in lines(worked, "log"):
            hunks = [f"{edit['seq']}:0", *(hunk["name"] for hunk in edit["hunks"])]
            (shown,) = server.get("/api/edits", units=",".join(hunks))["edits"]
            require_same(shown, edit)
        owners = {Path(edit["file_path"]).name: edit["owner"] for edit in lines(worked, "log", "--reverse")}
        assert (owners["claimed"], owners["given"], owners["either"]) == (None, "two", "unattributed")


def require_same_file(server: ReviewServer, name: str, printed: dict[str, Any]) -> None:
    """Check that a file has the same values on the page as `cas diff` prints."""
    shown = server.file(name)
    require_same(shown, printed)
    for change, other in zip(shown["all"], printed["changes"], strict=True):
        require_same(change, other)
        assert change["hunks"] == other["hunks"]
        for comment, said in zip(change["comments"], other["comments"], strict=True):
            require_same(comment, said)
