"""Conflicts and notices are one sentence that names the units concerned and the place."""

from dataclasses import replace

import pytest

from objstore import Conflict, ConflictKind, Notice, Seq, Status, Unit


def unit(name: str) -> Unit:
    seq, _, hunk = name.partition(":")
    return Unit(Seq(int(seq)), int(hunk))


def conflict(kind: str, who: str, *needs: str, line: int = 3, outside: tuple[int, ...] = ()) -> Conflict:
    return Conflict(
        kind=ConflictKind(kind),
        unit=unit(who),
        needs=tuple(map(unit, needs)),
        path="f",
        line=line,
        removed=b"",
        inserted=b"",
        outside=tuple(map(Seq, outside)),
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (conflict("missing-target", "3:1", "2:1"), "edit 3 hunk 1 needs edit 2 (f:3)"),
        (conflict("missing-target", "3:0", "2:1", line=0), "edit 3 needs edit 2 (f)"),
        (conflict("missing-target", "30:2", "20:1", "9:1", "20:2"), "edit 30 hunk 2 needs edit 9, 20 (f:3)"),
        (conflict("both-changed", "3:1", "2:1"), "edit 3 hunk 1 and edit 2 both change the same lines (f:3)"),
        (conflict("both-changed", "3:0", "2:0", line=0), "edit 3 and edit 2 both change the file as a whole (f)"),
        (conflict("path-taken", "3:0", "2:0", line=0), "edit 3 puts a file where edit 2 has put another (f)"),
        (
            conflict("text-returned-inside", "3:1", "2:1"),
            "edit 3 hunk 1 was made without text that edit 2 changes (f:3)",
        ),
        (
            conflict("surroundings-gone", "3:1", "2:1"),
            "edit 3 hunk 1 is inside lines that edit 2 changes (f:3)",
        ),
        (conflict("missing-target", "3:1", "2:1", outside=(3,)), "the change from outside needs edit 2 (f:3)"),
        (conflict("missing-target", "2:1", "3:1", outside=(3,)), "edit 2 hunk 1 needs the change from outside (f:3)"),
        (
            conflict("missing-target", "2:1", "3:1", "1:1", outside=(3,)),
            "edit 2 hunk 1 needs edit 1 and the change from outside (f:3)",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_conflict_message_names_units_and_path(found: Conflict, expected: str) -> None:
    assert str(found) == expected


def test_path_conflict_names_the_edit_whose_rejection_restores_the_file() -> None:
    found = replace(conflict("path-taken", "3:0", "2:0", line=0), is_without=True)
    assert str(found) == "without edit 3 the file is at f again, where edit 2 has put another"


@pytest.mark.parametrize(
    ("status", "other_neighbours", "expected"),
    [
        (Status.REJECTED, ["1:1"], "hunk 2:1, rejected, is directly next to 1:1, which is accepted (f:4)"),
        (
            Status.ACCEPTED,
            ["1:1", "3:2"],
            "hunk 2:1, accepted, is directly next to 1:1, 3:2, which are rejected (f:4)",
        ),
    ],
)
def test_a_notice_names_the_neighbours_and_their_status(
    status: Status, other_neighbours: list[str], expected: str
) -> None:
    notice = Notice(unit=unit("2:1"), status=status, adjacent=tuple(map(unit, other_neighbours)), path="f", line=4)
    assert str(notice) == expected
