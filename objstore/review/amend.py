"""Amendments: a reviewer betters the result of an edit, and what they changed is recorded as bound to it."""

import os
from collections.abc import Sequence

from objstore.errors import FileChanged, NotAmendable
from objstore.history.edit_queries import edit
from objstore.model.basic_types import Operation, Origin, Seq, Status
from objstore.model.ids import BlobId
from objstore.model.results import CallInfo, CallOutcome
from objstore.review.tracked_call import Call
from objstore.text.diff import diff_lines
from objstore.text.hunks import Hunk
from objstore.text.rebase import RebaseConflict
from objstore.text.unified_diff import is_binary
from objstore.transaction.journal import Journal

__all__ = ["amend", "amendable_path"]


def amendable_path(journal: Journal, seq: int) -> str:
    """Return where the file that the edit changed stands now. Raises NoSuchName, EditExpired, NotAmendable."""
    view = edit(journal, seq)
    view.refuse_if_expired()
    if view.edit.origin is Origin.EXTERNAL:
        raise NotAmendable(seq, "it was made outside; change the file yourself")
    if view.status is Status.REJECTED:
        raise NotAmendable(seq, "it is rejected")
    tip = journal.store.index.documents.tip(view.edit.document)
    if tip.state is None:
        raise NotAmendable(seq, "its file is deleted")
    return os.fsdecode(tip.path)


def amend(
    journal: Journal,
    seq: int,
    content: bytes,
    *,
    who: str,
    seen: BlobId,
    base: bytes | None = None,
    hunks: Sequence[Hunk] | None = None,
) -> CallOutcome:
    """Give the edit's file these bytes, as an amendment of the edit. `seen`: what the reviewer started from.

    `hunks`: the lines that were really changed, where that is known. `base`: what was seen, so that a change of text
    is carried over to what the file holds by now (None: it is not). Raises NoSuchName, NotAmendable, FileChanged where
    the file is no longer as it was seen and nothing is carried over, and what Call.commit raises.
    """
    with journal.writing() as batch:
        path = amendable_path(journal, seq)
        info = CallInfo(
            tool="amend",
            conversation=edit(journal, seq).edit.conversation,
            origin=Origin.PERSON,
            amends=Seq(seq),
            notes={"who": who} if who else {},
        )
        call = Call(journal, batch, info)
        now = call.read(path)
        if now.blob != seen:
            if base is None or any(map(is_binary, (base, content, now.bytes))):
                raise FileChanged(path)
            made = diff_lines(base, content) if hunks is None else hunks
            carried = call.rebased(path, base, content, made, is_compared=hunks is None)
            if isinstance(carried, RebaseConflict):
                raise FileChanged(path)
            content, hunks = carried.content, carried.hunks
        call.write(path, content, hunks=hunks, operation=Operation.EDIT)
        return call.commit()
