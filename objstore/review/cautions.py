"""Find what a person should hear of and has not acknowledged: an agent's decisions, silence, a narrower record.

Only a person's word acknowledges them. That they were printed doesn't: a terminal may be an agent's, and what was
printed may have scrolled away. How far they are known is a file; without it, they are all shown again.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from objstore.disk.fs.nofollow import read_store_file, write_derived_file
from objstore.disk.fs.reserved_names import AGENTS_NAME, STORE_NAME
from objstore.disk.witnesses.remarks import HEARD, LEFT_OUT, LOST_REPORTS, SILENT, Remark, forget_remarks, remarks
from objstore.model.records import Decision, Edit, Expiry, Mark, SettingChange
from objstore.model.status_report import Caution, Cautions, Silence
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import CasError
from objstore.values.fastclass import replace

__all__ = ["ACKNOWLEDGED", "SAID", "cautions", "note"]

SAID: Final = "cautions-said"
ACKNOWLEDGED: Final = "cautions-acknowledged"
"""Files that say how far cautions are known: those that a client has shown, and those that a person acknowledged."""

_MOST_BYTES: Final = 4096


def cautions(journal: Journal, known: str) -> Cautions:
    """Return the cautions that are not known yet. `known`: SAID or ACKNOWLEDGED. The caller holds the journal."""
    index = journal.store.index
    number, name, count = _known(journal, known)
    # A store from a backup may have fewer records, or others: then all are shown again.
    found = index.cautions.id(number) if number else None
    since = number if found is not None and found.hex() == name else 0
    remarked = remarks(journal.tree.root)
    new = remarked[count if count <= len(remarked) else 0 :]
    newest = index.cautions.newest()
    newest_id = index.cautions.id(newest) if newest else None
    items = [*_records(journal, since), *_remarked(new)]
    return Cautions(
        items=tuple(sorted(items, key=lambda caution: caution.time)),
        number=newest,
        name="" if newest_id is None else newest_id.hex(),
        remarks=len(remarked),
    )


def note(journal: Journal, known: str, shown: Cautions) -> None:
    """Note that these cautions are known now. If that can't be written, they are shown again."""

    def note_none() -> None:
        for name in (SAID, ACKNOWLEDGED):
            _write(journal, name, replace(shown, remarks=0))

    if known == ACKNOWLEDGED and any(each.silence and each.silence.lacks == LOST_REPORTS for each in shown.items):
        from objstore.review.calls.evidence_log import log_of  # a status, which reads cautions, has no need of it

        log_of(journal).acknowledge_loss()
    with suppress(OSError, CasError):
        _write(journal, known, shown)
        if known == ACKNOWLEDGED:
            forget_remarks(journal.tree.root, shown.remarks, note_none)


def _write(journal: Journal, known: str, shown: Cautions) -> None:
    content = json.dumps([shown.number, shown.name, shown.remarks]).encode()
    write_derived_file(journal.disk, os.path.join(journal.tree.root, STORE_NAME), AGENTS_NAME, known, content)


def _remarked(new: list[Remark]) -> Iterator[Caution]:
    """Yield what remarks say, without the silence of sessions of which something has arrived since."""
    heard = {remark.about: at for at, remark in enumerate(new) if remark.kind == HEARD}
    for at, remark in enumerate(new):
        if remark.kind == LEFT_OUT:
            yield Caution(time=remark.time, path=os.fsdecode(remark.about))
        elif remark.kind in SILENT and heard.get(remark.about, -1) < at:
            client, _, session = remark.about.decode("utf-8", "replace").partition("\n")
            yield Caution(time=remark.time, silence=Silence(remark.kind, client, session))


def _records(journal: Journal, since: int) -> Iterator[Caution]:
    """Yield the records that need a caution, without those that were rolled back."""
    index = journal.store.index
    for place in index.cautions.after(since):
        record, _ = journal.store.record(place)
        match record:
            case Decision() if index.decisions.place(record.number) is None:
                continue
            case Edit() if index.edits.get(record.seq) is None or "decision" in record.notes:
                continue  # rolled back, or the decision that made it is a caution itself
            case Edit():
                yield Caution(time=record.time, record=record, by_agent=True)
            case Decision() | Expiry() | Mark() | SettingChange():
                yield Caution(time=record.time, record=record, by_agent=bool(record.agent))
            case _:
                continue


def _known(journal: Journal, known: str) -> tuple[int, str, int]:
    """Return the number and id of the newest known record, and how many remarks are known."""
    path = os.path.join(journal.tree.root, STORE_NAME, AGENTS_NAME, known)
    try:
        held: Any = json.loads(read_store_file(path, _MOST_BYTES))
    except (OSError, CasError, ValueError):
        return 0, "", 0
    match held:
        case [int(number), str(name), int(count)] if number >= 0 and count >= 0:
            return number, name, count
        case _:
            return 0, "", 0
