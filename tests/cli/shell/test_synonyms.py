"""What somebody types who knows git, jj or restic: it does what is meant, or is answered with how to say it here."""

import errno
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from objstore import CallAborted, CallInfo, Workspace
from tests.support.command_runner import CommandRunner, cas
from tests.support.faulty_disk import UnsyncedDisk


@pytest.fixture
def used(runner: CommandRunner) -> CommandRunner:
    """Return a desk with edits of two conversations in two files, one of them in a folder."""
    runner.write("a.txt", b"1\n", conversation="conv_one")
    runner.write("src/b.txt", b"1\n", conversation="conv_one")
    runner.write("a.txt", b"2\n", conversation="conv_two")
    runner.write("src/b.txt", b"2\n", conversation="conv_two")
    return runner


def seqs(text: str) -> list[int]:
    """Return the numbers of the edits that a list shows."""
    return [int(line.split()[0]) for line in text.splitlines()]


# ---- lists


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("-2", [4, 3]),
        ("-1 a.txt", [3]),
        ("a.txt", [3, 1]),
        ("-- a.txt", [3, 1]),
        ("src", [4, 2]),
        ("src/", [4, 2]),
        (".", [4, 3, 2, 1]),
        ("a.txt src", [4, 3, 2, 1]),
        ("a.txt src/b.txt --conversation conv_one", [2, 1]),
        ("a.txt --file src/b.txt", [4, 3, 2, 1]),
        ("--follow a.txt", [3, 1]),
        ("*.txt", [4, 3, 2, 1]),
        ("s*/[ab].txt", [4, 2]),
        ("src/?.txt a.txt", [4, 3, 2, 1]),
        ("-S -3", []),
        ("-n 3", [4, 3, 2]),
    ],
)
def test_a_log_is_narrowed_as_other_logs_are(used: CommandRunner, words: str, found: list[int]) -> None:
    assert seqs(used.done("log", *words.split()).text) == found


def test_a_log_is_of_paths_as_they_are_seen_from_where_one_stands(used: CommandRunner) -> None:
    assert seqs(cas("log", "b.txt", folder=used.folder / "src").text) == [4, 2]
    assert seqs(cas("log", ".", folder=used.folder / "src").text) == [4, 2]
    assert seqs(cas("log", "..", folder=used.folder / "src").text) == [4, 3, 2, 1]


def test_a_pattern_begins_where_one_stands_and_a_file_of_that_name_comes_first(used: CommandRunner) -> None:
    used.write("src/[b]/c.txt", b"1\n")
    used.write("src/*.txt", b"1\n")
    assert seqs(cas("log", "*.txt", folder=used.folder / "src").text) == [6]
    assert seqs(cas("log", "?.txt", folder=used.folder / "src" / "[b]").text) == [5]
    assert seqs(cas("log", "../?.txt", folder=used.folder / "src" / "[b]").text) == [6, 4, 2]
    assert seqs(used.done("log", "src/[b]").text) == [5]
    used.write("日本", b"1\n")
    assert seqs(used.done("log", "日?").text) == [7]
    assert used.cas("log", "*.py").said == "cas: No recorded file is named '*.py' here.\n"


def test_a_log_of_a_folder_has_what_went_from_it(used: CommandRunner) -> None:
    used.move("src/b.txt", "c.txt")
    assert seqs(used.done("log", "src").text) == [5, 4, 2]
    assert seqs(used.done("log", "c.txt").text) == [5, 4, 2]


def test_several_edits_are_shown_one_after_the_other(used: CommandRunner) -> None:
    assert [edit["seq"] for edit in used.done("show", "3", "1", "--json").json()["edits"]] == [3, 1]
    assert [edit["seq"] for edit in used.done("show", "2..9", "--json").json()["edits"]] == [2, 3, 4]


# ---- ranges


def test_a_range_stands_for_its_edits_by_agents_as_other_groups_do(used: CommandRunner) -> None:
    used.done("reject", "3")
    used.done("record")
    (used.folder / "mine.txt").write_text("mine\n")
    used.done("record")
    assert used.done("show", "5", "--json").json()["edits"][0]["origin"] == "person"
    assert used.done("accept", "2..5").text.startswith("Accepted edits 2 4.\n")
    assert used.done("reject", "4..5").text.startswith("Rejected edit 4.\n")
    assert used.done("reset", "2..4").text.startswith("Made pending again: edits 2 3 4.\n")
    assert used.cas("accept", "9..12").said.startswith("cas: No edit is named '9..12' here.\n")
    assert used.cas("accept", "4..2").status == 1


def test_a_range_has_what_is_numbered_so_and_nothing_before_it(used: CommandRunner) -> None:
    class TakenDisk(UnsyncedDisk):
        def rename_new(self, *_: object, **__: object) -> None:
            raise FileExistsError(errno.EEXIST, "taken")

    info = CallInfo(tool="write_file", conversation="conv_two")
    with Workspace.open(used.folder, TakenDisk()) as workspace, workspace.call(info) as call:
        call.write("c.txt", b"1\n")
        with pytest.raises(CallAborted):
            call.commit()
    # The number of the call that was taken back is not given again.
    assert used.write("c.txt", b"1\n") == 6
    shown = used.done("show", "5..6", "--json").json()["edits"]
    assert [edit["seq"] for edit in shown] == [6]
    assert used.done("reject", "4..6").text.startswith("Rejected edits 4 6.\n")
    assert used.done("accept", "2..2").text.startswith("Accepted edit 2.\n")


def test_a_range_of_nobodys_or_nothing_says_so(used: CommandRunner, tmp_path: Path) -> None:
    used.done("record")
    (used.folder / "mine.txt").write_text("mine\n")
    used.done("record")
    ran = used.cas("reject", "5..7")
    assert (ran.status, ran.said.splitlines()[0]) == (1, "cas: No edit of an agent is named '5..7' here.")
    (tmp_path / "new").mkdir()
    assert cas("init", folder=tmp_path / "new").status == 0
    assert cas("reject", "1..2", folder=tmp_path / "new").said == "cas: No edit is named '1..2' here.\n"
    assert cas("accept", "--all", folder=tmp_path / "new").text == "Nothing to do: already accepted.\n"


def test_a_range_leaves_out_what_has_expired_and_says_where_that_is_all(used: CommandRunner) -> None:
    used.done("accept", "--conversation", "conv_one")
    used.done("gc", "--older-than", "0s")
    assert used.done("reject", "1..3").text.startswith("Rejected edit 3.\n")
    ran = used.cas("reject", "1..2")
    assert ran.status == 1
    assert ran.said.startswith("cas: Edit 2 expired on ")


def test_what_a_person_did_goes_by_no_group_but_its_conversation(used: CommandRunner) -> None:
    used.done("record")
    (used.folder / "mine.txt").write_text("mine\n")
    used.done("record", "--conversation", "conv_mine")
    (used.folder / "a.txt").write_text("typed\n")
    used.edit("a.txt", b"typed", b"2")
    for words in (["--file", "mine.txt"], ["--conversation", "external"]):
        ran = used.cas("reject", *words)
        assert ran.status == 1
        assert " an agent" in ran.said
    assert used.done("reject", "--conversation", "conv_mine").text.startswith("Rejected edit 5.\n")


# ---- what is said where it is said otherwise here


COMPOSED, APART = "d\u00f3c/caf\u00e9", "do\u0301c/cafe\u0301"


@pytest.mark.parametrize("words", ["log {}", "blame {}", "restore {}", "accept --file {}", "snapshot restore 1 {}"])
@pytest.mark.parametrize(("typed", "there"), [(COMPOSED, APART), (APART, COMPOSED)])
def test_a_name_in_another_unicode_form_is_answered_with_the_one_that_is_there(
    runner: CommandRunner, tmp_path: Path, words: str, typed: str, there: str
) -> None:
    runner.write(there, b"1\n")
    runner.done("snapshot")
    ran = runner.cas(*(word.format(typed) for word in words.split()))
    assert (ran.status, ran.out) == (1, b"")
    told, end = "There is a file with the same name in another Unicode form: type it as ", "."
    hint = ran.said.splitlines()[-1]
    assert (hint[: len(told)], hint[-len(end) :]) == (told, end)
    echoed = tmp_path / "echoed"
    subprocess.run(["bash", "-c", f"printf %s {hint[len(told) : -len(end)]} > {echoed}"], check=True)
    assert echoed.read_text() == there


def test_a_state_in_another_unicode_form_is_answered_with_the_one_that_is_there(runner: CommandRunner) -> None:
    runner.write("\u00e9", b"1\n")
    assert runner.cas("cat", "e\u0301@1").said.rstrip().endswith(r"did you mean $'\xc3\xa9'@1?")


def test_of_a_deletion_the_state_before_it_is_advised_where_bytes_are_meant(runner: CommandRunner) -> None:
    runner.write("12", b"x\n")
    runner.delete("12")
    runner.write("b.txt", b"y\n")
    for spelt in ("12@2", "b.txt@2"):
        for words in (["pin", "add", spelt], ["purge", spelt, "--dry-run"]):
            assert runner.cas(*words).said.rstrip().endswith("Edit 2 deleted 12: did you mean 12@2^?"), words
    assert runner.cas("pin", "add", "12@2^").status == 0
    assert "did you mean" not in runner.cas("pin", "add", "b.txt@3^").said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("accept 1-3", "Name several edits one by one, or as a range: 1..3."),
        ("accept 1,3", "Name several edits one by one, or as a range: 1 3."),
        ("accept a.txt", "It is a file: `cas log a.txt` lists its edits, and `--file a.txt` names them."),
        ("reject conv_one", "It is a conversation: `--conversation conv_one` names its edits."),
        ("log conv_one", "It is a conversation: `cas log --conversation conv_one` lists its edits."),
        ("log 2", "It is an edit: `cas show 2` shows what it changed, and src/b.txt@2 is its result."),
        ("cat 1", "It is an edit: `cas show 1` shows what it changed, and a.txt@1 is its result."),
        ("show a.txt@3", "That is a state: `cas cat a.txt@3` prints it."),
        ("show a.txt@0s", "That is a state: `cas cat a.txt@0s` prints it."),
        ("blame a.txt@9", "The newest edit is 4."),
        ("blame a.txt@2", "Edit 2 changed src/b.txt: did you mean src/b.txt@2?"),
        ("log 2..3", "`cas show 2..3` shows these edits."),
        ("show HEAD", "The newest edit is 4."),
        ("diff latest", "The newest edit is 4."),
    ],
)
def test_a_name_of_another_kind_is_answered_with_what_takes_it(used: CommandRunner, words: str, said: str) -> None:
    ran = used.cas(*words.split())
    assert (ran.status, ran.said.splitlines()[1:]) == (1, [said])


def test_a_name_in_an_answer_is_spelt_as_a_shell_takes_it(runner: CommandRunner) -> None:
    runner.write("-n", b"1\n")
    name = "it's one"
    runner.write(name, b"1\n")
    assert runner.cas("show", "--", "-n").said.endswith("\nIt is a file: `cas log ./-n` lists its edits.\n")
    assert seqs(runner.done("log", "./-n").text) == [1]
    said = runner.cas("cat", "x@2").said.splitlines()[1]
    quoted = said.partition("did you mean ")[2].removesuffix("?")
    assert shlex.split(quoted) == [f"{name}@2"]
    assert runner.cas("cat", "its one").said.endswith(f"Did you mean {shlex.quote(name)}?\n")


def as_bash_takes_it(typed: str) -> list[str]:
    """Return the words that are typed."""
    ran = subprocess.run(["bash", "-c", f"printf '%s\\0' {typed}"], stdout=subprocess.PIPE, check=True)
    return [os.fsdecode(word) for word in ran.stdout.split(b"\0")[:-1]]


@pytest.mark.parametrize(
    "name",
    [
        "new\nline",
        "it's a\ttab",
        "\x1b[31mred",
        "rtl\u202egnp",
        "no\u200bwidth",
        "\udcff not utf-8",
        "\\n\n\u00fc",
        "-\r",
    ],
)
def test_a_name_of_which_not_all_can_be_shown_is_advised_as_a_shell_takes_it(runner: CommandRunner, name: str) -> None:
    chosen = ["--conversation", "one\n\u202etwo", "--file", name]
    runner.write(name, b"1\n2\n")
    runner.edit(name, b"1", b"one", conversation=chosen[1])
    runner.edit(name, b"one", b"ONE")

    def advised(*words: str, behind: str, before: str) -> list[str]:
        ran = runner.cas(*words)
        said = (ran.out + ran.err).decode()
        assert said.replace("\n", "").isprintable()
        return as_bash_takes_it(said.partition(behind)[2].partition(before)[0])

    assert advised("reject", *chosen, behind="  cas reject --cascade ", before="\n") == chosen
    (spelt,) = advised("show", f"./{name}", behind="`cas log ", before="`")
    assert (runner.folder / spelt).samefile(runner.folder / name)
    (meant,) = advised("cat", "other@3", behind="did you mean ", before="?")
    assert runner.done("cat", meant).out == b"ONE\n2\n"
    runner.delete(name)
    for words, behind in (("cat", "`cas cat "), ("restore", "`cas restore ")):
        (state,) = advised(words, f"./{name}", behind=behind, before="`")
        assert runner.done("cat", state).out == b"ONE\n2\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "undo 2",
            (
                "`cas undo` undoes the newest decision, whatever it was about. "
                "To take an edit out, run `cas reject EDIT`."
            ),
        ),
        ("checkout 2", "There is no `checkout`: `cas restore PATH@EDIT` brings a state back."),
        ("prune", "There is no `prune`: `cas gc` frees what nothing holds any more."),
        ("config user.name", "`cas config` has no command 'user.name'; its commands are list, get, set, unset."),
        ("log --follow", "--follow follows one file: name one PATH."),
        ("log --follow a.txt src", "--follow follows one file: name one PATH."),
        ("completion", "Missing argument. Choose from: bash, zsh, fish"),
        ("export --patch 3:1", "Patches are of whole edits, not of hunks. Name edit 3."),
    ],
)  # fmt: skip
def test_a_command_of_another_tool_is_answered_with_ours(used: CommandRunner, words: str, said: str) -> None:
    ran = used.cas(*words.split())
    assert (ran.status, ran.said.splitlines()[0]) == (2, f"cas: {said}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("log --author me", "No such option '--author'. Here it is --tool NAME."),
        ("show --author me", "No such option '--author'."),
        ("log --oneline", "No such option '--oneline'. `cas log` already does that."),
        ("show -p 2", "No such option '-p'. `cas show` already does that."),
        ("status -p", "No such option '-p'."),
        ("undo --bogus", "No such option '--bogus'."),
        ("cat -n a.txt", "No such option '-n'."),
        ("show -n", "No such option '-n'."),
        ("--no-pager log", "No such option '--no-pager'. Set CAS_PAGER=cat."),
        ("log --convers one", "No such option '--convers'. Did you mean --conversation?"),
        ("status --short", "No such option '--short'. `cas status` already does that."),
        ("gc --prune", "No such option '--prune'."),
        ("snapshot list --jsn", "No such option '--jsn'. Did you mean --json?"),
        ("mcp --tools", "No such option '--tools'. Put the server's own options after two dashes: cas mcp -- --tools."),
    ],
)
def test_an_option_of_another_tool_is_answered_with_ours(used: CommandRunner, words: str, said: str) -> None:
    ran = used.cas(*words.split())
    assert (ran.status, ran.said.splitlines()[0]) == (2, f"cas: {said}")
    assert ran.said.splitlines()[1].startswith("Try `cas ")


@pytest.mark.parametrize("words", ["accept 1 --reason x", "undo -m x", "reset 1 -m x"])
def test_a_reason_belongs_to_a_rejection(used: CommandRunner, words: str) -> None:
    told = "Give a reason when you reject: cas reject --reason TEXT."
    assert told in used.cas(*words.split()).said.splitlines()[0]


def test_help_on_help_is_help(runner: CommandRunner) -> None:
    assert runner.done("help", "help").text == runner.done("help").text


@pytest.mark.parametrize("short", ["reject 4 -n -m no", "reject -nm no 4", "reject 4 --dry-run --reason no"])
def test_a_dry_run_and_a_reason_have_the_short_names_that_they_have_elsewhere(used: CommandRunner, short: str) -> None:
    assert used.done(*short.split()).text.startswith("Dry run: nothing was changed.\nWould reject edit 4.\n")
    assert used.done(*short.replace("-n ", "").replace("-nm", "-m").replace("--dry-run ", "").split()).status == 0
    assert used.done("show", "4", "--json").json()["edits"][0]["reason"] == "no"


@pytest.mark.parametrize(
    "words",
    [
        ["reject", "--conversation", "", "--file", "a.txt"],
        ["reject", "--file=", "--conversation", "conv_one"],
        ["accept", "1", "--file", ""],
        ["log", "--conversation", ""],
        ["log", "--since", "", "a.txt"],
        ["record", "--agent", ""],
        ["export", "--patch", "--conversation", ""],
    ],
)
def test_an_empty_name_is_refused_and_does_not_count_as_not_given(used: CommandRunner, words: list[str]) -> None:
    before = used.statuses()
    ran = used.cas(*words)
    option = next(word for word in words if word.startswith("--") and word != "--patch").removesuffix("=")
    assert (ran.status, ran.said.splitlines()[0]) == (2, f"cas: Invalid value for '{option}': it is empty.")
    assert used.statuses() == before


@pytest.mark.parametrize("words", ["log", "record", "blame", "reject", "snapshot restore 1", "snapshot create"])
def test_an_empty_word_is_refused_and_stands_for_no_folder(used: CommandRunner, words: str) -> None:
    used.done("snapshot")
    (used.folder / "a.txt").write_text("mine\n")
    ran = used.cas(*words.split(), "")
    assert (ran.status, ran.out) == (2, b"")
    assert ran.said.splitlines()[0].endswith(": it is empty.")
    assert used.bytes("a.txt") == b"mine\n"


def test_a_file_that_is_gone_is_told_of_with_what_it_held(runner: CommandRunner) -> None:
    for name in ("my notes", "moved", "rejected"):
        runner.write(name, b"1\n")
    runner.delete("my notes")
    runner.move("moved", "elsewhere")
    runner.done("reject", "3")
    for name, held in (("my notes", "'my notes@4^'"), ("moved", "'moved@5^'"), ("rejected", "rejected@3")):
        prints = f"`cas cat {held}` prints its last content.\n"
        ran = runner.cas("blame", name)
        assert (ran.status, ran.said.splitlines(keepends=True)[1]) == (1, f"The file no longer exists: {prints}")
        assert runner.cas("cat", name).said.endswith(prints)
        assert runner.done("cat", *shlex.split(held)).out == b"1\n"
        brings = f"In this state there is no such file. `cas restore {held}` restores its last content.\n"
        ran = runner.cas("restore", name)
        assert (ran.text, ran.said) in {
            (f"No file changed: {name} already is in this state.\n{brings}", ""),
            ("", f"cas: No state is named '{name}' here.\nThe file no longer exists: {prints}"),
        }
    assert "prints" not in runner.cas("cat", "my notes@4").said


@pytest.mark.parametrize("words", ["log", "show", "accept"])
def test_a_range_the_wrong_way_round_is_turned(used: CommandRunner, words: str) -> None:
    assert used.cas(words, "4..1").said.splitlines()[1:] == ["A range begins with its lower number: 1..4."]


def test_a_folder_is_answered_with_what_lists_it(used: CommandRunner) -> None:
    assert used.cas("cat", "src").said.endswith("\nIt is a folder: `cas ls src` lists the files in it.\n")
    assert "cas ls" not in used.cas("cat", "sr").said


@pytest.mark.parametrize("words", ["log --follow", "blame", "cat", "restore", "verify"])
@pytest.mark.parametrize("folder", [".", "src"])
def test_a_folder_where_a_file_is_meant_is_named_as_it_was(used: CommandRunner, words: str, folder: str) -> None:
    ran = used.cas(*words.split(), folder)
    first, second = ran.said.splitlines()
    assert ran.status == 1
    assert first.endswith(f" is named '{folder}' here.")
    assert second == f"It is a folder: `cas ls {folder}` lists the files in it."


def test_a_tool_that_made_no_edit_is_answered_with_those_near_to_it(used: CommandRunner) -> None:
    ran = used.cas("log", "--tool", "write_fiel")
    assert (ran.status, ran.out) == (1, b"")
    assert ran.said == "cas: No tool is named 'write_fiel' here.\nDid you mean write_file?\n"
    assert used.cas("log", "--tool", "12").said == "cas: No tool is named '12' here.\n"
    # Where others leave nothing of what it did, the answer is an empty list.
    assert used.done("log", "--tool", "write_file", "--status", "rejected").text == ""


def test_a_file_of_another_conversation_is_not_said_to_be_nobodys(used: CommandRunner) -> None:
    used.write("other", b"1\n", conversation="conv_two")
    said = "cas: No agent edited other in conv_one. `cas log --file other` lists who did.\n"
    assert used.cas("accept", "--conversation", "conv_one", "--file", "other", "-n").said == said
    assert "No file that an agent edited is named 'oter' here.\nDid you mean other?\n" in (
        used.cas("accept", "--conversation", "conv_one", "--file", "oter").said
    )


def test_a_list_of_files_goes_back_to_an_edit_or_a_time(used: CommandRunner) -> None:
    before = used.done("ls").text
    assert before == used.done("ls", "@0s").text
    used.write("new@2h", b"1\n")
    assert used.done("ls", "new@2h").text.endswith("  new@2h\n")  # a file's own name may hold an "@"
    (used.folder / "inner").mkdir()
    assert used.done("ls", "@0s", "-C", "inner").text == used.done("ls").text
    assert used.cas("ls", "nothing@0s").said == "cas: No recorded file is at or below nothing@0s.\n"
    assert "No time is named '2026-13-01' here." in used.cas("ls", "@2026-13-01").said
    assert "No edit is named '99999999999999999999' here." in used.cas("ls", "@99999999999999999999").said


def test_what_is_no_edit_is_not_answered_with_how_far_edits_go(used: CommandRunner) -> None:
    assert used.cas("log", "--conversation", "9").said == "cas: No conversation is named '9' here.\n"


def test_a_range_and_a_conversation_can_be_exported(used: CommandRunner) -> None:
    assert used.done("export", "--patch", "3..9", "-o", "two").text.splitlines() == [
        "two/0001-replace-a-txt-edit-3.patch",
        "two/0002-replace-src-b-txt-edit-4.patch",
    ]
    assert used.done("export", "--patch", "conv_two", "--json").out.count(b"\n") == 2


def test_undo_tells_how_ones_own_newest_edit_is_taken_back(used: CommandRunner) -> None:
    assert used.cas("undo").said == "cas: No decision to undo.\n"
    used.done("restore", "a.txt@1")
    ran = used.cas("undo")
    assert (ran.status, ran.said) == (
        1,
        "cas: No decision to undo.\nThe newest edit is your own. To undo it, run `cas reject 5`.\n",
    )
    used.done("reject", "5")
    used.done("undo")
    used.done("redo")
    assert used.bytes("a.txt") == b"2\n"


@pytest.mark.parametrize("words", ["pin", "pin list", "snapshot list"])
def test_a_list_of_nothing_says_so_and_is_empty(used: CommandRunner, words: str) -> None:
    ran = used.cas(*words.split())
    assert (ran.status, ran.out) == (0, b"")
    assert ran.said.startswith("There are no ")
    assert used.done(*words.split(), "--json").out == b""


def test_a_command_with_commands_of_its_own_takes_what_every_command_takes(used: CommandRunner, tmp_path: Path) -> None:
    place = ["-C", str(used.folder)]
    for words in (["config", *place, "get", "gc.every"], ["config", "get", *place, "gc.every"]):
        assert cas(*words, folder=tmp_path).text == "1min\n"
    assert cas("config", *place, "--json", folder=tmp_path).text == used.done("config", "list", "--json").text
