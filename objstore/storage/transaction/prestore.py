"""Store large files before a call takes the writer lock, so that no other writer waits for them.

The chunks are appended a few at a time, each time under the lock for some milliseconds; a call that then finds the file
unchanged has nothing left to store. Until the call names the blob, nothing holds the chunks, and compaction may remove
them: so a file's chunk list is appended only while all its chunks exist. Whatever happens in between, the call itself
stores what is missing.
"""

from collections.abc import Iterable
from contextlib import suppress

from objstore.disk.fs.content_source import FileSource, Source
from objstore.disk.fs.file_state import file_at
from objstore.model.ids import BlobId
from objstore.model.large_file_placeholder import is_placeholder
from objstore.storage.log.blob_codec import BlobHeader, Encoding, parse_chunks
from objstore.storage.store.large_blob_writer import append_chunks, store_large_blob
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import CasError, FileChanged

__all__ = ["prestore_blob", "prestore_large_files"]


def prestore_large_files(journal: Journal, paths: Iterable[bytes]) -> None:
    """Store the large files at these paths, unless they are stored. The caller does not hold the writer lock.

    Paths that can't be inspected are left to the call, which reports what is wrong with them.
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
    """Store a large blob, a few chunks at a time; nothing names it yet. The caller does not hold the writer lock.

    Raises FileChanged if the content of `source` is not the blob `name`, and what Journal.writing and Log.append raise.
    """
    with journal.reading() as store:
        if store.has(name):
            return
    with journal.second_store() as own_store:

        def put(headers: list[BlobHeader], payloads: list[bytes]) -> bool:
            with journal.writing():
                is_put = append_chunks(journal.store, headers, payloads)
            own_store.catch_up()
            own_store.close_replaced_indexes()
            return is_put

        headers, payloads = store_large_blob(own_store, name, source, base, put)
    own = {header.id for header in headers}
    with journal.writing():
        listed = headers[-1]
        chunks = parse_chunks(listed, payloads[-1]) if listed.encoding is Encoding.CHUNKED else ()
        if all(chunk.id in own or journal.store.has(chunk.id) for chunk in chunks):
            append_chunks(journal.store, headers, payloads)
