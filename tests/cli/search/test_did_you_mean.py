"""Commands as users of git, jj or restic type them: each works, or the error names the command of `cas`."""

import errno
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from objstore import CallAborted, CallInfo, Workspace
from tests.support.command_runner import CommandRunner, cas
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.sampling import sampled_product


def record_edits(runner: CommandRunner) -> None:
    runner.write("a.txt", b"1\n", conversation="conv_one")
    runner.write("src/b.txt", b"1\n", conversation="conv_one")
    runner.write("a.txt", b"2\n", conversation="conv_two")
    runner.write("src/b.txt", b"2\n", conversation="conv_two")


@pytest.fixture
def runner_with_edits(runner: CommandRunner) -> CommandRunner:
    """Return a workspace with edits of two conversations in two files, one of them in a folder."""
    return runner.prepared(record_edits)


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
def test_log_takes_the_arguments_of_other_logs(runner_with_edits: CommandRunner, words: str, found: list[int]) -> None:
    assert seqs(runner_with_edits.done("log", *words.split()).text) == found


@pytest.mark.parametrize(
    "words",
    [
        "accept src/b.tx",
        "reject src/b.tx",
        "reject 1 src/b.tx:3",
        "reopen src/b.tx",
        "comment -m x src/b.tx",
        "try --reject src/b.tx true",
    ],
)
def test_a_mistyped_path_where_edits_are_named_too_is_answered_with_similar_paths(
    runner_with_edits: CommandRunner, words: str
) -> None:
    said, meant = runner_with_edits.cas(*words.split()).said.splitlines()
    assert said.startswith("cas: No edit or file is named 'src/b.tx")
    assert meant.startswith("Did you mean src/b.txt")


def test_log_paths_are_relative_to_the_current_folder(runner_with_edits: CommandRunner) -> None:
    assert seqs(cas("log", "b.txt", folder=runner_with_edits.folder / "src").text) == [4, 2]
    assert seqs(cas("log", ".", folder=runner_with_edits.folder / "src").text) == [4, 2]
    assert seqs(cas("log", "..", folder=runner_with_edits.folder / "src").text) == [4, 3, 2, 1]


def test_a_pattern_is_relative_to_the_current_folder_and_a_file_of_that_name_has_priority(
    runner_with_edits: CommandRunner,
) -> None:
    runner_with_edits.write("src/[b]/c.txt", b"1\n")
    runner_with_edits.write("src/*.txt", b"1\n")
    assert seqs(cas("log", "*.txt", folder=runner_with_edits.folder / "src").text) == [6]
    assert seqs(cas("log", "?.txt", folder=runner_with_edits.folder / "src" / "[b]").text) == [5]
    assert seqs(cas("log", "../?.txt", folder=runner_with_edits.folder / "src" / "[b]").text) == [6, 4, 2]
    assert seqs(runner_with_edits.done("log", "src/[b]").text) == [5]
    runner_with_edits.write("日本", b"1\n")
    assert seqs(runner_with_edits.done("log", "日?").text) == [7]
    assert runner_with_edits.cas("log", "*.py").said == "cas: No recorded file is named '*.py' here.\n"


def test_a_log_of_a_folder_includes_moves_out_of_it(runner_with_edits: CommandRunner) -> None:
    runner_with_edits.move("src/b.txt", "c.txt")
    assert seqs(runner_with_edits.done("log", "src").text) == [5, 4, 2]
    assert seqs(runner_with_edits.done("log", "c.txt").text) == [5, 4, 2]


def test_several_edits_are_shown_in_the_given_order(runner_with_edits: CommandRunner) -> None:
    assert [edit["seq"] for edit in runner_with_edits.done("show", "3", "1", "--json").json()["edits"]] == [3, 1]
    assert [edit["seq"] for edit in runner_with_edits.done("show", "2..9", "--json").json()["edits"]] == [2, 3, 4]


# ---- ranges


def test_a_range_selects_only_edits_of_agents(runner_with_edits: CommandRunner) -> None:
    runner_with_edits.done("reject", "3")
    runner_with_edits.done("record")
    (runner_with_edits.folder / "mine.txt").write_text("mine\n")
    runner_with_edits.done("record")
    assert runner_with_edits.done("show", "5", "--json").json()["edits"][0]["origin"] == "person"
    assert runner_with_edits.done("accept", "2..5").text.startswith("Accepted edits 2 4.\n")
    assert runner_with_edits.done("reject", "4..5").text.startswith("Rejected edit 4.\n")
    assert runner_with_edits.done("reset", "2..4").text.startswith("Made pending again: edits 2 3 4.\n")
    assert runner_with_edits.cas("accept", "9..12").said.startswith("cas: No edit is named '9..12' here.\n")
    assert runner_with_edits.cas("accept", "4..2").status == 1


def test_a_range_skips_the_number_of_an_aborted_call(runner_with_edits: CommandRunner) -> None:
    class OccupiedPathDisk(UnsyncedDisk):
        def rename_new(self, *_: object, **__: object) -> None:
            raise FileExistsError(errno.EEXIST, "taken")

    info = CallInfo(tool="write_file", conversation="conv_two")
    with Workspace.open(runner_with_edits.folder, OccupiedPathDisk()) as workspace, workspace.call(info) as call:
        call.write("c.txt", b"1\n")
        with pytest.raises(CallAborted):
            call.commit()
    # The number of the aborted call is not used again.
    assert runner_with_edits.write("c.txt", b"1\n") == 6
    shown = runner_with_edits.done("show", "5..6", "--json").json()["edits"]
    assert [edit["seq"] for edit in shown] == [6]
    assert runner_with_edits.done("reject", "4..6").text.startswith("Rejected edits 4 6.\n")
    assert runner_with_edits.done("accept", "2..2").text.startswith("Accepted edit 2.\n")


def test_a_range_without_edits_of_agents_is_refused(runner_with_edits: CommandRunner, tmp_path: Path) -> None:
    runner_with_edits.done("record")
    (runner_with_edits.folder / "mine.txt").write_text("mine\n")
    runner_with_edits.done("record")
    ran = runner_with_edits.cas("reject", "5..7")
    assert (ran.status, ran.said.splitlines()[0]) == (1, "cas: No edit of an agent is named '5..7' here.")
    (tmp_path / "new").mkdir()
    assert cas("init", folder=tmp_path / "new").status == 0
    assert cas("reject", "1..2", folder=tmp_path / "new").said == "cas: No edit is named '1..2' here.\n"
    assert cas("accept", "--all", folder=tmp_path / "new").text == "Nothing to do: nothing here waits to be accepted.\n"


def test_a_range_omits_expired_edits_and_is_refused_if_all_are_expired(runner_with_edits: CommandRunner) -> None:
    runner_with_edits.done("accept", "--conversation", "conv_one")
    runner_with_edits.done("gc", "--older-than", "0s")
    assert runner_with_edits.done("reject", "1..3").text.startswith("Rejected edit 3.\n")
    ran = runner_with_edits.cas("reject", "1..2")
    assert ran.status == 1
    assert ran.said.startswith("cas: Edit 2 expired on ")


def test_edits_of_a_person_are_selected_only_by_their_conversation(runner_with_edits: CommandRunner) -> None:
    runner_with_edits.done("record")
    (runner_with_edits.folder / "mine.txt").write_text("mine\n")
    runner_with_edits.done("record", "--conversation", "conv_mine")
    (runner_with_edits.folder / "a.txt").write_text("typed\n")
    runner_with_edits.edit("a.txt", b"typed", b"2")
    for words in (["--file", "mine.txt"], ["--conversation", "external"]):
        ran = runner_with_edits.cas("reject", *words)
        assert ran.status == 1
        assert " an agent" in ran.said
    assert runner_with_edits.done("reject", "--conversation", "conv_mine").text.startswith("Rejected edit 5.\n")


# ---- names and commands of other tools


COMPOSED, DECOMPOSED = "d\u00f3c/caf\u00e9", "do\u0301c/cafe\u0301"


@pytest.mark.parametrize(
    ("words", "names"),
    sampled_product(
        ["log {}", "blame {}", "restore {}", "accept --file {}", "snapshot restore 1 {}"],
        [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)],
    ),
)
def test_a_name_in_another_unicode_form_is_answered_with_the_existing_one(
    runner: CommandRunner, tmp_path: Path, words: str, names: tuple[str, str]
) -> None:
    typed, existing = names
    runner.write(existing, b"1\n")
    runner.done("snapshot")
    ran = runner.cas(*(word.format(typed) for word in words.split()))
    assert (ran.status, ran.out) == (1, b"")
    advice, end = "Did you mean ", "?"
    hint = ran.said.splitlines()[-1]
    assert (hint[: len(advice)], hint[-len(end) :]) == (advice, end)
    echoed = tmp_path / "echoed"
    subprocess.run(["bash", "-c", f"printf %s {hint[len(advice) : -len(end)]} > {echoed}"], check=True)
    assert echoed.read_text() == existing


def test_a_state_in_another_unicode_form_is_answered_with_the_existing_one(runner: CommandRunner) -> None:
    runner.write("\u00e9", b"1\n")
    assert runner.cas("cat", "e\u0301@1").said.rstrip().endswith(r"did you mean $'\xc3\xa9'@1?")


def test_the_state_before_a_deletion_is_suggested_where_content_is_needed(runner: CommandRunner) -> None:
    runner.write("12", b"x\n")
    runner.delete("12")
    runner.write("b.txt", b"y\n")
    for state in ("12@2", "b.txt@2"):
        for words in (["pin", "add", state], ["purge", state, "--dry-run"]):
            assert runner.cas(*words).said.rstrip().endswith("Edit 2 deleted 12: did you mean 12@2^?"), words
    assert runner.cas("pin", "add", "12@2^").status == 0
    assert "did you mean" not in runner.cas("pin", "add", "b.txt@3^").said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("accept 1-3", "`cas show 1..3` shows these edits."),
        ("accept 1,3", "`cas show 1 3` shows these edits."),
        ("amend a.txt", "It is a file: `cas log a.txt` lists its edits."),
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
def test_a_name_of_the_wrong_kind_is_answered_with_the_command_that_takes_it(
    runner_with_edits: CommandRunner, words: str, message: str
) -> None:
    ran = runner_with_edits.cas(*words.split())
    assert (ran.status, ran.said.splitlines()[1:]) == (1, [message])


def test_suggested_names_are_quoted_for_the_shell(runner: CommandRunner) -> None:
    runner.write("-n", b"1\n")
    name = "it's one"
    runner.write(name, b"1\n")
    assert runner.cas("show", "--", "-n").said.endswith("\nIt is a file: `cas log ./-n` lists its edits.\n")
    assert seqs(runner.done("log", "./-n").text) == [1]
    hint = runner.cas("cat", "x@2").said.splitlines()[1]
    quoted = hint.partition("did you mean ")[2].removesuffix("?")
    assert shlex.split(quoted) == [f"{name}@2"]
    assert runner.cas("cat", "its one").said.endswith(f"Did you mean {shlex.quote(name)}?\n")


def bash_words(line: str) -> list[str]:
    """Return the words that bash makes of a line."""
    ran = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], stdout=subprocess.PIPE, check=True)
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
def test_suggested_names_with_unprintable_characters_are_quoted_for_the_shell(runner: CommandRunner, name: str) -> None:
    chosen = ["--conversation", "one\n\u202etwo", "--file", name]
    runner.write(name, b"1\n2\n")
    runner.edit(name, b"1", b"one", conversation=chosen[1])
    runner.edit(name, b"one", b"ONE")

    def advised(*words: str, behind: str, before: str) -> list[str]:
        ran = runner.cas(*words)
        output = (ran.out + ran.err).decode()
        assert output.replace("\n", "").isprintable()
        return bash_words(output.partition(behind)[2].partition(before)[0])

    assert advised("reject", *chosen, behind="  cas reject --cascade ", before="\n") == chosen
    (path,) = advised("show", f"./{name}", behind="`cas log ", before="`")
    assert (runner.folder / path).samefile(runner.folder / name)
    (suggested,) = advised("cat", "other@3", behind="did you mean ", before="?")
    assert runner.done("cat", suggested).out == b"ONE\n2\n"
    runner.delete(name)
    for words, behind in (("cat", "`cas cat "), ("restore", "`cas restore ")):
        (state,) = advised(words, f"./{name}", behind=behind, before="`")
        assert runner.done("cat", state).out == b"ONE\n2\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "undo 2",
            (
                "`cas undo` undoes the newest decision, whatever it was about, and `cas undo --decision N` that one. "
                "To take an edit out, run `cas reject EDIT`."
            ),
        ),
        ("checkout 2", "There is no `checkout`: `cas restore PATH@EDIT` brings a state back."),
        ("prune", "There is no `prune`: `cas gc` frees what nothing holds any more."),
        (
            "config user.name",
            "`cas config` has no command 'user.name'; its commands are list, get, set, unset, history.",
        ),
        ("log --follow", "--follow follows one file: name one PATH."),
        ("log --follow a.txt src", "--follow follows one file: name one PATH."),
        ("completion", "Missing argument. Choose from: bash, zsh, fish"),
        ("export --patch 3:1", "Patches are of whole edits, not of hunks. Name edit 3."),
    ],
)  # fmt: skip
def test_a_command_of_another_tool_is_answered_with_the_command_of_cas(
    runner_with_edits: CommandRunner, words: str, message: str
) -> None:
    ran = runner_with_edits.cas(*words.split())
    assert (ran.status, ran.said.splitlines()[0]) == (2, f"cas: {message}")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("log --author me", "No such option '--author'. Here it is --tool NAME."),
        ("show --author me", "No such option '--author'."),
        ("log --oneline", "No such option '--oneline'. Leave it out."),
        ("show -p 2", "No such option '-p'."),
        ("status -p", "No such option '-p'."),
        ("undo --bogus", "No such option '--bogus'."),
        ("cat -n a.txt", "No such option '-n'."),
        ("show -n", "No such option '-n'."),
        ("--no-pager log", "No such option '--no-pager'. Set CAS_PAGER=cat."),
        ("log --convers one", "No such option '--convers'. Did you mean --conversation?"),
        ("gc --prune", "No such option '--prune'."),
        ("snapshot list --jsn", "No such option '--jsn'. Did you mean --json?"),
        ("mcp --tools", "No such option '--tools'."),
    ],
)
def test_an_option_of_another_tool_is_answered_with_the_option_of_cas(
    runner_with_edits: CommandRunner, words: str, message: str
) -> None:
    ran = runner_with_edits.cas(*words.split())
    assert (ran.status, ran.said.splitlines()[0]) == (2, f"cas: {message}")
    assert ran.said.splitlines()[1].startswith("Try `cas ")


@pytest.mark.parametrize("words", ["accept 1 --reason x", "undo -m x", "reset 1 -m x"])
def test_a_reason_is_refused_for_other_actions_than_reject(runner_with_edits: CommandRunner, words: str) -> None:
    message = "Give a reason when you reject: cas reject --reason TEXT."
    assert message in runner_with_edits.cas(*words.split()).said.splitlines()[0]


def test_help_on_help_shows_the_help(runner: CommandRunner) -> None:
    assert runner.done("help", "help").text == runner.done("help").text


@pytest.mark.parametrize("short", ["reject 4 -n -m no", "reject -nm no 4", "reject 4 --dry-run --reason no"])
def test_dry_run_and_reason_have_the_usual_short_options(runner_with_edits: CommandRunner, short: str) -> None:
    assert runner_with_edits.done(*short.split()).text.startswith(
        "Dry run: nothing was changed.\nWould reject edit 4.\n"
    )
    assert (
        runner_with_edits.done(*short.replace("-n ", "").replace("-nm", "-m").replace("--dry-run ", "").split()).status
        == 0
    )
    assert runner_with_edits.done("show", "4", "--json").json()["edits"][0]["reason"] == "no"


@pytest.mark.parametrize(
    "words",
    [
        ["reject", "--conversation", "", "--file", "a.txt"],
        ["reject", "--file=", "--conversation", "conv_one"],
        ["accept", "1", "--file", ""],
        ["status", "--file", ""],
        ["log", "--conversation", ""],
        ["log", "--since", "", "a.txt"],
        ["record", "--agent", ""],
        ["export", "--patch", "--conversation", ""],
    ],
)
def test_an_empty_option_value_is_refused(runner_with_edits: CommandRunner, words: list[str]) -> None:
    before = runner_with_edits.statuses()
    ran = runner_with_edits.cas(*words)
    option = next(word for word in words if word.startswith("--") and word != "--patch").removesuffix("=")
    spellings = "'--conversation' / '--conv'" if option == "--conversation" else f"'{option}'"
    assert (ran.status, ran.said.splitlines()[0]) == (2, f"cas: Invalid value for {spellings}: it is empty.")
    assert runner_with_edits.statuses() == before


@pytest.mark.parametrize("words", ["log", "record", "blame", "reject", "snapshot restore 1", "snapshot create"])
def test_an_empty_argument_is_refused(runner_with_edits: CommandRunner, words: str) -> None:
    runner_with_edits.done("snapshot")
    (runner_with_edits.folder / "a.txt").write_text("mine\n")
    ran = runner_with_edits.cas(*words.split(), "")
    assert (ran.status, ran.out) == (2, b"")
    assert ran.said.splitlines()[0].endswith(": it is empty.")
    assert runner_with_edits.bytes("a.txt") == b"mine\n"


def test_a_deleted_file_is_answered_with_the_command_for_its_last_content(runner: CommandRunner) -> None:
    for name in ("my notes", "moved", "rejected"):
        runner.write(name, b"1\n")
    runner.delete("my notes")
    runner.move("moved", "elsewhere")
    runner.done("reject", "3")
    for name, state in (("my notes", "'my notes@4^'"), ("moved", "'moved@5^'"), ("rejected", "rejected@3")):
        cat_hint = f"`cas cat {state}` prints its last content.\n"
        ran = runner.cas("blame", name)
        assert (ran.status, ran.said.splitlines(keepends=True)[1]) == (1, f"The file no longer exists: {cat_hint}")
        assert runner.cas("cat", name).said.endswith(cat_hint)
        assert runner.done("cat", *shlex.split(state)).out == b"1\n"
        restore_hint = f"In this state there is no such file. `cas restore {state}` restores its last content.\n"
        ran = runner.cas("restore", name)
        assert (ran.text, ran.said) in {
            (f"No file changed: {name} already is in this state.\n{restore_hint}", ""),
            ("", f"cas: {name} no longer exists: `cas restore {state}` restores its last content.\n"),
        }
    assert "prints" not in runner.cas("cat", "my notes@4").said


@pytest.mark.parametrize("words", ["log", "show", "accept"])
def test_a_reversed_range_is_answered_with_the_right_order(runner_with_edits: CommandRunner, words: str) -> None:
    assert runner_with_edits.cas(words, "4..1").said.splitlines()[1:] == ["`cas show 1..4` shows these edits."]


def test_cat_of_a_folder_is_answered_with_ls(runner_with_edits: CommandRunner) -> None:
    assert runner_with_edits.cas("cat", "src").said.endswith("\nIt is a folder: `cas ls src` lists the files in it.\n")
    assert "cas ls" not in runner_with_edits.cas("cat", "sr").said


@pytest.mark.parametrize(
    ("words", "folder"), sampled_product(["log --follow", "blame", "cat", "restore", "verify"], [".", "src"])
)
def test_a_folder_where_a_file_is_needed_is_named_as_typed(
    runner_with_edits: CommandRunner, words: str, folder: str
) -> None:
    ran = runner_with_edits.cas(*words.split(), folder)
    first, second = ran.said.splitlines()
    assert ran.status == 1
    assert first.endswith(f" is named '{folder}' here.")
    assert second == f"It is a folder: `cas ls {folder}` lists the files in it."


def test_an_unknown_tool_is_answered_with_similar_names(runner_with_edits: CommandRunner) -> None:
    ran = runner_with_edits.cas("log", "--tool", "write_fiel")
    assert (ran.status, ran.out) == (1, b"")
    assert ran.said == "cas: No tool is named 'write_fiel' here.\nDid you mean write_file?\n"
    assert runner_with_edits.cas("log", "--tool", "12").said == "cas: No tool is named '12' here.\n"
    # A known tool whose edits other filters exclude gives an empty list.
    assert runner_with_edits.done("log", "--tool", "write_file", "--status", "rejected").text == ""


def test_a_file_of_another_conversation_is_answered_with_a_log_of_its_edits(runner_with_edits: CommandRunner) -> None:
    runner_with_edits.write("other", b"1\n", conversation="conv_two")
    message = "cas: No agent edited other in conv_one. `cas log --file other` lists who did.\n"
    assert runner_with_edits.cas("accept", "--conversation", "conv_one", "--file", "other", "-n").said == message
    assert "No file that an agent edited is named 'oter' here.\nDid you mean other?\n" in (
        runner_with_edits.cas("accept", "--conversation", "conv_one", "--file", "oter").said
    )


def test_ls_lists_files_at_an_edit_or_a_time(runner_with_edits: CommandRunner) -> None:
    before = runner_with_edits.done("ls").text
    assert before == runner_with_edits.done("ls", "@0s").text
    runner_with_edits.write("new@2h", b"1\n")
    assert runner_with_edits.done("ls", "new@2h").text.endswith("  new@2h\n")  # a file's own name may hold an "@"
    (runner_with_edits.folder / "inner").mkdir()
    assert runner_with_edits.done("ls", "@0s", "-C", "inner").text == runner_with_edits.done("ls").text
    assert runner_with_edits.cas("ls", "nothing@0s").said == "cas: No recorded file is at or below nothing@0s.\n"
    assert "No time is named '2026-13-01' here." in runner_with_edits.cas("ls", "@2026-13-01").said
    assert "No edit is named '99999999999999999999' here." in runner_with_edits.cas("ls", "@99999999999999999999").said


def test_an_unknown_conversation_is_not_answered_with_the_newest_edit(runner_with_edits: CommandRunner) -> None:
    assert runner_with_edits.cas("log", "--conversation", "9").said == "cas: No conversation is named '9' here.\n"


def test_a_range_and_a_conversation_can_be_exported(runner_with_edits: CommandRunner) -> None:
    assert runner_with_edits.done("export", "--patch", "3..9", "-o", "two").text.splitlines() == [
        "two/0001-replace-a-txt-edit-3.patch",
        "two/0002-replace-src-b-txt-edit-4.patch",
    ]
    assert runner_with_edits.done("export", "--patch", "conv_two", "--json").out.count(b"\n") == 2


def test_undo_without_decisions_takes_back_a_restore(runner_with_edits: CommandRunner) -> None:
    assert runner_with_edits.cas("undo").said == "cas: No decision to undo.\n"
    before = runner_with_edits.bytes("a.txt")
    runner_with_edits.done("restore", "a.txt@1")
    assert runner_with_edits.bytes("a.txt") != before
    assert runner_with_edits.done("undo").text.startswith("Undid the restore of a.txt (edit 5).")
    assert runner_with_edits.bytes("a.txt") == before


@pytest.mark.parametrize("words", ["pin", "pin list", "snapshot list"])
def test_an_empty_list_says_so_on_stderr(runner_with_edits: CommandRunner, words: str) -> None:
    ran = runner_with_edits.cas(*words.split())
    assert (ran.status, ran.out) == (0, b"")
    assert ran.said.startswith("There are no ")
    assert runner_with_edits.done(*words.split(), "--json").out == b""


def test_a_command_with_subcommands_takes_the_common_options(runner_with_edits: CommandRunner, tmp_path: Path) -> None:
    folder_option = ["-C", str(runner_with_edits.folder)]
    for words in (["config", *folder_option, "get", "gc.every"], ["config", "get", *folder_option, "gc.every"]):
        assert cas(*words, folder=tmp_path).text == "1min\n"
    assert (
        cas("config", *folder_option, "--json", folder=tmp_path).text
        == runner_with_edits.done("config", "list", "--json").text
    )
