"""`cas store convert`: what a person sees of a store that an early version wrote, and of its conversion."""

import json
from pathlib import Path

import pytest
from blake3 import blake3

from objstore.upkeep.transfer.bundle import Bundle
from tests.support.command_runner import CommandRunner, cas
from tests.support.earlier_stores import golden_earlier, make_earlier

HINT = (
    "cas: An early version of editledger wrote the store, before format 1. It has to be converted. "
    "Run `cas store convert`.\n"
)


@pytest.fixture
def early(runner: CommandRunner) -> CommandRunner:
    """Return a workspace with two edits whose store an early version wrote."""
    runner.write("a", b"one\n")
    runner.write("a", b"one\ntwo\n")
    make_earlier(runner.folder)
    return runner


@pytest.mark.parametrize(
    "words", ["status", "log", "diff", "reject 2", "fsck", "doctor", "store stats", "salvage --dry-run .", "record"]
)
def test_every_command_names_the_conversion(early: CommandRunner, words: str) -> None:
    ran = early.cas(*words.split())
    assert (ran.status, ran.err.decode()) == (1, HINT)


def test_a_conversion_says_what_it_did_and_where_the_earlier_store_is(early: CommandRunner) -> None:
    kept = early.folder / ".cas" / "before-conversion"
    assert early.done("store", "convert").text == (
        "Converted the store, and checked all of it: 2 records and 2 blobs.\n"
        f"The earlier store is in {kept}. Once you don't need it any more:  rm -r {kept}\n"
    )
    assert [line.split()[0] for line in early.done("log").text.splitlines() if line] == ["2", "1"]
    early.done("reject", "2")
    assert (early.folder / "a").read_bytes() == b"one\n"
    assert early.done("fsck").text.endswith("nothing is wrong.\n")
    again = "The store has the present format: there is nothing to convert.\n"
    assert early.done("store", "convert").text == again


def test_a_conversion_as_json(tmp_path: Path) -> None:
    golden_earlier("1-decided", tmp_path)
    kept = str(tmp_path / ".cas" / "before-conversion")
    assert cas("store", "convert", "--json", folder=tmp_path).json() == {
        "converted": True,
        "kept": kept,
        "records": 54,
        "blobs": 50,
        "inserted": [44],
        "remotes": [],
    }
    assert cas("store", "convert", "--json", folder=tmp_path).json() == {"converted": False}


def test_inserted_edits_are_named(tmp_path: Path) -> None:
    golden_earlier("1-decided", tmp_path)
    assert cas("store", "convert", folder=tmp_path).text.endswith(
        "Note: edit 44 records what decisions of an early version wrote besides their verdicts. Edits after it have "
        "higher numbers than before.\n"
    )


def test_a_hook_in_front_of_an_early_store_leaves_a_mark(early: CommandRunner) -> None:
    event = {
        "session_id": "s",
        "hook_event_name": "PreToolUse",
        "tool_name": "Write",
        "tool_input": {"file_path": str(early.folder / "a"), "content": "x"},
        "tool_use_id": "t",
    }
    ran = cas("hook", "claude-code", folder=early.folder, stdin=json.dumps(event).encode())
    assert (ran.status, ran.out) == (0, b"")
    early.done("store", "convert")
    assert "FormatTooOld" in (early.folder / ".cas" / "hook.log").read_text()
    assert "hook" in early.cas("status").text


def test_a_bundle_of_an_early_store_is_refused(early: CommandRunner, tmp_path_factory: pytest.TempPathFactory) -> None:
    segment = (early.folder / ".cas" / "segments" / "00000001.seg").read_bytes()
    content = Bundle(sizes=(len(segment),)).encode() + segment
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "bundle").write_bytes(content + blake3(content).digest())
    ran = cas("import", "bundle", "imported", folder=folder)
    assert ran.status == 1
    assert b"Run `cas store convert` where the bundle was made, and export it again." in ran.err
    assert not (folder / "imported").exists()
