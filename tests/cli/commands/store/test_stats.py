"""`cas stats`: the chart of activity over time, and plots as files."""

import re
from pathlib import Path

import pytest

from cli.commands.stats import chart
from cli.plots.svg import is_drawing
from cli.screen.terminal import EXACT
from tests.support.command_runner import CommandRunner, with_progress


def shown_chart(amounts: dict[int, int]) -> list[str]:
    return [line.decode().rstrip("\n") for line in chart(amounts, "edits", EXACT)]


def test_a_chart_is_as_high_as_what_it_shows_and_fits_a_line() -> None:
    assert shown_chart({0: 8, 1: 4, 3: 1})[0] == "edits in time █▄ ▁"
    for span in (10, 1_000, 100_000, 10_000_000):
        columns = shown_chart({0: 1, span: 1})[0].removeprefix("edits in time ")
        assert 1 < len(columns) <= 60
        assert columns[0] == columns[-1] == "█"


def test_stats_show_a_chart(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    shown = runner.done("stats").text
    assert "      1 edit  " in shown
    assert "edits in time █\n" in shown
    assert "bytes in time █\n" in shown
    (minute,) = runner.done("stats", "--json").json()["minutes"]
    assert minute["edits"] == 1


# ---- plots


def test_stats_write_plots_and_say_what_they_show(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("a", b"1\n")
    plots = tmp_path / "new" / "plots"
    shown = runner.done("stats", "--svg", str(plots), "--file", "a").text.splitlines()
    assert [line.partition(": ")[0] for line in shown] == [
        f"Wrote {plots / name}" for name in ("activity.svg", "store.svg", "file.svg")
    ]
    assert "1 edit in 0 turns added 1 line and removed 0: 1 pending." in shown[0]
    assert sorted(path.name for path in plots.iterdir()) == ["activity.svg", "file.svg", "store.svg"]
    assert all(is_drawing(path.read_bytes()) for path in plots.iterdir())


def test_stats_replace_earlier_plots_but_no_other_file(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("a", b"1\n")
    runner.done("stats", "--svg", str(tmp_path))
    before = (tmp_path / "activity.svg").read_bytes()
    runner.write("a", b"1\n2\n")
    runner.done("stats", "--svg", str(tmp_path))
    assert (tmp_path / "activity.svg").read_bytes() != before
    mine = b"<svg xmlns='http://www.w3.org/2000/svg'/>"
    (tmp_path / "store.svg").write_bytes(mine)
    (tmp_path / "activity.svg").write_bytes(before)
    ran = runner.cas("stats", "--svg", str(tmp_path))
    assert ran.status == 1
    assert "store.svg is not a plot that `cas stats` wrote. Nothing was written." in ran.said
    assert (tmp_path / "store.svg").read_bytes() == mine
    assert (tmp_path / "activity.svg").read_bytes() == before
    runner.done("stats", "--svg", str(tmp_path), "--force")
    assert is_drawing((tmp_path / "store.svg").read_bytes())


def test_a_link_is_replaced_only_if_forced_and_never_followed(runner: CommandRunner, tmp_path: Path) -> None:
    runner.done("stats", "--svg", str(tmp_path / "one"))
    drawn = tmp_path / "one" / "store.svg"
    before = drawn.read_bytes()
    two = tmp_path / "two"
    two.mkdir()
    (two / "store.svg").symlink_to(drawn)
    assert runner.cas("stats", "--svg", str(two)).status == 1
    runner.write("a", b"1\n")
    runner.done("stats", "--svg", str(two), "--force")
    assert drawn.read_bytes() == before
    assert not (two / "store.svg").is_symlink()


def test_plots_are_not_written_where_they_can_not_be(runner: CommandRunner, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "is not a directory" in runner.cas("stats", "--svg", str(tmp_path / "file")).said
    (tmp_path / "taken" / "store.svg").mkdir(parents=True)
    assert "is a directory" in runner.cas("stats", "--svg", str(tmp_path / "taken"), "--force").said
    assert [path.name for path in (tmp_path / "taken").iterdir()] == ["store.svg"]
    assert runner.cas("stats", "--svg", str(runner.folder / ".cas" / "plots")).status == 1
    assert runner.cas("stats", "--svg", str(tmp_path / "new"), "--file", "a").status == 1
    assert not (tmp_path / "new").exists()


def test_options_of_plots_need_a_folder(runner: CommandRunner) -> None:
    assert "--file needs --svg" in runner.cas("stats", "--file", "a").said
    assert "--force needs --svg" in runner.cas("stats", "--force").said
    assert "exclude each other" in runner.cas("stats", "--svg", "d", "--json").said


# ---- progress


@pytest.mark.parametrize("words", [["diff"], ["diff", "--stat"]])
def test_what_replays_many_files_shows_its_progress(runner: CommandRunner, words: list[str]) -> None:
    for name in ("a", "b", "c"):
        runner.write(name, b"1\n")
    report = rb"replaying \[[#.]{24}\] \d of 3 documents"
    _, shown = with_progress(*words, folder=runner.folder, patience=0)
    assert re.search(rb"\r\x1b\[K" + report, shown), shown
    assert re.search(report, with_progress(*words, folder=runner.folder, patience=3600)[1]) is None
