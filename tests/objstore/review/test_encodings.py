"""UTF-16 and text whose lines end in CR alone have lines, like any other text; their bytes stay exact."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from hypothesis import given, settings, strategies as st

from objstore import (
    Action,
    CallInfo,
    Conflicted,
    Decided,
    DecisionOutcome,
    Rebased,
    Seq,
    TextForm,
    Unit,
    check_store,
    diff_lines,
    encoded,
    form_of,
)
from objstore.text.forms import NO_FORMS
from objstore.values.request_errors import EditTakenOut
from tests.support.scene import TEN, Scene

SHELL: Final = CallInfo(tool="Bash", conversation="conv_shell", notes={"agent": "tester"})

OTHER_FORMS: Final = [form for form in TextForm if form]
lines = st.lists(st.sampled_from(["", "}", "a", "b", "ü\u0a0a", "c d"]), min_size=1, max_size=7)
texts = st.builds(lambda lines, end: "\n".join(lines) + end, lines, st.sampled_from(["\n", ""])).map(str.encode)


def recorded(scene: Scene, content: bytes) -> list[Seq]:
    """Let a shell write a file; return the numbers of the edits that are recorded."""
    (scene.root / "f").write_bytes(content)
    return [view.seq for view in scene.workspace.record_changes(SHELL).edits]


def outcome(scene: Scene, action: Action, named: str) -> DecisionOutcome | EditTakenOut:
    """Return the outcome of a decision, or that nothing is left to accept."""
    try:
        return scene.decide(action, named)
    except EditTakenOut as refusal:
        return refusal


def effective(scene: Scene, seq: int) -> list[Unit]:
    """Return the units of an edit that change anything."""
    return [unit for unit in scene.units(seq) if unit.hunk or scene.view(seq).whole]


@settings(max_examples=max(settings().max_examples // 4, 12), deadline=None)
@given(
    form=st.sampled_from(OTHER_FORMS),
    history=st.lists(texts, min_size=2, max_size=5),
    decisions=st.lists(st.tuples(st.sampled_from([Action.REJECT, Action.ACCEPT, Action.RESET]), st.integers(0, 40))),
)
def test_decisions_on_another_encoding_have_the_same_result_as_on_plain_text(
    form: TextForm, history: Sequence[bytes], decisions: Sequence[tuple[Action, int]]
) -> None:
    with TemporaryDirectory() as made:
        plain, other = Scene(Path(made, "plain")), Scene(Path(made, "other"))
        seqs: set[Seq] = set()
        for content in history:
            if form is not form_of(encoded(content, form)):
                return  # such as a text of one line, which has no line end
            found = recorded(plain, content)
            assert recorded(other, encoded(content, form)) == found
            seqs.update(found)
        units = [unit for seq in sorted(seqs) for unit in effective(plain, seq)]
        assert units == [unit for seq in sorted(seqs) for unit in effective(other, seq)]
        for action, at in decisions if units else ():
            named = str(units[at % len(units)])
            outcomes = [outcome(scene, action, named) for scene in (plain, other)]
            text = plain.text("f")
            if text is not None and form is not form_of(encoded(text, form)) and form & 1:
                break  # the last line end went, so nothing shows what line ends the text had
            assert type(outcomes[0]) is type(outcomes[1])
            assert other.text("f") == (None if text is None else encoded(text, form))
            assert plain.statuses() == other.statuses()
        before = other.text("f")
        other.forget_index()
        assert not check_store(str(other.root)).faults
        assert other.workspace.review.external_changes() == ()
        assert other.text("f") == before
        plain.close()
        other.close()


@settings(max_examples=max(settings().max_examples // 4, 12), deadline=None)
@given(history=st.lists(st.tuples(texts, st.sampled_from(TextForm)), min_size=2, max_size=5))
def test_toggles_give_back_the_bytes_whatever_encodings_a_file_had(history: Sequence[tuple[bytes, TextForm]]) -> None:
    with TemporaryDirectory() as made:
        scene = Scene(Path(made))
        contents = [encoded(text, form) for text, form in history]
        (scene.root / "f").write_bytes(contents[0])
        scene.workspace.record_changes(SHELL)
        seqs = [seq for content in contents[1:] for seq in recorded(scene, content)]
        if seqs:
            scene.reject(*seqs)
            assert scene.text("f") == contents[0]
            scene.undo()
            assert scene.text("f") == contents[-1]
            for unit in [unit for seq in seqs for unit in effective(scene, seq)]:
                outcome = scene.decide(Action.REJECT, str(unit))
                assert isinstance(outcome, Decided | Conflicted)
                if isinstance(outcome, Decided):
                    scene.undo()
                assert scene.text("f") == contents[-1]
        scene.forget_index()
        assert not check_store(str(scene.root)).faults
        assert recorded(scene, contents[-1]) == []
        scene.close()


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_one_of_two_hunks_is_rejected_and_both_are_blamed(scene: Scene, form: TextForm) -> None:
    recorded(scene, encoded(TEN, form))
    changed = TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n")
    (seq,) = recorded(scene, encoded(changed, form))
    text, blamed = scene.workspace.history.blame("f")
    assert text == changed
    assert [(part.start, part.count) for part in blamed if part.unit in {Unit(seq, 1), Unit(seq, 2)}] == [
        (1, 1),
        (8, 1),
    ]
    (file,) = scene.workspace.review.changes()
    assert [change.inserted for change in file.changes] == [b"two\n", b"nine\n"]
    scene.reject(f"{seq}:1")
    assert scene.text("f") == encoded(TEN.replace(b"9\n", b"nine\n"), form)


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_a_conversion_is_one_change_and_leaves_lines_decidable(scene: Scene, form: TextForm) -> None:
    recorded(scene, encoded(TEN, form))
    (conversion,) = recorded(scene, TEN)
    assert scene.view(conversion).edit.hunks == ()
    (edit,) = recorded(scene, TEN.replace(b"2\n", b"two\n"))
    (file,) = scene.workspace.review.changes()
    assert [change.kind.value for change in file.changes] == ["encoding", "lines"]
    scene.reject(conversion)
    assert scene.text("f") == encoded(TEN.replace(b"2\n", b"two\n"), form)
    scene.reject(edit)
    assert scene.text("f") == encoded(TEN, form)


def test_lines_that_utf_16_cant_have_leave_with_the_conversion_that_made_room_for_them(scene: Scene) -> None:
    recorded(scene, encoded(b"a\nb\n", TextForm.UTF16_LE))
    (conversion,) = recorded(scene, b"a\nb\n")
    (edit,) = recorded(scene, b"a\nb\ncaf\xe9\n")
    assert scene.refused(Action.REJECT, f"{conversion}:0")[0].needs == (Unit(conversion, 0),)
    scene.reject(conversion, edit)
    assert scene.text("f") == encoded(b"a\nb\n", TextForm.UTF16_LE)


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_a_stale_change_is_rebased_by_lines(scene: Scene, form: TextForm) -> None:
    base = encoded(TEN, form)
    recorded(scene, base)
    recorded(scene, encoded(TEN.replace(b"2\n", b"two\n"), form))
    wanted = TEN.replace(b"9\n", b"nine\n")
    with scene.workspace.call(SHELL) as call:
        carried = call.rebased("f", base, wanted, diff_lines(TEN, wanted))
    assert isinstance(carried, Rebased)
    assert carried.content == TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n")


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_conflict_markers_have_the_files_encoding(scene: Scene, form: TextForm) -> None:
    recorded(scene, encoded(TEN, form))
    (one,) = recorded(scene, encoded(TEN.replace(b"2\n", b"two\n"), form))
    recorded(scene, encoded(TEN.replace(b"2\n", b"TWO!\n"), form))
    outcome = scene.workspace.decide(Action.REJECT, scene.units(one), who="reviewer", markers=True)
    assert isinstance(outcome, Decided)
    content = scene.text("f")
    assert content is not None
    assert form_of(content) is form
    assert outcome.markers
    scene.undo()
    assert scene.text("f") == encoded(TEN.replace(b"2\n", b"TWO!\n"), form)


def test_old_records_keep_their_hunks(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = [encoded(text, TextForm.CR) for text in (TEN, TEN + b"11\n", TEN + b"11\n12\n")]
    recorded(scene, contents[0])
    with monkeypatch.context() as earlier:
        earlier.setattr("objstore.review.calls.edit_recorder.form_of", lambda _: TextForm.PLAIN)
        (old,) = recorded(scene, contents[1])
    assert scene.view(old).edit.forms == NO_FORMS
    (new,) = recorded(scene, contents[2])
    assert scene.view(new).edit.forms == (TextForm.PLAIN, TextForm.CR)
    scene.forget_index()
    assert not check_store(str(scene.root)).faults
    scene.reject(new)
    assert scene.text("f") == contents[1]
    scene.reject(old)
    assert scene.text("f") == contents[0]
