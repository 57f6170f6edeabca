"""Net changes of a workspace: what is shown of each kind of edit, and that it is what a decision makes of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

from objstore import (
    MAX_BLOB,
    Action,
    Conflicted,
    Decided,
    NetChange,
    NetFile,
    NoChangeAtLine,
    NothingToDo,
    Operation,
    Selection,
    Seq,
    Status,
    Unit,
)
from tests.support.scene import TEN, Scene
from tests.support.similar_lines import functions, repeated

if TYPE_CHECKING:
    from collections.abc import Sequence


def only(scene: Scene, *paths: str) -> NetFile:
    [file] = scene.workspace.review.changes(paths)
    return file


def names(units: Sequence[Unit]) -> str:
    return " ".join(map(str, units))


def shown(file: NetFile) -> list[str]:
    return [
        f"{change.kind.value} {change.line_before} {change.line_after} "
        f"-{change.removed.decode()!r} +{change.inserted.decode()!r} [{names(change.units)}]"
        for change in file.changes
    ]


def accepted(scene: Scene, path: str, content: bytes) -> None:
    scene.accept(scene.write(path, content))


# ---- each kind of edit


def test_edits_of_one_file_are_shown_as_its_net_changes(scene: Scene) -> None:
    accepted(scene, "f", TEN)
    scene.edit("f", b"3\n", b"three\n")
    scene.edit("f", b"three\n", b"THREE\n")
    scene.edit("f", b"8\n", b"")
    file = only(scene)
    assert shown(file) == ["lines 3 3 -'3\\n' +'THREE\\n' [2:1 3:1]", "lines 8 8 -'8\\n' +'' [4:1]"]
    assert (file.added, file.removed, file.operation, file.before) == (1, 2, Operation.EDIT, TEN)
    assert file.after == scene.text("f")


def test_a_created_file_is_one_change_with_all_its_edits(scene: Scene) -> None:
    scene.write("f", b"1\n2\n")
    scene.edit("f", b"2\n", b"two\n")
    file = only(scene)
    assert shown(file) == ["create 1 1 -'' +'1\\ntwo\\n' [1:0 2:1]"]
    assert (file.operation, file.before, file.mode_before, file.mode) == (Operation.CREATE, None, 0, 0o644)


def test_a_deleted_file_is_one_change_with_all_its_edits(scene: Scene) -> None:
    accepted(scene, "f", b"1\n2\n")
    scene.edit("f", b"2\n", b"two\n")
    scene.delete("f")
    file = only(scene)
    assert shown(file) == ["delete 1 1 -'1\\n2\\n' +'' [2:1 3:0]"]
    assert (file.operation, file.after, file.mode) == (Operation.DELETE, None, 0)


def test_a_file_that_was_created_and_deleted_cancels_out(scene: Scene) -> None:
    scene.write("f", b"1\n")
    scene.delete("f")
    file = only(scene)
    assert (file.changes, names(file.cancelled)) == ((), "1:0 2:0")


def test_a_move_and_a_mode_are_changes_of_their_own(scene: Scene) -> None:
    accepted(scene, "f", TEN)
    scene.move("f", "g")
    scene.move("g", "h")
    scene.write("h", TEN.replace(b"5", b"five"), mode=0o755)
    file = only(scene)
    assert shown(file) == [
        "move 0 0 -'' +'' [2:0 3:0]",
        "mode 0 0 -'' +'' [4:0]",
        "lines 5 5 -'5\\n' +'five\\n' [4:1]",
    ]
    assert (file.path_before, file.path, file.operation) == ("f", "h", Operation.MOVE)
    assert (file.mode_before, file.mode) == (0o644, 0o755)


def test_a_final_newline_is_a_change_of_the_last_line(scene: Scene) -> None:
    accepted(scene, "f", b"1\n2\n")
    scene.write("f", b"1\n2")
    assert shown(only(scene)) == ["newline 2 2 -'2\\n' +'2' [2:0]"]
    scene.write("f", b"1\n2\n3")
    assert shown(only(scene)) == ["lines 3 3 -'' +'3' [2:0 3:1]"]


def test_a_line_below_one_without_newline_is_shown_with_it(scene: Scene) -> None:
    accepted(scene, "f", b"1\r\n2")
    scene.write("f", b"1\r\n2\n3")
    assert shown(only(scene)) == ["lines 2 2 -'2' +'2\\n3' [2:1]"]


def test_binary_files_have_sizes_and_no_lines(scene: Scene) -> None:
    accepted(scene, "f", b"\0one")
    scene.write("f", b"\0 three")
    file = only(scene)
    assert shown(file) == ["content 0 0 -'' +'' [2:1]"]
    assert (file.is_binary, file.size_before, file.size, file.added) == (True, 4, 7, 0)


def test_large_files_have_sizes_and_no_lines(scene: Scene) -> None:
    accepted(scene, "f", b"small\n")
    scene.write("f", bytes(MAX_BLOB + 5))
    file = only(scene)
    assert shown(file) == ["content 0 0 -'' +'' [2:1]"]
    assert (file.is_binary, file.size_before, file.size) == (True, 6, MAX_BLOB + 5)


# ---- which units


def test_changes_that_share_a_hunk_name_each_other(scene: Scene) -> None:
    accepted(scene, "f", TEN)
    scene.edit("f", b"3\n4\n5\n", b"three\nfour\nfive\n")
    scene.edit("f", b"four\n", b"4\n")
    scene.edit("f", b"9\n", b"nine\n")
    file = only(scene)
    assert shown(file) == [
        "lines 3 3 -'3\\n' +'three\\n' [2:1 3:1]",
        "lines 5 5 -'5\\n' +'five\\n' [2:1 3:1]",
        "lines 9 9 -'9\\n' +'nine\\n' [4:1]",
    ]
    assert [change.shares_with for change in file.changes] == [(1,), (0,), ()]


def test_edits_without_a_net_effect_are_listed_as_cancelled(scene: Scene) -> None:
    accepted(scene, "f", TEN)
    scene.edit("f", b"3\n", b"three\n")
    scene.edit("f", b"7\n", b"seven\n")
    scene.edit("f", b"three\n", b"3\n")
    file = only(scene)
    assert shown(file) == ["lines 7 7 -'7\\n' +'seven\\n' [3:1]"]
    assert names(file.cancelled) == "2:1 4:1"
    assert names(file.units) == "2:1 3:1 4:1"


def test_pending_hunks_that_accepted_ones_need_are_kept_on(scene: Scene) -> None:
    accepted(scene, "f", TEN)
    scene.edit("f", b"3\n", b"three\n")
    scene.accept(scene.edit("f", b"three\n", b"THREE\n"))
    scene.edit("f", b"8\n", b"eight\n")
    file = only(scene)
    assert shown(file) == ["lines 8 8 -'8\\n' +'eight\\n' [4:1]"]
    assert names(file.kept_on) == "2:1"
    assert file.before == TEN.replace(b"3", b"THREE")


def test_an_amendment_is_part_of_the_change_that_it_amends(scene: Scene) -> None:
    accepted(scene, "f", TEN)
    seq = scene.edit("f", b"3\n", b"three\n")
    content = scene.workspace.review.amendable(seq)
    scene.workspace.review.amend(seq, content.bytes.replace(b"three", b"III"), version=content.blob)
    file = only(scene)
    assert shown(file) == ["lines 3 3 -'3\\n' +'III\\n' [2:1 3:1]"]
    assert (file.before, names(file.cancelled)) == (TEN, "")  # the amendment's whole-file part changes nothing
    whole = scene.workspace.review.select(Action.ACCEPT, Selection(keys=(file.changes[0].key,)))
    assert names(list(whole.units)) == "2:0 2:1 3:0 3:1"  # both edits are decided as wholes
    scene.reject("3:1")
    assert (shown(only(scene)), names(only(scene).cancelled)) == (["lines 3 3 -'3\\n' +'three\\n' [2:1]"], "")


def test_nothing_pending_is_no_file(scene: Scene) -> None:
    accepted(scene, "f", TEN)
    scene.reject(scene.edit("f", b"3\n", b"three\n"))
    assert scene.workspace.review.changes() == []


# ---- filters


def test_files_are_filtered_by_path_and_by_accepted_path(scene: Scene) -> None:
    accepted(scene, "d/old", TEN)
    scene.move("d/old", "new")
    scene.write("d/e/f", b"1\n")
    scene.write("dd", b"1\n")
    found = {
        path: [file.path for file in scene.workspace.review.changes([path])]
        for path in (".", "d", "d/e", "new", "dd", "no")
    }
    assert found == {
        ".": ["d/e/f", "dd", "new"],
        "d": ["d/e/f", "new"],
        "d/e": ["d/e/f"],
        "new": ["new"],
        "dd": ["dd"],
        "no": [],
    }


def test_changes_are_filtered_by_units(scene: Scene) -> None:
    accepted(scene, "f", TEN)
    scene.write("g", b"1\n")
    scene.edit("f", b"3\n4\n5\n", b"three\nfour\nfive\n")
    scene.edit("f", b"four\n", b"4\n")
    scene.edit("f", b"9\n", b"nine\n")
    [file] = scene.workspace.review.changes(units=[Unit(Seq(5), 1)])
    assert shown(file) == ["lines 9 9 -'9\\n' +'nine\\n' [5:1]"]
    [file] = scene.workspace.review.changes(units={Unit(Seq(3), 1)})
    assert [change.shares_with for change in file.changes] == [(1,), (0,)]
    assert scene.workspace.review.changes(units=()) == []


# ---- what is on disk


def test_a_file_that_differs_from_its_record_is_shown_as_recorded(scene: Scene) -> None:
    accepted(scene, "f", TEN)
    scene.edit("f", b"3\n", b"three\n")
    before = only(scene)
    (scene.root / "f").write_bytes(b"else\n")
    after = only(scene)
    assert (before.is_unrecorded, after.is_unrecorded) == (False, True)
    assert (before.changes, before.after) == (after.changes, after.after)


def test_looking_at_changes_changes_neither_files_nor_journal(scene: Scene) -> None:
    accepted(scene, "f", TEN)
    scene.edit("f", b"3\n", b"three\n")
    scene.delete("f")
    scene.write("f", b"again\n")
    scene.move("f", "g")
    (scene.root / "g").write_bytes(b"else\n")
    before = scene.everything()
    scene.workspace.review.changes()
    assert scene.everything() == before


def test_changes_of_a_cached_document_are_the_same(scene: Scene) -> None:
    accepted(scene, "f", b"".join(b"%d\n" % i for i in range(200)))
    for i in range(70):
        scene.edit("f", b"\n%d\n" % (2 * i + 1), b"\n%d changed\n" % (2 * i + 1))
    scene.workspace.history.cache_documents()
    assert list((scene.root / ".cas" / "cache").iterdir())
    cached = scene.workspace.review.changes()
    for kept in (scene.root / ".cas" / "cache").iterdir():
        kept.unlink()
    scene.reopen()
    assert scene.workspace.review.changes() == cached


# ---- real decisions


@settings(max_examples=settings().max_examples // 3)
@given(seed=st.integers(0, 1_000_000), drawn=st.data())
def test_rejecting_all_pending_units_gives_the_accepted_text(
    tmp_path_factory: pytest.TempPathFactory, seed: int, drawn: st.DataObject
) -> None:
    history = functions(seed) or repeated(seed, alike=0.7)
    scene = Scene(tmp_path_factory.mktemp("scene"))
    try:
        accepted(scene, "f", history.states[0])
        for number, state in enumerate(history.states[1:]):
            seq = scene.write("f", state, hunks=history.hunks(number) if drawn.draw(st.booleans()) else None)
            if drawn.draw(st.integers(0, 2)) == 0:
                units = [Unit(seq, hunk) for hunk in range(len(scene.view(seq).units))]
                scene.workspace.decide(Action.ACCEPT, drawn.draw(st.lists(st.sampled_from(units), min_size=1)))
        found = scene.workspace.review.changes()
        pending = [
            Unit(view.seq, hunk)
            for view in scene.workspace.history.edits()
            for hunk, status in enumerate(view.units)
            if status is Status.PENDING
        ]
        kept = {unit for file in found for unit in file.kept_on}
        outcome = scene.workspace.decide(Action.REJECT, [unit for unit in pending if unit not in kept])
        if isinstance(outcome, Conflicted):
            return  # it is in doubt which of equal lines an edit meant
        assert isinstance(outcome, Decided | NothingToDo)
        assert [file.before for file in found] in ([], [scene.text("f")])
        assert [change for file in scene.workspace.review.changes() for change in file.changes] == []
    finally:
        scene.close()


def test_rejecting_the_units_of_a_change_takes_it_out(scene: Scene) -> None:
    accepted(scene, "f", TEN)
    scene.edit("f", b"3\n", b"three\n")
    scene.edit("f", b"8\n", b"eight\n")
    scene.edit("f", b"three\n", b"THREE\n")
    first, second = only(scene).changes
    outcome = scene.workspace.decide(Action.REJECT, first.units)
    assert isinstance(outcome, Decided)
    assert scene.text("f") == TEN.replace(b"8", b"eight")
    assert [change.units for change in only(scene).changes] == [second.units]
    assert scene.statuses() == {1: Status.ACCEPTED, 2: Status.REJECTED, 3: Status.PENDING, 4: Status.REJECTED}


# ---- lines


def at(scene: Scene, line: int, last: int = 0) -> list[NetChange]:
    return list(scene.workspace.review.change_at("f", line, last).changes)


def refused(scene: Scene, line: int) -> str:
    with pytest.raises(NoChangeAtLine) as error:
        scene.workspace.review.change_at("f", line)
    return str(error.value)


def test_a_line_names_the_change_that_covers_it(scene: Scene) -> None:
    accepted(scene, "f", TEN)
    scene.edit("f", b"3\n", b"three\nand\nmore\n")
    scene.edit("f", b"8\n", b"")
    first, second = only(scene).changes
    assert [at(scene, line) for line in (3, 4, 5)] == [[first]] * 3
    assert [at(scene, line) for line in (9, 10)] == [[second]] * 2  # above the gap and below it
    assert at(scene, 1, 99) == [first, second]
    assert refused(scene, 7) == "f:7 is in no pending change. The nearest change is at f:5."
    assert refused(scene, 12) == "f:12 is no line of the file, which has 11."
    assert refused(scene, 0) == "f:0 is no line of the file, which has 11."


def test_a_line_names_the_changes_that_are_decided_with_it(scene: Scene) -> None:
    accepted(scene, "f", TEN)
    scene.edit("f", b"3\n4\n5\n", b"three\nfour\nfive\n")
    scene.edit("f", b"four\n", b"4\n")
    first, second = only(scene).changes
    found = scene.workspace.review.change_at("f", 5)
    assert (found.changes, found.together, names(found.units)) == ((second,), (first,), "2:1 3:1")


def test_lines_are_counted_in_the_file_on_disk(scene: Scene) -> None:
    accepted(scene, "f", TEN)
    scene.edit("f", b"8\n", b"eight\n")
    [change] = only(scene).changes
    (scene.root / "f").write_bytes(b"mine\nand mine\n" + (scene.text("f") or b""))
    assert at(scene, 10) == [change]
    assert refused(scene, 2) == "f:2 changed outside and is not recorded yet."
    assert refused(scene, 8) == "f:8 is in no pending change. The nearest change is at f:10."


def test_any_line_of_a_deleted_file_names_its_deletion(scene: Scene) -> None:
    accepted(scene, "f", TEN)
    scene.delete("f")
    assert at(scene, 5) == list(only(scene).changes)


def test_a_line_of_a_file_without_pending_edits_names_nothing(scene: Scene) -> None:
    accepted(scene, "f", TEN)
    assert refused(scene, 2) == "f:2 is in no pending change: nothing is pending in this file."
