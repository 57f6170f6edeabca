"""Record a person's own changes of files as acts that an undo takes back, and say what an act was.

A restore, a rewind of all files and an amendment are edits of the person's own. Each is recorded together with a
decision that accepts these edits, so that undo and redo find it among the decisions, in their order.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from objstore.disk.fs.reserved_names import STORE_NAME
from objstore.history.edit_queries import edit
from objstore.model.basic_types import Action, Status, Unit
from objstore.model.records import DECISION_NOTE, Decision, WrittenFile
from objstore.model.views import Act
from objstore.storage.store.write_batch import now
from objstore.values.fastclass import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from objstore.model.records import Edit
    from objstore.model.results import CallOutcome, FileEffect
    from objstore.model.views import EditView
    from objstore.review.calls.tracked_call import Call
    from objstore.storage.transaction.journal import Journal

__all__ = ["act", "commit_act", "given_to"]


def commit_act(journal: Journal, call: Call, *, who: str, reason: str = "", dry_run: bool = False) -> CallOutcome:
    """Commit a call of a person as an act: with a decision on its edits, whose number the outcome has.

    Raises what Call.commit raises.
    """
    number = journal.store.index.numbers.next_decision()

    def decision(made: Sequence[EditView]) -> Decision:
        return Decision(
            number=number,
            time=now(),
            action=Action.ACCEPT,
            verdicts=tuple((Unit(view.seq, hunk), Status.ACCEPTED) for view in made for hunk in range(len(view.units))),
            written=tuple(_as_left(view) for view in made if view.edit.after is not None),
            who=who,
            reason=reason,
            via=journal.decider.via,
            agent=journal.decider.agent,
        )

    outcome = call.commit(dry_run=dry_run, decided_with=decision, notes={DECISION_NOTE: str(number)})
    return outcome if dry_run else replace(outcome, given_to=given_to(journal, outcome.files))


def given_to(journal: Journal, effects: Iterable[FileEffect]) -> tuple[int, ...]:
    """Return the users whose the restored files are now, if root restored them for others.

    Files of root are no news in a store of root's.
    """
    owners = set[int]()
    for effect in effects if os.geteuid() == 0 else ():
        if effect.path_before is None and effect.path_after is not None:
            with suppress(OSError):
                owners.add(os.lstat(effect.path_after, dir_fd=journal.tree.fd).st_uid)
    if owners == {0} and os.lstat(os.path.join(journal.tree.root, STORE_NAME)).st_uid == 0:
        return ()
    return tuple(sorted(owners))


def act(journal: Journal, number: int, decision: Decision) -> Act:
    """Return what a decision was. `decision`: its record, or that of its last redo; `number`: its own number."""
    made: list[Edit] = []
    for seq in dict.fromkeys(unit.seq for unit, _ in decision.verdicts):
        record = edit(journal, seq).edit
        if not record.is_made_by(number):
            break
        made.append(record)
    first = made[0] if made else None
    own = _own_record(journal, number, decision)
    return Act(
        number=number,
        action=own.action,
        tool="" if first is None else first.tool,
        units=tuple(unit for unit, _ in decision.verdicts),
        paths=tuple(dict.fromkeys(os.fsdecode(record.path) for record in made)),
        amends=None if first is None else first.amends,
        about=int(
            next((note for name in ("turn", "snapshot") if (note := (first.notes if first else {}).get(name))), 0)
        ),
        commit=own.commit,
        time=decision.time,
    )


def _own_record(journal: Journal, number: int, decision: Decision) -> Decision:
    """Return the record of a decision as it was made first. `decision`: that record, or the one of its last redo."""
    place = journal.store.index.decisions.place(number) if decision.action is Action.REDO else None
    record = decision if place is None else journal.store.record(place)[0]
    return record if isinstance(record, Decision) else decision


def _as_left(view: EditView) -> WrittenFile:
    """Return the file of an edit as the edit left it."""
    edit = view.edit
    path = None if edit.after is None else edit.path
    return WrittenFile(document=edit.document, path_before=path, before=edit.after, path_after=path, after=edit.after)
