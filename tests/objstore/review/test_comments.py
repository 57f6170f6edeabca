"""Test comments: where they are after later edits and decisions, their states, and who is sent them."""

import pytest

from objstore import CallInfo, FileChanged, LineMissing, NoSuchName, Origin, Seq, Unit, Workspace
from tests.support.scene import TEN, Scene, lines, writes


def test_a_comment_follows_its_lines_through_edits_above_it(scene: Scene) -> None:
    scene.write("f", lines("a b c"))
    made = scene.edit("f", b"b", b"B\nB2")
    comment = scene.workspace.comments.add_to_units([Unit(made, 1)], "why?", who="ann")
    assert (comment.number, comment.lines, comment.is_there, comment.word) == (1, (2, 3), True, "open")
    scene.edit("f", b"a", b"0\n1\na")
    assert scene.workspace.comments.get(1).lines == (4, 5)


def test_a_comment_on_lines_of_a_file_names_the_units_that_inserted_them(scene: Scene) -> None:
    scene.write("f", TEN)
    made = scene.edit("f", b"2\n", b"two\n")
    on_old = scene.workspace.comments.add_to_lines("f", (5, 7), text="old")
    on_new = scene.workspace.comments.add_to_lines("f", (2, 2), text="new")
    assert (on_old.comment.units, on_new.comment.units) == ((Unit(Seq(1), 0),), (Unit(made, 1),))
    scene.edit("f", b"1\n", b"")
    assert [view.lines for view in scene.workspace.comments.all()] == [(4, 6), (1, 1)]
    assert [view.number for view in scene.workspace.comments.of_edits([made])[made]] == [2]


def test_a_comment_on_rejected_lines_stays_where_they_were(scene: Scene) -> None:
    scene.write("f", TEN)
    made = scene.edit("f", b"3\n", b"three\nand more\n")
    scene.workspace.comments.add_to_units([Unit(made, 1)], "no")
    scene.reject(made)
    view = scene.workspace.comments.get(1)
    assert (view.lines[0], view.is_there) == (3, False)
    scene.accept(made)
    assert (scene.workspace.comments.get(1).lines, scene.workspace.comments.get(1).is_there) == ((3, 4), True)


def test_a_comment_on_a_pure_deletion_is_at_the_line_in_its_place(scene: Scene) -> None:
    scene.write("f", TEN)
    made = scene.edit("f", b"3\n4\n", b"")
    assert scene.workspace.comments.add_to_units([Unit(made, 1)], "needed").lines == (3, 3)


def test_a_comment_on_a_hunk_that_does_not_exist_is_refused(scene: Scene) -> None:
    created = scene.write("f", TEN)
    made = scene.edit("f", b"3\n", b"three\n")
    for unit in (Unit(created, 1), Unit(made, 2), Unit(made, -1)):
        with pytest.raises(NoSuchName, match=str(unit)):
            scene.workspace.comments.add_to_units([unit], "?")
        with pytest.raises(NoSuchName, match=str(unit)):
            scene.workspace.comments.add_to_units([Unit(made, 1), unit], "?")
    assert scene.workspace.comments.all() == []


def test_a_comment_moves_with_its_file(scene: Scene) -> None:
    scene.write("f", TEN)
    scene.workspace.comments.add_to_lines("f", (2, 2), text="here")
    scene.move("f", "g")
    view = scene.workspace.comments.get(1)
    assert (view.path, view.lines, view.comment.path) == ("g", (2, 2), b"f")


def test_only_recorded_lines_can_be_commented_on(scene: Scene) -> None:
    scene.write("f", lines("a b c"))
    with pytest.raises(LineMissing, match="f has no line 4: it has 3 lines"):
        scene.workspace.comments.add_to_lines("f", (4, 4), text="?")
    scene.write("empty", b"")
    with pytest.raises(LineMissing, match="empty has no line 1: it has 0 lines"):
        scene.workspace.comments.add_to_lines("empty", (1, 1), text="?")
    with pytest.raises(NoSuchName):
        scene.workspace.comments.add_to_lines("g", (1, 1), text="?")
    (scene.root / "f").write_bytes(b"other\n")
    with pytest.raises(FileChanged):
        scene.workspace.comments.add_to_lines("f", (1, 1), text="?")
    assert scene.workspace.comments.all() == []


def test_answers_and_marks_make_the_state_of_a_comment(scene: Scene) -> None:
    scene.write("f", TEN)
    comments = scene.workspace.comments
    comments.add_to_lines("f", (1, 1), text="why?")
    comments.mark_sent([1], "conv_1")
    assert (comments.get(1).word, comments.get(1).sent_to) == ("sent", "conv_1")
    assert comments.answer(1, "because", by_agent=True).word == "answered"
    assert comments.answer(2, "why that?", who="ann").word == "open"
    assert [view.comment.answers for view in comments.get(1).answers] == [1, 1]
    assert [view.word for view in comments.resolve([1])] == ["resolved"]
    comments.mark_sent([1], "conv_2")
    assert comments.get(1).word == "resolved"
    assert [view.word for view in comments.reopen([1])] == ["open"]
    assert scene.workspace.review.status().comments == {"open": 1}
    assert comments.answer(1, "as I said", by_agent=True).word == "answered"
    assert scene.workspace.review.status().comments == {"answered": 1}
    assert scene.workspace.messages.comments("conv_1", 20) is None
    with pytest.raises(NoSuchName):
        comments.resolve([1, 9])
    assert comments.get(1).word == "answered"


def test_a_comment_is_sent_once_to_the_agent_that_made_its_lines(scene: Scene) -> None:
    scene.call(writes("f", TEN), conversation="one")
    scene.call(writes("f", TEN.replace(b"2\n", b"two\n")), conversation="two")
    comments = scene.workspace.comments
    comments.add_to_lines("f", (2, 2), text="of two")
    comments.add_to_lines("f", (1, 1), text="of one")
    waiting = scene.workspace.messages.comments("two", 20)
    assert waiting is not None
    assert [view.comment.text for view in waiting.comments] == ["of two"]
    comments.mark_sent([1], "two")
    assert scene.workspace.messages.comments("two", 20) is None
    comments.address([1, 2], who="ann")
    found = scene.workspace.messages.comments("three", 1)
    assert found is not None
    assert (len(found.comments), found.more) == (1, 1)


def test_a_comment_on_no_agents_lines_is_for_the_agent_that_works_next(scene: Scene) -> None:
    with scene.workspace.call(CallInfo(tool="record", origin=Origin.PERSON)) as call:
        call.write("f", TEN)
        call.commit()
    scene.workspace.comments.add_to_lines("f", (2, 2), text="mine")
    assert [to for _, to in scene.workspace.comments.unsent()] == [frozenset()]
    assert scene.workspace.messages.comments("any", 20) is not None


def test_a_second_process_sees_comments_and_numbers_them_on(scene: Scene) -> None:
    scene.write("f", TEN)
    scene.workspace.comments.add_to_lines("f", (1, 1), text="1")
    with Workspace.open(scene.root) as other:
        assert other.comments.add_to_lines("f", (2, 3), text="2").number == 2
    assert [view.comment.text for view in scene.workspace.comments.all()] == ["1", "2"]
