"""Status: it tells what it can, whatever happened to a file or to the index."""

import os
from contextlib import closing

import pytest

from objstore import CallInfo, Workspace
from objstore.disk import Disk
from objstore.inspection import stats
from objstore.journal import Journal
from tests.workspace.scene import TEN, Scene

OVER_THE_LIMIT = (256 << 30) + 1


def test_a_file_that_became_too_large_to_read_is_told_and_the_rest_too(scene: Scene) -> None:
    scene.write("large", TEN)
    scene.write("other", TEN)
    os.truncate(scene.root / "large", OVER_THE_LIMIT)
    (scene.root / "other").write_bytes(b"by hand\n")
    report = scene.workspace.status()
    assert [change.path for change in report.external] == ["other"]
    (sentence,) = report.unreadable
    assert sentence.startswith("large: ")
    assert str(OVER_THE_LIMIT) in sentence


@pytest.mark.parametrize("names", [["index.sqlite"], ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"]])
def test_the_index_may_be_deleted_under_a_process_that_goes_on(scene: Scene, names: list[str]) -> None:
    scene.write("f", TEN)
    for name in names:
        (scene.root / ".cas" / name).unlink(missing_ok=True)
    scene.write("f", TEN + b"more\n")
    assert len(scene.workspace.edits()) == 2
    with Workspace.open(scene.root) as other:
        assert [view.id for view in other.edits()] == [view.id for view in scene.workspace.edits()]


def test_a_call_is_committed_once(scene: Scene) -> None:
    with scene.workspace.call(CallInfo(tool="t")) as call:
        call.write("f", TEN)
        call.commit()
        with pytest.raises(RuntimeError, match="once"):
            call.commit()


def test_numbers_are_those_of_one_moment_while_others_go_on(scene: Scene) -> None:
    scene.write("f", TEN)
    with closing(Journal(str(scene.root), Disk())) as journal:
        with journal.reading():
            scene.write("g", TEN)
            found = stats(journal)
        assert (list(found.files), found.tools["test"].edits) == (["f"], 1)
        with journal.reading():
            assert list(stats(journal).files) == ["f", "g"]
