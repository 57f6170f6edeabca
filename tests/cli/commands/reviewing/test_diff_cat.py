"""`cas diff` and `cas cat`: the content of files, current and at any recorded state."""

import shutil

import pytest
from blake3 import blake3

from objstore import blob_id
from tests.support.command_runner import CommandRunner, cas

BINARY_CONTENT = b"CR\rCRLF\r\nNUL\0\xff\xfe last without newline"

# ---- cat


def test_cat_prints_the_exact_bytes_of_every_state(runner: CommandRunner) -> None:
    runner.write("a", BINARY_CONTENT)
    runner.write("a", b"second\n")
    name = blake3(BINARY_CONTENT).hexdigest()
    for spelling in ("a@1", "a@2^", name, name[:8]):
        assert runner.done("cat", spelling).out == BINARY_CONTENT
    assert runner.done("cat", "a").out == b"second\n"


def test_cat_takes_every_name_that_a_file_had(runner: CommandRunner) -> None:
    runner.write("old", b"x\n")
    runner.move("old", "new")
    runner.edit("new", b"x", b"y")
    assert runner.done("cat", "old@1").out == b"x\n"
    assert runner.done("cat", "old@2^").out == b"x\n"
    assert runner.done("cat", "new@2").out == b"x\n"
    assert runner.done("cat", "new").out == b"y\n"


def test_cat_prints_rejected_states(runner: CommandRunner) -> None:
    runner.write("a", b"unwanted\n")
    runner.done("reject", "1")
    assert not (runner.folder / "a").exists()
    assert runner.done("cat", "a@1").out == b"unwanted\n"


@pytest.mark.parametrize("state", ["a@1^", "a@2"])
def test_cat_of_no_file_is_refused(runner: CommandRunner, state: str) -> None:
    runner.write("a", b"x\n")
    runner.delete("a")
    ran = runner.cas("cat", state)
    assert (ran.status, ran.out) == (1, b"")
    assert ran.said == "cas: There is no file a in this state.\n"


def test_a_deleted_file_named_like_a_hash_can_still_be_named(runner: CommandRunner) -> None:
    (runner.folder / "sub").mkdir()
    for path in ("deed", "sub/face"):
        runner.write(path, b"one\n")
        runner.edit(path, b"one", b"two")
        (runner.folder / path).unlink()
    assert runner.done("diff", "--unrecorded", "deed").text.endswith("-two\n")
    assert runner.done("diff", "deed@1", "deed").text.endswith("-one\n+two\n")
    here = runner.folder / "sub"
    assert cas("cat", "face", folder=here).out == b"two\n"
    assert cas("restore", "face", folder=here).status == 0
    assert runner.bytes("sub/face") == b"two\n"
    runner.done("record")
    assert "`cas cat 'deed@7^'` prints its last content" in runner.cas("cat", "deed").said
    assert runner.done("purge", "deed", "--dry-run", "--json").json()["blobs"] != []
    name = blake3(b"one\n").hexdigest()
    assert cas("cat", name[:8], folder=here).out == b"one\n"
    elsewhere = cas("cat", name[:8], folder=runner.folder.parent, settings={"CAS_WORKSPACE": str(runner.folder)})
    assert elsewhere.out == b"one\n"


def test_a_file_named_like_a_state_has_priority_over_the_state(runner: CommandRunner) -> None:
    runner.write("a", b"a\n")
    runner.write("a@1", b"not a\n")
    runner.write("beef", b"not a blob\n")
    runner.write("a", b"b\n")
    (runner.folder / "a@1").write_bytes(b"changed\n")
    assert runner.done("cat", "a@1").out == b"not a\n"
    assert runner.done("cat", "a@1@2").out == b"not a\n"
    assert runner.done("cat", "a@4^").out == b"a\n"
    assert runner.done("cat", "beef").out == b"not a blob\n"
    assert runner.done("diff", "--unrecorded", "a@1").out.endswith(b"-not a\n+changed\n")
    assert runner.done("diff", "a@1", "a@4").out.endswith(b"-not a\n+b\n")
    assert runner.done("blame", "a@1", "--json").json()["edit_id"] is not None
    assert runner.done("ls", "a@1").text.endswith("  a@1\n")
    assert runner.done("restore", "a@1").text.endswith("Restored a@1 as edit 6; `cas undo` takes it back.\n")
    outside, workspace_variable = runner.folder.parent, {"CAS_WORKSPACE": str(runner.folder)}
    assert cas("cat", "a@1", folder=outside, settings=workspace_variable).out == b"not a\n"
    assert runner.done("purge", "a@1", "-n", "--json").json()["edits"] == [[2, 2], [5, 6]]
    assert cas("purge", "a@1", "-n", "--json", folder=outside, settings=workspace_variable).json()["edits"] == [
        [2, 2],
        [5, 6],
    ]
    runner.delete("a@1")
    assert runner.done("cat", "a@1").out == b"a\n"


def test_an_unrecorded_file_named_like_a_state_is_refused_without_using_the_state(runner: CommandRunner) -> None:
    runner.write("a", b"a\n")
    (runner.folder / "a@1").write_bytes(b"mine\n")
    (runner.folder / "a@1h").write_bytes(b"mine\n")
    for name in ("a@1", "a@1h"):
        for words in (["cat"], ["restore"], ["blame"], ["log"], ["purge"]):
            ran = runner.cas(*words, name)
            assert (ran.status, ran.out) == (1, b"")
            assert ran.said.splitlines()[1:] == ["That file is on disk, but no edit of it is recorded."], words
    runner.write("a@1", b"an agent's\n")
    assert runner.cas("pin", "add", "a@1").said.splitlines()[1:] == ["It is a file: `cas log a@1` lists its edits."]


# ---- diff with the disk


def test_diff_unrecorded_shows_what_changed_outside(runner: CommandRunner) -> None:
    for name in ("a", "sub/b", "sub/c"):
        runner.write(name, b"1\n2\n3\n")
    (runner.folder / "a").write_bytes(b"1\ntwo\n3\n")
    (runner.folder / "sub" / "b").unlink()
    (runner.folder / "sub" / "c").chmod(0o755)
    changed = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n"
    gone = b"diff --git a/sub/b b/sub/b\ndeleted file mode 100644\n"
    gone += b"--- a/sub/b\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-1\n-2\n-3\n"
    mode = b"diff --git a/sub/c b/sub/c\nold mode 100644\nnew mode 100755\n"
    assert runner.done("diff", "--unrecorded").out == changed + gone + mode
    assert runner.done("diff", "--unrecorded", "a").out == changed
    assert runner.done("diff", "--unrecorded", "sub").out == gone + mode
    assert runner.done("diff", "--unrecorded", "sub/c", "a").out == changed + mode
    assert [change["change"] for change in runner.done("diff", "--unrecorded", "--json").lines()] == [
        "modified",
        "deleted",
        "mode changed",
    ]
    (only,) = runner.done("diff", "--unrecorded", "--json", "a").lines()
    assert only["diff"] == changed.decode()


def test_diff_unrecorded_of_a_folder_shows_what_changed_below_it(runner: CommandRunner) -> None:
    for name in ("top", "d/in", "d2"):
        runner.write(name, b"1\n")
        (runner.folder / name).write_bytes(b"2\n")
    everything = runner.done("diff", "--unrecorded").text
    assert runner.done("diff", "--unrecorded", ".").text == everything
    assert runner.done("diff", "--unrecorded", "..", "-C", "d").text == everything
    assert (
        runner.done("diff", "--unrecorded", "d").text
        == runner.done("diff", "--unrecorded", ".", "-C", "d").text
        == runner.done("diff", "--unrecorded", "d/in").text
    )


def test_diff_unrecorded_of_an_untouched_workspace_is_empty(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    assert runner.done("diff", "--unrecorded").out == b""
    assert runner.done("diff", "--unrecorded", "--json").out == b""


def test_piped_diff_unrecorded_keeps_every_byte(runner: CommandRunner) -> None:
    runner.write("a", b"x\n")
    (runner.folder / "a").write_bytes(b"\x1b[2Jcr\rbell\a\n\xff\xfe\n" + b"text " * 20)
    assert b"+\x1b[2Jcr\rbell\a\n+\xff\xfe\n+text " in runner.done("diff", "--unrecorded").out


# ---- diff of two states


def test_diff_of_two_states(runner: CommandRunner) -> None:
    runner.write("a", b"1\n2\n")
    runner.edit("a", b"2", b"two")
    runner.edit("a", b"two", b"II")
    expected = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-2\n+II\n"
    assert runner.done("diff", "a@1", "a@3").out == expected
    assert runner.done("diff", "a@2^", "a").out == expected
    assert runner.done("diff", "a@1", "a@1").out == b""
    assert b"+2\n" in runner.done("diff", "a@1^", "a@1").out
    document = runner.done("diff", "a@1", "a@3", "--json").json()
    assert document["diff"] == expected.decode()
    assert document["path_before"] == document["path_after"] == str(runner.folder / "a")


@pytest.mark.parametrize("mode", [0o644, 0o755])
def test_diff_of_two_files_shows_no_move(runner: CommandRunner, mode: int) -> None:
    runner.write("old", b"1\n")
    runner.write("new", b"2\n")
    if mode == 0o755:
        (runner.folder / "new").chmod(mode)
        assert runner.done("record", "new").status == 0
    modes = b"old mode 100644\nnew mode 100755\n" if mode == 0o755 else b""
    expected = b"diff --git a/old b/new\n" + modes + b"--- a/old\n+++ b/new\n@@ -1 +1 @@\n-1\n+2\n"
    assert runner.done("diff", "old@1", "new").out == expected
    assert runner.done("diff", "old@1", "new", "--json").json()["diff"] == expected.decode()


def test_diff_of_blobs_by_hash(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    runner.write("b", b"2\n")
    before, after = (blake3(content).hexdigest()[:16] for content in (b"1\n", b"2\n"))
    assert runner.done("diff", before, after).out.endswith(b"@@ -1 +1 @@\n-1\n+2\n")
    shown = runner.done("diff", before, after, "--json").json()
    assert [shown[name] for name in ("path_before", "path_after", "blob_before")] == [None, None, blob_id(b"1\n").hex()]


def test_diff_of_one_state_or_three_is_refused(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    for names, expected in ((["a@1"], "a@1 a"), (["a@1", "a", "a"], "A B"), ([blob_id(b"1\n").hex()], "A B")):
        ran = runner.cas("diff", *names)
        assert (ran.status, ran.out) == (2, b"")
        assert f"`cas diff` compares two states, as in `cas diff {expected}`.\n" in ran.said


# ---- deleted folders


@pytest.mark.parametrize("replacement", [None, b"a file by now\n"])
def test_a_file_whose_folder_was_deleted_keeps_its_name(runner: CommandRunner, replacement: bytes | None) -> None:
    runner.write("src/deep/a", b"1\n")
    runner.write("src/deep/a", b"2\n")
    shutil.rmtree(runner.folder / "src")
    if replacement is not None:
        (runner.folder / "src").write_bytes(replacement)
    assert runner.done("cat", "src/deep/a@1").out == b"1\n"
    assert [edit["seq"] for edit in runner.done("log", "--json", "src/deep/a").lines()] == [2, 1]
    assert [edit["seq"] for edit in runner.done("log", "--json", "src/deep").lines()] == [2, 1]
    assert runner.done("diff", "src/deep/a@1", "src/deep/a").text.endswith("-1\n+2\n")
    assert runner.done("diff", "--unrecorded", "src/deep/a").text.endswith("-2\n")
    assert runner.done("blame", "src/deep/a").text.endswith("      1  2\n")
    assert runner.done("ls", "src").text.endswith("src/deep/a\n")
    assert runner.done("accept", "--file", "src/deep/a", "--dry-run", "--on-external", "keep").status == 0
    if replacement is None:
        assert runner.done("restore", "src/deep/a@1").text.startswith("Recorded the change from outside to src/deep/a")
        assert runner.bytes("src/deep/a") == b"1\n"
    else:
        ran = runner.cas("restore", "src/deep/a@1")
        assert ran.status == 1
        assert ran.said.count("\n") == 1
        assert runner.bytes("src") == replacement


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (b"\xef\xbb\xbfone\ntwo\n", b"one\ntwo\n", "byte-order mark removed"),
        (b"one\ntwo\n", b"\xef\xbb\xbfone\ntwo\n", "byte-order mark added"),
        (b"one\r\ntwo\r\n", b"one\ntwo\r\n", "CR at the end of lines removed"),
        (b"one\ntwo\n", b"one\r\ntwo\n", "CR at the end of lines added"),
        (b"one\r\ntwo\r\n", b"ONE\r\ntwo\r\n", ""),
    ],
)
def test_plain_diff_says_what_of_a_change_cannot_be_seen(
    runner: CommandRunner, before: bytes, after: bytes, words: str
) -> None:
    runner.write("f", before)
    runner.done("accept", "1")
    runner.write("f", after)
    for command, label in ((("diff",), "[2:1]"), (("diff", "f@2^", "f@2"), "")):
        ran = runner.done(*command)
        (head,) = (line for line in ran.text.split("\n") if line.startswith("@@"))
        assert head.split(" @@", 1)[1].strip() == ", ".join(filter(None, (label, words)))
        # The lines themselves are exact, so that another program can apply them.
        assert b"\n-" + before.split(b"\n")[0] + b"\n+" + after.split(b"\n")[0] + b"\n" in ran.out
