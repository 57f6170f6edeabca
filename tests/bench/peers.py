"""Blob stores to compare with: git, dulwich, disk-objectstore, and one file for each blob."""

import hashlib
import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Protocol

from objstore import BlobId, blob_id
from objstore.agents.record import renew_baseline
from objstore.disk.fs.disk import Disk
from objstore.history.snapshots.catalog import delete
from objstore.model.records import Snapshot
from objstore.model.tree import FOLDER, TreeEntry, encode_tree
from objstore.storage.store.create import create_workspace
from objstore.storage.store.write_batch import now
from objstore.storage.transaction.journal import Journal

__all__ = ["OpenStore", "Peer", "content", "is_kept", "keys_of", "peers"]

AT_ONCE: Final = 1_000
"""Blobs that are stored together when a store is filled, and files in one folder of a tree."""

_LINES: Final = tuple(
    b"    " + hashlib.sha256(b"%d" % i).hexdigest()[: 8 + i % 40].encode() + b" = compute(%d)\n" % (i * 7919 % 9973)
    for i in range(4_000)
)
_TEXT: Final = b"".join(_LINES)


def content(number: int) -> bytes:
    """Return a text of about 2 kB that is unique for its number, made of lines shared with others."""
    at = number * 2_654_435_761 % (len(_TEXT) - 1_000)
    return b"# number %d\n" % number + _TEXT[at : at + 1_000] + _TEXT[at * 31 % (len(_TEXT) - 900) :][:900]


def is_kept(number: int) -> bool:
    """Return whether a blob is held in the end."""
    return number % 2 == 0


class OpenStore(Protocol):
    """An open store, for reading and writing single blobs."""

    def put(self, data: bytes) -> None:
        """Store a blob, durably if the peer supports it."""
        ...

    def get(self, key: str) -> bytes:
        """Return a blob."""
        ...

    def close(self) -> None:
        """Close the store."""
        ...


class Peer(Protocol):
    """One kind of blob store."""

    @property
    def name(self) -> str:
        """Return its name."""
        ...

    @property
    def most(self) -> int:
        """Return the maximal number of blobs, above which it would take too long."""
        ...

    @property
    def opening(self) -> str:
        """Return Python: imports, then a line `# open`, then what opens ROOT and reads KEY."""
        ...

    def fill(self, root: Path, count: int) -> None:
        """Create a store of the texts 0 to count - 1, of which the odd ones are no longer held."""
        ...

    def key(self, data: bytes) -> str:
        """Return the peer's id of a blob."""
        ...

    def open(self, root: Path) -> OpenStore:
        """Open the store."""
        ...

    def collect(self, root: Path) -> list[str]:
        """Return the command that removes unheld blobs."""
        ...


# ---- ours


class _Ours:
    name = "ours"
    most = 10_000_000
    opening = """
import objstore.storage.log.blob_reader, objstore.storage.log.blob_codec
from objstore.disk.fs.disk import Disk
from objstore.storage.transaction.journal import Journal
# open
journal = Journal(ROOT, Disk())
found = journal.store.blob(bytes.fromhex(KEY))
"""

    def fill(self, root: Path, count: int) -> None:
        root.mkdir()
        create_workspace(str(root), Disk())
        journal = Journal(str(root), Disk())
        folders: tuple[list[TreeEntry], list[TreeEntry]] = ([], [])
        for start in range(0, count, AT_ONCE):
            entries: tuple[list[TreeEntry], list[TreeEntry]] = ([], [])
            with journal.writing() as batch:
                for number in range(start, min(count, start + AT_ONCE)):
                    entry = TreeEntry(b"%07d" % number, 0o100644, batch.blob(content(number)))
                    entries[number % 2].append(entry)
                for mine, above in zip(entries, folders, strict=True):
                    above.append(TreeEntry(b"%07d" % start, FOLDER, batch.blob(encode_tree(mine))))
                journal.commit(batch, ())
        for number, mine in enumerate(folders, start=1):
            with journal.writing() as batch:
                root_tree = batch.blob(encode_tree(mine))
                batch.record(Snapshot(number=number, time=now(), root=root_tree, path=None, who="bench", title=""))
                journal.commit(batch, ())
        delete(journal, [2], who="bench", renew_baseline=renew_baseline)
        journal.close()

    def key(self, data: bytes) -> str:
        return blob_id(data).hex()

    def open(self, root: Path) -> OpenStore:
        return _OursOpen(Journal(str(root), Disk()))

    def collect(self, root: Path) -> list[str]:
        code = (
            "import sys\nfrom objstore.disk.fs.disk import Disk\n"
            "from objstore.storage.transaction.journal import Journal\n"
            "from objstore.upkeep.retention.compaction import compact, plan_compaction\n"
            "journal = Journal(sys.argv[1], Disk())\nassert compact(journal, plan_compaction(journal)).is_done"
        )
        return [sys.executable, "-c", code, str(root)]


class _OursOpen:
    def __init__(self, journal: Journal) -> None:
        self._journal: Final = journal

    def put(self, data: bytes) -> None:
        with self._journal.writing() as batch:
            batch.blob(data)
            self._journal.commit(batch, ())

    def get(self, key: str) -> bytes:
        return self._journal.store.read_once(BlobId(bytes.fromhex(key)))

    def close(self) -> None:
        self._journal.close()


# ---- git

_PACKS: Final = "git, packs"  # one pack that git has made of it all
_LOOSE: Final = "git, loose objects"  # what a shadow repository has that is committed to, until somebody packs it
_ITSELF: Final = "git, as it packs itself"  # the same where git packs it by and by, as each commit has it do by default


class _Git:
    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.most: Final = 10_000_000 if name == _PACKS else 1_000_000

    opening = """
import subprocess
# open
found = subprocess.run(["git", "-C", ROOT, "cat-file", "blob", KEY], check=True, capture_output=True).stdout
"""

    def fill(self, root: Path, count: int) -> None:
        subprocess.run(["git", "init", "-q", "--bare", str(root)], check=True)
        if self.name != _PACKS:
            self._fill_loose(root, count)
            return
        git = ["git", "-C", str(root)]
        with subprocess.Popen([*git, "fast-import", "--quiet"], stdin=subprocess.PIPE) as process:
            assert process.stdin is not None
            for number in range(count):
                data = content(number)
                process.stdin.write(b"blob\nmark :%d\ndata %d\n%s\n" % (number + 1, len(data), data))
            for which in (0, 1):
                process.stdin.write(b"commit refs/heads/b%d\ncommitter b <b@localhost> 1 +0000\ndata 0\n\n" % which)
                for number in range(which, count, 2):
                    where = b"%07d/%07d" % (number // AT_ONCE, number)
                    process.stdin.write(b"M 100644 :%d %s\n" % (number + 1, where))
        if process.returncode:
            raise RuntimeError("git fast-import failed")
        subprocess.run([*git, "update-ref", "-d", "refs/heads/b1"], check=True)

    def _fill_loose(self, root: Path, count: int) -> None:
        """Write each object as git would, one file each: git itself takes five times as long to unpack them."""
        git = ["git", "-C", str(root)]
        folders: tuple[list[bytes], list[bytes]] = ([], [])
        parents = [b"", b""]
        for start in range(0, count, AT_ONCE):
            entries: tuple[list[bytes], list[bytes]] = ([], [])
            for number in range(start, min(count, start + AT_ONCE)):
                entries[number % 2].append(b"100644 %07d\0" % number + _loose(root, "blob", content(number)))
            for which, mine in enumerate(entries):
                folders[which].append(b"40000 %07d\0" % (start // AT_ONCE) + _loose(root, "tree", b"".join(mine)))
                tree = _loose(root, "tree", b"".join(folders[which])).hex().encode()
                who = b"b <b@localhost> 1 +0000"
                text = b"tree %s\n%sauthor %s\ncommitter %s\n\n" % (tree, parents[which], who, who)
                commit = _loose(root, "commit", text).hex()
                (root / "refs" / "heads" / f"b{which}").write_text(commit + "\n")
                parents[which] = b"parent %s\n" % commit.encode()
            if self.name == _ITSELF:
                subprocess.run([*git, "-c", "gc.autoDetach=false", "gc", "--auto", "--quiet"], check=True)
        subprocess.run([*git, "update-ref", "-d", "refs/heads/b1"], check=True)

    def key(self, data: bytes) -> str:
        return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()

    def open(self, root: Path) -> OpenStore:
        return _GitOpen(root)

    def collect(self, root: Path) -> list[str]:
        return ["git", "-C", str(root), "gc", "--prune=now", "--quiet"]


def _loose(root: Path, kind: str, data: bytes) -> bytes:
    """Write a loose object; return its name (20 bytes)."""
    whole = b"%s %d\0" % (kind.encode(), len(data)) + data
    name = hashlib.sha1(whole, usedforsecurity=False)
    digits = name.hexdigest()
    folder = root / "objects" / digits[:2]
    folder.mkdir(exist_ok=True)  # git removes those that it has emptied
    (folder / digits[2:]).write_bytes(zlib.compress(whole, zlib.Z_BEST_SPEED))
    return name.digest()


def _piped(command: list[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


class _GitOpen:
    def __init__(self, root: Path) -> None:
        git = ["git", "-C", str(root), "-c", "core.fsync=all"]
        self._scratch: Final = root / "scratch"
        self._reader: Final = _piped([*git, "cat-file", "--batch"])
        self._writer: Final = _piped([*git, "hash-object", "-w", "--no-filters", "--stdin-paths"])

    def put(self, data: bytes) -> None:
        self._scratch.write_bytes(data)
        assert self._writer.stdin is not None
        assert self._writer.stdout is not None
        self._writer.stdin.write(os.fsencode(self._scratch) + b"\n")
        self._writer.stdin.flush()
        self._writer.stdout.readline()

    def get(self, key: str) -> bytes:
        assert self._reader.stdin is not None
        assert self._reader.stdout is not None
        self._reader.stdin.write(key.encode() + b"\n")
        self._reader.stdin.flush()
        size = int(self._reader.stdout.readline().split()[2])
        return self._reader.stdout.read(size + 1)[:-1]

    def close(self) -> None:
        for process in (self._reader, self._writer):
            process.communicate()


# ---- dulwich, on git's packs


class _Dulwich:
    name = "dulwich, git's packs"
    most = 10_000
    opening = """
from dulwich.repo import Repo
# open
repo = Repo(ROOT)
found = repo.object_store[KEY.encode()].as_raw_string()
"""

    def __init__(self) -> None:
        self._git: Final = _Git(_PACKS)

    def fill(self, root: Path, count: int) -> None:
        self._git.fill(root, count)

    def key(self, data: bytes) -> str:
        return self._git.key(data)

    def open(self, root: Path) -> OpenStore:
        return _DulwichOpen(root)

    def collect(self, root: Path) -> list[str]:
        code = "import sys\nfrom dulwich import porcelain\nporcelain.gc(sys.argv[1], prune=True, grace_period=None)"
        return [sys.executable, "-c", code, str(root)]


class _DulwichOpen:
    def __init__(self, root: Path) -> None:
        self._repo: Final[Any] = importlib.import_module("dulwich.repo").Repo(str(root))
        self._blob: Final[Any] = importlib.import_module("dulwich.objects").Blob

    def put(self, data: bytes) -> None:
        self._repo.object_store.add_object(self._blob.from_string(data))

    def get(self, key: str) -> bytes:
        return bytes(self._repo.object_store[key.encode()].as_raw_string())

    def close(self) -> None:
        self._repo.close()


# ---- disk-objectstore


class _DiskObjectStore:
    name = "disk-objectstore"
    most = 10_000_000
    opening = """
from disk_objectstore import Container
# open
found = Container(ROOT).get_object_content(KEY)
"""

    def fill(self, root: Path, count: int) -> None:
        container: Any = importlib.import_module("disk_objectstore").Container(str(root))
        container.init_container()
        for start in range(0, count, AT_ONCE):
            texts = [content(number) for number in range(start, min(count, start + AT_ONCE))]
            container.add_objects_to_pack(texts, compress=True)
        for start in range(0, count, AT_ONCE):
            gone = [self.key(content(n)) for n in range(start, min(count, start + AT_ONCE)) if not is_kept(n)]
            container.delete_objects(gone)
        container.close()

    def key(self, data: bytes) -> str:
        return hashlib.sha256(data).hexdigest()

    def open(self, root: Path) -> OpenStore:
        return _DiskObjectStoreOpen(root)

    def collect(self, root: Path) -> list[str]:
        code = "import sys\nfrom disk_objectstore import Container\nContainer(sys.argv[1]).repack()"
        return [sys.executable, "-c", code, str(root)]


class _DiskObjectStoreOpen:
    def __init__(self, root: Path) -> None:
        self._container: Final[Any] = importlib.import_module("disk_objectstore").Container(str(root))

    def put(self, data: bytes) -> None:
        self._container.add_object(data)

    def get(self, key: str) -> bytes:
        return bytes(self._container.get_object_content(key))

    def close(self) -> None:
        self._container.close()


# ---- a file for each


class _Files:
    name = "raw files"
    most = 10_000
    opening = """
import os
# open
with open(os.path.join(ROOT, KEY[:2], KEY[2:]), "rb") as file:
    found = file.read()
"""

    def fill(self, root: Path, count: int) -> None:
        root.mkdir()
        for which in range(256):
            (root / f"{which:02x}").mkdir()
        for number in range(count):
            data = content(number)
            self._path(root, self.key(data)).write_bytes(data)
        (root / "gone").write_text("\n".join(self.key(content(n)) for n in range(count) if not is_kept(n)))

    def key(self, data: bytes) -> str:
        return hashlib.sha256(data).hexdigest()

    def open(self, root: Path) -> OpenStore:
        return _FilesOpen(root, self._path)

    def collect(self, root: Path) -> list[str]:
        code = (
            "import os, sys\nroot = sys.argv[1]\n"
            "for key in open(os.path.join(root, 'gone')).read().split():\n"
            "    os.unlink(os.path.join(root, key[:2], key[2:]))"
        )
        return [sys.executable, "-c", code, str(root)]

    def _path(self, root: Path, key: str) -> Path:
        return root / key[:2] / key[2:]


class _FilesOpen:
    def __init__(self, root: Path, path: Callable[[Path, str], Path]) -> None:
        self._root: Final = root
        self._path: Final = path

    def put(self, data: bytes) -> None:
        path = self._path(self._root, hashlib.sha256(data).hexdigest())
        making = path.with_suffix(".new")
        with making.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        making.rename(path)
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def get(self, key: str) -> bytes:
        return self._path(self._root, key).read_bytes()

    def close(self) -> None:
        pass


def peers() -> list[Peer]:
    """Return our store and those of the installed peers."""
    found: list[Peer] = [_Ours()]
    if shutil.which("git") is not None:
        found += map(_Git, (_PACKS, _LOOSE, _ITSELF))
        if importlib.util.find_spec("dulwich") is not None:
            found.append(_Dulwich())
    if importlib.util.find_spec("disk_objectstore") is not None:
        found.append(_DiskObjectStore())
    return [*found, _Files()]


def keys_of(peer: Peer, numbers: Iterable[int]) -> list[str]:
    """Return the peer's ids of texts."""
    return [peer.key(content(number)) for number in numbers]
