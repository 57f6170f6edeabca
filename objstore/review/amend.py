"""Amend an edit: record a reviewer's correction of its result, which is decided together with it."""

import os
from collections.abc import Sequence

from objstore.history.edit_queries import edit
from objstore.model.basic_types import Operation, Origin, Seq, Status
from objstore.model.ids import BlobId
from objstore.model.results import CallInfo, CallOutcome
from objstore.review.acts import commit_act
from objstore.review.calls.deciders import marks
from objstore.review.calls.tracked_call import Call
from objstore.storage.transaction.journal import Journal
from objstore.text.diff import diff_lines
from objstore.text.forms import expressed, form_of, is_binary, shown_lines
from objstore.text.hunks import Hunk
from objstore.text.rebase import RebaseConflict
from objstore.values.errors import FileChanged
from objstore.values.request_errors import EditAway, NotAmendable

__all__ = ["amend", "amendable_path"]


def amendable_path(journal: Journal, seq: int) -> str:
    """Return the current path of the file that the edit changed.

    Raises NoSuchName, EditExpired, EditAway and NotAmendable.
    """
    view = edit(journal, seq)
    view.refuse_if_expired()
    if view.edit.origin is Origin.EXTERNAL:
        raise NotAmendable(seq, "it is an external edit; change the file yourself")
    if view.status is Status.REJECTED:
        raise NotAmendable(seq, "it is rejected")
    if view.status is Status.AWAY:
        raise EditAway([str(seq)])
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
    version: BlobId,
    base: bytes | None = None,
    hunks: Sequence[Hunk] | None = None,
) -> CallOutcome:
    """Write the content to the edit's file, as an amendment of the edit. `version`: the blob that the reviewer saw.

    `hunks`: the lines that the reviewer really changed, as `shown_lines` counts them, if known. `base`: the content of
    `version`, to rebase the change onto the file's current text (None: no rebase). Raises NoSuchName, NotAmendable,
    FileChanged if the file has changed since and the change is not or can't be rebased, and what Call.commit raises.
    """
    with journal.writing() as batch:
        path = amendable_path(journal, seq)
        info = CallInfo(
            tool="amend",
            conversation=edit(journal, seq).edit.conversation,
            origin=Origin.PERSON,
            amends=Seq(seq),
            notes=({"who": who} if who else {}) | marks(journal),
        )
        call = Call(journal, batch, info)
        now = call.read(path)
        if now.blob != version:
            if base is None or any(is_binary(shown_lines(each)) for each in (base, content, now.bytes)):
                raise FileChanged(path)
            lines = shown_lines(content)
            made = diff_lines(shown_lines(base), lines) if hunks is None else hunks
            carried = call.rebased(path, base, lines, made, is_compared=hunks is None)
            rebased = None if isinstance(carried, RebaseConflict) else expressed(carried.content, form_of(now.bytes))
            if isinstance(carried, RebaseConflict) or rebased is None:
                raise FileChanged(path)
            content, hunks = rebased, carried.hunks
        call.write(path, content, hunks=hunks, operation=Operation.EDIT)
        return commit_act(journal, call, who=who)
