"""A decision says which names it leaves undefined and which imports it breaks in Python, and refuses nothing."""

from pathlib import Path

import pytest
from msgpack import unpackb

from objstore.disk.fs.reserved_names import NAMES_NAME, STORE_NAME
from objstore.model.ids import HASH_SIZE
from tests.support.command_runner import CommandRunner, cas, modules_loaded
from tests.support.hooked_agents import ClaudeCode

NET = b"import time\n\n\ndef get(url):\n    return url\n"
RETRY = b"import time\n\n\ndef retry(times):\n    return times\n\n\ndef get(url):\n    return url\n"
APP = b"from net import get\n\n\ndef main():\n    return get('a')\n"
USES = b"from net import get, retry\n\n\ndef main():\n    return retry(get('a'))\n"


def program(runner: CommandRunner) -> None:
    """Record a program of two files, to which one edit adds a function and the next one its use."""
    runner.write("net.py", NET)
    runner.write("app.py", APP)
    runner.write("net.py", RETRY)
    runner.write("app.py", USES)
    runner.done("accept", "1", "2")


@pytest.fixture
def two(runner: CommandRunner) -> CommandRunner:
    return runner.prepared(program)


def test_dry_run_names_the_import_that_a_rejection_breaks_and_who_added_it(two: CommandRunner) -> None:
    said = two.done("reject", "3", "--dry-run").text
    assert "Rejecting edit 3 takes `retry` out of `net`, from which app.py:1 imports it, which 4:1 added." in said
    assert "--with-users" in said


def test_decision_is_made_all_the_same_and_says_it(two: CommandRunner) -> None:
    said = two.done("reject", "3").text
    assert "takes `retry` out of `net`" in said
    assert two.bytes("net.py") == NET


def test_rejecting_with_users_takes_out_what_uses_it_too(two: CommandRunner) -> None:
    said = two.done("reject", "3", "--with-users", "--dry-run").text
    assert "takes `retry`" not in said
    two.done("reject", "3", "--with-users")
    assert (two.bytes("net.py"), two.bytes("app.py").splitlines()[0]) == (NET, b"from net import get")


def test_accepted_users_are_listed_before_they_are_rejected(two: CommandRunner) -> None:
    two.done("accept", "4")
    status, said = two.typed_at("[y/N]", lambda: "n\n", "reject", "3", "--with-users")
    assert (status, "This rejects 2 edits, 1 of them accepted: edit 4." in said) == (130, True), said
    assert two.bytes("app.py") == USES


def sources_in(index: Path) -> set[bytes]:
    """Return the keys of the sources that an index of names knows."""
    return set(unpackb(index.read_bytes()[len(b"casnames3") + HASH_SIZE :]))


@pytest.mark.parametrize("held", [None, b"casnames2", b"casnames3" + bytes(32)], ids=["none", "older", "damaged"])
def test_index_of_names_that_is_of_no_use_is_made_again(two: CommandRunner, held: bytes | None) -> None:
    index = two.folder / STORE_NAME / NAMES_NAME
    two.done("reject", "3", "--dry-run")
    known = sources_in(index)
    index.unlink()
    if held is not None:
        index.write_bytes(held)
    assert "app.py:1 imports it" in two.done("reject", "3", "--dry-run").text
    assert sources_in(index) == known


def test_decision_that_changes_no_name_leaves_the_index_of_names(two: CommandRunner) -> None:
    two.write("net.py", RETRY.replace(b"return times", b"return times + 1"))
    index = two.folder / STORE_NAME / NAMES_NAME
    index.parent.mkdir(exist_ok=True)
    index.write_bytes(b"casnames3 and no more")
    two.done("reject", "5")
    assert (two.bytes("net.py"), index.read_bytes()) == (RETRY, b"casnames3 and no more")


def test_decision_on_one_language_loads_nothing_that_reads_another(two: CommandRunner) -> None:
    loaded = modules_loaded("reject", "3", folder=two.folder)
    assert "objstore.text.needs.python_names" in loaded
    assert loaded.isdisjoint({"objstore.text.needs.script_names", "objstore.text.needs.script_program"})


def test_name_in_the_same_file_is_named_with_its_line(runner: CommandRunner) -> None:
    runner.write("a.py", b"x = 1\n\n\nprint(x)\n")
    runner.edit("a.py", b"x = 1\n", b"x = 1\ny = 2\n")
    runner.edit("a.py", b"print(x)\n", b"print(x)\nprint(y)\n")
    said = runner.done("reject", "2", "--dry-run").text
    assert "Rejecting edit 2 leaves `y` undefined in a.py:5, which 3:1 added." in said


def test_what_was_broken_before_is_no_news(runner: CommandRunner) -> None:
    runner.write("a.py", b"import gone_module\nprint(missing)\n")
    runner.edit("a.py", b"print(missing)\n", b"print(missing)\ny = 2\n")
    assert "Note:" not in runner.done("reject", "2").text


def test_file_that_is_no_python_after_a_rejection_is_named(runner: CommandRunner) -> None:
    runner.write("a.py", b"a = 1\nb = 2\na\nc = 3\n")
    runner.write("a.py", b"a = 1\nb = 2\n(\na\n)\nc = 3\n")
    said = runner.done("reject", "2:1").text
    assert "Rejecting hunk 2:1 leaves a.py unreadable as Python: unmatched ')' (line 4)." in said


def test_file_that_is_back_and_never_was_python_is_no_news(runner: CommandRunner) -> None:
    runner.write("a.py", b"{% if x %}\n")
    runner.call(lambda call: call.delete("a.py"))
    assert "unreadable" not in runner.done("reject", "2").text


def test_module_that_goes_with_its_edit_is_named(runner: CommandRunner) -> None:
    runner.write("net.py", NET)
    runner.write("app.py", APP)
    said = runner.done("reject", "1", "--dry-run").text
    assert "takes `net` away, which app.py:1 imports" in said


def test_typescript_is_read_as_python_is(runner: CommandRunner) -> None:
    runner.write("src/net.ts", b"export const get = (url: string) => url\n")
    runner.write("src/app.tsx", b"import { get } from './net'\nexport const main = () => get('a')\n")
    runner.edit("src/net.ts", b"export const get", b"export const retry = (n: number) => n\nexport const get")
    runner.edit("src/app.tsx", b"{ get }", b"{ get, retry }")
    words = "takes `retry` out of `src/net`, from which src/app.tsx:1 imports it, which 4:1 added."
    assert f"Rejecting edit 3 {words}" in runner.done("reject", "3", "--dry-run").text
    assert words not in runner.done("reject", "3", "--with-users").text
    assert runner.bytes("src/app.tsx") == b"import { get } from './net'\nexport const main = () => get('a')\n"


def test_setting_turns_it_off(two: CommandRunner) -> None:
    two.done("config", "set", "review.names", "off")
    assert "Note:" not in two.done("reject", "3").text


def test_files_of_other_languages_and_data_cost_nothing(runner: CommandRunner) -> None:
    runner.write("a.txt", b"1\n")
    runner.edit("a.txt", b"1\n", b"2\n")
    runner.done("reject", "2")
    assert not (runner.folder / ".cas" / "cache" / "names").exists()


def test_index_can_be_deleted_or_damaged(two: CommandRunner) -> None:
    index = two.folder / ".cas" / "cache" / "names"
    expected = two.done("reject", "3", "--dry-run").text
    for content in (b"", b"casnames3" + bytes(64), index.read_bytes()[:-1], None):
        if content is None:
            index.unlink()
        else:
            index.write_bytes(content)
        assert two.done("reject", "3", "--dry-run").text == expected


def test_index_forgets_sources_that_are_gone(two: CommandRunner) -> None:
    index = two.folder / ".cas" / "cache" / "names"
    sizes = set()
    for number in range(6):
        (two.folder / "other.py").write_bytes(b"from net import get as get_%d\n" % number)
        two.done("reject", "3", "--dry-run")
        sizes.add(index.stat().st_size)
    assert len(sizes) == 1


def test_decision_that_changes_no_names_reads_other_sources_only_the_first_time(two: CommandRunner) -> None:
    index = two.folder / ".cas" / "cache" / "names"
    two.edit("net.py", b"return times", b"return times  # one")
    two.done("reject", "5")
    first = index.read_bytes()
    two.write("new.py", b"import net\n\nnet.retry(1)\n")
    two.edit("net.py", b"return times", b"return times  # two")
    assert "Note:" not in two.done("reject", "7").text
    assert index.read_bytes() == first
    assert "takes `retry` out of `net`" in two.done("reject", "3").text
    assert index.read_bytes() != first


def test_file_that_is_no_source_is_named_if_it_is_taken_from_one_whose_names_stay(runner: CommandRunner) -> None:
    text = b'import data from "./data.json";\nexport const x = data;\n'
    runner.write("a.js", text + b"// one\n")
    runner.done("accept", "1")
    runner.write("data.json", b"{}\n")
    runner.write("a.js", text + b"// two\n")
    said = runner.done("reject", "2", "3", "--dry-run").text
    assert "takes `data.json` away, which a.js:1 imports" in said


def test_json_has_what_a_decision_breaks(two: CommandRunner) -> None:
    (broken,) = two.done("reject", "3", "--dry-run", "--json").json()["broken"]
    assert broken == {
        "file_path": str(two.folder / "app.py"),
        "line": 0,
        "words": "takes `retry` out of `net`, from which app.py:1 imports it",
        "user": "4:1",
    }


def test_agent_reads_what_a_rejection_breaks(tmp_path: Path) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "net.py").write_bytes(NET)
    (folder / "app.py").write_bytes(USES.replace(b", retry", b"").replace(b"retry(get('a'))", b"get('a')"))
    assert cas("init", folder=folder).status == 0
    assert cas("record", folder=folder).status == 0
    agent = ClaudeCode(folder)
    agent.start()
    agent.ask("Retry")
    agent.write("net.py", RETRY.decode())
    agent.write("app.py", USES.decode())
    done = cas("reject", "1", "-m", "not yet", "--check", "true", folder=folder)
    assert done.status == 0, done
    said = agent.ask("Go on")
    words = "takes `retry` out of `net`, from which app.py:1 imports it, which 2:1 added"
    assert f"because: not yet (This breaks names: it {words}. Checked with `true`, which succeeded)" in said
    shown = cas("show", "1", folder=folder).text
    assert "not yet\n" in shown
    assert words in shown


def test_file_with_conflict_markers_is_no_news(runner: CommandRunner) -> None:
    runner.write("a.py", b"x = 1\n")
    runner.edit("a.py", b"x = 1\n", b"x = 2\n")
    runner.edit("a.py", b"x = 2\n", b"x = 3\n")
    assert "unreadable" not in runner.done("reject", "2", "--markers").text


def test_at_a_terminal_what_breaks_is_said_before_the_decision_and_the_default_is_no(two: CommandRunner) -> None:
    status, said = two.typed_at("[y/N]", lambda: "\n", "reject", "3")
    assert "takes `retry` out of `net`" in said.partition("Go ahead?")[0]
    assert (status, two.bytes("net.py")) == (130, RETRY)
    status, _ = two.typed_at("[y/N]", lambda: "y\n", "reject", "3")
    assert (status, two.bytes("net.py")) == (0, NET)
    two.done("undo")
    status, said = two.typed("reject", "3", "--yes")
    assert "Go ahead" not in said
    assert (status, two.bytes("net.py")) == (0, NET)


def test_at_a_terminal_nothing_is_asked_if_nothing_breaks_and_no_check_runs_before_the_answer(
    two: CommandRunner,
) -> None:
    status, said = two.typed_at("[y/N]", lambda: "n\n", "reject", "3", "--check", "touch ../ran")
    assert (status, (two.folder.parent / "ran").exists()) == (130, False)
    status, said = two.typed("reject", "3", "4")
    assert "Go ahead" not in said
    assert (status, two.bytes("net.py"), two.bytes("app.py")) == (0, NET, APP)


def test_acceptance_and_undo_ask_as_a_rejection_does(two: CommandRunner) -> None:
    two.done("reject", "3", "4")
    status, said = two.typed_at("[y/N]", lambda: "n\n", "accept", "4")
    assert "Accepting edit 4 imports `retry` in app.py:1 from `net`, which doesn't have it." in said
    assert (status, two.bytes("app.py")) == (130, APP), said
    two.done("undo")
    two.done("reject", "4")
    two.done("reject", "3")
    two.done("undo")
    two.done("undo")
    assert (two.bytes("net.py"), two.bytes("app.py")) == (RETRY, USES)
