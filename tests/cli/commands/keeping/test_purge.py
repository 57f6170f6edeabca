"""`cas purge`: remove a secret from history for good, and say beforehand what that affects."""

from pathlib import Path

from objstore import blob_id
from tests.support.command_runner import CommandRunner

SECRET = b"password = hunter2\n"


def store_content(runner: CommandRunner) -> bytes:
    """Return the concatenated content of all files in the store's folder."""
    return b"".join(path.read_bytes() for path in sorted((runner.folder / ".cas").rglob("*")) if path.is_file())


def leak_secret(runner: CommandRunner) -> None:
    """Record edits that add a secret to a file, keep it and remove it; then accept all of them."""
    runner.write("conf", b"debug = on\n")
    runner.write("conf", b"debug = on\n" + SECRET)
    runner.write("conf", b"debug = off\n" + SECRET)
    runner.write("conf", b"debug = off\n")
    runner.write("other", b"untouched\n")
    runner.done("accept", "--all")


def test_a_purged_secret_is_nowhere_in_the_store(runner: CommandRunner) -> None:
    leak_secret(runner)
    for number in range(70):
        runner.write("conf", b"debug = off\n%d\n" % number)
    runner.done("reject", "75")
    assert list((runner.folder / ".cas" / "cache").iterdir()), "a weave is cached, with all the text that ever was"
    assert SECRET[:15] in store_content(runner)
    runner.done("purge", "conf@2", "conf@3")
    assert b"hunter2" not in store_content(runner)
    assert runner.done("fsck", "--json").json()["sound"]
    assert runner.bytes("conf") == b"debug = off\n68\n"
    runner.done("accept", "75")
    assert runner.bytes("conf") == b"debug = off\n69\n"
    assert runner.cas("cat", blob_id(b"debug = on\n" + SECRET).hex()).status == 1


def test_affected_edits_are_named_before_a_purge_and_refused_afterwards(runner: CommandRunner) -> None:
    leak_secret(runner)
    segment = runner.folder / ".cas" / "segments" / "00000001.seg"
    before = segment.read_bytes()
    plan = runner.done("purge", "conf@2", "--dry-run", "--json").json()
    assert (plan["blobs"], plan["edits"]) == ([blob_id(b"debug = on\n" + SECRET).hex()], [[1, 3]])
    assert segment.read_bytes() == before
    text = runner.done("purge", "conf@2").text
    assert text.splitlines()[:2] == ["Purged 1 blob.", "Edits 1-3 can now be neither shown nor decided."]
    refused = runner.cas("reject", "3")
    assert (refused.status, "expired on" in refused.said, ": purged." in refused.said) == (1, True, True)
    runner.done("reject", "4")
    assert runner.bytes("conf") == b"debug = off\n" + SECRET
    assert runner.done("fsck", "--json").json()["sound"]


def test_content_that_a_file_still_holds_is_not_purged(runner: CommandRunner) -> None:
    runner.write("conf", SECRET)
    ran = runner.cas("purge", blob_id(SECRET).hex())
    assert (ran.status, "conf still contains these bytes" in ran.said) == (1, True)
    assert runner.done("purge", blob_id(SECRET).hex(), "--dry-run", "--json").json()["files"] == ["conf"]
    runner.write("conf", b"clean\n")
    ran = runner.cas("purge", "conf")
    assert (ran.status, "pending edits 1 2" in ran.said) == (1, True)
    runner.done("purge", "conf", "--force")
    assert b"hunter2" not in store_content(runner)
    assert runner.done("status", "--json").json()["pending"] == 0


def test_content_that_another_file_still_holds_is_not_purged(runner: CommandRunner) -> None:
    """The other file may be in the baseline only."""
    (runner.folder / "in baseline").write_bytes(SECRET)
    runner.done("record")
    runner.write("conf", SECRET)
    runner.write("copy", SECRET)
    runner.write("conf", b"")
    runner.write("empty", b"")
    for state in (b"other\n", b"clean\n"):
        runner.write("conf", state)
        for holders in ("copy, in baseline", "in baseline"):
            if holders == "in baseline":
                runner.write("copy", b"clean copy\n")
            ran = runner.cas("purge", "conf", "--force")
            assert (ran.status, f"Nothing was purged: {holders} still contain" in ran.said) == (1, True)
            planned = runner.done("purge", "conf", "--dry-run").text.splitlines()
            assert f"Other files contain the bytes now, so nothing can be purged: {holders}." in planned
            assert planned[-1].startswith("Name these files too, change them, or keep")
        runner.write("copy", SECRET)
    (runner.folder / "in baseline").unlink()
    runner.write("copy", b"clean copy\n")
    done = runner.done("purge", "conf", "--force").text.splitlines()
    assert done[0] == "Purged 3 blobs, with what conf contains now."
    assert b"hunter2" not in store_content(runner)
    assert runner.bytes("empty") == b""
    assert runner.done("fsck", "--json").json()["sound"]


def test_a_state_that_the_file_holds_again_is_not_a_past_state(runner: CommandRunner) -> None:
    runner.write("conf", SECRET)
    runner.write("conf", b"clean\n")
    runner.write("conf", SECRET)
    planned = runner.done("purge", "conf", "--past", "--dry-run", "--json").json()
    assert planned["blobs"] == [blob_id(b"clean\n").hex()]


def test_a_change_from_outside_must_be_recorded_before_a_purge(
    runner: CommandRunner,
) -> None:
    runner.write("conf", b"debug = on\n")
    runner.write("conf", SECRET)
    runner.write("copy", SECRET)
    runner.done("accept", "--all")
    for path in ("conf", "copy"):
        (runner.folder / path).write_bytes(b"clean\n")
    for words in (["conf", "--past"], ["conf@2"], [blob_id(SECRET).hex()]):
        ran = runner.cas("purge", *words, "--force")
        assert (ran.status, "conf, copy were last recorded with them and changed since" in ran.said) == (1, True)
        planned = runner.done("purge", *words, "--dry-run").text.splitlines()
        assert planned[-2].endswith("changed since, so nothing can be purged: conf, copy.")
        shape = runner.done("purge", *words, "--dry-run", "--json").json()
        assert (shape["files"], shape["changed_outside"]) == ([], ["conf", "copy"])
    assert runner.done("purge", "conf", "--dry-run", "--json").json()["changed_outside"] == ["copy"]
    (runner.folder / "conf").unlink()
    (runner.folder / "copy").write_bytes(SECRET)
    ran = runner.cas("purge", "conf", "--past", "--force")
    assert "Nothing was purged: copy still contains these bytes" in ran.said
    assert "conf was last recorded with them" in ran.said
    (runner.folder / "copy").write_bytes(b"clean\n")
    runner.done("record")
    runner.done("purge", "conf", "--past", "--force")
    assert b"hunter2" not in store_content(runner)
    assert runner.done("fsck", "--json").json()["sound"]


def test_pins_go_only_on_request_and_snapshots_are_kept_without_the_bytes(runner: CommandRunner) -> None:
    leak_secret(runner)
    runner.done("pin", "add", "conf@2")
    (runner.folder / "conf").write_bytes(b"debug = on\n" + SECRET)
    runner.done("snapshot", "create")
    (runner.folder / "conf").write_bytes(b"debug = off\n")
    ran = runner.cas("purge", "conf@2")
    assert ran.status == 1
    assert "this would be removed too: pin 1." in ran.said
    planned = runner.done("purge", "conf@2", "--yes", "--dry-run").text.splitlines()
    assert planned[:2] == ["Dry run: nothing was changed.", "Would purge 1 blob."]
    assert planned[-2:] == [
        "Pin 1 would be purged too (needs --yes).",
        "Snapshot 1 would be kept without these bytes, as snapshot 2.",
    ]
    moment = runner.done("snapshot", "list", "--json").lines()[0]
    done = runner.done("purge", "conf@2", "--yes").text.splitlines()
    assert done[0] == "Purged 1 blob."
    assert done[-2:] == ["Pin 1 purged too.", "Snapshot 1 is kept without these bytes, as snapshot 2."]
    (renewed,) = runner.done("snapshot", "list", "--json").lines()
    assert {name for name in renewed if renewed[name] != moment[name]} == {"id", "number", "root"}
    entries = {each["path"]: each["kind"] for each in runner.done("snapshot", "show", "2", "--json").json()["entries"]}
    assert entries == {"conf": "left-out", "other": "file"}
    assert blob_id(b"debug = on\n" + SECRET).hex() not in runner.done("ls").text
    assert runner.cas("cat", blob_id(b"debug = on\n" + SECRET).hex()).status == 1
    assert runner.cas("pin").text == ""


def test_unknown_names_are_refused(runner: CommandRunner, tmp_path: Path) -> None:
    leak_secret(runner)
    assert runner.cas("purge", "nothing").status == 1
    runner.write("new", b"only this\n")
    ran = runner.cas("purge", "new", "--past")
    assert (ran.status, ran.said.startswith("cas: new has no past state: ")) == (1, True)
    (runner.folder / "unrecorded").write_bytes(SECRET)
    for words in (["unrecorded"], ["unrecorded", "--past"], ["."]):
        assert runner.cas("purge", *words).status == 1
    assert runner.cas("purge").status == 2
    assert runner.cas("purge", str(tmp_path / "outside")).status == 1


def test_decisions_that_need_the_purged_content_are_named(runner: CommandRunner) -> None:
    runner.write("conf", SECRET)
    runner.write("conf", b"clean\n")
    runner.done("accept", "1", "2")
    runner.done("reset", "2")
    runner.done("accept", "2")
    assert runner.done("purge", "conf", "--dry-run").text.splitlines()[2:4] == [
        "Edits 1-2 can be neither shown nor decided.",
        "Decisions 1-3 can be neither undone nor redone.",
    ]
    assert "Decisions 1-3 can now be neither undone nor redone." in runner.done("purge", "conf").text
    assert runner.cas("undo").status == 1


def test_pending_edits_that_were_purged_count_as_edits_and_as_no_longer_pending(runner: CommandRunner) -> None:
    runner.write("conf", SECRET)
    runner.write("conf", b"clean\n")
    runner.done("purge", "conf", "--past", "--force")
    found = runner.done("status", "--json").json()
    assert [found[name] for name in ("edits", "pending", "accepted", "rejected")] == [2, 0, 0, 0]
    assert "Nothing is recorded" not in runner.done("status").text
    assert "2 (0 pending, 0 accepted, 0 rejected)" in runner.done("stats").text
    for action in ("accept", "reject", "reset"):
        assert runner.done(action, "--all").text.startswith("Nothing to do: ")
    assert "expired on" in runner.cas("accept", "2").said


def test_a_state_without_a_file_has_nothing_to_purge(runner: CommandRunner) -> None:
    runner.write("conf", SECRET)
    ran = runner.cas("purge", "conf@1^", "--dry-run")
    assert (ran.status, "No state with bytes is named 'conf@1^'" in ran.said) == (1, True)


def test_a_purge_keeps_the_rest_of_the_baseline(runner: CommandRunner) -> None:
    (runner.folder / "conf").write_bytes(SECRET)
    (runner.folder / "other").write_bytes(b"untouched\n")
    runner.done("record")
    (runner.folder / "conf").write_bytes(b"clean\n")
    runner.done("record")
    tried = runner.done("purge", "conf", "--dry-run")
    assert "Snapshot 1 is the baseline; the rest of what it holds would be kept in a new one." in tried.text
    assert runner.done("purge", "conf", "--dry-run", "--json").json()["baseline"] == 1
    done = runner.done("purge", "conf", "--force")
    assert "Snapshot 1 is the baseline; the rest of what it holds is kept in a new one." in done.text
    (runner.folder / "other").write_bytes(b"changed\n")
    assert "other" in runner.done("record").text


def test_messages_about_one_edit_are_singular(runner: CommandRunner) -> None:
    (runner.folder / "conf").write_bytes(SECRET)
    runner.write("conf", b"none\n")
    refused = runner.cas("purge", "conf@1^")
    assert "this would be removed too: pending edit 1." in refused.said
    assert runner.done("purge", "conf@1^", "-n").text.splitlines()[2:] == [
        "Edit 1 can be neither shown nor decided.",
        "Pending edit 1 would be purged too (needs --yes).",
    ]
    runner.done("accept", "1")
    assert runner.done("purge", "conf@1^").text.splitlines()[1:] == [
        "Edit 1 can now be neither shown nor decided.",
        "Decision 1 can now be neither undone nor redone.",
    ]


def test_a_name_of_both_a_state_and_a_past_file_is_refused_as_ambiguous(runner: CommandRunner) -> None:
    runner.write("conf", b"debug = on\n")
    runner.write("conf@1", SECRET)
    runner.write("conf", b"debug = off\n")
    runner.delete("conf@1")
    runner.done("accept", "--all")
    for words in (["-n"], []):
        ran = runner.cas("purge", "conf@1", *words)
        assert (ran.status, ran.out) == (1, b"")
        assert ran.said.startswith("cas: conf@1 is ambiguous: it is a state of conf, and a file once had this name. ")
        assert "or a state of the file as conf@1@12 (`cas log conf@1` lists its edits)." in ran.said
    by_hash = runner.done("purge", blob_id(b"debug = on\n").hex(), "-n", "--json").json()
    assert by_hash["edits"] == [[1, 1], [3, 3]]
    runner.done("purge", "conf@1@2")
    assert b"hunter2" not in store_content(runner)
    assert runner.done("cat", "conf@1").out == b"debug = on\n"


def test_past_states_of_a_file_whose_folder_became_a_symlink_are_purged_by_name(runner: CommandRunner) -> None:
    runner.write("src/f", b"a password\n")
    runner.write("src/f", b"clean\n")
    (runner.folder / "src").rename(runner.folder / "real")
    (runner.folder / "src").symlink_to("real")
    (runner.folder / "real/f").write_bytes(b"of another file\n")
    runner.done("record", "real/f")
    (runner.folder / "real/f").write_bytes(b"of now\n")
    runner.done("record")
    expected = {blob_id(text).hex() for text in (b"a password\n", b"clean\n", b"of another file\n")}
    runner.done("accept", "--all")
    assert set(runner.done("purge", "src/f", "--past", "--dry-run", "--json").json()["blobs"]) == expected
    runner.done("purge", "src/f", "--past", "--force")
    assert b"password" not in store_content(runner)
    assert runner.bytes("real/f") == b"of now\n"
