"""Write the seed corpora again from real stores: `python -m fuzz.seeds`. Needed when the format changes."""

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from zstandard import ZstdDecompressor

from fuzz.__main__ import CORPUS
from fuzz.targets import STORE
from mcptools.edit.hashline import line_tag
from objstore import Action, CallInfo, Operation, Origin, TurnInfo, Unit, Workspace, unified_diff
from objstore.disk.fs.disk import Disk
from objstore.model.basic_types import CommentState, DocumentId, Seq
from objstore.model.ids import HASH_SIZE, BlobId, blob_id
from objstore.model.ranges import Range
from objstore.model.record_codec import encode_record
from objstore.model.records import (
    Anchor,
    Comment,
    Expiry,
    Mark,
    Pin,
    Record,
    SettingChange,
    Snapshot,
    Turn,
    Void,
)
from objstore.model.tree import names_of
from objstore.storage.log.frames import FRAME_HEADER_SIZE, SEGMENT_HEADER_SIZE, FrameKind, SegmentHeader
from objstore.storage.log.segments import Log
from objstore.worktree.stat_cache import StatCache

_KEPT_BEGIN: Final = 8 + HASH_SIZE
"""Offset of the content of a cache file: after its magic and its hash."""

_TEXT: Final = b"".join(b"line %d\n" % i for i in range(40))


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A short history."""

    name: str
    play: Callable[[Workspace], None]


def _write(workspace: Workspace, *contents: tuple[str, bytes], mode: int | None = None) -> None:
    notes = {"client": "seed", "model": "none"}
    turn = TurnInfo(session="seed", began=1, prompt="Write it", client="seed", model="none")
    with workspace.call(CallInfo(tool="write_file", conversation="conv_1_seed", notes=notes, turn=turn)) as call:
        for path, content in contents:
            call.write(path, content, mode=mode, operation=Operation.EDIT)
        call.commit()


def _nothing(_: Workspace) -> None:
    pass


def _one_file(workspace: Workspace) -> None:
    _write(workspace, ("a.txt", b"hello\n"))


def _deltas(workspace: Workspace) -> None:
    _write(workspace, ("a.txt", _TEXT))
    _write(workspace, ("a.txt", _TEXT.replace(b"line 7\n", b"LINE 7\n")))
    _write(workspace, ("a.txt", b"".join(blob_id(b"%d" % i) for i in range(10))))  # nothing that zstd makes shorter
    _write(workspace, ("a.txt", _TEXT * 20))


def _all_sorts(workspace: Workspace) -> None:
    _write(workspace, ("a.txt", _TEXT), ("b.bin", b"\0\xff\r\n"), ("empty", b""))
    (Path(workspace.root) / "a.txt").write_bytes(_TEXT + b"typed by a person\n")
    _write(workspace, ("a.txt", _TEXT.replace(b"line 3\n", b"") + b"no newline"), mode=0o755)
    with workspace.call(CallInfo(tool="move_file")) as call:
        call.move("b.bin", "folder/b.bin")
        call.delete("empty")
        call.commit()


def _decisions(workspace: Workspace) -> None:
    _all_sorts(workspace)
    edits = workspace.history.edits()
    workspace.decide(Action.REJECT, [Unit(edits[-1].seq, 0)], reason="not that one", who="seed")
    workspace.decide(Action.ACCEPT, [Unit(edits[0].seq, 0)])
    workspace.review.undo()


STORIES: Final = (
    Story(name="new", play=_nothing),
    Story(name="one-file", play=_one_file),
    Story(name="deltas", play=_deltas),
    Story(name="all-sorts", play=_all_sorts),
    Story(name="decisions", play=_decisions),
)


RARE_RECORDS: Final[tuple[Record, ...]] = (
    Void(time=1, edits=(Seq(1), Seq(2)), decision=0, reason="no room"),
    Snapshot(number=1, time=1, root=blob_id(b"a tree"), path=b"folder", who="seed", title="a folder"),
    Pin(number=1, time=1, edits=(Seq(1),), blobs=(blob_id(b"kept"),), who="seed", title="kept"),
    Expiry(time=1, edits=(Range(1, 3),), decisions=(Range(1, 1),), snapshots=(1,), pins=(1,), reason="old", who="seed"),
    Turn(number=1, time=1, session="s", conversation="c", client="seed", model="none", prompt="Write it"),
    Comment(
        number=2,
        time=1,
        who="seed",
        document=DocumentId(1),
        path=b"a.txt",
        first=Anchor(1, 0, 3),
        last=Anchor(0, 0, 9),
        lines=(4, 5),
        units=(Unit(Seq(1), 0), Unit(Seq(2), 1)),
        text="why?",
        answers=1,
        conversation="c",
    ),
    Mark(time=1, who="seed", comments=(1, 2), state=CommentState.SENT, conversation="c"),
    SettingChange(time=1, who="seed", name="review.external", before="accepted", after="pending"),
)
"""A record of each kind that the stories don't leave, or leave without most of its fields."""


def _long(workspace: Workspace) -> None:
    lines = [b"line %d\n" % number for number in range(9)]
    for number in range(70):
        lines[number % 9 : number % 9 + 1] = [b"edit %d\n" % number] * (number % 3)
        lines += [b"more\n"] * (number % 3 == 0)
        _write(workspace, ("f", b"".join(lines)[: -1 if number % 11 == 0 else None]))
    workspace.decide(Action.REJECT, [Unit(Seq(30), 1)])


_LONG: Final = Story(name="long", play=_long)
"""A history long enough for a cached weave; its segment would be most of the corpus."""


def segment_of(story: Story) -> bytes:
    """Return the segment that the history leaves."""
    with tempfile.TemporaryDirectory() as folder:
        with Workspace.init(folder) as workspace:
            story.play(workspace)
        (path,) = (Path(folder) / ".cas" / "segments").iterdir()
        return path.read_bytes()


def records_of(segment: bytes) -> list[bytes]:
    """Return the payloads of a segment's record frames."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "00000001.seg").write_bytes(segment)
        with closing(Log(folder, Disk())) as log:
            return [
                bytes(frame.payload)
                for group in log.groups(log.first)
                for frame in group.frames
                if frame.kind is FrameKind.RECORD
            ]


def derived_of(story: Story) -> dict[tuple[str, str], bytes]:
    """Return the trees, bundle, stat caches and weaves of a history, by target and name."""
    found: dict[tuple[str, str], bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / ".cas" / "cache"
        with Workspace.init(folder) as workspace:
            story.play(workspace)
            taken = workspace.snapshots.take(who="seed").view
            trees = {taken.root, *_folders(workspace, taken.root)}
            found |= {
                ("tree", f"{story.name}-{at}"): workspace.history.blob(tree) for at, tree in enumerate(sorted(trees))
            }
            workspace.transfer.export_bundle(f"{folder}/bundle")
            workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
            workspace.history.cache_documents()
        found["bundle", story.name] = (Path(folder) / "bundle").read_bytes()[:-HASH_SIZE]
        (path,) = (Path(folder) / ".cas" / "segments").iterdir()
        store = SegmentHeader.decode(path.read_bytes()[:SEGMENT_HEADER_SIZE], segment=1).store
        kept = StatCache.decoded((cache / "looks").read_bytes(), store, 0)
        found["looks", story.name] = kept.encoded(STORE, 0)[_KEPT_BEGIN:]
        for path in cache.glob("weave-*"):
            found["weave", f"{story.name}-{path.name}"] = ZstdDecompressor().decompress(path.read_bytes()[_KEPT_BEGIN:])
    return found


def _folders(workspace: Workspace, root: BlobId) -> Iterator[BlobId]:
    for name, is_folder in names_of(workspace.history.blob(root)):
        if is_folder:
            yield name
            yield from _folders(workspace, name)


def inputs_of_other_programs() -> dict[tuple[str, str], bytes]:
    """Return inputs written by other programs: ignore files, patches, anchored operations, and logs of mcpdiff."""
    before = b"".join(b"line %d\n" % i for i in range(12))
    after = before.replace(b"line 3\n", b"LINE 3\n").replace(b"line 9\n", b"")
    diff = unified_diff(before, after, path_before="f.txt", path_after="f.txt")
    tags = [line_tag(b"line %d\n" % i).encode() for i in range(12)]
    entry = {
        "edit_id": "e1",
        "conversation_id": "c1",
        "tool_call_index": 0,
        "timestamp": "2026-03-01T12:00:00.123Z",
        "operation": "replace",
        "file_path": "/w/f.txt",
        "source_path": None,
        "tool_name": "write_file",
        "status": "pending",
        "diff_file": "d/e1.diff",
        "checkpoint_file": None,
        "hash_before": "0" * 64,
        "hash_after": "1" * 64,
    }
    move = entry | {"operation": "move", "source_path": "/w/g.txt", "hash_after": "0" * 64}
    log_entries: list[object] = [entry, move, entry | {"status": "maybe"}, []]
    lines = [json.dumps(line).encode() for line in log_entries]
    operations = [
        b"replace\t%d:%s\t\tnew" % (2, tags[1]),
        b"replace_range\t%d:%s\t%d:%s\tone\ttwo" % (4, tags[3], 6, tags[5]),
        b"insert_after\t%d:%s\t\tmore" % (8, tags[7]),
        b"delete\t%d:%s" % (10, tags[9]),
    ]
    return {
        ("ignores", "usual"): b"# comment\n*.pyc\n/build/\n!keep.pyc\ndocs/**/*.html\n\\#odd\n[a-c]x[!d]\nfoo/**\n",
        ("ignores", "odd"): b"\xef\xbb\xbf\\!a \\ \r\n[[:alpha:]-]\n[z-a]\n[\n***/x\n\xff*\n" + b"*a" * 9,
        ("patch", "usual"): before + b"\0" + diff,
        ("patch", "crlf"): before.replace(b"\n", b"\r\n") + b"\0" + diff,
        ("patch", "two"): before + b"\0" + diff + diff.replace(b"f.txt", b"g.txt"),
        ("patch", "no-newline"): b"a\0--- f\n+++ f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n",
        ("anchored", "each"): before + b"\0" + b"\n".join(operations),
        ("anchored", "moved"): b"above\n" + before + b"\0" + operations[1],
        ("history", "log"): b"\n".join(lines),
        ("history", "diff"): before + b"\0" + diff,
        ("history", "diff-crlf"): before.replace(b"\n", b"\r\n") + b"\0" + diff,
    }


def git_indexes() -> dict[tuple[str, str], bytes]:
    """Return git's index in each of its versions."""
    paths = [b"a", b"p/pp/x", b"p/pp/yy", b"q" * 90, b"\xff/\n"]
    found: dict[tuple[str, str], bytes] = {}
    for version, hash_size in ((2, 20), (3, 20), (4, 20), (2, 32)):
        entries = b""
        for number, path in enumerate(paths):
            stat = bytes(24) + (0o100644).to_bytes(4) + bytes(12)
            is_extended = version == 3 and number == 1  # noqa: PLR2004 - the version with such flags
            flags = (len(path) | (0x4000 if is_extended else 0)).to_bytes(2) + (b"\x20\0" if is_extended else b"")
            head = stat + bytes([number]) * hash_size + flags
            if version == 4:  # noqa: PLR2004 - the version with compressed paths
                entries += head + bytes([len(paths[number - 1]) if number else 0]) + path + b"\0"
            else:
                entries += head + path + bytes(8 - (len(head) + len(path)) % 8)
        whole = b"DIRC" + version.to_bytes(4) + len(paths).to_bytes(4) + entries + bytes(hash_size)
        found["git_index", f"version-{version}-{hash_size}"] = whole
    link = b"link" + (20).to_bytes(4) + b"\x07" * 20
    plain = found["git_index", "version-2-20"]
    found["git_index", "split"] = plain[:-20] + link + plain[-20:]
    return found


def damaged(segment: bytes) -> dict[str, bytes]:
    """Return damaged variants of a segment, by the kind of damage."""
    third = len(segment) // 3
    return {
        "cut": segment[: len(segment) - 7],
        "flipped": segment[:third] + bytes([segment[third] ^ 4]) + segment[third + 1 :],
        "zeroed": segment[:third] + bytes(60) + segment[third + 60 :],
        "headless": segment[SEGMENT_HEADER_SIZE:],
        "twice": segment + segment[SEGMENT_HEADER_SIZE:],
        "shifted": segment[:SEGMENT_HEADER_SIZE] + b"\0" + segment[SEGMENT_HEADER_SIZE:],
        "payload": segment[SEGMENT_HEADER_SIZE + FRAME_HEADER_SIZE :],
    }


def main() -> None:
    """Write every seed."""
    segments = {story.name: segment_of(story) for story in STORIES}
    seeds = {("segment", name): segment for name, segment in segments.items()}
    for name in ("deltas", "decisions"):
        seeds |= {("segment", f"{name}-{how}"): spoilt for how, spoilt in damaged(segments[name]).items()}
    records = records_of(segments["decisions"])
    records += [encode_record(record, None) for record in RARE_RECORDS]
    seeds |= {("record", f"{i:02d}"): encoded for i, encoded in enumerate(records)}
    seeds |= {("record", f"{i:02d}-cut"): encoded[: len(encoded) // 2] for i, encoded in enumerate(records)}
    seeds[("record", "empty")] = b""
    seeds[("record", "no-map")] = b"\x93\x01\x02\x03"
    for story in STORIES:
        seeds |= derived_of(story)
    seeds |= {where: kept for where, kept in derived_of(_LONG).items() if where[0] == "weave"}
    seeds |= inputs_of_other_programs() | git_indexes()
    for old in CORPUS.glob("*/*"):
        old.unlink()
    for (target, name), data in sorted(seeds.items()):
        (CORPUS / target).mkdir(parents=True, exist_ok=True)
        (CORPUS / target / name).write_bytes(data)


if __name__ == "__main__":
    main()
