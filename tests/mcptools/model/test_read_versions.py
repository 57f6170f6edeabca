"""The versions that sessions have seen take a bounded amount of memory, however many clients there are."""

import pytest

from mcptools.model.read_versions import KeptBytes, ReadVersions
from objstore import BlobId

FILE = ("/root", "f")


def version(number: int) -> BlobId:
    return BlobId(number.to_bytes(32, "big"))


def test_all_sessions_together_keep_no_more_bytes_than_the_limit() -> None:
    kept = KeptBytes(most=1_000)
    sessions = [ReadVersions(kept) for _ in range(50)]
    for number, session in enumerate(sessions):
        session.note(FILE, version(number))
        session.keep(FILE, version(number), bytes(100))
    found = [session.content(FILE, version(number)) for number, session in enumerate(sessions)]
    assert found == [None] * 40 + [bytes(100)] * 10  # the oldest go first
    assert [list(session.versions(FILE)) for session in sessions] == [[version(number)] for number in range(50)]


def test_equal_versions_of_two_sessions_are_kept_once() -> None:
    kept = KeptBytes(most=1_000)
    one, other = ReadVersions(kept), ReadVersions(kept)
    for session in (one, other):
        session.keep(FILE, version(1), bytes(600))
    one.keep(FILE, version(2), bytes(400))
    assert [other.content(FILE, version(number)) for number in (1, 2)] == [bytes(600), bytes(400)]
    assert one.content(("/other root", "f"), version(1)) is None  # it has a store of its own


@pytest.mark.parametrize("size", [1_001, 5_000])
def test_bytes_beyond_the_limit_push_nothing_out(size: int) -> None:
    kept = KeptBytes(most=1_000)
    session = ReadVersions(kept)
    session.keep(FILE, version(1), bytes(1_000))
    session.keep(FILE, version(2), bytes(size))
    assert session.content(FILE, version(1)) == bytes(1_000)
    assert session.content(FILE, version(2)) is None
