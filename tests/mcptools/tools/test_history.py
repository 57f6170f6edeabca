"""What a model can read about its edits: status, diff, and the reviewer's reason."""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings, strategies as st
from mcp.types import TextResourceContents

from mcptools.tools.history import edit_diff
from objstore import Action, CallInfo, EditFilter, Workspace
from tests.support.command_runner import cas
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.mcp_agent import Agent, connected


def test_edits_are_listed_with_status_and_reason(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    first = agent.done("write_file", path=str(file), content="one\n").structured
    second = agent.done(
        "multi_edit_text_file",
        path=str(file),
        edits=[{"old_string": "one", "new_string": "two"}],
        mcp_conversation_id=first["mcp_conversation_id"],
    ).structured
    with Workspace.open(agent.root) as workspace:
        workspace.decide(Action.REJECT, workspace.find_units(str(second["edit"]))[1], reason="not two, three")
    result = agent.done("list_edits", path=str(file))
    assert [
        (edit["edit"], edit["status"], edit["operation"], edit["reason"]) for edit in result.structured["edits"]
    ] == [
        (second["edit"], "rejected", "edit", "not two, three"),
        (first["edit"], "pending", "create", ""),
    ]
    assert result.text.splitlines()[0] == f"{second['edit']} rejected edit {file} +1 -1: not two, three"
    assert {edit["mcp_conversation_id"] for edit in result.structured["edits"]} == {first["mcp_conversation_id"]}
    only = agent.done("list_edits", path=str(file), status="rejected", mcp_conversation_id=first["mcp_conversation_id"])
    assert [edit["edit"] for edit in only.structured["edits"]] == [second["edit"]]
    shown = agent.done("show_edit", edit=second["edit"])
    name = file.relative_to(agent.root)
    label = f"{second['edit']}:1 rejected"
    assert shown.structured["diff"] == f"--- {name}\n+++ {name}\n@@ -1 +1 @@ {label}\n-one\n+two\n"
    assert shown.structured["edit"]["reason"] == "not two, three"
    assert shown.structured["hunk_statuses"] == ["rejected"]


def test_what_a_rejection_breaks_and_its_check_are_part_of_the_reason(agent: Agent, folder: Path) -> None:
    agent.done("write_file", path=str(folder / "net.py"), content="def retry(): ...\n")
    agent.done("write_file", path=str(folder / "app.py"), content="from net import retry\n")
    # The check may print what is no agent's business.
    done = cas("reject", str(folder / "net.py"), "-m", "no", "--check", "echo 12 passed", folder=agent.root)
    assert done.status == 0, done
    (listed,) = agent.done("list_edits", path=str(folder / "net.py")).structured["edits"]
    assert listed["reason"].startswith("no (This breaks names: it takes `")
    assert listed["reason"].endswith(":0 added. Checked with `echo 12 passed`, which succeeded)")
    shown = agent.done("show_edit", edit=listed["edit"]).structured
    assert shown["edit"]["reason"] == shown["reasons"][0]["reason"] == listed["reason"]


lines = st.sampled_from(["a", "b", "", " x", "-x", "+x", "\ttab", "é", "--- a", "@@", "c", "d"])
changes = st.tuples(st.integers(0, 12), st.integers(0, 2), st.lists(lines, max_size=2))
ends = st.sampled_from(["\n", ""])


@settings(max_examples=30)
@given(st.lists(lines, min_size=1, max_size=12), st.lists(changes, max_size=2), ends, ends)
def test_git_applies_the_diff_shown_for_an_edit(
    old: list[str], edits: list[tuple[int, int, list[str]]], old_end: str, new_end: str
) -> None:
    new = old.copy()
    for at, removed_count, inserted in edits:
        new[at : at + removed_count] = inserted
    before, after = (("\n".join(text) + end * bool(text)).encode() for text, end in ((old, old_end), (new, new_end)))
    assume(before != after)
    with tempfile.TemporaryDirectory() as folder:
        with Workspace.init(Path(folder), UnsyncedDisk()) as workspace:
            for content in (before, after):
                with workspace.call(CallInfo(tool="test")) as call:
                    call.write("f", content)
                    call.commit()
            patch = edit_diff(workspace, workspace.history.edit(2))
        Path(folder, "f").write_bytes(before)
        command = ["git", "apply", "--whitespace=nowarn", "-p0"]
        ran = subprocess.run(command, cwd=folder, input=patch, capture_output=True, check=False)
        assert (ran.returncode, Path(folder, "f").read_bytes()) == (0, after), (ran.stderr.decode(), patch.decode())


def test_diff_of_an_edit_shows_the_status_of_each_hunk(tmp_path: Path) -> None:
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace:
        for content in (b"1\n2\n3\n4\n5\n6", b"one\n2\nthree\n4\n5\n6\n"):
            with workspace.call(CallInfo(tool="test")) as call:
                call.write("f", content)
                call.commit()
        workspace.decide(Action.REJECT, workspace.find_units("2:2")[1], reason="keep 3")
        workspace.decide(Action.ACCEPT, workspace.find_units("2:0")[1])
    with connected(tmp_path) as agent:
        shown = agent.done("show_edit", edit=2)
        resource = agent.resource("cas://edit/2")
    diff = (
        "--- f\n+++ f\n"
        "@@ -1,2 +1,2 @@ 2:1 pending\n-1\n+one\n 2\n"
        "@@ -3,3 +3,3 @@ 2:2 rejected\n-3\n+three\n 4\n 5\n"
        "@@ -6 +6 @@ 2:0 accepted\n-6\n\\ No newline at end of file\n+6\n"
    )
    assert shown.structured["diff"] == diff
    assert shown.text.endswith(diff)
    assert shown.structured["hunk_statuses"] == ["pending", "rejected"]
    assert isinstance(resource, TextResourceContents)
    assert json.loads(resource.text)["diff"] == diff


def test_reason_of_a_hunk_is_shown_after_later_decisions_on_others(tmp_path: Path) -> None:
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace:
        for content in (b"1\n2\n3\n4\n5\n", b"one\n2\nthree\n4\nfive\n"):
            with workspace.call(CallInfo(tool="test")) as call:
                call.write("f", content)
                call.commit()

    def decide(action: Action, unit: str, reason: str = "") -> None:
        with Workspace.open(tmp_path) as workspace:
            workspace.decide(action, workspace.find_units(unit)[1], reason=reason)

    with connected(tmp_path) as agent:

        def shown_reasons() -> tuple[str, list[dict[str, Any]]]:
            shown, resource = agent.done("show_edit", edit=2), agent.resource("cas://edit/2")
            assert isinstance(resource, TextResourceContents)
            reason, reasons = shown.structured["edit"]["reason"], shown.structured["reasons"]
            assert (json.loads(resource.text)["reason"], json.loads(resource.text)["reasons"]) == (reason, reasons)
            assert agent.done("list_edits").structured["edits"][0]["reason"] == reason
            assert shown.text.splitlines()[0].endswith(f": {reason}")
            return reason, reasons

        decide(Action.REJECT, "2:2", "keep 3")
        decide(Action.ACCEPT, "2:3")
        assert shown_reasons() == ("keep 3", [{"hunks": ["2:2"], "more": 0, "reason": "keep 3"}])
        decide(Action.REJECT, "2:1", "1 is a name")
        assert shown_reasons() == (
            "2:1: 1 is a name; 2:2: keep 3",
            [
                {"hunks": ["2:1"], "more": 0, "reason": "1 is a name"},
                {"hunks": ["2:2"], "more": 0, "reason": "keep 3"},
            ],
        )


def test_listing_edits_of_a_directory_explains_the_mistake(agent: Agent, folder: Path) -> None:
    agent.done("write_file", path=str(folder / "file"), content="one\n")
    listed = agent.done("list_edits", path=str(folder))
    assert listed.structured["edits"] == []
    assert listed.texts[-1].endswith(
        f"{folder} is a directory, but path has to name a file: leave it out to list all edits."
    )
    for path in (folder / "none", folder / "file"):
        listed = agent.done("list_edits", path=str(path), status="rejected")
        assert listed.texts == ["No recorded edits match."]


def test_listing_edits_in_the_wrong_directory_names_the_right_one(tmp_path: Path) -> None:
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    with connected(outer, served=[outer, inner]) as agent:
        for folder in (inner, outer):  # while the outer one is no workspace, it records nothing of the inner one
            agent.done("write_file", path=str(folder / "f"), content="one\n")
        for path in (str(inner / "f"), "inner/f"):
            listed = agent.done("list_edits", path=path, directory=str(outer))
            assert listed.structured["edits"] == []
            assert listed.texts[-1].endswith(
                f"{path} belongs to {inner}: give that as directory, or leave directory out."
            )
        for directory, file in (("", inner / "f"), (inner, inner / "f"), (outer, outer / "f")):
            listed = agent.done("list_edits", path=str(file), directory=str(directory))
            assert [edit["path"] for edit in listed.structured["edits"]] == [str(file)]
            assert "is of" not in "".join(listed.texts)


def test_unknown_status_and_unknown_edit_are_refused(agent: Agent) -> None:
    assert agent.call("list_edits", status="liked").error["code"] == -32600
    assert agent.call("show_edit", edit=10**6).error["code"] == -32600


@pytest.mark.parametrize("number", [2**63, 10**30, -1, -(10**30)])
def test_number_out_of_range_is_refused(agent: Agent, folder: Path, number: int) -> None:
    edit = agent.done("write_file", path=str(folder / "file"), content="").structured["edit"]
    for tool, arguments in (
        ("list_edits", {"offset": number}),
        ("show_edit", {"edit": number}),
        ("show_edit", {"edit": edit, "offset": number}),
    ):
        assert agent.call(tool, **arguments).error["code"] == -32600
    assert agent.done("list_edits", offset=2**63 - 1).structured["edits"] == []


def test_long_histories_and_diffs_are_returned_in_pages(agent: Agent, folder: Path) -> None:
    number = agent.done("write_file", path=str(folder / "long"), content="x" * 90 + "\n").structured["edit"]
    text = ("y" * 90 + "\n") * 2000
    number = agent.done("write_file", path=str(folder / "long"), content=text).structured["edit"]
    diff, offset = "", 0
    while True:
        page = agent.done("show_edit", edit=number, offset=offset).structured
        diff += page["diff"]
        offset = page["next_offset"]
        if not offset:
            break
    assert diff.count("\n+y") == 2000
    with Workspace.open(agent.root) as workspace:
        recorded = len(workspace.history.edits())
    listed = agent.done("list_edits").structured["edits"]
    assert [edit["edit"] for edit in listed] == list(range(recorded, 0, -1))[: len(listed)]


def test_reading_the_history_creates_no_store(tmp_path: Path) -> None:
    roots = [tmp_path / "one", tmp_path / "two"]
    for root in roots:
        root.mkdir()
    with connected(*roots) as agent:
        assert agent.call("list_edits").error["code"] == -32600
        assert agent.done("list_edits", directory=str(roots[1])).structured["edits"] == []
        assert agent.call("show_edit", edit=1, directory=str(roots[0])).error["code"] == -32600
        assert not list(tmp_path.glob("*/.cas"))
        agent.done("write_file", path=str(roots[1] / "file"), content="text\n")
        assert len(agent.done("list_edits", directory=str(roots[1])).structured["edits"]) == 1
        assert agent.done("list_edits", directory=str(roots[0])).structured["edits"] == []


def test_history_of_several_pages_is_listed_completely_and_newest_first(tmp_path: Path) -> None:
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace:
        for number in range(430):
            with workspace.call(CallInfo(tool="test")) as call:
                call.write("f", b"%d\n" % number)
                call.commit()
    listed: list[int] = []
    pages, offset = 0, 0
    with connected(tmp_path) as agent:
        while pages == 0 or offset:
            answer = agent.done("list_edits", offset=offset)
            page = answer.structured
            listed += [edit["edit"] for edit in page["edits"]]
            pages, offset = pages + 1, page["next_offset"]
            # The answer says that there are more edits, but not how many.
            range_shown = f"{listed and 431 - page['edits'][0]['edit']} to {offset}, and there are more."
            assert answer.texts[1:] == (
                [f"These are edits {range_shown} Go on with offset={offset}."] if offset else []
            )
        beyond = agent.done("list_edits", offset=430)
        assert (beyond.structured["edits"], beyond.texts[1:]) == ([], ["There are only 430 edits."])
        assert agent.done("list_edits", offset=430, status="rejected").texts[0] == "No recorded edits match."
    assert listed == list(range(430, 0, -1))
    assert pages == 3


def test_long_reasons_are_split_into_pages(tmp_path: Path) -> None:
    long_reason, most = "so\n" * 10_000, 80_000
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace:
        for number in range(5):
            with workspace.call(CallInfo(tool="test")) as call:
                call.write(f"f{number}", b"y\n" * 40_000)
                call.commit()
        units = [unit for number in range(1, 6) for unit in workspace.find_units(str(number))[1]]
        workspace.decide(Action.REJECT, units, reason=long_reason)
    listed: dict[int, str] = {}
    with connected(tmp_path) as agent:
        offset, has_more = 0, True
        while has_more:
            page = agent.done("list_edits", offset=offset)
            assert max(len(page.text), sum(len(edit["reason"]) for edit in page.structured["edits"])) < most
            for line, edit in zip(page.text.splitlines(), page.structured["edits"], strict=True):
                listed[edit["edit"]] = edit["reason"]
                assert line.endswith("… (40002 characters in all)")
            offset = page.structured["next_offset"]
            has_more = offset > 0
        shown = agent.done("show_edit", edit=1)
    assert listed == dict.fromkeys([5, 4, 3, 2, 1], long_reason)
    assert max(len(shown.text), len(shown.structured["diff"]) + len(long_reason)) < most + 1000
    assert shown.structured["edit"]["reason"] == long_reason
    assert shown.text.splitlines()[0].endswith(f"{ascii(long_reason)[:8000]}… (40002 characters in all)")
    assert shown.structured["next_offset"] > 0


def test_history_filter_skips_and_limits_edits(tmp_path: Path) -> None:
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace:
        for number in range(9):
            with workspace.call(CallInfo(tool="test", conversation="odd" if number % 2 else "even")) as call:
                call.write("f", b"%d\n" % number)
                call.commit()

        def seqs(**criteria: Any) -> list[int]:  # noqa: ANN401 -- whatever a filter takes
            return [view.seq for view in workspace.history.edits(EditFilter(**criteria))]

        assert seqs(skip=7) == [8, 9]
        assert seqs(skip=2, limit=3, newest_first=True) == [7, 6, 5]
        assert seqs(skip=1, conversation="odd", before=8) == [4, 6]
        assert seqs(skip=9) == []


def test_diff_line_longer_than_an_answer_is_cut_and_the_rest_follows(agent: Agent, folder: Path) -> None:
    file, line, most = folder / "min.js", "x=1;" * 30_000, 80_000
    file.write_text(f"{line}\nend\n")
    edits = [{"old_string": "x=1;\nend", "new_string": "y;\nend"}]
    number = agent.done("multi_edit_text_file", path=str(file), edits=edits).structured["edit"]
    removed = agent.done("show_edit", edit=number, offset=3)
    assert removed.structured["diff"] == f"-{line}"[:most]
    assert len(removed.texts[0]) < most + 1000
    assert f"The last line is cut: {len(line) + 2 - most} more characters do not fit." in removed.texts[-1]
    added = agent.done("show_edit", edit=number, offset=removed.structured["next_offset"])
    assert added.structured["diff"].startswith("+x=1;")


def test_answer_names_the_first_of_thousands_of_hunks_and_their_count(tmp_path: Path) -> None:
    count, most = 2400, 80_000
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace:
        for mark in (b"", b"!"):
            with workspace.call(CallInfo(tool="test")) as call:
                lines = (b"%d%b\n" % (number, mark * (number % 2)) for number in range(2 * count))
                call.write("f", b"".join(lines))
                call.commit()
        for half, reason in ((1, "odd"), (2, "even")):
            units = workspace.find_units("2")[1]
            workspace.decide(Action.REJECT, [unit for unit in units if unit.hunk % 2 == half % 2], reason=reason)
    with connected(tmp_path) as agent:
        shown, listed = agent.done("show_edit", edit=2), agent.done("list_edits")
        resource = agent.resource("cas://edit/2")
    found = shown.structured
    assert (found["hunks"], found["hunk_statuses"]) == (count, ["rejected"] * 1000)
    reason_groups = [
        (group["reason"], len(group["hunks"]), group["hunks"][:2], group["more"]) for group in found["reasons"]
    ]
    assert reason_groups == [("odd", 500, ["2:1", "2:3"], 700), ("even", 500, ["2:2", "2:4"], 700)]
    odd = ", ".join(f"2:{hunk}" for hunk in range(1, 20, 2))
    even = ", ".join(f"2:{hunk}" for hunk in range(2, 21, 2))
    reason = f"{odd} and 1190 more: odd; {even} and 1190 more: even"
    assert (found["edit"]["reason"], listed.structured["edits"][0]["reason"]) == (reason, reason)
    assert sum(len(json.dumps(value)) for name, value in found.items() if name != "diff") < most / 2
    assert max(len(found["diff"]), len(shown.text)) < most + 1000
    assert len(json.dumps(listed.structured)) < 2000
    assert shown.texts[1].startswith(
        "Of 2400 hunks, hunk_statuses and reasons name 1000 each; the diff shows the status of each"
    )
    # The resource contains everything.
    assert isinstance(resource, TextResourceContents)
    whole = json.loads(resource.text)
    assert (len(whole["hunk_statuses"]), [len(group["hunks"]) for group in whole["reasons"]]) == (count, [1200, 1200])


def test_answer_has_the_first_of_many_long_reasons_and_their_count(tmp_path: Path) -> None:
    count, most = 59, 80_000
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace:
        for mark in (b"", b"!"):
            with workspace.call(CallInfo(tool="test")) as call:
                call.write("f", b"".join(b"%d%b\n" % (number, mark * (number % 2)) for number in range(2 * count)))
                call.commit()
        for unit in workspace.find_units("2")[1]:
            if unit.hunk:
                workspace.decide(Action.REJECT, [unit], reason=f"{unit.hunk} " + "no" * 1500)
    with connected(tmp_path) as agent:
        shown, listed = agent.done("show_edit", edit=2), agent.done("list_edits")
        resource = agent.resource("cas://edit/2")
    reasons = [group["reason"].split()[0] for group in shown.structured["reasons"]]
    assert reasons == [str(hunk) for hunk in range(1, len(reasons) + 1)]
    assert 5 < len(reasons) < count
    assert f"Of {count} reasons, the first {len(reasons)} are here" in shown.texts[1]
    assert len(json.dumps(shown.structured)) < most
    assert len(json.dumps(listed.structured)) < most
    assert isinstance(resource, TextResourceContents)
    assert len(json.loads(resource.text)["reasons"]) == count
