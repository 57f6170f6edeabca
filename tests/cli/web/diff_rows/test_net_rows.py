"""The rows of a diff give both texts, in pages of any size."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from cli.web.diff_rows.net_rows import DiffRows
from objstore import Action, CallInfo, NetFile, TurnInfo, Workspace, replace
from tests.support.faulty_disk import UnsyncedDisk

TEXTS = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n"]), max_size=14).map(b"".join)
ENDED = st.tuples(TEXTS, st.sampled_from([b"", b"end"])).map(b"".join)


def net_file(folder: Path, texts: list[bytes]) -> NetFile | None:
    """Return a file whose first text is accepted and whose further texts are edits; None: they change nothing."""
    with Workspace.init(folder, UnsyncedDisk()) as workspace:
        for number, text in enumerate(texts):
            turn = TurnInfo(session="s", began=number + 1)
            with workspace.call(CallInfo(tool="t", conversation="s", turn=turn)) as call:
                call.write("a", text)
                call.commit()
            if not number:
                workspace.decide(Action.ACCEPT, [unit for file in workspace.review.changes() for unit in file.units])
        return next(iter(workspace.review.changes()), None)


def sides(rows: DiffRows, page: int) -> tuple[list[str], list[str]]:
    """Return both texts as the rows of all pages give them, with the lines of gaps from `context_rows`."""
    old: list[str] = []
    new: list[str] = []
    for first in range(0, rows.total, page):
        for row in rows.rows(first, page):
            shown = [row]
            if row["k"] == "~":
                assert (row["o"], row["n"]) == (len(old) + 1, len(new) + 1)
                shown = rows.context_rows(row["n"], row["hidden"])
                assert len(shown) == row["hidden"]
            for each in shown:
                text = each["t"] + ("" if each.get("end") == "no newline" else "\n")
                if each["k"] in " -" and "o" in each:
                    assert each["o"] == len(old) + 1
                    old.append(text)
                if each["k"] in " +":
                    assert each["n"] == len(new) + 1
                    new.append(text)
    return old, new


@given(texts=st.lists(ENDED, min_size=2, max_size=4), context=st.integers(0, 3), page=st.integers(1, 5))
def test_both_texts_can_be_read_off_the_rows(
    tmp_path_factory: pytest.TempPathFactory, texts: list[bytes], context: int, page: int
) -> None:
    file = net_file(tmp_path_factory.mktemp("ws"), texts)
    if file is None or file.before is None or file.after is None:
        return
    rows = DiffRows(file, context)
    if rows.total:
        old, new = sides(rows, page)
        assert ("".join(old), "".join(new)) == (file.before.decode(), file.after.decode())
    for change, (first, count) in zip(file.changes, rows.places, strict=True):
        own = rows.rows(first, count)
        assert "".join(row["t"] for row in own if row["k"] == "-") == change.removed.decode().replace("\n", "")
        assert "".join(row["t"] for row in own if row["k"] == "+") == change.inserted.decode().replace("\n", "")


@given(texts=st.lists(ENDED, min_size=2, max_size=4), context=st.integers(0, 3), data=st.data())
def test_the_current_text_can_be_read_off_the_rows_of_some_of_the_changes(
    tmp_path_factory: pytest.TempPathFactory, texts: list[bytes], context: int, data: st.DataObject
) -> None:
    file = net_file(tmp_path_factory.mktemp("ws"), texts)
    if file is None or file.after is None or not file.changes:
        return
    shown = data.draw(st.sets(st.integers(0, len(file.changes) - 1), min_size=1))
    some = replace(
        file,
        changes=tuple(change for at, change in enumerate(file.changes) if at in shown),
        left_out=tuple(change for at, change in enumerate(file.changes) if at not in shown),
    )
    rows = DiffRows(some, context)
    if not rows.total:
        return
    found: list[str] = []
    for row in rows.rows(0, rows.total):
        shown_rows = rows.context_rows(row["n"], row["hidden"]) if row["k"] == "~" else [row]
        found += [each["t"] + ("" if "end" in each else "\n") for each in shown_rows if each["k"] in " +"]
    assert "".join(found) == file.after.decode()
