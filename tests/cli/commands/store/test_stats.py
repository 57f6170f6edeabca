"""`cas stats`: the chart of activity over time."""

from cli.commands.store.stats import chart
from cli.screen.terminal import EXACT
from tests.support.command_runner import CommandRunner


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
