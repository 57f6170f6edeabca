"""Beforehand: large files taken into the store before a call holds the writer lock, so that nobody waits for them.

Their chunks are appended a few at a time, each time under the lock for some milliseconds; a call that then finds the
file as it was has nothing to take in. Until it names them, nothing holds them, and a sweep may take them away: so the
list of a file's chunks is only appended while all of them are there. Whatever comes in between, the call itself takes
in what is missing.
"""

from collections.abc import Iterable
from contextlib import suppress

from objstore.errors import CasError, FileChanged
from objstore.fs.content_source import FileSource, Source
from objstore.fs.file_state import file_at
from objstore.log.blob_codec import BlobHeader, Encoding, parse_chunks
from objstore.model.ids import BlobId
from objstore.model.large_file_placeholder import is_placeholder
from objstore.store.large_blob_writer import append_chunks, store_large_blob
from objstore.transaction.journal import Journal

__all__ = ["prestore_blob", "prestore_large_files"]


def prestore_large_files(journal: Journal, paths: Iterable[bytes]) -> None:
    """Take in the large files that stand at the paths, as far as they are not stored. Call it without the writer lock.

    What can't be looked at is left to the call, which says what is wrong with it.
    """
    for path in paths:
        try:
            found = file_at(journal.tree, path)
        except CasError:
            continue
        if found is not None and is_placeholder(found[1].content):
            with journal.reading() as store:
                tip = store.tip_at(path)
            base = None if tip is None or tip.state is None else tip.state.blob
            with suppress(FileChanged):
                prestore_blob(journal, found[0].blob, FileSource(journal.tree, path, found[1].stat), base)


def prestore_blob(journal: Journal, name: BlobId, source: Source, base: BlobId | None) -> None:
    """Store a large blob, a few chunks at a time; nothing names it yet. Call it without the writer lock.

    Raises FileChanged if the source is not what `name` says, and what Journal.writing and Log.append raise.
    """
    with journal.reading() as store:
        if store.has(name):
            return
    with journal.beside() as beside:

        def put(headers: list[BlobHeader], payloads: list[bytes]) -> bool:
            with journal.writing():
                is_put = append_chunks(journal.store, headers, payloads)
            beside.catch_up()
            beside.close_left()
            return is_put

        headers, payloads = store_large_blob(beside, name, source, base, put)
    own = {header.id for header in headers}
    with journal.writing():
        listed = headers[-1]
        chunks = parse_chunks(listed, payloads[-1]) if listed.encoding is Encoding.CHUNKED else ()
        if all(chunk.id in own or journal.store.has(chunk.id) for chunk in chunks):
            append_chunks(journal.store, headers, payloads)
