"""Find the hunk that inserted each line of a file."""

from objstore.history import edit_queries
from objstore.history.documents.loader import load_document, load_past
from objstore.history.revspec import recorded_path, recorded_paths
from objstore.model.basic_types import Seq, Unit
from objstore.model.large_file_placeholder import MAX_BLOB, is_placeholder
from objstore.model.views import EditView
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import FileTooLarge
from objstore.values.fastclass import value
from objstore.values.request_errors import NoSuchName

__all__ = ["BlamedLines", "blame"]


@value
class BlamedLines:
    """Consecutive lines of a file that the same hunk inserted."""

    start: int  # of the first line, zero-based
    count: int
    unit: Unit | None  # None: they existed before the first edit that has not expired
    view: EditView | None
    is_expired: bool  # there is no unit, and an expired edit may have inserted them


def blame(journal: Journal, path: str, at: tuple[Seq, bool] | None = None) -> tuple[bytes, list[BlamedLines]]:
    """Return the last recorded bytes of the file at `path`, and which hunk inserted each of its lines.

    `at`: an edit of the file, and whether the bytes are those before it (True) or after it. Raises NoSuchName if no
    file is recorded at the path, FileTooLarge, EditExpired, and HistoryBroken.
    """
    with journal.store.index.still():
        return _blamed(journal, path, at)


def _blamed(journal: Journal, path: str, at: tuple[Seq, bool] | None) -> tuple[bytes, list[BlamedLines]]:
    if at is None:
        tip = journal.store.index.documents.tip_at(recorded_path(journal, path))
        blob, document = (None, None) if tip is None or tip.state is None else (tip.state.blob, tip.document)
    else:
        named = edit_queries.edit(journal, at[0])
        named.refuse_if_expired()
        state = named.edit.before if at[1] else named.edit.after
        is_its = not {named.edit.path, named.edit.source}.isdisjoint(recorded_paths(journal, path))
        blob, document = state.blob if state is not None and is_its else None, named.edit.document
    if blob is None or document is None:
        raise NoSuchName(path, "recorded file" if at is None else "state")
    content = journal.store.text(blob)
    if is_placeholder(content):
        raise FileTooLarge(path, journal.store.size(blob), MAX_BLOB)
    loaded = load_document(journal, document) if at is None else load_past(journal, document, at[0], before=at[1])
    first = journal.store.index.edits.get(document)
    is_cut = first is not None and bool(first.expired)
    blamed, start = [], 0
    views: dict[Seq, EditView] = {}
    for unit, count in loaded.blame():
        if unit is not None and unit.seq not in views:
            views[unit.seq] = edit_queries.edit(journal, unit.seq)
        view = None if unit is None else views[unit.seq]
        is_expired = is_cut and unit is None
        blamed.append(BlamedLines(start=start, count=count, unit=unit, view=view, is_expired=is_expired))
        start += count
    lines = loaded.lines_text()
    return content if lines is None else lines, blamed
