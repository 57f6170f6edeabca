"""Make the seed corpora anew from real stores: `python -m fuzz.seeds`. Needed when the format changes."""

import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fuzz.__main__ import CORPUS
from objstore import Action, CallInfo, Operation, Unit, Workspace
from objstore.disk import Disk
from objstore.frames import FRAME_HEADER_SIZE, SEGMENT_HEADER_SIZE, FrameKind
from objstore.ids import blob_id
from objstore.recordcodec import encode_record
from objstore.records import Void
from objstore.segments import Log
from objstore.terms import Seq

_TEXT: Final = b"".join(b"line %d\n" % i for i in range(40))


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A short history."""

    name: str
    play: Callable[[Workspace], None]


def _write(workspace: Workspace, *contents: tuple[str, bytes], mode: int | None = None) -> None:
    notes = {"client": "seed", "model": "none"}
    with workspace.call(CallInfo(tool="write_file", conversation="conv_1_seed", notes=notes)) as call:
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
    edits = workspace.edits()
    workspace.decide(Action.REJECT, [Unit(edits[-1].seq, 0)], reason="not that one", who="seed")
    workspace.decide(Action.ACCEPT, [Unit(edits[0].seq, 0)])
    workspace.undo()


STORIES: Final = (
    Story(name="new", play=_nothing),
    Story(name="one-file", play=_one_file),
    Story(name="deltas", play=_deltas),
    Story(name="all-sorts", play=_all_sorts),
    Story(name="decisions", play=_decisions),
)


def segment_of(story: Story) -> bytes:
    """Return the segment that the story leaves."""
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


def damaged(segment: bytes) -> dict[str, bytes]:
    """Return what may become of a segment, by what it suffered."""
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
    records.append(encode_record(Void(time=1, edits=(Seq(1), Seq(2)), decision=0, reason="no room"), None))
    seeds |= {("record", f"{i:02d}"): encoded for i, encoded in enumerate(records)}
    seeds |= {("record", f"{i:02d}-cut"): encoded[: len(encoded) // 2] for i, encoded in enumerate(records)}
    seeds[("record", "empty")] = b""
    seeds[("record", "no-map")] = b"\x93\x01\x02\x03"
    for old in CORPUS.glob("*/*"):
        old.unlink()
    for (target, name), data in sorted(seeds.items()):
        (CORPUS / target).mkdir(parents=True, exist_ok=True)
        (CORPUS / target / name).write_bytes(data)


if __name__ == "__main__":
    main()
