"""Random histories of a workspace against a simple model.

The model knows no weave. It knows what was written, what is on disk, what was decided on each unit, and laws: what a
file is depends only on its edits and on which of them are live; with all of them dead it is what it was before the
first; with all of them live from the beginning it is what was last written.
"""

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import pytest
from hypothesis import event, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from objstore import (
    Action,
    BlobId,
    CallInfo,
    Conflicted,
    ConflictKind,
    Decided,
    DecisionOutcome,
    DecisionView,
    DocumentId,
    EditAway,
    EditExpired,
    EditTakenOut,
    EditView,
    ExternalChanges,
    FileExists,
    NothingToDo,
    OnExternal,
    Origin,
    RetentionLimits,
    Status,
    Unit,
    Workspace,
    blob_id,
)
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.scene import FileObservation, observe_tree
from tests.support.workspace_model import Document, ExpectedDecision, ExpectedFile, ModelStep

PATHS: Final = ("a", "b", "d/c", "d/e f")
LINES: Final = (b"x\n", b"y\n", b"x\r\n", b"\r\n", b"\n", b"a\rb\n", b"\xff\n", b"longer line\n")
ODD: Final = (b"", b"no end", b"\r", b"\0", b"\xff\xfe", b"x")
MODES: Final = (0o644, 0o755, 0o600)
LATER: Final = 1 << 60
"""A moment, in microseconds, before which everything was."""

texts = st.builds(
    lambda lines, end: b"".join(lines) + end,
    st.lists(st.sampled_from(LINES), max_size=6),
    st.sampled_from((b"", b"", b"", *ODD)),
)
# One file more often than the others, so that edits meet.
paths = st.sampled_from(("a", "a", "a", *PATHS))
modes = st.sampled_from((None, None, None, *MODES))
answers = st.sampled_from(list(OnExternal))
conversations = st.sampled_from(("conv_one", "conv_one", "conv_two"))


steps = st.builds(
    ModelStep,
    st.sampled_from(("write", "write", "edit", "edit", "edit", "delete", "move", "look")),
    paths,
    paths,
    texts,
    modes,
    st.tuples(st.integers(0, 6), st.integers(0, 3)),
)


class Histories(RuleBasedStateMachine):
    """Agents, people and hands at work on a few files."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(mkdtemp(prefix="editledger-"))
        (self.root / ".git").mkdir()
        (self.root / ".git" / "HEAD").write_bytes(b"ref: refs/heads/main\n")
        (self.root / ".git" / "index").write_bytes(b"\0")
        self.workspace = Workspace.init(self.root, UnsyncedDisk())
        self.git = {path: look for path, look in observe_tree(self.root).items() if path.startswith(".git")}
        self.disk: dict[str, ExpectedFile] = {}
        self.documents: dict[DocumentId, Document] = {}
        self.statuses: dict[Unit, Status] = {}
        self.decided: list[ExpectedDecision] = []  # decisions that were not taken back
        self.undone: list[tuple[ExpectedDecision, ExpectedDecision]] = []  # those taken back, each with its undo
        self.before_away: dict[Unit, Status] = {}  # what units that are away were before
        self.decisions = 0
        self.made: ExpectedDecision | None = None  # the last decision
        self.states: dict[bytes, bytes] = {}  # every content that was ever recorded, by its name
        self.known: dict[tuple[DocumentId, int, int, frozenset[Unit]], tuple[str, ExpectedFile | None]] = {}
        self.events = 0  # edits and decisions, counted in the order of the journal
        self.gone: set[int] = set()  # edits that have expired

    def teardown(self) -> None:
        self.rebuild()
        self.check_states()
        self.workspace.close()
        shutil.rmtree(self.root)

    # ---- the agent

    @initialize(content=texts, edits=st.lists(st.tuples(texts, st.integers(0, 6), st.integers(0, 3)), max_size=5))
    def begin(self, content: bytes, edits: list[tuple[bytes, int, int]]) -> None:
        """Let the agent find a file, and work on it."""
        self.write_by_hand("a", b"x\ny\nz\n" + content)
        for text, start, count in edits:
            self.edit("a", text, (start, count))

    @rule(changes=st.lists(steps, min_size=1, max_size=4), conversation=conversations)
    def call(self, changes: list[ModelStep], conversation: str = "conv_one") -> None:
        files = dict(self.disk)
        with self.workspace.call(CallInfo(tool="test", conversation=conversation)) as call:
            for change in changes:
                change.apply(call, files)
            outcome = call.commit()
        self.take_in_returns()
        for view in (*outcome.external, *outcome.edits):
            assert (view in outcome.external) is (view.edit.origin is Origin.EXTERNAL)
            self.recorded(view)
        self.disk = files
        for document in self.documents.values():
            if document.recorded is not None and document.path in {step.path for step in changes}:
                assert self.disk.get(document.path) == document.recorded

    @rule(path=paths, content=texts)
    def replace(self, path: str, content: bytes) -> None:
        self.call([ModelStep("write", path, "", content, None, (0, 0))])

    @rule(path=paths, content=texts, cut=st.tuples(st.integers(0, 6), st.integers(0, 3)))
    def edit(self, path: str, content: bytes, cut: tuple[int, int]) -> None:
        self.call([ModelStep("edit", path, "", content, None, cut)])

    @precondition(lambda self: self.repeatable())
    @rule(data=st.data())
    def repeat_what_was_rejected(self, data: st.DataObject) -> None:
        """Let the agent make an edit again that was rejected."""
        view = data.draw(st.sampled_from(self.repeatable()), label="rejected edit")
        after = self.file_of(view.edit.after)
        assert after is not None
        self.call([ModelStep("write", os.fsdecode(view.edit.path), "", after.content, after.mode, (0, 0))])

    def repeatable(self) -> list[EditView]:
        """Return the rejected edits whose file is on disk as it was before them, as the agent finds it."""
        return [
            view
            for view in self.all_edits()
            if view.seq not in self.gone
            and all(self.statuses[Unit(view.seq, hunk)] is Status.REJECTED for hunk in range(len(view.units)))
            and view.edit.after is not None
            and view.edit.source is None
            and self.documents[view.edit.document].recorded == self.file_of(view.edit.before)
            and self.disk.get(os.fsdecode(view.edit.path)) == self.file_of(view.edit.before)
        ]

    def recorded(self, view: EditView) -> None:
        """Take in a recorded edit: it must follow from what the model knows."""
        edit = view.edit
        source = os.fsdecode(edit.path if edit.source is None else edit.source)
        before, after = self.file_of(edit.before), self.file_of(edit.after)
        document = self.documents.get(edit.document)
        if document is None:
            assert int(edit.document) == int(edit.seq)
            document = self.documents[edit.document] = Document(source, before, source, before)
        assert document.recorded == before
        assert before is None or document.path == source
        document.straight &= all(self.statuses[unit].is_live for unit in document.units())
        document.edits.append(view)
        self.events += 1
        document.recorded_at[view.seq] = self.events
        document.recorded, document.path = after, os.fsdecode(edit.path)
        assert view.seq == len(self.all_edits()) + len(self.gone)
        wanted = Status.ACCEPTED if edit.origin is Origin.EXTERNAL else Status.PENDING
        self.statuses |= {Unit(view.seq, hunk): wanted for hunk in range(1 + len(edit.hunks))}
        assert view.units == tuple(wanted for _ in view.units)
        self.remember(edit.document)

    def take_in_returns(self) -> None:
        """Take in what the files that were found brought back: lines are their edit's again, or make way for these."""
        for made in [view.decision for view in self.workspace.history.decisions()][self.decisions :]:
            if made.action is not Action.GIT:
                break
            self.decisions += 1
            self.events += 1
            event("lines came back")
            assert made.number == self.decisions
            for unit, status in made.verdicts:
                was = self.statuses[unit]
                if status is Status.AWAY:
                    assert was.is_live
                    self.before_away[unit] = was
                else:
                    assert was is Status.AWAY
                    assert status is self.before_away.pop(unit)
                self.statuses[unit] = status
                self.document_of(unit).flipped_at[unit.seq] = self.events
            for file in made.written:
                document = self.documents[file.document]
                assert document.recorded == self.file_of(file.before)
                document.recorded = self.file_of(file.after)
                document.path = os.fsdecode(file.path_after or file.path_before or b"")
                self.remember(file.document)
            for view in self.workspace.history.edits():
                if "git" in view.edit.notes and view.edit.notes.get("decision") == str(made.number):
                    assert view.edit.origin is Origin.UNATTRIBUTED
                    self.recorded(view)

    def document_of(self, unit: Unit) -> Document:
        return self.documents[self.workspace.history.edit(unit.seq).edit.document]

    # ---- somebody's hands

    @rule(path=paths, content=texts, mode=st.sampled_from(MODES), kind=st.sampled_from(("write", "delete", "chmod")))
    def by_hand(self, path: str, content: bytes, mode: int, kind: str) -> None:
        match kind:
            case "write":
                self.write_by_hand(path, content)
            case "delete":
                (self.root / path).unlink(missing_ok=True)
                self.disk.pop(path, None)
            case "chmod" if path in self.disk:
                (self.root / path).chmod(mode)
                self.disk[path] = ExpectedFile(self.disk[path].content, mode)
            case _:
                pass  # there is nothing whose mode could be changed

    def write_by_hand(self, path: str, content: bytes) -> None:
        file = self.root / path
        file.parent.mkdir(exist_ok=True)
        mode = self.disk[path].mode if path in self.disk else 0o644
        file.write_bytes(content)
        self.disk[path] = ExpectedFile(content, mode)

    # ---- the person

    def some_units(self, data: st.DataObject) -> list[Unit]:
        edits = self.all_edits()
        view = data.draw(st.sampled_from(edits), label="edit")
        units = [Unit(view.seq, hunk) for hunk in range(len(view.units))]
        if len(units) > 1 and data.draw(st.booleans(), label="one hunk"):
            units = [data.draw(st.sampled_from(units), label="hunk")]
        return units

    @precondition(lambda self: self.kept_units())
    @rule(
        data=st.data(),
        action=st.sampled_from((Action.ACCEPT, Action.REJECT, Action.REJECT, Action.RESET)),
        count=st.sampled_from((1, 1, 1, 2, 5)),
        cascade=st.booleans(),
        on_external=answers,
    )
    def decide(self, data: st.DataObject, action: Action, count: int, cascade: bool, on_external: OnExternal) -> None:  # noqa: FBT001 - hypothesis gives it by name
        units = [unit for _ in range(count) for unit in self.some_units(data)]
        self.decision(action, units, cascade=cascade, on_external=on_external)

    @precondition(lambda self: self.kept_units())
    @rule(
        data=st.data(),
        path=paths,
        content=texts,
        action=st.sampled_from((Action.REJECT, Action.ACCEPT)),
        on_external=answers,
    )
    def decide_after_hands(
        self, data: st.DataObject, path: str, content: bytes, action: Action, on_external: OnExternal
    ) -> None:
        """Decide while something on disk is not as recorded."""
        self.write_by_hand(path, content)
        self.decision(action, self.some_units(data), on_external=on_external)

    @precondition(lambda self: self.kept_units())
    @rule(data=st.data(), action=st.sampled_from((Action.REJECT, Action.REJECT, Action.ACCEPT)))
    def flip(self, data: st.DataObject, action: Action) -> None:
        """Decide on what it makes a difference to."""
        dead = action is Action.ACCEPT
        units = [unit for unit in self.kept_units() if self.statuses[unit].is_live is not dead]
        if units:
            self.decision(action, [data.draw(st.sampled_from(units), label="unit")], on_external=OnExternal.KEEP)

    @precondition(lambda self: self.kept_units())
    @rule(action=st.sampled_from((Action.ACCEPT, Action.REJECT)), on_external=answers)
    def decide_all(self, action: Action, on_external: OnExternal) -> None:
        units = [unit for unit in self.kept_units() if self.statuses[unit] is not Status.AWAY]
        outcome = self.decision(action, units, cascade=False, on_external=on_external)
        if isinstance(outcome, Decided) and action is Action.REJECT and on_external is not OnExternal.KEEP:
            for document in self.documents.values():
                assert document.recorded == document.base

    @precondition(lambda self: self.kept_units())
    @rule(data=st.data())
    def toggle_twice(self, data: st.DataObject) -> None:
        """Reject and accept: what it was, to the byte."""
        units = [unit for unit in self.some_units(data) if self.statuses[unit].is_live]
        if self.clean() and units:
            before = dict(self.disk)
            outcome = self.decision(Action.REJECT, units)
            if isinstance(outcome, Decided):
                assert isinstance(self.decision(Action.ACCEPT, units), Decided)
                assert self.disk == before

    @precondition(lambda self: self.kept_units())
    @rule(data=st.data())
    def accept_what_is_live(self, data: st.DataObject) -> None:
        """Accept what is live already: it can't be in the way of anything."""
        units = [unit for unit in self.some_units(data) if self.statuses[unit].is_live]
        if self.clean() and units:
            for action in (Action.RESET, Action.ACCEPT):
                try:
                    outcome = self.workspace.decide(action, units, dry_run=True)
                except EditTakenOut:
                    assert action is Action.ACCEPT
                    continue
                assert isinstance(outcome, Decided | NothingToDo), outcome
                assert isinstance(outcome, NothingToDo) or outcome.files == ()

    def decision(
        self,
        action: Action,
        units: Sequence[Unit],
        *,
        cascade: bool = False,
        on_external: OnExternal = OnExternal.ABORT,
    ) -> DecisionOutcome | None:
        wanted = {
            Action.ACCEPT: Status.ACCEPTED,
            Action.REJECT: Status.REJECTED,
            Action.RESET: Status.PENDING,
        }[action]
        outcome = self.judged(
            self.telling(dict.fromkeys(units, wanted)),
            partial(self.workspace.decide, action, units, cascade=cascade, on_external=on_external),
            cascade=cascade and action is Action.REJECT,
            on_external=on_external,
        )
        if isinstance(outcome, Decided):
            assert self.made is not None
            self.decided.append(self.made)
            self.undone.clear()
        return outcome

    def telling(self, wanted: dict[Unit, Status]) -> dict[Unit, Status]:
        """Leave out changes of whole-file parts that no review shows, in edits of which nothing else changes."""
        idle = {Unit(view.seq, 0) for view in self.workspace.history.edits() if not view.whole and len(view.units) > 1}
        changed_edits = {
            unit.seq for unit, status in wanted.items() if unit not in idle and self.statuses[unit] is not status
        }
        return {
            unit: status
            for unit, status in wanted.items()
            if unit not in idle or unit.seq in changed_edits or self.statuses[unit] is status
        }

    @rule(on_external=answers)
    def undo(self, on_external: OnExternal) -> None:
        wanted = self.decided[-1].before if self.decided else {}
        if self.refused_as_expired(wanted, self.workspace.review.undo):
            return
        outcome = self.judged(
            wanted, partial(self.workspace.review.undo, on_external=on_external), on_external=on_external
        )
        if not self.decided:
            assert isinstance(outcome, NothingToDo)
        if isinstance(outcome, Decided):
            assert self.workspace.history.decisions()[-1].decision.takes_back == self.decided[-1].number
            assert self.made is not None
            self.undone.append((self.decided.pop(), self.made))

    @rule(on_external=answers)
    def redo(self, on_external: OnExternal) -> None:
        decision, undo = self.undone[-1] if self.undone else (None, None)
        # What the undo left as it was, because another edit makes the same change, stays so.
        wanted: dict[Unit, Status] = {}
        if decision is not None and undo is not None:
            wanted = {unit: undo.before.get(unit, status) for unit, status in decision.after.items()}
        if self.refused_as_expired(wanted, self.workspace.review.redo):
            return
        outcome = self.judged(
            wanted, partial(self.workspace.review.redo, on_external=on_external), on_external=on_external
        )
        if not self.undone:
            assert isinstance(outcome, NothingToDo)
        if isinstance(outcome, Decided):
            assert self.workspace.history.decisions()[-1].decision.takes_back == self.undone[-1][1].number
            assert self.made is not None
            # It is the same decision again, and what there was before it is what there was before the redo.
            number = self.undone.pop()[0].number
            self.decided.append(ExpectedDecision(number=number, before=self.made.before, after=self.made.after))

    def refused_as_expired(self, wanted: dict[Unit, Status], decide: Callable[[], object]) -> bool:
        """Return whether a decision names something that has expired; then it is refused, and nothing changes."""
        if self.gone.isdisjoint(unit.seq for unit in wanted):
            return False
        before = self.everything()
        with pytest.raises(EditExpired) as refused:
            decide()
        assert refused.value.seq in self.gone
        assert self.everything() == before
        return True

    def judged(
        self,
        wanted: dict[Unit, Status],
        decide: Callable[..., DecisionOutcome],
        *,
        cascade: bool = False,
        on_external: OnExternal,
    ) -> DecisionOutcome | None:
        """Make a decision, and hold what it says and does against the model. None: a file stood in the way."""
        concerned = {
            name for name, document in self.documents.items() if not wanted.keys().isdisjoint(document.units())
        }
        before = self.everything()
        external = {}
        in_the_way = ""
        dry = outcome = None
        try:
            dry = self.rehearsed(decide, before)
            before = self.everything()
            external = {document: change for document, change in self.external().items() if document in concerned}
            outcome = decide(dry_run=False)
        except FileExists as error:
            in_the_way = error.path
        except EditAway as error:
            self.is_away(error, wanted)
            assert observe_tree(self.root) == before[0]
            return None
        except EditTakenOut:
            self.is_taken_out(wanted, before)
            return None
        if dry is None or outcome is None:
            # Only an unrecorded file can be in the way without being a conflict or an external change.
            recorded = {d.path for d in self.documents.values() if d.recorded is not None}
            assert in_the_way in self.disk.keys() - recorded
            assert self.everything() == before
            return None
        assert type(dry) is type(outcome)
        event(type(outcome).__name__)
        match outcome:
            case NothingToDo():
                assert all(self.statuses[unit] is status for unit, status in wanted.items())
                assert self.everything() == before
            case ExternalChanges(changes=changes):
                assert on_external is OnExternal.ABORT
                assert {change.document: (change.path, change.found) for change in changes} == external
                assert self.everything() == before
            case Conflicted(conflicts=conflicts):
                assert conflicts
                assert dry == outcome
                for conflict in conflicts:
                    assert conflict.needs
                    assert conflict.unit in self.statuses or on_external is OnExternal.KEEP
                if cascade:
                    assert {conflict.kind for conflict in conflicts} == {ConflictKind.PATH_TAKEN}
                assert self.everything() == before
            case Decided():
                assert isinstance(dry, Decided)
                assert (dry.files, dry.cascaded) == (outcome.files, outcome.cascaded)
                assert not external or on_external is not OnExternal.ABORT
                assert {view.edit.document for view in outcome.external} == external.keys()
                self.take_in(outcome, wanted, before[0], cascade=cascade, on_external=on_external)
        return outcome

    def is_away(self, error: EditAway, units: Iterable[Unit]) -> None:
        """Check that what a decision was refused for is away, perhaps only since the files were looked at for it."""
        self.take_in_returns()
        away = {str(unit) for unit in units if self.statuses[unit] is Status.AWAY}
        assert away
        assert away.issuperset(error.units)

    def is_taken_out(
        self, wanted: dict[Unit, Status], before: tuple[dict[str, FileObservation], object, object]
    ) -> None:
        """Check that nothing was left to accept: every other unit has the wanted status. Only returns are recorded."""
        known = self.decisions
        self.take_in_returns()
        assert any(self.statuses[unit] is Status.PENDING for unit in wanted)
        assert set(wanted.values()) == {Status.ACCEPTED}
        assert observe_tree(self.root) == before[0]
        assert self.decisions > known or self.everything() == before

    def rehearsed(self, decide: Callable[..., DecisionOutcome], before: object) -> DecisionOutcome:
        """Make a dry run: it changes nothing, but for taking in what the files brought back."""
        known = self.decisions
        dry = decide(dry_run=True)
        self.take_in_returns()
        assert self.decisions > known or self.everything() == before
        return dry

    def take_in(
        self,
        outcome: Decided,
        wanted: dict[Unit, Status],
        before: dict[str, FileObservation],
        *,
        cascade: bool,
        on_external: OnExternal,
    ) -> None:
        """Follow a decision, and check that it did what it says, and nothing else."""
        for view in outcome.external:
            document = self.documents[view.edit.document]
            # As it was recorded, before the decision: accepted.
            self.recorded_external(view)
            assert document.recorded == self.disk.get(document.path)
        given = dict(outcome.verdicts)
        discarded = {
            Unit(view.seq, hunk)
            for view in outcome.external
            for hunk in range(len(view.units))
            if on_external is OnExternal.DISCARD
        }
        was = {unit: self.statuses[unit] for unit in given}
        repeated = dict(outcome.repeated)
        for unit, again in repeated.items():
            # It stays rejected only if an edit that makes the same change is live.
            assert was[unit] is given[unit] is Status.REJECTED
            assert {**self.statuses, **given}[again] is not Status.REJECTED
        for unit, taker in outcome.taken_out:
            assert self.statuses[unit] is Status.PENDING
            assert wanted[unit] is {**self.statuses, **given}[taker] is Status.ACCEPTED
        left = {*repeated, *dict(outcome.taken_out)}
        given = {unit: status for unit, status in given.items() if unit not in left}
        wanted = {unit: status for unit, status in wanted.items() if unit not in left}
        expected = {unit: status for unit, status in wanted.items() if self.statuses[unit] is not status}
        expected |= dict.fromkeys(discarded, Status.REJECTED)
        assert cascade or not outcome.cascaded
        expected |= dict.fromkeys(outcome.cascaded, Status.REJECTED)
        assert {unit: status for unit, status in given.items() if self.statuses[unit] is not status} == expected
        self.statuses |= given
        self.decisions += 1
        self.events += 1
        for unit, status in given.items():
            if status.is_live is not was[unit].is_live:
                self.document_of(unit).flipped_at[unit.seq] = self.events
        assert outcome.number == self.decisions
        self.made = ExpectedDecision(outcome.number, was, given)
        # The files: what the effects say, and nothing else.
        now = dict(self.disk)
        for effect in outcome.files:
            document = self.documents[effect.document]
            assert (None if effect.path_before is None else document.path) == effect.path_before
            assert document.recorded == self.blob(effect.before, effect.mode_before)
            if effect.path_before is not None:
                now.pop(effect.path_before, None)
        for effect in outcome.files:
            document = self.documents[effect.document]
            document.recorded = self.blob(effect.after, effect.mode_after)
            if effect.path_after is not None and document.recorded is not None:
                document.path = effect.path_after
                assert effect.path_after not in now
                now[effect.path_after] = document.recorded
        self.disk = now
        touched = {path for effect in outcome.files for path in (effect.path_before, effect.path_after)}
        after = observe_tree(self.root)
        for path in {*before, *after} - touched:
            assert before.get(path) == after.get(path) or path == "d"
        for name in {*(unit.seq for unit in given), *(effect.document for effect in outcome.files)}:
            self.remember(self.workspace.history.edit(name).edit.document)

    def recorded_external(self, view: EditView) -> None:
        """Take in an edit that a decision found."""
        edit = view.edit
        document = self.documents[edit.document]
        document.straight &= all(self.statuses[unit].is_live for unit in document.units())
        document.edits.append(view)
        self.events += 1
        document.recorded_at[view.seq] = self.events
        assert document.recorded == self.file_of(edit.before)
        document.recorded, document.path = self.file_of(edit.after), os.fsdecode(edit.path)
        self.statuses |= {Unit(view.seq, hunk): Status.ACCEPTED for hunk in range(len(view.units))}

    # ---- retention

    @precondition(lambda self: self.kept_units())
    @rule(accept_first=st.booleans(), swept=st.booleans())
    def expire(self, accept_first: bool, swept: bool) -> None:  # noqa: FBT001 - hypothesis gives them by name
        """Let go all that may go, whatever its age: then files are as they were, and the rest decides as before."""
        if accept_first:
            pending = [unit for unit in self.kept_units() if self.statuses[unit] is Status.PENDING]
            self.decision(Action.ACCEPT, pending, on_external=OnExternal.KEEP)
        waiting = {view.edit.conversation for view in self.workspace.history.edits() if view.status is Status.PENDING}

        def is_free(view: EditView) -> bool:
            units = [Unit(view.seq, hunk) for hunk in range(len(view.units))]
            is_away = any(self.statuses[unit] is Status.AWAY for unit in units)
            return not is_away and view.edit.conversation not in waiting

        wanted = {name: [view.seq for view in document.eligible(is_free)] for name, document in self.documents.items()}
        before = observe_tree(self.root)
        assert self.workspace.retention.expire(RetentionLimits(older_than=0, max_size=None), moment=LATER)
        if swept:
            self.workspace.retention.collect(RetentionLimits(older_than=None, max_size=None), thorough=True)
        event("expired", str(sum(map(len, wanted.values())) > 0))
        assert observe_tree(self.root) == before
        self.gone |= {seq for seqs in wanted.values() for seq in seqs}
        assert {view.seq for view in self.workspace.history.edits() if view.expired is not None} == self.gone
        for name, document in self.documents.items():
            self.forget_edits(name, document, wanted[name])
        held = {
            state.blob
            for document in self.documents.values()
            for view in document.edits
            for state in (view.edit.before, view.edit.after)
            if state is not None
        }
        self.states = {name: content for name, content in self.states.items() if name in held}

    def forget_edits(self, name: DocumentId, document: Document, seqs: Sequence[int]) -> None:
        """Let the model's document begin later; what is known of it under the verdicts that went still holds."""
        if not seqs:
            return
        frozen = {unit for unit in document.units() if unit.seq in seqs and not self.statuses[unit].is_live}
        span = document.span()
        document.edits = [view for view in document.edits if view.seq not in seqs]
        if document.edits:
            first = document.edits[0].edit
            document.base = self.file_of(first.before)
            document.base_path = os.fsdecode(first.path if first.source is None else first.source)
        else:
            document.base, document.base_path = document.recorded, document.path
        for (of, first_seq, last_seq, dead), state in list(self.known.items()):
            if (of, first_seq, last_seq) == (name, *span) and {unit for unit in dead if unit.seq in seqs} == frozen:
                self.known[name, *document.span(), dead - frozen] = state

    # ---- the store

    @rule(kind=st.sampled_from(("reopen", "rebuild", "check")))
    def maintain(self, kind: str) -> None:
        match kind:
            case "reopen":
                self.workspace.close()
                self.workspace = Workspace.open(self.root, UnsyncedDisk())
            case "rebuild":
                self.rebuild()
            case _:
                self.check_states()

    def rebuild(self) -> None:
        """Rebuild the index: it says the same."""
        reports_before = (
            self.workspace.history.edits(),
            self.workspace.history.decisions(),
            self.workspace.review.status(),
        )
        self.workspace.close()
        for path in (self.root / ".cas").glob("index*"):
            path.unlink()
        self.workspace = Workspace.open(self.root, UnsyncedDisk())
        assert (
            self.workspace.history.edits(),
            self.workspace.history.decisions(),
            self.workspace.review.status(),
        ) == reports_before

    def check_states(self) -> None:
        """Every state that was ever recorded is there, by name."""
        for name, content in self.states.items():
            assert self.workspace.history.find_state(name.hex()).blob == name
            assert self.workspace.history.blob(blob_id(content)) == content

    # ---- laws

    @invariant()
    def laws_hold(self) -> None:
        self.the_disk_is_what_was_written()
        self.version_control_is_left_alone()
        self.the_status_counts_and_names_what_differs()
        self.with_everything_live_a_file_is_what_was_last_written()
        self.with_nothing_live_a_file_is_what_it_was_before()

    def the_disk_is_what_was_written(self) -> None:
        found = {
            path: ExpectedFile(look.content, look.mode)
            for path, look in self.looks().items()
            if look.kind == stat.S_IFREG
        }
        assert found == self.disk

    def version_control_is_left_alone(self) -> None:
        assert {p: look for p, look in observe_tree(self.root).items() if p.startswith(".git")} == self.git

    def the_status_counts_and_names_what_differs(self) -> None:
        report = self.workspace.review.status()
        counted = dict.fromkeys(Status, 0)
        for view in self.workspace.history.edits():
            expected_statuses = [self.statuses[Unit(view.seq, hunk)] for hunk in range(len(view.units))]
            assert list(view.units) == expected_statuses
            if not view.whole and len(expected_statuses) > 1:
                expected_statuses = expected_statuses[1:]
            order = (Status.PENDING, Status.ACCEPTED, Status.REJECTED, Status.AWAY)
            status = next(status for status in order if status in expected_statuses)
            assert view.status is status
            counted[status] += 1
        assert (report.edits, report.pending, report.accepted, report.rejected, report.away) == (
            sum(counted.values()),
            counted[Status.PENDING],
            counted[Status.ACCEPTED],
            counted[Status.REJECTED],
            counted[Status.AWAY],
        )
        assert {change.document: (change.path, change.found) for change in report.external} == self.external()

    def with_everything_live_a_file_is_what_was_last_written(self) -> None:
        for document in self.documents.values():
            if document.edits and document.straight and all(self.statuses[unit].is_live for unit in document.units()):
                last = document.edits[-1].edit
                assert document.recorded == self.file_of(last.after)
                assert document.recorded is None or document.path == os.fsdecode(last.path)

    def with_nothing_live_a_file_is_what_it_was_before(self) -> None:
        for document in self.documents.values():
            if not any(self.statuses[unit].is_live for unit in document.units()):
                assert document.recorded == document.base
                assert document.recorded is None or document.path == document.base_path

    # ---- what the model knows

    def kept_units(self) -> list[Unit]:
        return [unit for unit in self.statuses if unit.seq not in self.gone]

    def all_edits(self) -> list[EditView]:
        return sorted((view for d in self.documents.values() for view in d.edits), key=lambda view: view.seq)

    def remember(self, name: DocumentId) -> None:
        """Check that a file is a function of its edits and of which of them are live."""
        document = self.documents[name]
        dead = frozenset(unit for unit in document.units() if not self.statuses[unit].is_live)
        state = (document.path if document.recorded is not None else "", document.recorded)
        assert self.known.setdefault((name, *document.span(), dead), state) == state

    def external(self) -> dict[DocumentId, tuple[str, bytes | None]]:
        """Return what is on disk otherwise than recorded, by document."""
        found: dict[DocumentId, tuple[str, bytes | None]] = {}
        existing = {d.path for d in self.documents.values() if d.recorded is not None}
        newest = {d.path: name for name, d in sorted(self.documents.items()) if d.recorded is None}
        for name, document in self.documents.items():
            if document.recorded is None and (document.path in existing or newest[document.path] != name):
                continue
            on_disk = self.disk.get(document.path)
            if on_disk != document.recorded:
                found[name] = (document.path, None if on_disk is None else blob_id(on_disk.content))
        return found

    def clean(self) -> bool:
        return not self.external()

    def file_of(self, state: object) -> ExpectedFile | None:
        blob, mode = getattr(state, "blob", None), getattr(state, "mode", 0)
        return self.blob(blob, mode)

    def blob(self, blob: bytes | None, mode: int) -> ExpectedFile | None:
        if blob is None:
            return None
        content = self.workspace.history.blob(BlobId(blob))
        self.states[blob] = content
        return ExpectedFile(content, mode)

    def looks(self) -> dict[str, FileObservation]:
        return {p: look for p, look in observe_tree(self.root).items() if not p.startswith(".git") and p != "d"}

    def everything(self) -> tuple[dict[str, FileObservation], dict[str, FileObservation], list[DecisionView]]:
        return observe_tree(self.root), observe_tree(self.root, store=True), self.workspace.history.decisions()


TestHistories = Histories.TestCase
# A history is some hundred times the work of one example elsewhere.
TestHistories.settings = settings(max_examples=settings().max_examples * 2 // 5, stateful_step_count=25)
