"""What others decide is carried out once, by the rules for a person's own decisions, and by nothing else."""

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest
from obstore import put

from objstore import (
    Action,
    CallInfo,
    Carried,
    NoSuchName,
    Origin,
    RemoteDecided,
    RemoteFailed,
    RemoteRolledBack,
    Seq,
    Status,
    Unit,
    Workspace,
)
from objstore.upkeep.remote.bucket import open_bucket
from objstore.upkeep.remote.decisions import Answer, RemoteDecision, Result, Withdrawal, new_nonce, settle
from objstore.upkeep.remote.keys import LOG, Lane, new_lane, numbered, store_of
from objstore.upkeep.remote.remotes import Remotes
from objstore.values.fastclass import replace
from tests.support.faulty_disk import CountdownDisk, PowerCut, UnsyncedDisk, power_cut, sampled_steps
from tests.support.scene import TEN, observe_tree

CHANGED = TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n")
HALF = TEN.replace(b"2\n", b"two\n")
FIRST, SECOND = Unit(Seq(1), 1), Unit(Seq(1), 2)


class Team:
    """Two stores with one bucket: `desk` has the files, and `lap` decides."""

    def __init__(self, folder: Path) -> None:
        self.url = f"file://{folder}/bucket"
        self.folder = folder
        self.desk = self._made("desk")
        self.lap = self._made("lap")
        desk = self.desk
        (folder / "desk" / "a.txt").write_bytes(TEN)
        recorded(desk)
        (folder / "desk" / "a.txt").write_bytes(CHANGED)
        recorded(desk)
        desk.remotes.push("team")
        self.lap.remotes.pull("team")

    def _made(self, name: str) -> Workspace:
        (self.folder / name).mkdir()
        made = Workspace.init(self.folder / name, UnsyncedDisk())
        made.remotes.add("team", self.url)
        return made

    def decides(self, action: Action, *units: Unit, who: str = "ann", reason: str = "") -> int:
        found = self.lap.remotes.member("desk")
        assert found is not None
        shown = dict.fromkeys(units, Status.PENDING)
        return self.lap.remote_decisions.decide(*found, action, shown, who=who, reason=reason)

    def withdraws(self, number: int = 0, who: str = "ann") -> int:
        found = self.lap.remotes.member("desk")
        assert found is not None
        return self.lap.remote_decisions.withdraw(*found, number, who=who)

    def carry(self) -> list[Carried]:
        return self.desk.remote_decisions.carry("team")

    @property
    def text(self) -> bytes:
        return (self.folder / "desk" / "a.txt").read_bytes()

    def close(self) -> None:
        self.desk.close()
        self.lap.close()


def recorded(workspace: Workspace) -> None:
    workspace.record_changes(CallInfo(conversation="conv", origin=Origin.AGENT, tool="t"))


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    made = Team(tmp_path)
    yield made
    made.close()


# ---- carried out


def test_rejection_of_another_store_is_carried_out_where_the_files_are(team: Team) -> None:
    team.decides(Action.REJECT, SECOND, reason="keep nine")
    assert team.text == CHANGED
    (done,) = team.carry()
    assert (done.result, done.who, done.reason) == ("carried", "ann", "keep nine")
    assert team.text == HALF
    view = team.desk.history.edit(Seq(1))
    assert [view.units[hunk] for hunk in (1, 2)] == [Status.PENDING, Status.REJECTED]
    (verdict,) = [each for each in team.desk.history.verdicts().of(view) if SECOND in each.units]
    assert (verdict.who, verdict.via) == ("ann", "remote")
    assert team.carry() == []


def test_agent_is_sent_the_reason_of_a_rejection_by_another_store(team: Team) -> None:
    team.decides(Action.REJECT, SECOND, reason="keep nine")
    team.carry()
    unreported = team.desk.messages.rejected("conv", 20)
    assert unreported is not None
    assert [each.reason for each in unreported.rejections] == ["keep nine"]


def test_carried_decision_can_be_undone_like_any_other(team: Team) -> None:
    team.decides(Action.REJECT, SECOND)
    team.carry()
    team.desk.review.undo()
    assert team.text == CHANGED


def test_unit_is_decided_once_and_again_when_the_outcome_was_pulled(team: Team) -> None:
    team.decides(Action.REJECT, SECOND)
    with pytest.raises(RemoteDecided, match="waits"):
        team.decides(Action.ACCEPT, SECOND)
    team.decides(Action.ACCEPT, FIRST)
    team.carry()
    with pytest.raises(RemoteDecided, match="was carried out"):
        team.decides(Action.ACCEPT, SECOND)
    team.lap.remotes.pull("team")
    found = team.lap.remotes.member("desk")
    assert found is not None
    shown = {SECOND: Status.REJECTED}
    team.lap.remote_decisions.decide(*found, Action.ACCEPT, shown, who="ann")
    assert [each.result for each in team.carry()] == ["carried"]
    assert team.text == CHANGED


def test_unit_that_its_store_reopened_can_be_decided_again_once_that_was_pulled(team: Team) -> None:
    team.decides(Action.REJECT, SECOND)
    team.carry()
    team.desk.review.undo()
    with pytest.raises(RemoteDecided, match="was carried out"):
        team.decides(Action.REJECT, SECOND)  # the mirror shows neither
    team.desk.remotes.push("team")
    team.lap.remotes.pull("team")
    found = team.lap.remotes.member("desk")
    assert found is not None
    assert team.lap.remote_decisions.verdicts(*found)[SECOND].is_shown
    team.decides(Action.REJECT, SECOND)
    assert [each.result for each in team.carry()] == ["carried"]
    assert team.text == HALF


def test_decision_that_conflicts_is_refused_with_the_conflict(team: Team) -> None:
    (team.folder / "desk" / "a.txt").write_bytes(CHANGED.replace(b"nine\n", b"nine!\n"))
    recorded(team.desk)
    team.decides(Action.REJECT, SECOND)
    (done,) = team.carry()
    assert done.result == "refused"
    assert "edit 2 hunk 1 needs edit 1" in done.why
    found = team.lap.remotes.member("desk")
    assert found is not None
    team.lap.remotes.pull("team")
    team.decides(Action.ACCEPT, SECOND)  # a refused one leaves the unit free
    (verdict,) = {each.result for unit, each in team.lap.remote_decisions.verdicts(*found).items() if unit == SECOND}
    assert verdict == "open"


def test_decision_on_what_was_decided_here_meanwhile_is_refused(team: Team) -> None:
    team.desk.decide(Action.ACCEPT, [SECOND])
    team.decides(Action.REJECT, SECOND)
    (done,) = team.carry()
    assert done.result == "refused"
    assert team.text == CHANGED


def test_decision_waits_for_changes_that_are_not_recorded(team: Team) -> None:
    (team.folder / "desk" / "a.txt").write_bytes(CHANGED + b"mine\n")
    team.decides(Action.REJECT, SECOND)
    assert [each.result for each in team.carry()] == ["waiting"]
    assert team.text == CHANGED + b"mine\n"
    (team.folder / "desk" / "a.txt").write_bytes(CHANGED)
    assert [each.result for each in team.carry()] == ["carried"]


def test_unit_that_does_not_exist_is_refused(team: Team) -> None:
    team.decides(Action.REJECT, Unit(Seq(77), 1))
    assert [each.result for each in team.carry()] == ["refused"]


def test_decision_on_another_store_is_not_carried_out_here(team: Team) -> None:
    decision = RemoteDecision(
        lane=Lane("ab" * 16), action=Action.REJECT, units={SECOND: Status.PENDING}, who="x", nonce=new_nonce()
    )
    open_bucket(team.url).put_new(numbered(LOG, 1), decision.encode())
    assert team.carry() == []


def test_log_that_went_back_is_noticed(team: Team) -> None:
    team.decides(Action.REJECT, SECOND)
    os.remove(team.folder / "bucket" / numbered(LOG, 1))  # noqa: PTH107 - a bucket is not ours
    with pytest.raises(RemoteRolledBack):
        team.decides(Action.ACCEPT, FIRST)


def test_copy_of_a_store_carries_out_nothing(team: Team, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "desk", tmp_path / "copy")
    (tmp_path / "desk" / "b.txt").write_bytes(b"b\n")
    recorded(team.desk)
    team.desk.remotes.push("team")
    team.decides(Action.REJECT, SECOND)
    with Workspace.open(tmp_path / "copy", UnsyncedDisk()) as copy, pytest.raises(Exception, match="later history"):
        copy.remote_decisions.carry("team")
    assert (tmp_path / "copy" / "a.txt").read_bytes() == CHANGED


# ---- nothing else changes a file


def test_pull_changes_no_file_of_the_workspace(team: Team) -> None:
    team.lap.remotes.push("team")
    team.decides(Action.REJECT, SECOND)
    before = observe_tree(team.folder / "desk")
    team.desk.remotes.pull("team")
    assert observe_tree(team.folder / "desk") == before


def test_setting_of_a_remote_waits_for_a_push_that_takes_a_new_lane(team: Team) -> None:
    known = Remotes(str(team.folder / "desk"), UnsyncedDisk())
    with ThreadPoolExecutor(1) as pool:
        with known.held("team"):  # as a push does
            remote = known.get("team")
            setting = pool.submit(team.desk.remotes.set_push, "team", "stop")
            wait([setting], timeout=0.3)
            known.put(replace(remote, lane=new_lane(store_of(remote.lane), bytes(4))))
        done = setting.result()
    assert (done.push, done.lane) == ("stop", f"{remote.lane}-00000000")
    assert known.get("team") == done


def test_nobody_decides_in_a_mirror(team: Team) -> None:
    found = team.lap.remotes.member("desk")
    assert found is not None
    with Workspace.open(team.lap.remotes.mirror(*found)) as mirror, pytest.raises(Exception, match="mirrors"):
        mirror.decide(Action.REJECT, [SECOND])


def test_mirror_is_not_written_by_what_the_bucket_names(team: Team) -> None:
    bucket = open_bucket(team.url)
    for name in ("../../../escape", "..%2f..%2fescape"):
        with pytest.raises(RemoteFailed):
            bucket.get(f"stores/{name}", 10)
    put(bucket._store, "stores/not-a-lane/heads/000000000001", b"x")  # noqa: SLF001 - any member can
    assert [each.member.name for each in team.lap.remotes.pull("team")] == ["desk"]


def test_purges_during_pulls_lose_nothing(team: Team) -> None:
    def push_and_purge() -> None:
        with Workspace.open(team.folder / "desk", UnsyncedDisk()) as desk:
            for number in range(2, 6):
                (team.folder / "desk" / "a.txt").write_bytes(CHANGED * number)
                recorded(desk)
                desk.remotes.push("team")
                desk.remotes.collect("team", purge=True)

    with ThreadPoolExecutor(1) as pool:
        purging = pool.submit(push_and_purge)
        while not purging.done():
            team.lap.remotes.pull("team")
        purging.result()
    (pulled,) = team.lap.remotes.pull("team")
    assert pulled.error == ""
    found = team.lap.remotes.member("desk")
    assert found is not None
    mirror = Path(team.lap.remotes.mirror(*found))
    assert observe_tree(mirror, store=True).keys() == observe_tree(team.folder / "desk", store=True).keys()
    with Workspace.open(mirror) as copy:
        assert len(copy.history.edits()) == 5


# ---- deaths


def test_carrying_that_dies_at_any_step_carries_out_once(tmp_path: Path) -> None:
    counted = CountdownDisk(None)
    for number, step in enumerate([None, *sampled_steps(120)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        team = Team(folder)
        team.decides(Action.REJECT, SECOND, reason="keep nine")
        team.desk.close()
        disk = counted if step is None else CountdownDisk(step, power_cut)
        try:
            with Workspace.open(folder / "desk", disk) as desk:
                desk.remote_decisions.carry("team")
        except PowerCut:
            pass
        team.desk = Workspace.open(folder / "desk", UnsyncedDisk())
        team.carry()
        assert team.text == HALF
        made = [each for each in team.desk.review.in_force() if each.units == {SECOND}]
        assert len(made) == 1
        assert team.carry() == []
        team.close()


def test_entries_that_are_read_together_are_kept_in_one_file_and_read_again_if_it_is_damaged(team: Team) -> None:
    for unit in (FIRST, SECOND):
        team.decides(Action.ACCEPT, unit)
    assert len(team.carry()) == 2
    log = team.folder / "desk/.cas/remotes/team/log"
    assert sorted(path.name for path in log.iterdir()) == ["1-2", "3-4"]
    known = Remotes(str(team.folder / "desk"), UnsyncedDisk())
    whole = known.entries("team")
    assert [number for number, _ in whole] == [1, 2, 3, 4]
    (log / "1-2").write_bytes(b"harmed")
    assert known.entries("team") == []
    assert team.carry() == []
    assert known.entries("team") == whole
    assert [path.name for path in log.iterdir()] == ["1-4"]


def test_entry_that_a_flipped_bit_turned_into_another_is_read_again(team: Team) -> None:
    here = team.folder / "desk" / "a.txt"
    here.write_bytes(CHANGED + b"11\n")  # so that the decision waits
    team.decides(Action.REJECT, SECOND)
    assert [each.result for each in team.carry()] == ["waiting"]
    (kept,) = (team.folder / "desk/.cas/remotes/team/log").iterdir()
    content = kept.read_bytes()
    kept.write_bytes(content.replace(b"\x93\x01\x02", b"\x93\x01\x01"))
    assert kept.read_bytes() != content
    here.write_bytes(CHANGED)
    assert [each.units for each in team.carry()] == [(SECOND,)]
    assert team.text == HALF


# ---- taken back, and comments


def test_decision_that_is_taken_back_in_time_is_not_carried_out(team: Team) -> None:
    number = team.decides(Action.REJECT, SECOND)
    assert team.withdraws() == number
    found = team.lap.remotes.member("desk")
    assert found is not None
    assert (
        team.lap.remote_decisions.verdicts(*found)[SECOND].words
        == "rejected by ann, taken back by ann, not answered yet"
    )
    with pytest.raises(RemoteDecided):
        team.decides(Action.ACCEPT, SECOND)  # it may be carried out already
    (done,) = team.carry()
    assert (done.result, done.why, team.text) == ("refused", "ann took it back", CHANGED)
    team.decides(Action.ACCEPT, SECOND)
    assert [each.result for each in team.carry()] == ["carried"]


def test_decision_that_was_carried_out_is_not_taken_back(team: Team) -> None:
    number = team.decides(Action.REJECT, SECOND)
    team.carry()
    with pytest.raises(NoSuchName, match="not carried out yet"):
        team.withdraws(number)
    with pytest.raises(NoSuchName):
        team.withdraws()


def test_withdrawal_after_the_answer_or_of_another_stores_decision_means_nothing() -> None:
    desk, other = Lane("d" * 32), Lane("e" * 32)
    decision = RemoteDecision(
        lane=desk, action=Action.REJECT, units={FIRST: Status.PENDING}, who="ann", nonce=bytes(32)
    )
    answer = Answer(lane=desk, decision=1, result=Result.CARRIED, head=1, nonce=bytes(32))
    for lane, entries in ((desk, [decision, answer]), (other, [decision]), (desk, [])):
        late = Withdrawal(lane=lane, decision=1, who="bob", nonce=bytes(32))
        assert settle((at, each.encode()) for at, each in enumerate([*entries, late], 1)).withdrawn == {}


def test_only_own_decisions_are_taken_back_without_a_number(team: Team) -> None:
    number = team.decides(Action.REJECT, SECOND, who="bob")
    with pytest.raises(NoSuchName):
        team.withdraws()
    assert team.withdraws(number) == number
    with pytest.raises(NoSuchName):
        team.withdraws(number)


def test_comment_of_another_store_becomes_one_here_once(team: Team) -> None:
    found = team.lap.remotes.member("desk")
    assert found is not None
    remote_decisions = team.lap.remote_decisions
    remote_decisions.comment(*found, [SECOND], "Why nine?", who="ann")
    assert [(each.units, each.text) for each in remote_decisions.comments(*found)] == [((SECOND,), "Why nine?")]
    (done,) = team.carry()
    assert (done.action, done.result, done.reason) == (None, "carried", "Why nine?")
    assert team.carry() == []
    (view,) = team.desk.comments.all()
    assert (view.comment.who, view.comment.text, view.comment.units) == ("ann", "Why nine?", (SECOND,))
    assert [sent.number for sent, _ in team.desk.comments.unsent()] == [view.number]
    team.lap.remotes.pull("team")
    remote_decisions.carry("team")  # reads the log
    found = team.lap.remotes.member("desk")
    assert found is not None
    assert remote_decisions.comments(*found) == []


def test_comment_on_what_does_not_exist_is_refused(team: Team) -> None:
    found = team.lap.remotes.member("desk")
    assert found is not None
    team.lap.remote_decisions.comment(*found, [Unit(Seq(9), 1)], "Why?", who="ann")
    assert [each.result for each in team.carry()] == ["refused"]
    assert team.desk.comments.all() == []
    team.lap.remotes.pull("team")
    team.lap.remote_decisions.carry("team")  # reads the log
    found = team.lap.remotes.member("desk")
    assert found is not None
    (refused,) = team.lap.remote_decisions.comments(*found)
    assert (refused.result, refused.words) == ("refused", f"refused there: {refused.why}")
    assert "9" in refused.why


def test_store_that_dies_while_it_takes_a_comment_over_has_it_once(tmp_path: Path) -> None:
    for number, step in enumerate(sampled_steps(100)):
        folder = tmp_path / str(number)
        folder.mkdir()
        team = Team(folder)
        found = team.lap.remotes.member("desk")
        assert found is not None
        team.lap.remote_decisions.comment(*found, [SECOND], "Why nine?", who="ann")
        team.desk.close()
        try:
            with Workspace.open(folder / "desk", CountdownDisk(step, power_cut)) as desk:
                desk.remote_decisions.carry("team")
        except PowerCut:
            pass
        team.desk = Workspace.open(folder / "desk", UnsyncedDisk())
        team.carry()
        assert [view.comment.text for view in team.desk.comments.all()] == ["Why nine?"], step
        assert team.carry() == []
        team.close()


def test_what_was_made_before_a_death_is_not_made_again_after_an_earlier_one_waits(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = team.folder / "desk" / "b.txt"
    for text in (TEN, CHANGED):
        other.write_bytes(text)
        recorded(team.desk)
    team.desk.remotes.push("team")
    team.lap.remotes.pull("team")
    found = team.lap.remotes.member("desk")
    assert found is not None
    team.decides(Action.REJECT, FIRST)
    (team.folder / "desk" / "a.txt").write_bytes(CHANGED.replace(b"two", b"zwei"))  # so that the decision waits
    team.lap.remote_decisions.comment(*found, [Unit(Seq(3), 1)], "Why two?", who="ann")
    with monkeypatch.context() as patched:
        patched.setattr("objstore.upkeep.remote.decisions.append", _dies)
        with pytest.raises(PowerCut):
            team.carry()
    done = {each.number: each.result for each in team.carry()}
    assert done == {1: "waiting", 2: "carried"}
    assert [view.comment.text for view in team.desk.comments.all()] == ["Why two?"]


def _dies(*_: object) -> None:
    raise PowerCut


def test_conflict_in_a_file_whose_name_is_not_utf8_is_answered(team: Team) -> None:
    path = team.folder / "desk" / os.fsdecode(b"\xff.txt")
    for line in (b"5", b"five", b"FIVE"):
        path.write_bytes(TEN.replace(b"5\n", line + b"\n"))
        recorded(team.desk)
    team.desk.remotes.push("team")
    team.lap.remotes.pull("team")
    team.decides(Action.REJECT, Unit(Seq(3), 1))
    assert [each.result for each in team.carry()] == ["refused"]
    assert team.carry() == []


def test_comment_that_no_store_could_read_is_refused_at_once(team: Team) -> None:
    found = team.lap.remotes.member("desk")
    assert found is not None
    for units, text in (([FIRST], "x" * 65_537), ([], "Why?")):
        with pytest.raises(RemoteFailed, match="no store could read it"):
            team.lap.remote_decisions.comment(*found, units, text, who="ann")
    assert team.carry() == []
