"""Trees: each folder has one encoding, and a comparison yields exactly what differs."""

import stat
import sys

import msgpack
import pytest
from hypothesis import given, strategies as st

from objstore.model.ids import BlobId, blob_id
from objstore.model.tree import (
    FOLDER,
    LINK,
    ExcludedEntry,
    TreeChange,
    TreeEntry,
    TreeFolder,
    decode_tree,
    encode_tree,
    entry_at,
    named_blobs,
    names_of,
    tree_changes,
    tree_files,
    walk_trees,
)
from objstore.values.errors import TreeInvalid

BLOB = blob_id(b"some bytes")
NEVER = {b".", b"..", b".cas", b".git", b".hg", b".svn", b".jj"}
NAMES = st.binary(min_size=1, max_size=6).filter(lambda name: not set(name) & set(b"/\0") and name.lower() not in NEVER)
MODES = st.sampled_from([FOLDER, LINK, stat.S_IFREG | 0o644, stat.S_IFREG | 0o755, stat.S_IFREG, stat.S_IFREG | 0o7777])
BLOBS = st.binary(min_size=32, max_size=32).map(BlobId)
ENTRIES = st.one_of(NAMES.map(ExcludedEntry), st.builds(TreeEntry, NAMES, MODES, BLOBS))
FOLDERS = st.lists(ENTRIES, max_size=6, unique_by=lambda entry: entry.name)

Nested = dict[bytes, "bytes | Nested"]
"""Folders with files, as the test writes them: bytes are a file's."""


@given(FOLDERS)
def test_decoding_inverts_encoding_in_order(entries: list[TreeEntry | ExcludedEntry]) -> None:
    assert decode_tree(encode_tree(entries)) == tuple(sorted(entries, key=lambda entry: entry.name))


@given(FOLDERS)
def test_an_entry_that_is_read_alone_is_that_of_the_decoded_tree(entries: list[TreeEntry | ExcludedEntry]) -> None:
    encoded = encode_tree(entries)
    for entry in decode_tree(encoded):
        assert TreeFolder(encoded).get(entry.name + b"!") in {None, *entries}
    folder = TreeFolder(encoded)
    assert tuple(folder.values()) == decode_tree(encoded)
    assert folder == {entry.name: entry for entry in entries}
    assert folder.leaves_names_out() is any(isinstance(entry, ExcludedEntry) for entry in entries)


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\x80",
        encode_tree(())[:-1],
        msgpack.packb({"kind": "tree", "entries": 7}),
        msgpack.packb({"kind": "tree", "entries": [7]}),
        msgpack.packb({"kind": "tree", "entries": [[]]}),
        msgpack.packb({"kind": "tree", "entries": [["a"]]}),
        msgpack.packb({"kind": "tree", "entries": [[b"b"], [b"a"]]}),
        msgpack.packb({"kind": "tree", "entries": [[b"a"], [b"a"]]}),
    ],
)
def test_what_is_no_tree_is_refused_where_a_part_of_it_is_read(damaged: bytes) -> None:
    with pytest.raises(TreeInvalid):
        list(TreeFolder(damaged))


def test_questions_that_the_bytes_answer_do_not_read_a_large_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    # A blob that looks like an excluded entry with another entry behind it, and a name that others contain.
    odd = BlobId(b"\x91\xc4\x1b" + bytes(27) + b"\x93\xc4")
    entries = [TreeEntry(b"f%d.py" % at, stat.S_IFREG | 0o644, odd) for at in range(1_000)]
    folder = TreeFolder(encode_tree(entries))
    with monkeypatch.context() as without:
        without.setattr("objstore.model.tree.unpack", None)
        assert folder.get(b"f1000.py") is folder.get(b"1.py") is folder.get(b"f1.pyc") is None
        assert not folder.leaves_names_out()
    assert [folder.get(entry.name) for entry in entries] == entries
    for name in (b"a", b"f1.pyc", b"z" * 300):  # first, between others and last
        assert TreeFolder(encode_tree([*entries, ExcludedEntry(name)])).leaves_names_out()
        assert TreeFolder(encode_tree([ExcludedEntry(name)])).leaves_names_out()


@given(FOLDERS)
def test_names_of_returns_the_blobs_of_the_decoded_tree(entries: list[TreeEntry | ExcludedEntry]) -> None:
    encoded = encode_tree(entries)
    assert names_of(encoded) == list(named_blobs(decode_tree(encoded)))


@pytest.mark.parametrize(
    "damaged", [b"", b"\x80", encode_tree(())[:-1], msgpack.packb({"entries": [1], "kind": "tree"})]
)
def test_names_of_refuses_what_is_not_a_tree(damaged: bytes) -> None:
    with pytest.raises(TreeInvalid):
        names_of(damaged)


@given(FOLDERS)
def test_the_order_of_the_given_names_does_not_change_the_encoding(entries: list[TreeEntry | ExcludedEntry]) -> None:
    assert encode_tree(entries[::-1]) == encode_tree(entries)


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        {"kind": "tree"},
        {"kind": "edit", "entries": []},
        {"entries": [], "kind": "tree", "more": 1},
        {"entries": [[b"b"], [b"a"]], "kind": "tree"},
        {"entries": [[b"a"], [b"a"]], "kind": "tree"},
        {"entries": [["a"]], "kind": "tree"},
        {"entries": [[]], "kind": "tree"},
        {"entries": [[b""]], "kind": "tree"},
        {"entries": [[b"a/b"]], "kind": "tree"},
        {"entries": [[b"a\0"]], "kind": "tree"},
        {"entries": [[b".."]], "kind": "tree"},
        {"entries": [[b"."]], "kind": "tree"},
        {"entries": [[b".cas", FOLDER, BLOB]], "kind": "tree"},
        {"entries": [[b".git", FOLDER, BLOB]], "kind": "tree"},
        {"entries": [[b".Git", stat.S_IFREG | 0o644, BLOB]], "kind": "tree"},
        {"entries": [[b".hg"]], "kind": "tree"},
        {"entries": [[b"a", FOLDER]], "kind": "tree"},
        {"entries": [[b"a", FOLDER | 0o755, BLOB]], "kind": "tree"},
        {"entries": [[b"a", LINK | 0o777, BLOB]], "kind": "tree"},
        {"entries": [[b"a", 0o644, BLOB]], "kind": "tree"},
        {"entries": [[b"a", True, BLOB]], "kind": "tree"},
        {"entries": [[b"a", stat.S_IFIFO, BLOB]], "kind": "tree"},
        {"entries": [[b"a", FOLDER, BLOB[:-1]]], "kind": "tree"},
        {"entries": [[b"a", FOLDER, BLOB, BLOB]], "kind": "tree"},
    ],
    ids=repr,
)
def test_anything_but_a_well_formed_tree_is_refused(value: object) -> None:
    with pytest.raises(TreeInvalid):
        decode_tree(msgpack.packb(value))


@given(FOLDERS, st.integers(0, 10**6), st.integers(1, 255))
def test_a_flipped_byte_is_refused_or_another_tree(
    entries: list[TreeEntry | ExcludedEntry], at: int, flip: int
) -> None:
    encoded = bytearray(encode_tree(entries))
    encoded[at % len(encoded)] ^= flip
    try:
        decoded = decode_tree(bytes(encoded))
    except TreeInvalid:
        return
    assert encode_tree(decoded) == bytes(encoded)


class Shelf(dict[BlobId, bytes]):
    """Trees by their ids; it records which were loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[BlobId] = []

    def put(self, folder: Nested) -> BlobId:
        """Store a folder with all below it."""
        entries = [
            TreeEntry(name, stat.S_IFREG | 0o644, blob_id(held))
            if isinstance(held, bytes)
            else TreeEntry(name, FOLDER, self.put(held))
            for name, held in folder.items()
        ]
        encoded = encode_tree(entries)
        self[blob_id(encoded)] = encoded
        return blob_id(encoded)

    def load(self, name: BlobId) -> bytes:
        """Return a tree."""
        self.loaded.append(name)
        return self[name]


def flat(folder: Nested, prefix: bytes = b"") -> dict[bytes, bytes]:
    """Return every file with its path."""
    found: dict[bytes, bytes] = {}
    for name, held in folder.items():
        found |= {prefix + name: held} if isinstance(held, bytes) else flat(held, prefix + name + b"/")
    return found


WORDS = st.sampled_from([b"a", b"b", b"c"])
NESTED: st.SearchStrategy[Nested] = st.recursive(
    st.dictionaries(WORDS, st.sampled_from([b"1", b"2"]), max_size=3),
    lambda inner: st.dictionaries(WORDS, inner | st.sampled_from([b"1", b"2"]), max_size=3),
    max_leaves=12,
)


def differences(changes: list[TreeChange]) -> dict[bytes, tuple[BlobId | None, BlobId | None]]:
    """Return the changes of files by path."""

    def blob(entry: TreeEntry | ExcludedEntry | None) -> BlobId | None:
        return entry.blob if isinstance(entry, TreeEntry) else None

    return {change.path: (blob(change.before), blob(change.after)) for change in changes}


@given(NESTED, NESTED)
def test_a_comparison_yields_each_differing_path_and_no_other(before: Nested, after: Nested) -> None:
    shelf = Shelf()
    old, new = flat(before), flat(after)
    wanted = {
        path: (blob_id(old[path]) if path in old else None, blob_id(new[path]) if path in new else None)
        for path in old.keys() | new.keys()
        if old.get(path) != new.get(path)
    }
    assert differences(list(tree_changes(shelf.put(before), shelf.put(after), shelf.load))) == wanted


@given(NESTED)
def test_tree_files_yields_every_file(folder: Nested) -> None:
    shelf = Shelf()
    root = shelf.put(folder)
    assert [path for path, _ in tree_files(root, shelf.load)] == sorted(flat(folder), key=lambda path: path.split(b"/"))


def test_folders_that_are_the_same_are_not_loaded() -> None:
    shelf = Shelf()
    same: Nested = {b"x": {b"deep": b"1"}}
    before, after = shelf.put({b"same": same, b"f": b"1"}), shelf.put({b"same": same, b"f": b"2"})
    assert [change.path for change in tree_changes(before, after, shelf.load)] == [b"f"]
    assert shelf.loaded == [before, after]


def test_every_blob_is_named_with_whether_it_is_a_tree() -> None:
    tree = (TreeEntry(b"a", FOLDER, BLOB), TreeEntry(b"b", LINK, BLOB), ExcludedEntry(b"c"))
    assert list(named_blobs(tree)) == [(BLOB, True), (BLOB, False)]


def test_folders_may_be_nested_beyond_the_recursion_limit() -> None:
    deep = 3 * sys.getrecursionlimit()
    stored: dict[BlobId, bytes] = {}
    roots = []
    for content in (b"1", b"2"):
        entry = TreeEntry(b"f", stat.S_IFREG | 0o644, blob_id(content))
        for _ in range(deep + 1):
            encoded = encode_tree([entry])
            stored[blob_id(encoded)] = encoded
            entry = TreeEntry(b"a", FOLDER, blob_id(encoded))
        roots.append(entry.blob)
    (change,) = tree_changes(roots[0], roots[1], stored.__getitem__)
    assert change.path == b"a/" * deep + b"f"
    assert [path for path, _ in tree_files(roots[0], stored.__getitem__)] == [change.path]
    assert entry_at(roots[0], change.path, stored.__getitem__) == change.before
    assert len(list(walk_trees(roots[0], stored.__getitem__, set()))) == deep + 1


@pytest.mark.parametrize("name", [-1, 1 << 50, "text", None, [1]])
def test_names_of_refuses_an_entry_without_a_blob(name: object) -> None:
    with pytest.raises(TreeInvalid):
        names_of(msgpack.packb({"entries": [[b"a", 0o100644, name]], "kind": "tree"}))
