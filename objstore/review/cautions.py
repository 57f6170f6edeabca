"""Find what a person should hear of and has not acknowledged: decisions inside an agent's shell, a narrower record.

Only a person's word acknowledges them. That they were printed doesn't: a terminal may be an agent's, and what was
printed may have scrolled away. How far they are known is a file; without it, they are all shown again.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from objstore.errors import CasError
from objstore.fs.nofollow import read_store_file, write_derived_file
from objstore.fs.reserved_names import AGENTS_NAME, STORE_NAME
from objstore.ignore_rules.newly_left_out import newly_left_out
from objstore.model.records import Decision, Edit, Expiry, Mark, SettingChange
from objstore.model.status_report import Caution, Cautions
from objstore.transaction.journal import Journal

__all__ = ["SAID", "SEEN", "cautions", "note"]

SAID: Final = "cautions-said"
SEEN: Final = "cautions-seen"
"""Files that say how far cautions are known: those that a client has shown, and those that a person acknowledged."""

_MOST_BYTES: Final = 4096


def cautions(journal: Journal, known: str) -> Cautions:
    """Return the cautions that are not known yet. `known`: SAID or SEEN. The caller holds a read of the journal."""
    index = journal.store.index
    number, name, left_out = _known(journal, known)
    # A store from a backup may have fewer records, or others: then all are shown again.
    found = index.cautions.id(number) if number else None
    since = number if found is not None and found.hex() == name else 0
    paths = newly_left_out(journal.tree.root)
    new = paths[left_out if left_out <= len(paths) else 0 :]
    newest = index.cautions.newest()
    newest_id = index.cautions.id(newest) if newest else None
    items = [*_records(journal, since), *(Caution(time=moment, path=os.fsdecode(path)) for moment, path in new)]
    return Cautions(
        items=tuple(sorted(items, key=lambda caution: caution.time)),
        number=newest,
        name="" if newest_id is None else newest_id.hex(),
        left_out=len(paths),
    )


def note(journal: Journal, known: str, shown: Cautions) -> None:
    """Note that these cautions are known now. If that can't be written, they are shown again."""
    content = json.dumps([shown.number, shown.name, shown.left_out]).encode()
    store = os.path.join(journal.tree.root, STORE_NAME)
    with suppress(OSError, CasError):
        write_derived_file(journal.disk, store, AGENTS_NAME, known, content)


def _records(journal: Journal, since: int) -> Iterator[Caution]:
    """Yield the records that need a caution, without those that were rolled back."""
    index = journal.store.index
    for place in index.cautions.after(since):
        record, _ = journal.store.record(place)
        match record:
            case Decision() if index.decisions.place(record.number) is None:
                continue
            case Edit() if index.edits.get(record.seq) is None:
                continue
            case Edit():
                yield Caution(time=record.time, record=record, by_agent=True)
            case Decision() | Expiry() | Mark() | SettingChange():
                yield Caution(time=record.time, record=record, by_agent=bool(record.agent))
            case _:
                continue


def _known(journal: Journal, known: str) -> tuple[int, str, int]:
    """Return the number and id of the newest known record, and how many paths are known."""
    path = os.path.join(journal.tree.root, STORE_NAME, AGENTS_NAME, known)
    try:
        held: Any = json.loads(read_store_file(path, _MOST_BYTES))
    except (OSError, CasError, ValueError):
        return 0, "", 0
    match held:
        case [int(number), str(name), int(left_out)] if number >= 0 and left_out >= 0:
            return number, name, left_out
        case _:
            return 0, "", 0
