"""The steps by which a file became what it is: recorded steps distinguish equal lines, and a comparison can't."""

import pytest

from objstore import CallInfo, Hunk, Operation, RebaseConflict, Rebased
from objstore.text.diff import diff_lines
from tests.objstore.history.test_expired import expire
from tests.support.scene import Scene, lines, words


def step(scene: Scene, text: str, hunk: Hunk, operation: Operation = Operation.EDIT) -> int:
    """Record an edit of `f` whose lines are known."""
    outcome = scene.call(lambda call: call.write("f", lines(text), hunks=[hunk], operation=operation))
    return outcome.edits[0].seq


def carried(scene: Scene, base: str, made: str) -> str:
    """Return `f` after a change from `base` to `made` is rebased onto it."""
    with scene.workspace.call(CallInfo(tool="test")) as call:
        found = call.rebased("f", lines(base), lines(made), diff_lines(lines(base), lines(made)))
    match found:
        case Rebased():
            return words(found.content)
        case RebaseConflict():
            return "clash"


@pytest.fixture
def shorter(scene: Scene) -> Scene:
    """Return a scene in which the last of four equal lines was deleted by a recorded step."""
    scene.write("f", lines("s s s s"))
    step(scene, "s s s", Hunk(3, 1, 3, 0))
    return scene


def test_each_of_several_steps_is_known(shorter: Scene) -> None:
    step(shorter, "t s s s", Hunk(0, 0, 0, 1))
    assert carried(shorter, "s s s s", "s s n s") == "t s s n"


def test_changes_since_the_last_record_are_compared(shorter: Scene) -> None:
    (shorter.root / "f").write_bytes(lines("t s s s"))
    assert carried(shorter, "s s s s", "s s n s") == "t s s n"
    (shorter.root / "f").write_bytes(lines("s s"))
    assert carried(shorter, "s s s s", "s s n s") == "clash"


def test_a_decision_that_leaves_the_file_unchanged_is_not_a_step(shorter: Scene) -> None:
    shorter.accept(2)
    assert carried(shorter, "s s s s", "s s n s") == "s s n"


def test_a_decision_on_several_files_is_a_step_of_each(shorter: Scene) -> None:
    shorter.write("e", lines("e"))
    outcome = shorter.call(
        lambda call: call.write("e", lines("t e"), operation=Operation.EDIT),
        lambda call: call.write("f", lines("t s s s"), hunks=[Hunk(0, 0, 0, 1)], operation=Operation.EDIT),
    )
    shorter.reject(*(view.seq for view in outcome.edits))
    assert (words(shorter.text("e")), words(shorter.text("f"))) == ("e", "s s s")
    assert carried(shorter, "s s s s", "s s n s") == "s s n"


def test_a_decision_does_not_say_which_equal_line_it_deleted(scene: Scene) -> None:
    scene.write("f", lines("s s s"))
    more = step(scene, "s s s s", Hunk(1, 0, 1, 1))
    scene.reject(more)
    assert carried(scene, "s s s s", "s s n s") == "clash"


def test_replacing_a_file_does_not_say_which_equal_line_it_deleted(scene: Scene) -> None:
    scene.write("f", lines("s s s s"))
    step(scene, "s s s", Hunk(3, 1, 3, 0), Operation.REPLACE)
    assert carried(scene, "s s s s", "s s n s") == "clash"


def test_a_version_that_was_never_recorded_is_compared(shorter: Scene) -> None:
    assert carried(shorter, "s s s u", "n s s u") == "n s s"
    assert carried(shorter, "s s s s s", "s s n s s") == "clash"


def test_a_file_that_is_back_after_its_deletion_is_compared(shorter: Scene) -> None:
    shorter.delete("f")
    (shorter.root / "f").write_bytes(lines("s s s"))
    assert carried(shorter, "s s s u", "n s s u") == "n s s"
    assert carried(shorter, "s s s s", "s s n s") == "clash"


def test_a_gap_between_recorded_states_is_compared(scene: Scene) -> None:
    (scene.root / "f").write_bytes(lines("s s s s u"))
    first = step(scene, "s s s s U", Hunk(4, 1, 4, 1))
    step(scene, "s s s U", Hunk(3, 1, 3, 0))
    scene.reject(first)
    step(scene, "t s s s u", Hunk(0, 0, 0, 1))
    assert carried(scene, "s s s s U", "n s s s U") == "t n s s u"
    expire(scene, first, decisions=[1])
    assert carried(scene, "s s s s U", "n s s s U") == "clash"
    assert carried(scene, "s s s U", "s s s N") == "clash"


def test_steps_that_have_expired_are_compared(shorter: Scene) -> None:
    last = step(shorter, "t s s s", Hunk(0, 0, 0, 1))
    expire(shorter, 1, last - 1)
    assert carried(shorter, "s s s", "s n s") == "t s n s"
    assert carried(shorter, "s s s s", "s s n s") == "clash"
