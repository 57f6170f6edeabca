"""`cas diff` and `cas cat`: what stands in files, now and at any recorded moment."""

import shutil

import pytest
from blake3 import blake3

from objstore import blob_id
from tests.cli.desk import Desk, cas

WILD = b"CR\rCRLF\r\nNUL\0\xff\xfe last without newline"

# ---- cat


def test_cat_gives_the_exact_bytes_of_every_state(desk: Desk) -> None:
    desk.write("a", WILD)
    desk.write("a", b"second\n")
    name = blake3(WILD).hexdigest()
    for spelling in ("a@1", "a@2^", name, name[:8]):
        assert desk.done("cat", spelling).out == WILD
    assert desk.done("cat", "a").out == b"second\n"


def test_cat_takes_the_names_that_a_file_had(desk: Desk) -> None:
    desk.write("old", b"x\n")
    desk.move("old", "new")
    desk.edit("new", b"x", b"y")
    assert desk.done("cat", "old@1").out == b"x\n"
    assert desk.done("cat", "old@2^").out == b"x\n"
    assert desk.done("cat", "new@2").out == b"x\n"
    assert desk.done("cat", "new").out == b"y\n"


def test_cat_reads_what_was_rejected(desk: Desk) -> None:
    desk.write("a", b"unwanted\n")
    desk.done("reject", "1")
    assert not (desk.folder / "a").exists()
    assert desk.done("cat", "a@1").out == b"unwanted\n"


@pytest.mark.parametrize("state", ["a@1^", "a@2"])
def test_cat_of_no_file_is_refused(desk: Desk, state: str) -> None:
    desk.write("a", b"x\n")
    desk.delete("a")
    ran = desk.cas("cat", state)
    assert (ran.status, ran.out) == (1, b"")
    assert ran.said == "cas: There is no file a in this state.\n"


def test_a_recorded_file_that_is_named_like_a_hash_can_be_named_where_it_is_gone(desk: Desk) -> None:
    (desk.folder / "sub").mkdir()
    for path in ("deed", "sub/face"):
        desk.write(path, b"one\n")
        desk.edit(path, b"one", b"two")
        (desk.folder / path).unlink()
    assert desk.done("diff", "deed").text.endswith("-two\n")
    assert desk.done("diff", "deed@1", "deed").text.endswith("-one\n+two\n")
    here = desk.folder / "sub"
    assert cas("cat", "face", folder=here).out == b"two\n"
    assert cas("restore", "face", folder=here).status == 0
    assert desk.bytes("sub/face") == b"two\n"
    desk.done("record")
    assert "`cas cat 'deed@7^'` prints what it held" in desk.cas("cat", "deed").said
    assert desk.done("purge", "deed", "--dry-run", "--json").json()["blobs"] != []
    name = blake3(b"one\n").hexdigest()
    assert cas("cat", name[:8], folder=here).out == b"one\n"
    elsewhere = cas("cat", name[:8], folder=desk.folder.parent, settings={"CAS_WORKSPACE": str(desk.folder)})
    assert elsewhere.out == b"one\n"


def test_a_file_on_disk_that_is_named_like_a_state_is_what_every_command_means(desk: Desk) -> None:
    desk.write("a", b"a\n")
    desk.write("a@1", b"not a\n")
    desk.write("beef", b"not a blob\n")
    desk.write("a", b"b\n")
    (desk.folder / "a@1").write_bytes(b"changed\n")
    assert desk.done("cat", "a@1").out == b"not a\n"
    assert desk.done("cat", "a@1@2").out == b"not a\n"
    assert desk.done("cat", "a@4^").out == b"a\n"
    assert desk.done("cat", "beef").out == b"not a blob\n"
    assert desk.done("diff", "a@1").out.endswith(b"-not a\n+changed\n")
    assert desk.done("diff", "a@1", "a@4").out.endswith(b"-not a\n+b\n")
    assert desk.done("blame", "a@1", "--json").json()["edit_id"] is not None
    assert desk.done("ls", "a@1").text.endswith("  a@1\n")
    assert desk.done("restore", "a@1").text.endswith("Restored a@1 as edit 6; `cas reject 6` takes it back.\n")
    outside, named = desk.folder.parent, {"CAS_WORKSPACE": str(desk.folder)}
    assert cas("cat", "a@1", folder=outside, settings=named).out == b"not a\n"
    assert desk.done("purge", "a@1", "-n", "--json").json()["edits"] == [[2, 2], [5, 6]]
    assert cas("purge", "a@1", "-n", "--json", folder=outside, settings=named).json()["edits"] == [[2, 2], [5, 6]]
    desk.delete("a@1")
    assert desk.done("cat", "a@1").out == b"a\n"


def test_of_a_file_on_disk_that_is_named_like_a_state_nothing_is_said_of_another_file(desk: Desk) -> None:
    desk.write("a", b"a\n")
    (desk.folder / "a@1").write_bytes(b"mine\n")
    (desk.folder / "a@1h").write_bytes(b"mine\n")
    for name in ("a@1", "a@1h"):
        for words in (["cat"], ["restore"], ["blame"], ["log"], ["purge"]):
            ran = desk.cas(*words, name)
            assert (ran.status, ran.out) == (1, b"")
            assert ran.said.splitlines()[1:] == ["That is a file on disk, of which no edit is recorded."], words
    desk.write("a@1", b"an agent's\n")
    assert desk.cas("pin", "add", "a@1").said.splitlines()[1:] == ["It is a file: `cas log a@1` lists its edits."]


# ---- diff with the disk


def test_diff_shows_what_changed_outside(desk: Desk) -> None:
    for name in ("a", "sub/b", "sub/c"):
        desk.write(name, b"1\n2\n3\n")
    (desk.folder / "a").write_bytes(b"1\ntwo\n3\n")
    (desk.folder / "sub" / "b").unlink()
    (desk.folder / "sub" / "c").chmod(0o755)
    changed = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n"
    gone = b"diff --git a/sub/b b/sub/b\ndeleted file mode 100644\n"
    gone += b"--- a/sub/b\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-1\n-2\n-3\n"
    mode = b"diff --git a/sub/c b/sub/c\nold mode 100644\nnew mode 100755\n"
    assert desk.done("diff").out == changed + gone + mode
    assert desk.done("diff", "a").out == changed
    assert desk.done("diff", "sub").out == gone + mode
    assert desk.done("diff", "sub/c", "a").out == changed + mode
    assert [change["change"] for change in desk.done("diff", "--json").lines()] == [
        "modified",
        "deleted",
        "mode changed",
    ]
    (only,) = desk.done("diff", "--json", "a").lines()
    assert only["diff"] == changed.decode()


def test_diff_of_a_folder_shows_what_changed_below_it(desk: Desk) -> None:
    for name in ("top", "d/in", "d2"):
        desk.write(name, b"1\n")
        (desk.folder / name).write_bytes(b"2\n")
    everything = desk.done("diff").text
    assert desk.done("diff", ".").text == everything
    assert desk.done("diff", "..", "-C", "d").text == everything
    assert desk.done("diff", "d").text == desk.done("diff", ".", "-C", "d").text == desk.done("diff", "d/in").text


def test_diff_of_an_untouched_workspace_is_empty(desk: Desk) -> None:
    desk.write("a", b"x\n")
    assert desk.done("diff").out == b""
    assert desk.done("diff", "--json").out == b""


def test_piped_diff_keeps_every_byte(desk: Desk) -> None:
    desk.write("a", b"x\n")
    (desk.folder / "a").write_bytes(b"\x1b[2Jcr\rbell\a\n\xff\xfe\n" + b"text " * 20)
    assert b"+\x1b[2Jcr\rbell\a\n+\xff\xfe\n+text " in desk.done("diff").out


# ---- diff of two states


def test_diff_of_two_states(desk: Desk) -> None:
    desk.write("a", b"1\n2\n")
    desk.edit("a", b"2", b"two")
    desk.edit("a", b"two", b"II")
    whole = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-2\n+II\n"
    assert desk.done("diff", "a@1", "a@3").out == whole
    assert desk.done("diff", "a@2^", "a").out == whole
    assert desk.done("diff", "a@1", "a@1").out == b""
    assert b"+2\n" in desk.done("diff", "a@1^", "a@1").out
    document = desk.done("diff", "a@1", "a@3", "--json").json()
    assert document["diff"] == whole.decode()
    assert document["path_before"] == document["path_after"] == str(desk.folder / "a")


@pytest.mark.parametrize("mode", [0o644, 0o755])
def test_diff_of_two_files_says_of_none_that_it_was_moved(desk: Desk, mode: int) -> None:
    desk.write("old", b"1\n")
    desk.write("new", b"2\n")
    if mode == 0o755:
        (desk.folder / "new").chmod(mode)
        assert desk.done("record", "new").status == 0
    modes = b"old mode 100644\nnew mode 100755\n" if mode == 0o755 else b""
    whole = b"diff --git a/old b/new\n" + modes + b"--- a/old\n+++ b/new\n@@ -1 +1 @@\n-1\n+2\n"
    assert desk.done("diff", "old@1", "new").out == whole
    assert desk.done("diff", "old@1", "new", "--json").json()["diff"] == whole.decode()


def test_diff_of_blobs_by_hash(desk: Desk) -> None:
    desk.write("a", b"1\n")
    desk.write("b", b"2\n")
    before, after = (blake3(content).hexdigest()[:16] for content in (b"1\n", b"2\n"))
    assert desk.done("diff", before, after).out.endswith(b"@@ -1 +1 @@\n-1\n+2\n")
    told = desk.done("diff", before, after, "--json").json()
    assert [told[name] for name in ("path_before", "path_after", "blob_before")] == [None, None, blob_id(b"1\n").hex()]


def test_diff_of_one_state_or_three_is_a_mistake(desk: Desk) -> None:
    desk.write("a", b"1\n")
    for names, meant in ((["a@1"], "a@1 a"), (["a@1", "a", "a"], "A B"), ([blob_id(b"1\n").hex()], "A B")):
        ran = desk.cas("diff", *names)
        assert (ran.status, ran.out) == (2, b"")
        assert f"A state is compared with one other, as in `cas diff {meant}`.\n" in ran.said


# ---- what has gone


@pytest.mark.parametrize("instead", [None, b"a file by now\n"])
def test_a_file_whose_folder_is_gone_is_named_as_ever(desk: Desk, instead: bytes | None) -> None:
    desk.write("src/deep/a", b"1\n")
    desk.write("src/deep/a", b"2\n")
    shutil.rmtree(desk.folder / "src")
    if instead is not None:
        (desk.folder / "src").write_bytes(instead)
    assert desk.done("cat", "src/deep/a@1").out == b"1\n"
    assert [edit["seq"] for edit in desk.done("log", "--json", "src/deep/a").lines()] == [2, 1]
    assert [edit["seq"] for edit in desk.done("log", "--json", "src/deep").lines()] == [2, 1]
    assert desk.done("diff", "src/deep/a@1", "src/deep/a").text.endswith("-1\n+2\n")
    assert desk.done("diff", "src/deep/a").text.endswith("-2\n")
    assert desk.done("blame", "src/deep/a").text.endswith("      1  2\n")
    assert desk.done("ls", "src").text.endswith("src/deep/a\n")
    assert desk.done("accept", "--file", "src/deep/a", "--dry-run", "--on-external", "keep").status == 0
    if instead is None:
        assert desk.done("restore", "src/deep/a@1").text.startswith("Recorded the change from outside to src/deep/a")
        assert desk.bytes("src/deep/a") == b"1\n"
    else:
        ran = desk.cas("restore", "src/deep/a@1")
        assert ran.status == 1
        assert ran.said.count("\n") == 1
        assert desk.bytes("src") == instead
