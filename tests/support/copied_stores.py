"""Empty stores for tests, copied from one that `Workspace.init` made, which takes a tenth of the time.

Tests of the creation itself call `Workspace.init`.
"""

import os
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from objstore import Workspace
from objstore.disk.fs.reserved_names import STORE_NAME
from objstore.model import large_file_placeholder
from objstore.storage.log.frames import SegmentHeader, StoreId
from objstore.values.clock import now
from tests.support.faulty_disk import UnsyncedDisk

__all__ = ["create_store"]

SEGMENT: Final = "segments/00000001.seg"
INDEX: Final = "index.sqlite"


def create_store(root: Path) -> None:
    """Create a store in `root` with an id of its own, unless there is one already."""
    store = root / STORE_NAME
    if os.path.lexists(store):
        return
    folders, files = _template(large_file_placeholder.MAX_BLOB)
    header = SegmentHeader.decode(files[SEGMENT], segment=1)
    new_id = StoreId(os.urandom(len(header.store)))
    for name in ("", *folders):
        (store / name).mkdir(mode=0o700)
    for name, content in files.items():
        if name == SEGMENT:
            content = SegmentHeader(store=new_id, number=1, created=now()).encode()  # noqa: PLW2901 -- as copied
        elif name == INDEX:
            content = content.replace(header.store, new_id)  # noqa: PLW2901 -- as copied
        copy = store / name
        copy.touch(0o600)
        copy.write_bytes(content)


@cache
def _template(limit: int) -> tuple[list[str], dict[str, bytes]]:
    """Return the folders of an empty store, outer ones first, and its files, by paths relative to it.

    `limit`: in memory, which the index has too.
    """
    del limit  # a cache's key
    with TemporaryDirectory(prefix="editledger-store-") as root:
        Workspace.init(root, UnsyncedDisk()).close()
        store = Path(root, STORE_NAME)
        found = sorted(store.rglob("*"))
        folders = [str(path.relative_to(store)) for path in found if path.is_dir()]
        files = {str(path.relative_to(store)): path.read_bytes() for path in found if path.is_file()}
    assert files[INDEX].count(SegmentHeader.decode(files[SEGMENT], segment=1).store) == 1
    return folders, files
