"""What each operation asks of a bucket: docs/remote.md computes from these counts what many stores cost."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from objstore import Action, Seq, Status, Unit, Workspace, clone_remote
from objstore.upkeep.remote import bucket as buckets
from tests.support.buckets import FailingBucket
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import UnsyncedDisk

Counted = dict[str, int]


class Team:
    """Two stores with one bucket, which counts requests."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.url = f"file://{folder}/bucket"
        self.bucket = FailingBucket(buckets.open_bucket(self.url, makes_folder=True))
        monkeypatch.setattr(buckets, "open_bucket", lambda _, **_settings: self.bucket)
        self.desk, self.lap = (self._made(folder / name) for name in ("desk", "lap"))
        self.edit(1)
        self.desk.remotes.push("team")
        self.lap.remotes.pull("team")
        self.asked()

    def _made(self, root: Path) -> Workspace:
        root.mkdir()
        made = Workspace.init(root, UnsyncedDisk())
        made.remotes.add("team", self.url)
        return made

    def edit(self, number: int) -> Unit:
        write(self.desk, f"{number}.txt", b"one\n")
        return Unit(Seq(number), 0)

    def decide(self, unit: Unit) -> None:
        found = self.lap.remotes.member("desk")
        assert found is not None
        self.lap.remote_decisions.decide(*found, Action.ACCEPT, {unit: Status.PENDING}, who="ann")

    def asked(self) -> Counted:
        """Return what was asked since the last time."""
        found = dict(self.bucket.requests)
        self.bucket.requests = Counter()
        return found


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Team]:
    made = Team(tmp_path, monkeypatch)
    yield made
    made.desk.close()
    made.lap.close()


def test_push_of_an_edit_is_a_list_a_piece_and_a_head(team: Team) -> None:
    for number in range(2, 8):
        team.edit(number)
        team.desk.remotes.push("team")
        assert team.asked() == {"list": 1, "put": 2}
    team.desk.remotes.push("team")
    assert team.asked() == {"list": 1}


def test_pull_lists_the_stores_and_asks_each_for_what_is_new(team: Team) -> None:
    team.lap.remotes.pull("team")
    assert team.asked() == {"list": 2, "get": 1}  # the head may have been replaced
    team.edit(2)
    team.desk.remotes.push("team")
    team.asked()
    team.lap.remotes.pull("team")
    assert team.asked() == {"list": 2, "get": 2}  # a head and a piece


def test_decision_reads_what_is_new_in_the_log_and_its_own_entry(team: Team) -> None:
    units = [Unit(Seq(1), 0), team.edit(2), team.edit(3)]
    team.desk.remotes.push("team")
    team.lap.remotes.pull("team")
    team.asked()
    for unit in units:
        team.decide(unit)
        assert team.asked() == {"list": 2, "put": 1, "get": 1}


@pytest.mark.parametrize("decisions", [1, 3])
def test_carrying_out_pushes_and_answers_each_decision(team: Team, decisions: int) -> None:
    units = [Unit(Seq(1), 0), *map(team.edit, range(2, decisions + 1))]
    team.desk.remotes.push("team")
    team.lap.remotes.pull("team")
    for unit in units:
        team.decide(unit)
    team.asked()
    team.desk.remote_decisions.carry("team")
    # The log, a push of what is new, and the log again; for each a push, an answer, its decision and its answer.
    assert team.asked() == {"list": 3 + decisions, "put": 3 * decisions, "get": 2 * decisions}
    team.desk.remote_decisions.carry("team")
    assert team.asked() == {"list": 1}


def test_clone_asks_for_a_head_and_its_pieces(team: Team, tmp_path: Path) -> None:
    clone_remote(team.url, str(tmp_path / "clone"), disk=UnsyncedDisk())
    assert team.asked() == {"list": 2, "get": 2}


def test_collection_lists_what_is_there_and_notes_what_can_go(team: Team) -> None:
    for number in (2, 3):
        team.edit(number)
        team.desk.remotes.push("team")
    team.asked()
    team.desk.remotes.collect("team")
    assert team.asked() == {"list": 6, "put": 1}
