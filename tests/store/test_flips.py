"""One flipped bit anywhere in `.cas`: an error, or no harm; never other data, and never a user's file changed."""

import os
import random
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from objstore import CasError, Workspace, check_store
from tests.store.golden import told
from tests.store.scenes import Files, files, rejected, write

FLIPS: Final = int(os.environ.get("CAS_FLIPS", "12"))
"""In each file that is too long for every byte to be tried."""

SHORT: Final = 64
EDITS: Final = 70
"""Of one file: more than are replayed without its weave being kept."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], Files]:
    """Return a workspace with every file that `.cas` may have, what it tells, and the user's files."""
    root = tmp_path_factory.mktemp("whole")
    with Workspace.init(root) as workspace:
        for at in range(EDITS):
            write(workspace, "a.txt", b"".join(b"line %d %d\n" % (i, at * (i == at % 40)) for i in range(50)))
        write(workspace, "b.txt", b"b\n")
        rejected(workspace, EDITS)
        workspace.keep_documents()
        workspace.take_snapshot(who="somebody")
    with Workspace.open(root) as workspace:
        return root, told(workspace), files(root)


IN_THE_LOG: Final = ("records",)
"""What is told from the log itself, and not by way of the index."""

KINDS: Final = ("segments/*", "applied", "cache/weave-*", "cache/looks*", "index.sqlite")


@pytest.mark.parametrize("kind", [*KINDS, "*"])
def test_a_flipped_bit_is_an_error_or_does_no_harm(
    whole: tuple[Path, dict[str, Any], Files], kind: str, tmp_path: Path
) -> None:
    root, expected, expected_files = whole
    for path in sorted((root / ".cas").glob(kind)):
        size = path.stat().st_size if path.is_file() else 0
        if kind == "*" and any(path.match(name) for name in KINDS):
            continue
        chance = random.Random(path.name)
        for offset in range(size) if size <= SHORT else chance.sample(range(size), FLIPS):
            copy = tmp_path / "copy"
            shutil.copytree(root, copy)
            spoilt = bytearray(path.read_bytes())
            spoilt[offset] ^= 1 << chance.randrange(8)
            (copy / path.relative_to(root)).write_bytes(spoilt)
            found = _told_or_refused(copy)
            if found is not None and kind == "index.sqlite":
                # The index has no sums of its own: what it alone holds is true only as far as fsck says so.
                assert [found[name] for name in IN_THE_LOG] == [expected[name] for name in IN_THE_LOG]
                found = expected if check_store(str(copy)).faults else found
            assert found in (expected, None), f"{path.name}, byte {offset}"
            assert files(copy) == expected_files, f"{path.name}, byte {offset}"
            shutil.rmtree(copy)


def test_every_kind_of_file_is_there(whole: tuple[Path, dict[str, Any], Files]) -> None:
    for kind in KINDS:
        assert list((whole[0] / ".cas").glob(kind)), kind


def _told_or_refused(root: Path) -> dict[str, Any] | None:
    """Return what the store tells, hunks' weaves included (None: it says that something is wrong)."""
    try:
        with Workspace.open(root) as workspace:
            workspace.blame("a.txt")
            return told(workspace)
    except CasError:
        return None
