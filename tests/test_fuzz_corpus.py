"""The fuzz targets hold for every input of their corpora, and for inputs made from these at random."""

import random
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, strategies as st

from fuzz.__main__ import CORPUS, changed
from fuzz.seeds import STORIES, Story, segment_of
from fuzz.targets import TARGETS
from objstore.model.record_codec import decode_record
from objstore.model.records import Record
from objstore.storage.log.frames import SEGMENT_HEADER_SIZE, Gap, SegmentHeader, frame_key
from tests.support.segment_scans import scan

INPUTS = sorted(CORPUS.glob("*/*"))


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@pytest.mark.parametrize("path", INPUTS, ids=name_of)
def test_target_accepts_its_corpus(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("name", sorted(TARGETS))
@given(seed=st.integers(0, 2**32))
def test_target_accepts_changed_inputs(name: str, seed: int) -> None:
    corpus = [path.read_bytes() for path in INPUTS if path.parent.name == name]
    TARGETS[name](changed(random.Random(seed), corpus))


def test_every_corpus_has_a_target_and_is_small() -> None:
    assert {path.parent.name for path in INPUTS} == set(TARGETS)
    assert sum(path.stat().st_size for path in INPUTS) < 200_000


def test_corpus_contains_every_kind_of_record() -> None:
    whole = [path for path in INPUTS if path.parent.name == "record" and path.name.isdigit()]
    kinds = {type(decode_record(path.read_bytes())[0]).__name__ for path in whole}
    assert kinds == {record.__name__ for record in get_args(Record)}


def whole_frames(segment: bytes) -> int:
    """Return the number of a segment's frames, none of which may be damaged."""
    header = SegmentHeader.decode(segment[:SEGMENT_HEADER_SIZE], segment=1)
    found = list(scan(segment, frame_key(header.store), SEGMENT_HEADER_SIZE))
    assert not any(isinstance(item, Gap) for item in found)
    return len(found)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_corpus_contains_segments_in_the_current_format(story: Story) -> None:
    assert whole_frames((CORPUS / "segment" / story.name).read_bytes()) == whole_frames(segment_of(story))
