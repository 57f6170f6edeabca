"""The plots: what they say, what they draw, and that neither names nor long histories break them."""

import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest

from cli.plots.activity import activity_plot, draw_activity, plot_of_lines
from cli.plots.file_life import Step, draw_file, file_plot, plot_of_steps
from cli.plots.plot import MAX_COLUMNS, Plot
from cli.plots.store_size import draw_store, plot_of_growth, store_plot
from cli.plots.svg import BOTTOM, LEFT, RIGHT, TOP, WIDTH, is_drawing, ticks
from cli.screen.terminal import shown_width
from objstore import Action, Call, NoSuchName, Seq, Status, TurnInfo, TurnLines, Unit
from tests.support.command_runner import CommandRunner

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</title><script>alert(1)</script>&\"'\x07\x1b[31m\u202e\udcff\n"
WIDEST_LETTER = 6.6
"""Units that a letter of a label takes at most, on average."""


def parsed(drawing: bytes) -> ET.Element:
    """Parse a drawing, and check what holds for every one."""
    assert is_drawing(drawing)
    root = ET.fromstring(drawing)  # noqa: S314 -- it is our own
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert {"viewBox", "width", "height"} <= set(root.keys())
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        *("svg", "title", "desc", "style", "defs", "pattern", "circle", "rect", "text", "line", "path")
    }
    assert re.findall(rb"https?:[^\"]*", drawing) == [b"http://www.w3.org/2000/svg"]
    assert re.findall(rb"url\(([^)]*)\)", drawing) == [b"#pending", b"#rejected", b"#away"]
    assert b"prefers-color-scheme" in drawing
    assert not re.search(rb" on[a-z]+=|href", drawing)
    assert sum(1 for _ in root.iter()) < 100
    assert len(drawing) < 40_000
    texts_are_apart(root)
    return root


def texts_are_apart(root: ET.Element) -> None:
    """Check that no text is outside the drawing or overlaps another one."""
    height = float(root.get("viewBox", "").split()[3])
    boxes: list[tuple[str, float, float, float]] = []
    for element in root.iter(f"{SVG}text"):
        said, x, y = element.text or "", float(element.get("x", "")), float(element.get("y", ""))
        wide = shown_width(said) * (7.4 if element.get("class") == "title" else WIDEST_LETTER)
        start = {"start": x, "middle": x - wide / 2, "end": x - wide}[element.get("text-anchor", "")]
        assert start >= 0, said
        assert start + wide <= WIDTH, said
        assert 10 <= y < height
        for other, left, right, at in boxes:
            assert abs(at - y) >= 11 or right <= start or start + wide <= left, (said, other)
        boxes.append((said, start, start + wide, y))


def said_of(root: ET.Element) -> tuple[str, str]:
    return root.findtext(f"{SVG}title") or "", root.findtext(f"{SVG}desc") or ""


def shapes(root: ET.Element, kind: str) -> list[str]:
    return [path.get("d", "") for path in root.findall(f"{SVG}path[@class='{kind}']")]


def lines(turn: int, status: Status = Status.PENDING, added: int = 3, removed: int = 1) -> TurnLines:
    return TurnLines(
        turn=turn,
        session=1,
        status=status,
        edits=1,
        added=added,
        removed=removed,
        first=Seq(turn),
        began=1_700_000_000_000_000 + turn,
    )


def step(seq: int, before: int, after: int, event: str = "", status: str = "pending") -> Step:
    return Step(seq=seq, time=1_700_000_000_000_000 + seq, before=before, after=after, event=event, status=status)


def boxes_of(d: str) -> list[tuple[float, float, float, float]]:
    """Return the boxes of a shape: left, top, width and height."""
    found = re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)h-[\d.]+z", d)
    return [(float(x), float(y), float(wide), float(high)) for x, y, wide, high in found]


# ---- activity


def test_activity_stacks_what_was_decided_above_and_below_zero() -> None:
    plot = plot_of_lines(
        [lines(1, Status.ACCEPTED, 10, 4), lines(1, Status.PENDING, 20, 0), lines(2, Status.REJECTED, 5, 6)]
    )
    assert [row[:3] for row in plot.rows] == [("turn 1", plot.rows[0][1], 2), ("turn 2", plot.rows[1][1], 1)]
    assert plot.column("accepted lines added") == [10, 0]
    assert plot.column("rejected lines removed") == [0, 6]
    assert plot.summary.startswith(
        "3 edits in 2 turns added 35 lines and removed 10: 1 accepted, 1 pending, 1 rejected."
    )
    root = parsed(draw_activity(plot))
    legend, added, removed = shapes(root, "accepted")
    ((_, top, _, high),) = boxes_of(added)
    ((_, below, _, deep),) = boxes_of(removed)
    assert boxes_of(legend)
    assert top + high == pytest.approx(below)  # they meet at zero
    assert high / deep == pytest.approx(10 / 4, rel=0.02)
    _, pending = shapes(root, "pending")
    ((_, pending_top, _, pending_high),) = boxes_of(pending)
    assert pending_top + pending_high == pytest.approx(top, abs=0.2)  # on the accepted ones
    assert shapes(root, "away") == []


def test_activity_of_many_turns_has_few_columns() -> None:
    plot = plot_of_lines([lines(turn, added=turn % 7) for turn in range(1, 10_001)])
    assert len(plot.rows) == MAX_COLUMNS
    assert plot.rows[0][0] == "turns 1 to 166"
    assert sum(plot.column("edits")) == 10_000
    assert sum(plot.column("pending lines added")) == sum(turn % 7 for turn in range(1, 10_001))
    parsed(draw_activity(plot))


def test_a_few_lines_next_to_many_can_be_seen() -> None:
    root = parsed(draw_activity(plot_of_lines([lines(1, added=1_000_000), lines(2, added=1, removed=0)])))
    heights = [high for _, _, _, high in boxes_of(shapes(root, "pending")[1])]
    assert len(heights) == 2
    assert min(heights) >= 1


def test_edits_without_a_turn_are_named_by_their_session() -> None:
    found = [
        lines(0),
        TurnLines(turn=0, session=0, status=Status.ACCEPTED, edits=1, added=1, removed=0, first=Seq(2), began=1),
    ]
    assert [row[0] for row in plot_of_lines(found).rows] == ["session 1", "no session"]


# ---- the store


def test_the_store_is_a_curve_and_a_column_of_what_stays_and_goes() -> None:
    plot = plot_of_growth([(0, 1_000), (3_600_000_000, 4_000)], 5_000, 2_000)
    assert [row[1:] for row in plot.rows] == [(0, 1_000, 0), (3_600, 4_000, 0), (3_600, 5_000, 2_000)]
    assert plot.summary.startswith("The store has 5.0 kB. `cas gc` would free 2.0 kB of them.")
    root = parsed(draw_store(plot))
    (curve,) = shapes(root, "curve")
    assert curve.startswith(f"M{LEFT} {BOTTOM}")
    ((_, top, _, stays),) = boxes_of(shapes(root, "accepted")[1])
    ((_, _, _, goes),) = boxes_of(shapes(root, "pending")[1])
    assert stays / goes == pytest.approx(3_000 / 2_000, rel=0.02)
    assert top + stays == pytest.approx(BOTTOM)


def test_a_store_of_a_long_history_has_few_points() -> None:
    plot = plot_of_growth([(second * 1_000_000, second * 500) for second in range(10_000)], 5_000_000, 0)
    assert len(plot.rows) == MAX_COLUMNS + 1
    assert plot.column("bytes") == sorted(plot.column("bytes"))
    root = parsed(draw_store(plot))
    assert shapes(root, "pending") == []


# ---- a file


def test_a_file_is_a_curve_with_a_lane_for_each_kind_of_edit() -> None:
    steps = [
        step(1, 0, 100, "created", "accepted"),
        step(2, 100, 400),
        step(5, 300, 0, "deleted", "rejected"),
        step(6, 0, 300, "restored"),
    ]
    plot = plot_of_steps("a.txt", steps)
    assert [row[:1] for row in plot.rows] == [("1",), ("2",), ("5",), ("6",)]
    assert plot.column("bytes before") == [0, 100, 300, 0]
    assert plot.column("bytes") == [100, 400, 0, 300]
    assert plot.summary == "a.txt, 4 edits: 1 accepted, 2 pending, 1 rejected. The last one left 300 bytes."
    root = parsed(draw_file(plot))
    words = [element.text for element in root.iter(f"{SVG}text")]
    assert [word for word in words if word in {*plot.columns[6:]}] == [
        *("created", "deleted", "restored", "accepted", "pending", "rejected")
    ]
    assert len(shapes(root, "mark")) == 3
    (pending,) = shapes(root, "pending")
    assert [x > (LEFT + RIGHT) / 2 for x, _, _, _ in boxes_of(pending)] == [False, True]


def test_a_file_with_many_edits_has_few_columns() -> None:
    events = ("created", "moved", "deleted", "restored", "", "")
    statuses = [status.value for status in Status]
    steps = [step(n, n % 977, (n * 7) % 977, events[n % 6], statuses[n % 4]) for n in range(1, 10_001)]
    plot = plot_of_steps("a.txt", steps, is_cut=True)
    assert len(plot.rows) == MAX_COLUMNS
    assert "the newest 10000 edits" in plot.summary
    assert max(plot.column("most bytes")) == 976
    root = parsed(draw_file(plot))
    (curve,) = shapes(root, "curve")
    assert all(TOP - 20 <= float(y) <= BOTTOM for y in re.findall(r"V([\d.]+)", curve))


# ---- of a workspace


def a_history(runner: CommandRunner, name: str) -> None:
    """Record edits of a file in two turns and without one, with decisions."""

    def change(call: Call) -> None:
        call.write(name, b"x\n" * (2 if call.exists(name) else 1))

    for began in (1, 2):
        turn = TurnInfo(session="s", began=began, prompt="<b>&")
        runner.call(change, conversation="s", turn=turn)
    runner.delete(name)
    with runner.workspace() as workspace:
        workspace.decide(Action.ACCEPT, [Unit(Seq(1), 0)])
        workspace.decide(Action.REJECT, [Unit(Seq(3), 0)])


@pytest.mark.parametrize("plot_and_draw", [(activity_plot, draw_activity), (store_plot, draw_store)])
def test_an_empty_store_has_plots(
    runner: CommandRunner, plot_and_draw: tuple[Callable[..., Plot], Callable[[Plot], bytes]]
) -> None:
    plot, draw = plot_and_draw
    with runner.workspace() as workspace:
        parsed(draw(plot(workspace)))


def test_one_edit_has_plots(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    with runner.workspace() as workspace:
        activity, store, file = activity_plot(workspace), store_plot(workspace), file_plot(workspace, "a")
    assert activity.rows[0][2:8] == (1, 0, 1, 0, 0, 0)
    assert len(store.rows) == 2
    assert file.rows[0][0] == "1"
    for drawing in (draw_activity(activity), draw_store(store), draw_file(file)):
        parsed(drawing)


def test_no_name_breaks_a_plot(runner: CommandRunner) -> None:
    name = HOSTILE.replace("/", "")
    a_history(runner, name)
    with runner.workspace() as workspace:
        plot = file_plot(workspace, name)
        drawings = [draw_file(plot), draw_activity(activity_plot(workspace)), draw_store(store_plot(workspace))]
    for drawing in drawings:
        assert b"<script" not in drawing
        title, summary = said_of(parsed(drawing))
        assert (title + summary).isprintable()
    assert parsed(draw_file(plot_of_steps(HOSTILE * 40, [step(1, 0, 1)]))) is not None
    assert parsed(draw_file(plot_of_steps("漢字" * 400, [step(1, 0, 1)]))) is not None


def test_a_file_that_was_never_recorded_has_no_plot(runner: CommandRunner) -> None:
    with runner.workspace() as workspace, pytest.raises(NoSuchName):
        file_plot(workspace, "a")


def test_a_file_is_followed_through_a_move(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    runner.move("a", "b")
    runner.write("a", b"another\n")
    with runner.workspace() as workspace:
        assert [row[0] for row in file_plot(workspace, "b").rows] == ["1", "2"]
        assert file_plot(workspace, "b").column("moved") == [0, 1]


def test_a_restored_file_says_so(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    runner.delete("a")
    runner.done("restore", "a@1")
    with runner.workspace() as workspace:
        plot = file_plot(workspace, "a")
    assert [plot.column(event) for event in ("created", "deleted", "restored")] == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert plot.rows[-1][-4:] == (1, 0, 0, 0)


# ---- the value


def test_a_table_has_a_text_for_each_column() -> None:
    plot = plot_of_lines([lines(1)])
    (row,) = plot.cells()
    assert len(row) == len(plot.columns)
    assert row[0] == "turn 1"
    assert row[2:] == ["1", "0", "3", "0", "0", "0", "1", "0", "0"]


@pytest.mark.parametrize("most", [1, 2, 3, 4, 5, 9, 10, 11, 99, 401, 12_345_678_901])
def test_ticks_are_few_and_round_and_reach_the_most(most: int) -> None:
    found = ticks(most)
    assert found[0] == 0
    assert found[-2] < most <= found[-1]
    assert 2 <= len(found) <= 6
    assert str(found[1]).strip("0") in {"1", "2", "5"}
