"""`cas export --diffs`: the history in the layout of requirement document 000; every state can be rebuilt from it."""

import json
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from objstore import MAX_BLOB, Call, EditFilter, blob_id, check_store
from tests.support.command_runner import PATIENCE, PROGRAM, CommandRunner, cas, cas_on_full_disk, environment
from tests.support.damaged_stores import damage
from tests.support.faulty_disk import WHOLE
from tests.support.mcpdiff_reader import (
    FIELDS,
    Apply,
    apply_strictly,
    apply_with_git,
    apply_with_patch,
    read_logs,
    rebuilt,
)
from tests.support.sampling import sampled_product

POEM = b"".join(b"line %d\n" % number for number in range(1, 31))
BINARY = bytes(range(256)) * 3


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Return where the history is written."""
    return tmp_path / "history"


def exported(runner: CommandRunner, history: Path, *words: str) -> dict[str, Any]:
    """Export, and return what is printed as JSON."""
    found: dict[str, Any] = runner.done("export", "--diffs", str(history), "--json", *words).json()
    return found


def compare(runner: CommandRunner, history: Path, apply: Apply = apply_strictly) -> int:
    """Compare every rebuilt state with the store's; return how many entries there are."""
    logged = {edit["edit_id"]: edit for edit in runner.cas("log", "--json").lines()}
    states = list(rebuilt(history, apply))
    with runner.workspace() as workspace:
        for state in states:
            edit = logged[state.entry["edit_id"]]
            named = {field: state.entry[field] for field in FIELDS if field not in {"timestamp", "tool_name"}}
            assert named | {"diff_file": None, "checkpoint_file": None} == {field: edit[field] for field in named}
            assert state.entry["timestamp"] == edit["timestamp"].replace("Z", "+00:00")
            assert state.entry["tool_name"] == (edit["tool_name"] or "external")
            view = workspace.history.edit(edit["seq"])
            for held, recorded in ((state.before, view.edit.before), (state.after, view.edit.after)):
                assert held == (None if recorded is None else b"".join(workspace.history.pieces(recorded.blob)))
    return len(states)


def files_in(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# ---- every state


def texts(runner: CommandRunner) -> None:
    """Record edits of text in two conversations that alternate."""
    runner.write("poem", POEM)
    runner.edit("poem", b"line 3\n", b"LINE 3\nmore\n", conversation="conv_two")
    runner.edit("poem", b"line 20\n", b"")
    runner.write("poem", POEM.replace(b"line 7\n", b"seven\n"), conversation="conv_two")
    runner.write("src/deep/a.py", b"1\n")
    runner.write("src/deep/a.py", b"1\n2\n3\n")
    runner.edit("src/deep/a.py", b"2\n", b"")
    runner.write("difflike", b"--- a\n+++ b\n@@ -1 +1 @@\n x\n")
    runner.write("difflike", b"--- a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n")


def endings(runner: CommandRunner) -> None:
    """Record edits of final newlines, of line endings, and of empty files."""
    runner.write("open", b"1\n2")
    runner.write("open", b"1\n2\n")
    runner.write("open", b"1\n2\n3")
    runner.write("open", b"0\n1\n2\n3")
    runner.write("dos", b"one\r\ntwo\r\n")
    runner.edit("dos", b"two\r\n", b"2\r\nthree")
    runner.write("dos", b"one\ntwo\n")
    runner.write("mac", b"one\rtwo\r")
    runner.write("mac", b"one\r2\r\x0b\x0c\x1c\xe2\x80\xa8\n\r\n")
    runner.write("empty", b"")
    runner.write("empty", b"\n")
    runner.write("empty", b"")
    runner.write("bom", b"\xef\xbb\xbfone\n\xff\n")
    runner.edit("bom", b"\xff", b"\xfe")


def binaries(runner: CommandRunner) -> None:
    """Record edits of bytes that are no text."""
    noise = random.Random(0).randbytes(4000)
    for content in (BINARY, BINARY[::-1], b"\0", b"\0\n\0", noise, noise[:900] + b"\0\n" + noise[1000:], b"text\n"):
        runner.write("picture", content)
    runner.write("large blob", b"\0\xf5\xca\x5e\xfa large blob \n1\n")
    runner.write("large blob", b"\0\xf5\xca\x5e\xfa large blob \n2\n")


def whole_files(runner: CommandRunner) -> None:
    """Record moves, deletions, creations again at the same path, and changes of the mode."""
    runner.write("a", b"1\n")
    runner.move("a", "sub/b")
    runner.edit("sub/b", b"1\n", b"2\n", conversation="conv_two")
    runner.move("sub/b", "a")
    runner.write("sub/b", b"other\n")
    runner.delete("sub/b")
    runner.write("sub/b", b"again\n")
    runner.write("a", b"2\n", mode=0o755)
    runner.delete("a")
    runner.write("a", b"new\n", conversation="conv_two")


def decisions(runner: CommandRunner) -> None:
    """Record edits, decisions between them, external edits, and edits of a person."""
    runner.write("poem", POEM)
    runner.edit("poem", b"line 3\n", b"LINE 3\n")
    runner.edit("poem", b"line 20\n", b"LINE 20\n")
    runner.done("reject", "2")
    runner.edit("poem", b"line 10\n", b"LINE 10\n")
    (runner.folder / "poem").write_bytes(runner.bytes("poem") + b"mine\n")
    runner.write("poem", runner.bytes("poem") + b"its\n")
    runner.done("reject", "1", "--cascade", "--on-external", "keep")
    runner.done("accept", "1")
    runner.write("poem", b"new\n")
    runner.done("reject", "--conv", "conv_one")
    runner.done("restore", "poem@1")
    (runner.folder / "poem").unlink()
    runner.done("record")


HISTORIES: list[Callable[[CommandRunner], None]] = [texts, endings, binaries, whole_files, decisions]


@pytest.mark.parametrize(
    ("past", "program"), sampled_product(HISTORIES, ["the description's own reader", "patch", "git"])
)
def test_every_state_is_rebuilt_byte_for_byte_from_the_folder_alone(
    runner: CommandRunner, history: Path, tmp_path: Path, program: str, past: Callable[[CommandRunner], None]
) -> None:
    past(runner)
    found = exported(runner, history)
    place = tmp_path / "place"
    place.mkdir()
    ways = {"patch": apply_with_patch(place), "git": apply_with_git(place)}
    assert compare(runner, history, ways.get(program, apply_strictly)) == found["edits"] > 0
    assert found["edits"] == len(runner.done("log", "--json").lines())


@pytest.mark.parametrize("seed", range(6 if WHOLE else 2))
def test_every_state_of_a_random_history_is_rebuilt(runner: CommandRunner, history: Path, seed: int) -> None:
    chance = random.Random(seed)
    with runner.workspace() as workspace:
        for _ in range(60):
            act(chance, runner, [str(view.seq) for view in workspace.history.edits()])
    found = exported(runner, history)
    assert compare(runner, history) == found["edits"]
    part = exported(runner, history.with_name("part"), "--conv", "conv_1")
    assert compare(runner, history.with_name("part")) == part["edits"]


def act(chance: random.Random, runner: CommandRunner, edits: list[str]) -> None:
    """Do one thing that an agent or a person may do."""
    names = ["a", "b", "dir/a", "dir_a"]
    path, conversation = chance.choice(names), f"conv_{chance.randrange(3)}"
    is_there = (runner.folder / path).is_file()
    content = b"".join(chance.choice([b"x\n", b"y\n", b"z\r\n", b"\0", b""]) for _ in range(chance.randrange(12)))
    match chance.randrange(10):
        case 0 if edits:
            runner.cas(chance.choice(["accept", "reject", "reset"]), chance.choice(edits), "--on-external", "keep")
        case 1:
            (runner.folder / path).parent.mkdir(exist_ok=True)
            (runner.folder / path).write_bytes(content)
        case 2 if is_there:
            runner.call(lambda call: call.delete(path), conversation=conversation, tool="delete_file")
        case 3 if is_there:
            other = next((name for name in names if not (runner.folder / name).exists()), None)
            if other is not None:
                runner.call(lambda call: call.move(path, other), conversation=conversation, tool="move_file")
        case _:
            runner.call(lambda call: call.write(path, content), conversation=conversation)


def test_a_file_over_the_limit_in_memory_is_rebuilt(runner: CommandRunner, history: Path, tmp_path: Path) -> None:
    large = b"x" * 99 + b"\n" + bytes(MAX_BLOB)
    runner.write("big", b"small\n")
    runner.write("big", large)
    runner.move("big", "moved")
    runner.write("moved", b"small again", conversation="conv_two")
    found = exported(runner, history)
    assert (found["edits"], found["diffs"], found["checkpoints"]) == (4, 3, 1)
    assert compare(runner, history, apply_with_patch(tmp_path)) == 4
    diff = (history / read_logs(history)["conv_one"][1]["diff_file"]).read_bytes()
    assert diff.startswith(b"--- a/big\n+++ b/big\n@@ -1,1 +1,2 @@\n-small\n+xxx")
    assert diff.endswith(b"\0\n\\ No newline at end of file\n")


def test_live_edits_alone_lead_to_the_file_as_a_rejection_left_it(
    runner: CommandRunner, history: Path, tmp_path: Path
) -> None:
    runner.write("poem", POEM, conversation="conv_base")
    runner.edit("poem", b"line 3\n", b"LINE 3\nmore\nand more\n")
    runner.edit("poem", b"line 12\n", b"LINE 12\n")
    runner.edit("poem", b"line 25\n", b"")
    runner.done("reject", "2")
    exported(runner, history)
    entries = read_logs(history)["conv_one"]
    assert [entry["status"] for entry in entries] == ["rejected", "pending", "pending"]
    content = (history / entries[0]["checkpoint_file"]).read_bytes()
    for entry in entries:
        if entry["status"] != "rejected":  # patch makes up for the lines that the rejected edit would have shifted
            content = apply_with_patch(tmp_path)(content, (history / entry["diff_file"]).read_bytes())
    assert content == runner.bytes("poem")


# ---- the layout


def test_the_layout_is_that_of_the_document(runner: CommandRunner, history: Path) -> None:
    runner.write("src/app.py", b"1\n2\n")
    runner.done("accept", "1")
    runner.edit("src/app.py", b"2\n", b"two\n", conversation="conv_two")
    runner.call(lambda call: call.move("src/app.py", "app.py"), conversation="conv_two", tool="move_file")
    runner.call(lambda call: call.delete("app.py"), conversation="conv_two", tool="delete_file")
    runner.done("reject", "4")
    ran = runner.done("export", "--diffs", str(history))
    assert ran.text == f"Wrote 4 edits of 2 conversations to {history}: 2 diffs, 1 checkpoint.\n"
    first, second, third, fourth = reversed(runner.done("log", "--json").lines())
    one, two = (f"diffs/conv_{name}/{edit['edit_id']}.diff" for name, edit in (("one", first), ("two", second)))
    logs = {
        "logs/conv_one.log": [log_entry(first, diff_file=one)],
        "logs/conv_two.log": [
            log_entry(second, diff_file=two, checkpoint_file="checkpoints/conv_two/src_app.py.chkpt"),
            log_entry(third),
            log_entry(fourth),
        ],
    }
    assert files_in(history) == {
        **{name: "".join(json.dumps(entry) + "\n" for entry in entries).encode() for name, entries in logs.items()},
        one: b"--- /dev/null\n+++ b/src/app.py\n@@ -0,0 +1,2 @@\n+1\n+2\n",
        two: b"--- a/src/app.py\n+++ b/src/app.py\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n",
        "checkpoints/conv_two/src_app.py.chkpt": b"1\n2\n",
    }
    root = str(runner.folder)
    assert [(entry["operation"], entry["status"]) for entry in logs["logs/conv_two.log"]] == [
        ("edit", "pending"),
        ("move", "pending"),
        ("delete", "rejected"),
    ]
    assert (third["file_path"], third["source_path"]) == (f"{root}/app.py", f"{root}/src/app.py")
    assert (fourth["hash_before"], fourth["hash_after"]) == (sha256(b"1\ntwo\n").hexdigest(), None)


def log_entry(edit: dict[str, Any], **fields: str) -> dict[str, Any]:
    """Return the entry of an edit as the document has it, from what `cas log --json` prints of it."""
    named = {field: edit[field] for field in FIELDS} | fields
    return named | {"timestamp": edit["timestamp"].replace("Z", "+00:00")}


def test_each_file_has_one_checkpoint_in_a_conversation_unless_it_was_changed_in_between(
    runner: CommandRunner, history: Path
) -> None:
    runner.write("a", b"1\n", conversation="conv_base")
    for number in range(2, 6):
        runner.write("a", b"%d\n" % number)
    runner.write("a", b"6\n", conversation="conv_base")
    for number in range(7, 9):
        runner.write("a", b"%d\n" % number)
    exported(runner, history)
    entries = read_logs(history)["conv_one"]
    kept = [entry["checkpoint_file"] for entry in entries]
    again = f"checkpoints/conv_one/a-{entries[4]['edit_id'][:16]}.chkpt"
    assert kept == ["checkpoints/conv_one/a.chkpt", None, None, None, again, None]
    assert [(history / name).read_bytes() for name in kept if name is not None] == [b"1\n", b"6\n"]


def test_a_file_that_a_conversation_creates_or_moves_has_no_checkpoint_in_it(
    runner: CommandRunner, history: Path
) -> None:
    runner.write("a", b"1\n")
    runner.write("a", b"2\n")
    runner.move("a", "b")
    runner.write("b", b"3\n")
    runner.delete("b")
    assert exported(runner, history)["checkpoints"] == 0
    assert list((history / "checkpoints").iterdir()) == []


def test_a_tool_of_ours_has_its_own_name_and_an_external_edit_says_external(
    runner: CommandRunner, history: Path
) -> None:
    runner.call(lambda call: call.write("a", b"1\n"), tool="multi_edit_text_file")
    (runner.folder / "a").write_bytes(b"2\n")
    runner.done("record")
    (runner.folder / "a").write_bytes(b"3\n")
    runner.write("a", b"4\n")
    exported(runner, history)
    logs = read_logs(history)
    assert [entry["tool_name"] for entry in logs["conv_one"]] == ["multi_edit_text_file", "write_file"]
    assert [(entry["tool_name"], entry["status"]) for entry in logs["external"]] == [("external", "accepted")]


# ---- names

NAMES = [
    "../up",
    "..",
    ".",
    ".hidden",
    "-option",
    "a/../../b",
    "/etc/passwd",
    "conv\nnewline",
    "conv\x1b[2J",
    "umläut",
    "CONV",
    "conv",
    "con:v|<>*?",
    "x" * 400,
    "x" * 401,
    "$(touch pwned)",
    "a\\b",
]


def test_no_name_of_a_conversation_leads_out_or_hides(runner: CommandRunner, history: Path) -> None:
    for number, name in enumerate(NAMES):
        runner.write(f"f{number}", b"1\n", conversation=name)
        runner.write(f"f{number}", b"2\n", conversation=name)
    before = set(history.parent.iterdir())
    exported(runner, history)
    assert set(history.parent.iterdir()) == before | {history}
    assert set(read_logs(history)) == set(NAMES)
    assert compare(runner, history) == 2 * len(NAMES)
    assert_plain_names(history)
    assert (history / "logs" / "CONV.log").is_file()


PATHS = [
    "a/b",
    "a_b",
    "A_B",
    "a b",
    "sub/.env",
    ".env",
    "_env",
    "-rf",
    'quo"te',
    "back\\slash",
    "new\nline",
    "\x1b[2J",
    "größe",
    "tab\t",
    "d" * 200,
    "e/" * 100 + "f",
    "a.chkpt",
    "...",
]


@pytest.mark.parametrize("program", ["the description's own reader", "patch"])
def test_no_path_of_a_file_leads_out_or_hides(
    runner: CommandRunner, history: Path, tmp_path: Path, program: str
) -> None:
    for path in PATHS:
        runner.write(path, b"1\n", conversation="conv_base")
    for path in PATHS:
        runner.write(path, b"1\n2\n")
    exported(runner, history)
    assert_plain_names(history)
    apply = apply_with_patch(tmp_path) if program == "patch" else apply_strictly
    assert compare(runner, history, apply) == 2 * len(PATHS)
    kept = [entry["checkpoint_file"] for entry in read_logs(history)["conv_one"]]
    assert kept[0] == "checkpoints/conv_one/a_b.chkpt"
    assert len({name.lower() for name in kept}) == len(PATHS)


def assert_plain_names(history: Path) -> None:
    for path in history.rglob("*"):
        assert set(path.name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
        assert not path.name.startswith((".", "-"))
        assert len(path.name) < 200
    names = [str(path.relative_to(history)).lower() for path in history.rglob("*")]
    assert [name for name, times in Counter(names).items() if times > 1] == []


def test_a_path_that_is_not_utf_8_is_refused_and_other_edits_can_be_exported(
    runner: CommandRunner, history: Path
) -> None:
    runner.write("fine", b"1\n")
    runner.write("bad\udcff", b"1\n")
    refused = runner.cas("export", "--diffs", str(history))
    assert (refused.status, refused.text) == (1, "")
    assert "of edit 2; it is not UTF-8" in refused.said
    assert not history.exists()
    assert exported(runner, history, "1")["edits"] == 1


# ---- where it goes


def test_the_directory_may_be_new_with_all_above_it_or_empty(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("a", b"1\n")
    new, empty, linked = tmp_path / "x" / "y" / "z", tmp_path / "empty", tmp_path / "linked"
    (tmp_path / "target").mkdir()
    linked.symlink_to(tmp_path / "target")
    empty.mkdir(mode=0o755)
    for place in (new, empty, linked):
        exported(runner, place)
        assert compare(runner, place) == 1
    assert (new.stat().st_mode & 0o777, empty.stat().st_mode & 0o777) == (0o700, 0o755)
    assert linked.is_symlink()
    inside = runner.done("export", "--diffs", ".mcp/edit_history")
    assert inside.text.startswith("Wrote 1 edit of 1 conversation to .mcp/edit_history: ")


@pytest.mark.parametrize("held", ["file", ".hidden", "logs", ".incomplete"])
def test_a_directory_that_holds_anything_is_refused_and_left_alone(
    runner: CommandRunner, history: Path, held: str
) -> None:
    runner.write("a", b"1\n")
    history.mkdir()
    (history / held).write_bytes(b"kept\n")
    refused = runner.cas("export", "--diffs", str(history))
    assert (refused.status, refused.text) == (1, "")
    reason = "an export into it is running or was cut off" if held == ".incomplete" else f"it holds {held}"
    assert refused.said == f"cas: {history} is not empty: {reason}. Nothing was written. Name a new directory.\n"
    assert files_in(history) == {held: b"kept\n"}


def test_a_second_export_into_the_same_directory_is_refused(runner: CommandRunner, history: Path) -> None:
    runner.write("a", b"1\n")
    exported(runner, history)
    before = files_in(history)
    assert runner.cas("export", "--diffs", str(history)).status == 1
    assert files_in(history) == before


def test_a_file_a_store_and_version_control_are_refused(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("a", b"1\n")
    (tmp_path / "file").write_bytes(b"kept\n")
    for place in (tmp_path / "file", tmp_path / "file" / "below", runner.folder / ".cas" / "x", tmp_path / ".git"):
        before = files_in(tmp_path)
        refused = runner.cas("export", "--diffs", str(place))
        assert (refused.status, refused.text) == (1, "")
        assert refused.said.startswith("cas: ")
        assert {path for path in files_in(tmp_path) if "index" not in path} == {
            path for path in before if "index" not in path
        }
    assert (tmp_path / "file").read_bytes() == b"kept\n"


# ---- failures


@pytest.mark.parametrize("exists", [True, False])
def test_a_failure_leaves_the_directory_as_it_was(runner: CommandRunner, tmp_path: Path, exists: bool) -> None:  # noqa: FBT001 - a case
    for number in range(5):
        runner.write("a", b"%d\n" % number)
    damage(runner.folder, blob_id(b"3\n"))
    above = tmp_path / "above"
    above.mkdir()
    place = above / "new" / "history"
    if exists:
        place.mkdir(parents=True)
    refused = runner.cas("export", "--diffs", str(place))
    assert (refused.status, refused.text) == (1, "")
    assert refused.said.startswith("cas: ")
    left = [str(path.relative_to(above)) for path in sorted(above.rglob("*"))]
    assert left == (["new", "new/history"] if exists else [])
    assert exported(runner, place, "1..3")["edits"] == 3


def test_a_full_disk_leaves_nothing(runner: CommandRunner, history: Path) -> None:
    runner.write("a", b"1\n")
    refused = cas_on_full_disk("export", "--diffs", str(history), folder=runner.folder)
    assert (refused.status, refused.out, history.exists()) == (1, b"", False)
    assert refused.said.startswith("cas: ")


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_an_export_that_is_cut_off_leaves_no_log_and_says_so_next_time(
    runner: CommandRunner, tmp_path: Path, sent: signal.Signals
) -> None:
    def write(call: Call) -> None:
        for number in range(200):
            call.write(f"f{number}", random.Random(number).randbytes(20_000))

    runner.call(write)
    status, history = 0, tmp_path
    while not status:  # an export that is faster than the signal is tried again
        history = tmp_path / f"history{len(list(tmp_path.iterdir()))}"
        with subprocess.Popen(
            [*PROGRAM, "export", "--diffs", str(history)],
            cwd=runner.folder,
            env=environment({}),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            until = time.monotonic() + PATIENCE
            while process.poll() is None and not (history / ".incomplete" / "diffs").exists():
                assert time.monotonic() < until
                time.sleep(0.001)
            process.send_signal(sent)
            status = process.wait(PATIENCE)
    assert status == (130 if sent is signal.SIGINT else -sent)
    if sent is signal.SIGINT:
        assert not history.exists()
    else:
        assert [path.name for path in history.iterdir()] == [".incomplete"]
        refused = runner.cas("export", "--diffs", str(history))
        assert "an export into it is running or was cut off" in refused.said
    assert exported(runner, tmp_path / "other")["edits"] == 200


# ---- what is chosen


@pytest.mark.parametrize(
    ("words", "edits"),
    [
        ("", {1, 2, 3, 4, 5}),
        ("--conv conv_two", {2, 4}),
        ("--conversation conv_two --file a", {2}),
        ("--file b", {3, 4, 5}),
        ("--file src", {5}),
        ("2..3", {2, 3}),
        ("5 1", {1, 5}),
        ("conv_two 1", {1, 2, 4}),
        ("1 --file b", {1, 3, 4, 5}),
    ],
)
def test_chosen_edits_are_rebuilt_without_the_others(
    runner: CommandRunner, history: Path, words: str, edits: set[int]
) -> None:
    runner.write("a", b"1\n")
    runner.write("a", b"2\n", conversation="conv_two")
    runner.write("b", b"1\n")
    runner.edit("b", b"1\n", b"2\n", conversation="conv_two")
    runner.move("b", "src/b")
    exported(runner, history, *words.split())
    assert compare(runner, history) == len(edits)
    ids = {edit["seq"]: edit["edit_id"] for edit in runner.done("log", "--json").lines()}
    found = {entry["edit_id"] for entries in read_logs(history).values() for entry in entries}
    assert found == {ids[seq] for seq in edits}


def test_of_nothing_the_folders_are_written(runner: CommandRunner, history: Path) -> None:
    ran = runner.done("export", "--diffs", str(history))
    assert ran.text == f"Wrote 0 edits of 0 conversations to {history}: 0 diffs, 0 checkpoints.\n"
    assert read_logs(history) == {}


@pytest.mark.parametrize(
    "words",
    [
        ["--diffs", "d", "--patch"],
        ["--diffs", "d", "--bundle", "b"],
        ["--diffs", "d", "-o", "o"],
        ["--diffs", ""],
        ["--diffs", "d", "--diffs", "e"],
        ["--diffs", "d", "2:1"],
        [],
    ],
)
def test_options_that_exclude_each_other_are_refused(runner: CommandRunner, words: list[str]) -> None:
    runner.write("a", POEM)
    runner.write("a", POEM.replace(b"line 3\n", b"").replace(b"line 20\n", b""))
    ran = runner.cas("export", *words)
    assert (ran.status, ran.text) == (2, "")
    assert not (runner.folder / "d").exists()


def test_expired_edits_are_left_out_and_named(runner: CommandRunner, history: Path) -> None:
    for number in range(2):
        runner.write("a", b"%d\n" % number)
    runner.done("accept", "--all")
    runner.done("gc", "--older-than", "0s")
    runner.write("a", b"2\n")
    runner.write("a", b"3\n")
    with runner.workspace() as workspace:
        expired = [view.seq for view in workspace.history.edits(EditFilter()) if view.expired is not None]
    assert expired == [1, 2]
    ran = runner.cas("export", "--diffs", str(history))
    assert (ran.status, ran.said) == (0, "cas: left out, because their content has expired: 1 2.\n")
    assert compare(runner, history) == 2
    other = runner.cas("export", "--diffs", str(history.with_name("other")), "--json", "1..3")
    assert (other.json()["edits"], other.json()["expired"]) == (1, [1, 2])


def test_an_edit_that_is_decided_in_part_is_named_and_has_the_status_of_the_log(
    runner: CommandRunner, history: Path
) -> None:
    runner.write("poem", POEM)
    runner.write("poem", POEM.replace(b"line 3\n", b"3\n").replace(b"line 20\n", b"20\n"))
    runner.done("reject", "2:1")
    runner.done("accept", "2:2")
    ran = runner.cas("export", "--diffs", str(history))
    assert (ran.status, ran.said) == (
        0,
        "cas: decided in part, which a log can't say: 2. Each has the one status that `cas log` counts it under.\n",
    )
    assert read_logs(history)["conv_one"][1]["status"] == "accepted"
    assert compare(runner, history) == 2


def test_what_is_printed_as_json(runner: CommandRunner, history: Path) -> None:
    texts(runner)
    found = exported(runner, history)
    written = files_in(history)
    assert found == {
        "directory": str(history),
        "edits": 9,
        "conversations": 2,
        "diffs": len([name for name in written if name.startswith("diffs/")]),
        "checkpoints": len([name for name in written if name.startswith("checkpoints/")]),
        "bytes": sum(map(len, written.values())),
        "expired": [],
        "partly": [],
    }


# ---- and back


def test_cas_import_mcpdiff_reads_it(runner: CommandRunner, history: Path, tmp_path: Path) -> None:
    texts(runner)
    (runner.folder / "poem").write_bytes(b"mine\n" + runner.bytes("poem"))
    runner.edit("poem", b"line 30\n", b"the end")
    endings(runner)
    runner.done("accept", "--file", "src")
    runner.done("reject", "--file", "difflike")
    runner.done("reject", "2")
    exported(runner, history)
    (tmp_path / "there").mkdir()
    there = CommandRunner(tmp_path / "there")
    for name, content in files_in(runner.folder).items():
        if not name.startswith(".cas/"):
            (there.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (there.folder / name).write_bytes(content)
    ran = cas("import", "mcpdiff", str(history), "--root", str(runner.folder), "--json", folder=there.folder)
    assert (ran.status, ran.json()["problems"]) == (0, [])
    assert check_store(str(there.folder)).faults == ()

    def agents(desk: CommandRunner) -> list[tuple[Any, ...]]:
        fields = ("conversation_id", "tool_call_index", "operation", "tool_name", "status", "hash_before", "hash_after")
        lines = reversed(desk.done("log", "--json").lines())
        return [tuple(edit[field] for field in fields) for edit in lines if edit["conversation_id"] != "external"]

    assert agents(there) == agents(runner)
    before = files_in(there.folder)
    assert there.done("reject", "--file", "src", "--dry-run").text.startswith("Dry run")
    caches = {".cas/cache/names": files_in(there.folder)[".cas/cache/names"]}  # what the Python sources define
    assert files_in(there.folder) == before | caches
