"""Compare the fields that docs/json.md lists for each command with the output of `--json`."""

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click
import pytest

from cli.shell.main import cas as group
from objstore import TurnInfo, blob_id
from tests.cli.commands.store.test_fsck_salvage import break_record
from tests.support.command_runner import SOURCE, CommandResult, CommandRunner, cas
from tests.support.damaged_stores import damage

PAGE: Final = Path(SOURCE) / "docs" / "json.md"
OBJECTS_WITH_DATA_NAMES: Final = {"edits", "tools", "files", "depths", "notes", "statuses"}
"""Objects whose names are data."""

OBJECTS_OF_EDITS: Final = {"hunks", "marks", "expired"}
"""Fields of an edit that hold objects, in the output of any command."""

ONLY_IN_DRY_RUNS: Final = {"accept.files": {"diff"}}
RECORDS: Final = ("records", "salvage.beyond")
"""Outputs that hold records, whose fields depend on their kind."""

SAME_AS: Final = {
    "reject": "accept",
    "reopen": "accept",
    "undo": "accept",
    "redo": "accept",
    "rewind": "accept",
    "claim": "accept",
    "rewind --exact": "restore",
}
"""Commands that print the fields of another command."""


def documented() -> dict[str, set[str]]:
    """Return the fields of every object that the page names; `as X` refers to the fields of X."""
    rows = re.findall(r"^\| `([^`]+)` \| (.*?) \|", PAGE.read_text(), re.MULTILINE)
    found: dict[str, set[str]] = {}
    for name, fields in rows:
        same = re.match(r"as `([^`]+)`(.*)", fields)
        known, rest = (found[same[1]], same[2]) if same else (set[str](), fields)
        found[name] = known | set(re.findall(r"`([^`]+)`", re.sub(r"\([^)]*\)", "", rest)))
    return found


def shapes(name: str, found: object) -> Iterator[tuple[str, set[str]]]:
    """Yield the fields of every object in a JSON document, with its dotted path."""
    if isinstance(found, list):
        for each in found:
            yield from shapes(name, each)
    elif (
        isinstance(found, dict)
        and name.rpartition(".")[2] in OBJECTS_WITH_DATA_NAMES
        and not {"edit_id", "path_before"} & set(found)
    ):
        for each in found.values():
            yield from shapes(name, each)
    elif isinstance(found, dict):
        yield name, set(found)
        for field, each in found.items():
            # Objects within an edit have the fields that the log shows, in any command.
            inside = "log" if "edit_id" in found and field in OBJECTS_OF_EDITS else SAME_AS.get(name, name)
            yield from shapes(f"{inside}.{field}", each)


def taking_json(command: click.Command, name: str = "") -> Iterator[str]:
    """Yield the name of every command that takes --json."""
    context = click.Context(command)
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from taking_json(found, f"{name} {inner}".strip())
    elif any("--json" in parameter.opts for parameter in command.params):
        yield name


@pytest.mark.parametrize("name", list(taking_json(group)))
def test_the_page_names_every_command_that_takes_json(name: str) -> None:
    own = name.removeprefix("store ")  # `cas store ls` is `cas ls`
    assert {name, {"reset": "reopen"}.get(own, own)} & documented().keys()


def read(ran: CommandResult) -> list[Any]:
    assert ran.status in {0, 1}, ran
    assert ran.out.isascii()
    return ran.lines()


def history(runner: CommandRunner) -> None:
    """Record edits of two conversations, decide on some, and change a file from outside."""
    runner.write("a", b"1\n2\n3\n")
    runner.edit("a", b"2", b"two")
    runner.edit("a", b"two", b"zwei", conversation="conv_two")
    runner.write("b", b"x\n")
    runner.move("b", "c")
    turn = TurnInfo(session="run", began=1, prompt="Write d")
    runner.call(lambda call: call.write("d", b"d\n"), conversation="conv_three", turn=turn)
    runner.done("reject", "3", "--reason", "no")
    (runner.folder / "c").write_bytes(b"outside\n")


COMMANDS: Final = {
    "remote add": "remote add team file://{folder}.bucket",
    "push": "push",
    "remote list": "remote list",
    "remote gc": "remote gc",
    "comment": "comment 2 -m text",
    "status": "status",
    "log": "log",
    "log --turns": "log --turns",
    "log --sessions": "log --sessions",
    "status --conv": "status --conv conv_one",
    "show": "show conv_one",
    "diff": "diff",
    "diff --unrecorded": "diff --unrecorded",
    "diff A B": "diff a@1 a@2",
    "accept": "accept 2 --dry-run",
    "send": "send",
    "reject": "reject 1",
    "reopen": "reopen 3 --dry-run",
    "undo": "undo --dry-run",
    "redo": "redo",
    "rewind": "rewind 1 --dry-run",
    "rewind (list)": "rewind",
    "rewind --exact": "rewind 1 --exact --on-external keep --dry-run",
    "claim": "claim --all --mine",
    "blame": "blame a",
    "ls": "ls",
    "hash": "hash a",
    "verify": "verify --all",
    "records": "records",
    "segments": "segments",
    "stats": "stats",
    "fsck": "fsck",
    "salvage": "salvage . --dry-run",
    "export --patch": "export --patch",
    "export": "export --bundle out",
    "export --diffs": "export --diffs history",
    "restore": "restore a@1",
    "amend": "amend 2 --from c",
    "pin add": "pin add 1",
    "pin list": "pin list",
    "pin remove": "pin remove 1",
    "config list": "config list",
    "gc": "gc --dry-run",
    "purge": "purge a@1 --dry-run",
    "snapshot create": "snapshot create",
    "snapshot list": "snapshot list",
    "snapshot show": "snapshot show 1",
    "snapshot diff": "snapshot diff 1",
    "record": "record",
}


def test_output_has_the_fields_that_the_page_lists(runner: CommandRunner, tmp_path: Path) -> None:
    history(runner)
    known = documented()
    wrong = []
    for name, words in COMMANDS.items():
        typed = words.format(folder=runner.folder).split()
        wrong += undocumented(name, read(runner.cas(*typed, "--json")), known)
    bundle = str(runner.folder / "out")
    imported = read(cas("import", bundle, str(tmp_path / "there"), "--json", folder=tmp_path))
    wrong += [(place, fields) for place, fields in shapes("import", imported) if fields != known.get(place)]
    cloned = read(cas("clone", f"file://{runner.folder}.bucket", str(tmp_path / "c"), "--json", folder=tmp_path))
    wrong += undocumented("clone", cloned, known)
    assert wrong == []


def test_output_of_shared_stores_has_the_fields_that_the_page_lists(runner: CommandRunner, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = CommandRunner(tmp_path / "other")
    runner.write("a", b"1\n2\n3\n")
    for each in (runner, other):
        each.done("remote", "add", "team", f"file://{tmp_path}/bucket", "--as", each.folder.name)
        each.done("push")
    known, wrong = documented(), []
    wrong += undocumented("pull", read(other.cas("pull", "--json")), known)
    wrong += undocumented("remote list", read(other.cas("remote", "--json")), known)
    named = f"{runner.folder.name}/1"
    wrong += undocumented("accept STORE/EDIT", read(other.cas("reject", named, "--json")), known)
    carried = read(runner.cas("pull", "--json"))[-1:]
    assert carried[0]["result"] == "carried"
    wrong += undocumented("pull (carried out)", carried, known)
    assert wrong == []


def undocumented(name: str, found: object, known: dict[str, set[str]]) -> list[tuple[str, set[str]]]:
    """Return the objects that differ from the page, with the fields that are extra or missing."""
    wrong = [(place, fields ^ known.get(place, set())) for place, fields in shapes(name, found)]
    return [
        (place, fields)
        for place, fields in wrong
        if fields - ONLY_IN_DRY_RUNS.get(place, set())
        if not place.startswith(RECORDS)
    ]


def difficult_cases(runner: CommandRunner) -> Iterator[tuple[str, str]]:
    """Prepare conflicts, damage and expired edits; yield after each step a command's name and its command line."""
    (runner.folder / "seen").write_bytes(b"1\n")
    os.mkfifo(runner.folder / "pipe")
    yield "snapshot create", "snapshot create"
    (runner.folder / "seen").write_bytes(b"2\n")
    yield "snapshot diff", "snapshot diff 1"
    yield "record", "record"
    yield "snapshot restore", "snapshot restore 1"
    yield "snapshot delete", "snapshot delete 1"
    runner.write("a", b"1\n2\n3\n")
    second = runner.edit("a", b"2", b"two")
    runner.edit("a", b"two", b"zwei", conversation="conv_two")
    yield "restore", f"restore a@{second} --dry-run"
    yield "reject", f"reject {second}"
    (runner.folder / "a").write_bytes(b"0\n")
    yield "reject", f"reject --cascade {second}"
    yield "status", "status"
    (runner.folder / "a").write_bytes(b"1\nzwei\n3\n")
    yield "reject", f"reject {second} --markers"
    yield "status", "status"
    yield "log", "log"
    yield "show", f"show {second}"
    runner.write("b", b"long\n" * 100)
    runner.write("b", b"longer\n" * 100)
    runner.done("accept", "--file", "b")
    yield "gc", "gc --older-than 0s --repack"
    yield "log", "log"
    yield "show", "show 1..3"
    damage(runner.folder, blob_id(b"longer\n" * 100))
    yield "verify", "verify --all"
    yield "fsck", "fsck"
    yield "salvage", "salvage . --dry-run"
    break_record(runner, second)
    yield "salvage", "salvage . --dry-run"


def test_output_about_conflicts_damage_and_expiry_has_the_fields_that_the_page_lists(runner: CommandRunner) -> None:
    known, wrong = documented(), []
    for name, words in difficult_cases(runner):
        wrong += undocumented(name, read(runner.cas(*words.split(), "--json")), known)
    assert wrong == []


def test_a_timestamp_is_iso_8601_in_utc_to_the_microsecond(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    with runner.workspace() as workspace:
        time = workspace.history.edit(1).edit.time
    timestamp = runner.done("log", "--json", TZ="Asia/Tokyo").json()["timestamp"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", timestamp)
    since = datetime.fromisoformat(timestamp) - datetime.fromtimestamp(0, UTC)
    assert since == timedelta(microseconds=time)
