"""Test which recorded changes a recovery applies, of records that changed no file or say what git did."""

from pathlib import Path

import pytest

from objstore import Action, Operation, Origin, Seq, Status, Unit, Workspace, check_store
from objstore.model.basic_types import DocumentId, FileState
from objstore.model.ids import blob_id
from objstore.model.records import Decision, Edit, Record, WrittenFile
from objstore.storage.recovery.roll_forward import void_record
from objstore.storage.store.write_batch import Batch
from objstore.text.hunks import Hunk
from objstore.values.clock import now
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import UnsyncedDisk

ONE, TWO = b"one\n", b"one\ntwo\n"


def state(content: bytes) -> FileState:
    return FileState(blob=blob_id(content), mode=0o644)


def decision(
    action: Action, before: bytes, after: bytes, verdict: tuple[Unit, Status] = (Unit(Seq(1), 0), Status.ACCEPTED)
) -> Decision:
    return Decision(
        number=1,
        time=now(),
        action=action,
        verdicts=(verdict,),
        written=(
            WrittenFile(
                document=DocumentId(1),
                path_before=b"a",
                before=state(before),
                path_after=b"a",
                after=state(after),
            ),
        ),
        who="",
    )


def edit(origin: Origin) -> Edit:
    return Edit(
        seq=Seq(2),
        document=DocumentId(1),
        time=now(),
        conversation="c",
        call=1,
        ordinal=0,
        operation=Operation.REPLACE,
        path=b"a",
        before=state(ONE),
        after=state(TWO),
        hunks=(Hunk(1, 0, 1, 1),),
        added=1,
        origin=origin,
        tool="",
    )


def crashed(root: Path, record: Record, *contents: bytes, after_power_cut: bool) -> None:
    """Leave a workspace in which a process recorded something and died before it changed a file.

    `contents`: what the file was given one after another before that.
    """
    with Workspace.init(root, UnsyncedDisk()) as workspace:
        for content in contents:
            write(workspace, "a", content)
        (root / "a").chmod(0o644)
        journal = workspace._journal  # noqa: SLF001 - a process that dies has no public name
        with journal.writing() as batch:
            batch.blob(TWO)
            batch.record(record)
            batch.commit()
    if after_power_cut:
        (root / ".cas" / "applied").unlink()


@pytest.mark.parametrize("after_power_cut", [False, True], ids=["killed", "power cut"])
@pytest.mark.parametrize(
    ("contents", "record"),
    [
        ((ONE,), decision(Action.ACCEPT, ONE, ONE)),
        ((ONE, TWO), decision(Action.GIT, TWO, ONE, (Unit(Seq(2), 1), Status.AWAY))),
        ((ONE,), edit(Origin.GIT)),
    ],
    ids=["a state that stays", "a change by git", "an edit of git"],
)
def test_a_recovery_leaves_the_file_as_it_is(
    tmp_path: Path, contents: tuple[bytes, ...], record: Record, *, after_power_cut: bool
) -> None:
    crashed(tmp_path, record, *contents, after_power_cut=after_power_cut)
    before = (tmp_path / "a").stat()
    with Workspace.open(tmp_path, UnsyncedDisk()) as workspace:
        write(workspace, "b", b"later\n")
        assert (tmp_path / "a").read_bytes() == contents[-1]
        assert (tmp_path / "a").stat().st_ino == before.st_ino
    assert check_store(str(tmp_path)).faults == ()


@pytest.mark.parametrize("record", [decision(Action.REJECT, ONE, TWO), edit(Origin.AGENT)], ids=["decision", "edit"])
def test_a_recovery_applies_any_other_change(tmp_path: Path, record: Record) -> None:
    crashed(tmp_path, record, ONE, after_power_cut=False)
    with Workspace.open(tmp_path, UnsyncedDisk()):
        assert (tmp_path / "a").read_bytes() == TWO


@pytest.mark.parametrize("origin", list(Origin))
def test_what_was_found_stays_when_its_group_is_rolled_back(tmp_path: Path, origin: Origin) -> None:
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace:
        write(workspace, "a", ONE)
        batch = Batch(workspace._journal.store)  # noqa: SLF001 - as above
        batch.blob(TWO)
        batch.record(edit(origin))
        void = void_record(batch.commit(), "the disk said no")
    assert void.edits == (() if origin.is_found else (2,))
