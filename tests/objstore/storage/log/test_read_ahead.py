"""Test that reading in large pieces gives the same frames as reading one by one."""

import random
from pathlib import Path

import pytest

from objstore.disk.fs.disk import Disk
from objstore.storage.log.blob_codec import encode_blob
from objstore.storage.log.frames import FrameKind
from objstore.storage.log.segment_files import Place
from objstore.storage.log.segments import Log, ReadAhead, create_log
from objstore.values.errors import StoreDamaged


@pytest.fixture
def log(tmp_path: Path) -> Log:
    create_log(str(tmp_path), Disk())
    return Log(str(tmp_path), Disk())


def filled(log: Log, sizes: list[int]) -> dict[Place, tuple[FrameKind, bytes]]:
    """Append groups of a blob and a record, and return every frame by its place."""
    found: dict[Place, tuple[FrameKind, bytes]] = {}
    end, draw = log.first, random.Random(3)
    for size in sizes:
        frames = [(FrameKind.BLOB, encode_blob(draw.randbytes(size))[1]), (FrameKind.RECORD, draw.randbytes(20))]
        group = log.append(end, frames)
        found |= {Place(group.segment, frame.offset): each for frame, each in zip(group.frames, frames, strict=True)}
        end = group.end
    return found


def test_frames_are_the_same_in_any_order(log: Log) -> None:
    frames = filled(log, [10, 50, 3_000, 10, 2 << 20, 10, 70_000, *range(200)])
    ahead, upwards = ReadAhead(log), sorted(frames)
    orders = [upwards, upwards[::-1], upwards[::7], random.Random(1).sample(upwards, len(upwards))]
    for place in (place for order in orders for place in order):
        kind, payload = frames[place]
        assert ahead.payload(place, kind) == payload


@pytest.mark.parametrize("at", [0, 4, 8, 16, 33])
def test_damage_is_reported_as_by_a_single_read(log: Log, tmp_path: Path, at: int) -> None:
    """In the marker, the kind, the length, the checksum, the payload; frames around it are still read."""
    frames = filled(log, [100] * 20)
    places = sorted(frames)
    (segment,) = tmp_path.glob("*.seg")
    content = bytearray(segment.read_bytes())
    content[places[10].position + at] ^= 1
    segment.write_bytes(content)
    ahead = ReadAhead(log)
    for place in places:
        kind, payload = frames[place]
        if place == places[10]:
            with pytest.raises(StoreDamaged):
                log.read(place)
            with pytest.raises(StoreDamaged):
                ahead.payload(place, kind)
        else:
            assert ahead.payload(place, kind) == payload


def test_a_frame_of_another_kind_is_refused(log: Log) -> None:
    frames = filled(log, [100])
    for place, (kind, _) in frames.items():
        other = FrameKind.RECORD if kind is FrameKind.BLOB else FrameKind.BLOB
        with pytest.raises(StoreDamaged, match="kind"):
            ReadAhead(log).payload(place, other)
