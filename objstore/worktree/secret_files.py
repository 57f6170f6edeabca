"""Remember which files look like secrets: those that scans leave out, and those whose bytes are stored all the same.

A status reads both from small files, because it neither walks the tree nor reads every recorded path. The files are
derived data: without them, the next scan and the next status find the same again.
"""

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgpack import packb, unpackb

from objstore.disk.fs.nofollow import read_store_file, write_derived_file
from objstore.disk.fs.reserved_names import STORE_NAME
from objstore.disk.ignore_rules.scan_rules import ScanRules, rules_of_workspace
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import CasError, StoreLinked, StoreNotRegular

if TYPE_CHECKING:
    from objstore.model.status_report import SecretFiles

__all__ = ["note_left_out", "secret_files"]

_LEFT_OUT: Final = "secrets"
_RECORDED: Final = "secrets-recorded"
_FOLDER: Final = "cache"
_MANY: Final = 500
"""Edits whose paths a status reads again, before what it found is written: writing takes longer."""

_MOST: Final = 1000
"""Paths that are remembered. A tree with more of them has a pattern that fits something else."""


def note_left_out(journal: Journal, rules: ScanRules, paths: list[bytes]) -> None:
    """Remember the files that a scan left out because they look like secrets. A failure loses nothing else."""
    found = paths[:_MOST]
    if not found and _read(journal, _LEFT_OUT) is None:
        return
    with suppress(CasError), journal.reading():
        _write(journal, _LEFT_OUT, [rules.fingerprint, found, _held(journal, found)])


def secret_files(journal: Journal) -> "SecretFiles":
    """Return the files that look like secrets, as far as the last scan and the journal show them.

    None if the settings can't be read. The caller is `journal.reading`.
    """
    from objstore.model.status_report import SecretFiles  # scans need only `note_left_out`

    try:
        rules = rules_of_workspace(journal.tree.root)
    except CasError:
        return SecretFiles(left_out=(), stored=())
    left_out, held = _left_out(journal, rules)
    index = journal.store.index
    recorded = [path for path in _recorded(journal, rules) if index.documents.holds_states_of(path)]
    in_baseline = [path for path in _held(journal, held) if not index.documents.ever_at(path)]
    stored = {*recorded, *in_baseline}
    return SecretFiles(
        left_out=tuple(os.fsdecode(path) for path in left_out if path not in stored),
        stored=tuple(map(os.fsdecode, sorted(stored))),
    )


def _held(journal: Journal, paths: list[bytes]) -> list[bytes]:
    """Return those of the paths that the baseline has the bytes of."""
    baseline = journal.store.baseline() if paths else None
    if baseline is None:
        return []
    from objstore.model.tree import TreeEntry, entry_at

    try:
        return [path for path in paths if isinstance(entry_at(baseline.root, path, journal.store.blob), TreeEntry)]
    except CasError:
        return []  # damage is reported elsewhere


def _left_out(journal: Journal, rules: ScanRules) -> tuple[list[bytes], list[bytes]]:
    """Return the files that the last scan left out, and those of them that the baseline holds."""
    match _read(journal, _LEFT_OUT):
        case [fingerprint, list(found), list(held)] if fingerprint == rules.fingerprint and _are_paths([*found, *held]):
            exists = [path for path in found if _exists(journal, path)]
            return exists, held
        case _:
            return [], []


def _recorded(journal: Journal, rules: ScanRules) -> list[bytes]:
    """Return the paths of recorded files that look like secrets. Only edits since the last call are read."""
    now = journal.store.index.file_stats.position()
    since, found = 0, list[bytes]()
    match _read(journal, _RECORDED):
        case [fingerprint, int(until), list(paths)] if fingerprint == rules.fingerprint and _are_paths(paths):
            since, found = (until, paths) if 0 <= until <= now.edit else (0, [])
        case _:
            pass
    if since == now.edit:
        return found
    new = journal.store.index.documents.paths_of_edits_since(since)
    found = sorted({*found, *(path for path in new if rules.secrets.leaves_out_path(os.fsdecode(path)))})[:_MOST]
    if now.edit - since >= _MANY:
        _write(journal, _RECORDED, [rules.fingerprint, now.edit, found])
    return found


def _read(journal: Journal, name: str) -> Any:  # noqa: ANN401 - whatever the file holds
    try:
        return unpackb(read_store_file(os.path.join(journal.tree.root, STORE_NAME, _FOLDER, name)))
    # Damage is no news: what the file should say can be found again.
    except (OSError, StoreLinked, StoreNotRegular, ValueError):
        return None


def _write(journal: Journal, name: str, content: list[object]) -> None:
    if _read(journal, name) == content:
        return
    with suppress(CasError, OSError):
        store = os.path.join(journal.tree.root, STORE_NAME)
        write_derived_file(journal.disk, store, _FOLDER, name, packb(content))


def _are_paths(values: list[object]) -> bool:
    return all(isinstance(value, bytes) for value in values)


def _exists(journal: Journal, path: bytes) -> bool:
    with suppress(OSError):
        os.lstat(path, dir_fd=journal.tree.fd)
        return True
    return False
