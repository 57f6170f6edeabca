"""Test that a link in a store is refused, and that its target is not touched."""

import contextlib
import os
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from objstore import (
    Action,
    AgentCall,
    CallInfo,
    CasError,
    Configuration,
    NotAWorkspace,
    Seq,
    StoreHardLinked,
    StoreLinked,
    StoreNotRegular,
    Unit,
    Workspace,
    check_store,
    repair_store,
)
from objstore.storage.store.create import creation_folder_name
from objstore.storage.transaction.journal import Journal
from objstore.storage.transaction.space_reserve import release_reserve
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import UnsyncedDisk

FOLDERS: Final = ("segments", "tmp", "cache", "agents")
FILES: Final = (
    "index.sqlite",
    "index.sqlite-wal",
    "index.sqlite-shm",
    "applied",
    "lock",
    "lock.queue",
    "sweep.lock",
    "room",
    "config.toml",
    "hook.log",
)
PRECIOUS: Final = b"precious\n"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Return a folder outside the workspace, with a file, a database and a folder of files."""
    found = tmp_path / "elsewhere"
    (found / "documents").mkdir(parents=True)
    for name in ("1.txt", "weave-1", "looks", "open-1"):
        (found / "documents" / name).write_bytes(PRECIOUS)
    (found / "plain").write_bytes(PRECIOUS)
    with closing(sqlite3.connect(found / "database")) as database:
        database.executescript("CREATE TABLE edits (x); CREATE TABLE users (x); INSERT INTO users VALUES ('precious')")
    return found


def held(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def put_link(store: Path, name: str, target: Path) -> None:
    """Put a link at a path where the store has something of its own, or may have."""
    path = store / name
    if path.exists():
        path.rename(store.parent.parent / f"was-{path.name}")
    path.symlink_to(target)


def use(root: Path) -> None:
    """Run operations of a workspace that read or change the store."""
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.review.status()
        write(workspace, "a.txt", b"two\n")
        workspace.record_changes(CallInfo(tool="test"))
        workspace.snapshots.take(who="person")
        workspace.hooks.begin(AgentCall(conversation="c", id="1", tool="t", paths=None))
        workspace.retention.collect(workspace.retention.limits())


@pytest.mark.parametrize("name", FOLDERS)
def test_a_link_in_the_place_of_a_folder_is_refused(root: Path, elsewhere: Path, name: str) -> None:
    before = held(elsewhere)
    put_link(root / ".cas", name, elsewhere / "documents")
    refused = pytest.raises((StoreLinked, NotAWorkspace))  # without segments behind the link there is no store at all
    with refused:
        use(root)
    with refused:
        check_store(str(root))
    assert held(elsewhere) == before


@pytest.mark.parametrize("target", ["plain", "database", "nothing"])
@pytest.mark.parametrize("name", FILES)
def test_a_link_in_the_place_of_a_file_is_refused(root: Path, elsewhere: Path, name: str, target: str) -> None:
    before = held(elsewhere)
    put_link(root / ".cas", name, elsewhere / target)
    with pytest.raises(StoreLinked, match=name):
        use(root)
    with pytest.raises(StoreLinked, match=name):
        check_store(str(root))
    assert held(elsewhere) == before


def test_a_log_behind_a_link_is_refused(root: Path, elsewhere: Path) -> None:
    (root / ".cas" / "segments").rename(elsewhere / "segments")
    (root / ".cas" / "segments").symlink_to(elsewhere / "segments")
    before = held(elsewhere)
    with pytest.raises(StoreLinked, match="segments"):
        use(root)
    assert held(elsewhere) == before


def test_a_segment_behind_a_link_is_refused(root: Path, elsewhere: Path) -> None:
    segment = root / ".cas" / "segments" / "00000001.seg"
    segment.rename(elsewhere / "segment")
    segment.symlink_to(elsewhere / "segment")
    before = held(elsewhere)
    with pytest.raises(StoreLinked, match=r"00000001\.seg"):
        use(root)
    assert held(elsewhere) == before


def test_a_store_behind_a_link_is_no_store(root: Path, elsewhere: Path) -> None:
    (root / ".cas").rename(elsewhere / "store")
    (root / ".cas").symlink_to(elsewhere / "store")
    before = held(elsewhere)
    with pytest.raises(NotAWorkspace):
        use(root)
    with pytest.raises(NotAWorkspace):
        Workspace.find(root)
    with pytest.raises(CasError):
        Configuration(str(root)).set("gc.every", "5min")
    assert held(elsewhere) == before


@pytest.mark.parametrize("name", ["looks", "weave-1"])
def test_derived_file_replaces_a_link_at_its_path(root: Path, elsewhere: Path, name: str) -> None:
    use(root)
    (root / ".cas" / "cache").mkdir(exist_ok=True)
    (root / ".cas" / "cache" / name).unlink(missing_ok=True)
    (root / ".cas" / "cache" / name).symlink_to(elsewhere / "plain")
    before = held(elsewhere)
    (root / "a.txt").write_bytes(b"three\n")
    use(root)
    assert not repair_store(check_store(str(root))).faults
    assert held(elsewhere) == before


def empties_scratch(root: Path) -> None:
    with closing(Journal(str(root), UnsyncedDisk())) as journal:
        put_link(root / ".cas", "tmp", root.parent / "elsewhere" / "documents")
        with journal.writing():
            pass


def gives_room_back(root: Path) -> None:
    with closing(Journal(str(root), UnsyncedDisk())) as journal:
        put_link(root / ".cas", "cache", root.parent / "elsewhere" / "documents")
        release_reserve(journal)


def notes_calls(root: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        put_link(root / ".cas", "agents", root.parent / "elsewhere" / "documents")
        workspace.hooks.begin(AgentCall(conversation="c", id="1", tool="t", paths=None))


def opens_an_index(root: Path) -> None:
    with closing(Journal(str(root), UnsyncedDisk())) as journal:
        put_link(root / ".cas", "index.sqlite", root.parent / "elsewhere" / "database")
        with journal.reading():
            pass


def looks_at_segments(root: Path) -> None:
    with closing(Journal(str(root), UnsyncedDisk())) as journal:
        put_link(root / ".cas", "segments", root.parent / "elsewhere" / "documents")
        with journal.writing():
            pass


@pytest.mark.parametrize("act", [empties_scratch, gives_room_back, notes_calls, opens_an_index, looks_at_segments])
def test_a_link_that_is_added_to_an_open_store_is_refused_too(
    root: Path, elsewhere: Path, act: Callable[[Path], None]
) -> None:
    use(root)
    before = held(elsewhere)
    with pytest.raises(StoreLinked):
        act(root)
    assert held(elsewhere) == before


def test_leftovers_of_an_interrupted_creation_are_not_removed_through_a_link(tmp_path: Path, elsewhere: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    (root / creation_folder_name()).symlink_to(elsewhere / "documents")
    before = held(elsewhere)
    Workspace.init(root, UnsyncedDisk()).close()
    assert held(elsewhere) == before


@pytest.mark.parametrize("name", [*FILES, "segments/00000001.seg"])
def test_a_file_of_the_store_with_a_name_outside_is_never_written_to(root: Path, tmp_path: Path, name: str) -> None:
    with Workspace.open(root) as workspace:
        write(workspace, "a.txt", b"one\n")
    outside, path = tmp_path / "outside", root / ".cas" / name
    if not path.exists():
        path.write_bytes(b"")
    os.link(path, outside)
    before = outside.read_bytes()
    with pytest.raises(StoreHardLinked, match=path.name):
        use(root)
    assert outside.read_bytes() == before
    path.unlink()
    path.write_bytes(before)  # as the message says
    use(root)
    assert outside.read_bytes() == before


def test_a_file_that_a_crash_left_with_two_names_in_the_store_is_used(root: Path) -> None:
    store = root / ".cas"
    os.link(store / "applied", store / "applied.0123456789abcdef")  # between the two steps that make it
    use(root)


MAKING: Final = ".cas.0123456789abcdef"


@pytest.mark.parametrize("holds", ["file", "store", "proof of another name", "nothing"])
def test_unrelated_folder_is_not_mistaken_for_a_leftover(root: Path, tmp_path: Path, holds: str) -> None:
    new = tmp_path / "new"
    own = new / MAKING
    new.mkdir()
    if holds == "store":
        (root / ".cas").rename(own)
    else:
        own.mkdir(mode=0o755)
    if holds == "file":
        (own / "thesis.txt").write_bytes(PRECIOUS)
    if holds == "proof of another name":
        (own / "making").write_bytes(b".cas.fedcba9876543210\n")
    before = held(own)
    Workspace.init(new, UnsyncedDisk()).close()
    assert own.is_dir()
    assert held(own) == before


@pytest.mark.parametrize("holds", [{}, {"making": b".cas.0123456789abcdef\n", "lock": b""}])
def test_leftovers_of_a_killed_creation_are_removed(tmp_path: Path, holds: dict[str, bytes]) -> None:
    left = tmp_path / "new" / MAKING
    left.parent.mkdir()
    left.mkdir(mode=0o700)
    for name, content in holds.items():
        (left / name).write_bytes(content)
    Workspace.init(tmp_path / "new", UnsyncedDisk()).close()
    assert not left.exists()
    assert not (tmp_path / "new" / ".cas" / "making").exists()


# ---- what is neither a file nor a folder, nor a link


def put_pipe(path: Path) -> None:
    os.mkfifo(path)


def put_socket(path: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as listening, contextlib.chdir(path.parent):
        listening.bind(path.name)


def put_folder(path: Path) -> None:
    path.mkdir()


def put(path: Path, kind: Callable[[Path], None]) -> None:
    """Replace a file, which may be missing, by something else."""
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    kind(path)


@pytest.mark.parametrize("name", FILES)
def test_a_pipe_in_the_place_of_a_file_is_refused_without_waiting(root: Path, name: str) -> None:
    put(root / ".cas" / name, put_pipe)
    for look in (use, lambda root: check_store(str(root))):
        with pytest.raises(StoreNotRegular, match=name):
            look(root)


@pytest.mark.parametrize("kind", [put_pipe, put_socket, put_folder])
@pytest.mark.parametrize("name", ["cache/looks", "cache/seen", "cache/weave-1", "agents/session-x"])
def test_a_derived_file_is_ignored_if_its_name_is_no_file(root: Path, name: str, kind: Callable[[Path], None]) -> None:
    put(root / ".cas" / name, kind)
    use(root)
    assert check_store(str(root)).faults == ()
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        assert workspace.history.blame("a.txt")


@pytest.mark.parametrize("kind", [put_pipe, put_socket, put_folder])
def test_applied_marker_that_is_not_a_file_is_named(root: Path, kind: Callable[[Path], None]) -> None:
    put(root / ".cas" / "applied", kind)
    with pytest.raises(StoreNotRegular, match="applied"):
        use(root)


@pytest.mark.parametrize("name", ["tmp/folder", "cache/looks"])
def test_a_folder_among_temporary_files_blocks_nothing(root: Path, name: str) -> None:
    """One at `cache/looks` trades places with the file that is written for it, and so comes into `tmp` itself."""
    folder = root / ".cas" / name
    folder.parent.mkdir(exist_ok=True)
    if folder.exists():
        folder.unlink()
    folder.mkdir()
    (folder / "inner").mkdir()
    for _ in range(2):
        use(root)
    with Workspace.open(root) as workspace:
        workspace.decide(Action.REJECT, [Unit(Seq(1), 0)], dry_run=True)
    assert repair_store(check_store(str(root))).faults == ()
