"""Test which open call a change is attributed to, as a table of calls and answers."""

from collections.abc import Iterable

import pytest

from objstore.model.basic_types import Origin
from objstore.model.results import EXTERNAL_CALL, CallInfo
from objstore.review.calls.attribution import CANDIDATES, NOT_SEEN, RULES, WHY, Facts, FoundChange, explain
from objstore.review.calls.open_calls import AgentCall, CallKind
from objstore.values.fastclass import replace


def call(tool: str, *paths: str, conversation: str = "conv_one", asked: bool = False, ended: int = 0) -> AgentCall:
    """Return a call that may change some files, or any; of two, the one whose tool comes later began later."""
    return AgentCall(
        conversation=conversation,
        id=tool,
        tool=tool,
        paths=paths or None,
        began=ord(tool),
        is_asked=asked,
        ended=ended,
    )


def whose(calls: Iterable[AgentCall], path: str, moment: int, tick: int = 0, *, is_kept: bool = False) -> CallInfo:
    """Return whose a change is, without the reason for which it is unattributed."""
    found = explain(FoundChange(path, moment, tick, is_kept), Facts(calls))
    if found.origin is Origin.UNATTRIBUTED:
        assert found.notes[WHY]
    return replace(found, notes={name: note for name, note in found.notes.items() if name != WHY})


def of_any(*calls: AgentCall) -> CallInfo:
    """Return the attribution of a change that any of the calls may have made."""
    names = sorted({each.conversation for each in calls})
    notes = {CANDIDATES: "\n".join(names)} if names else {}
    return CallInfo(tool="", origin=Origin.UNATTRIBUTED, notes=notes)


NOW = 1  # while all calls run that are open

A = call("A", "f", "g")
LATER = call("B", "f")
OTHER = call("C", "f", conversation="conv_other")
ANY = call("D")
ANY_LATER = call("E")
ANY_OTHER = call("F", conversation="conv_other")
ASKED = call("G", "f", asked=True)
ASKED_OTHER = call("H", "f", conversation="conv_other", asked=True)
ASKED_ANY = call("I", asked=True)
ASKED_ANY_OTHER = call("J", conversation="conv_other", asked=True)
ASKED_AND_OVER = call("K", "f", asked=True, ended=1)


@pytest.mark.parametrize(
    ("running_calls", "author"),
    [
        pytest.param([], None, id="no call is open"),
        pytest.param([A], A, id="whoever named it"),
        pytest.param([A, LATER], LATER, id="the newest of one conversation"),
        pytest.param([LATER, A], LATER, id="in any order of reports"),
        pytest.param([A, OTHER], None, id="two conversations named it"),
        pytest.param([A, ANY_OTHER], A, id="whoever named it, though another may touch any file"),
        pytest.param([A, ANY_LATER], A, id="whoever named it, though the same agent's newer call may touch any file"),
        pytest.param([ASKED], None, id="unconfirmed call"),
        pytest.param([ASKED, ANY], None, id="unconfirmed call that named the file"),
        pytest.param([ASKED_AND_OVER], ASKED_AND_OVER, id="it ran, since it is over"),
        pytest.param([A, ASKED], A, id="one runs, the other may not"),
        pytest.param([A, ASKED_OTHER], None, id="one runs, and another conversation's may have been let run"),
        pytest.param([A, ASKED, ASKED_OTHER], None, id="whoever else of that conversation was asked about"),
        pytest.param([ANY], ANY, id="whoever may touch any file"),
    ],
)
def test_a_change_is_attributed_to_the_call_that_named_the_file(
    running_calls: list[AgentCall], author: AgentCall | None
) -> None:
    expected = of_any(*running_calls) if running_calls else EXTERNAL_CALL
    assert whose(running_calls, "f", NOW) == (expected if author is None else author.info)


@pytest.mark.parametrize(
    ("running_calls", "author"),
    [
        pytest.param([ANY], ANY, id="one call may touch any file"),
        pytest.param([ANY_LATER, ANY], ANY_LATER, id="the newest of one conversation"),
        pytest.param([ANY, LATER], ANY, id="a newer one named another file"),
        pytest.param([ANY, ANY_OTHER], None, id="two conversations"),
        pytest.param([ASKED_ANY], None, id="unconfirmed call"),
        pytest.param([ANY, ASKED_ANY], ANY, id="one runs, the other may not"),
        pytest.param([ANY, ASKED_ANY_OTHER], None, id="what another may do counts though it may wait"),
        pytest.param([ANY, OTHER], ANY, id="another conversation named another file"),
    ],
)
def test_a_change_of_an_unnamed_file_is_attributed_to_the_only_call_that_may_touch_any_file(
    running_calls: list[AgentCall], author: AgentCall | None
) -> None:
    assert whose(running_calls, "h", NOW) == (of_any(*running_calls) if author is None else author.info)


def test_without_a_call_that_may_touch_any_file_the_default_attribution_applies() -> None:
    mine = CallInfo(tool="mine")
    for calls in ([], [A, OTHER]):
        assert explain(FoundChange("h", NOW), Facts(calls), mine) == mine
        assert explain(FoundChange("h", NOW), Facts(calls)) == EXTERNAL_CALL


@pytest.mark.parametrize(
    ("running_calls", "working_since", "author"),
    [
        pytest.param([], None, EXTERNAL_CALL, id="no agent ever worked here"),
        pytest.param([], NOW + 1, EXTERNAL_CALL, id="it is older than the first report of an agent"),
        pytest.param([], NOW, of_any(), id="an agent may have changed it in an earlier call"),
        pytest.param([ANY], 0, of_any(ANY), id="a shell runs, and a person may have changed it before"),
        pytest.param([ANY, ANY_OTHER], 0, of_any(ANY, ANY_OTHER), id="shells of two conversations run"),
        pytest.param([A], 0, A.info, id="it was looked at when the call began that named it"),
    ],
)
def test_a_change_that_no_look_could_see_is_no_ones_for_sure(
    running_calls: list[AgentCall], working_since: int | None, author: CallInfo
) -> None:
    found = explain(FoundChange("f", NOW, is_unseen=True), Facts(running_calls, working_since))
    assert (found.origin, found.notes.get(CANDIDATES)) == (author.origin, author.notes.get(CANDIDATES))
    assert found.notes.get(WHY) == (NOT_SEEN if author.origin is Origin.UNATTRIBUTED else None)


@pytest.mark.parametrize(
    ("moment", "tick", "is_theirs"),
    [(9, 0, False), (9, 1, True), (10, 0, True), (20, 0, True), (21, 0, False), (21, 1, True)],
)
def test_changes_before_a_call_began_or_after_it_ended_are_not_its_own(
    moment: int, tick: int, *, is_theirs: bool
) -> None:
    named, anywhere = (replace(each, since=10, ended=20) for each in (A, ANY))
    # A file that was changed after the end may have been changed before as well.
    other = EXTERNAL_CALL if moment < 20 else of_any(A)
    assert whose([named], "f", moment, tick) == (named.info if is_theirs else other)
    assert whose([anywhere], "h", moment, tick) == (anywhere.info if is_theirs else other)
    assert whose([named, ANY], "f", moment, tick) == (named if is_theirs else ANY).info


def test_a_file_waits_if_only_unconfirmed_calls_named_it() -> None:
    assert Facts(iter([A, OTHER, ANY])).named == ["f", "g"]
    assert Facts([ASKED, ASKED_OTHER, ANY]).must_wait("f")
    assert not Facts([ASKED, A]).must_wait("f")
    assert not Facts([ASKED_AND_OVER, ASKED]).must_wait("f")
    assert not Facts([replace(A, doubt="its end was not reported")]).must_wait("f")


def test_a_call_that_runs_on_after_its_turn_may_have_made_a_change_but_is_never_known_to() -> None:
    left = replace(ANY, is_behind=True, is_left=True)
    assert whose([left], "h", NOW) == of_any(left)
    assert whose([left, ANY_LATER], "h", NOW) == ANY_LATER.info
    assert whose([left, ANY_OTHER], "h", NOW) == of_any(left, ANY_OTHER)
    assert whose([left, A], "f", NOW) == A.info


@pytest.mark.parametrize("calls", [[A], [ANY], [ASKED], [A, ANY_OTHER]])
def test_a_change_that_a_decision_finds_is_unattributed_while_any_call_can_have_made_it(calls: list[AgentCall]) -> None:
    assert whose(calls, "f", NOW, is_kept=True) == of_any(*calls)
    assert whose([replace(each, since=NOW + 1) for each in calls], "f", NOW, is_kept=True) == EXTERNAL_CALL


DOUBTED = replace(ANY, doubt="its end was not reported")
EXPECTED = replace(A, kind=CallKind.EXPECTED)
DOUBTED_A = replace(A, doubt="its end was not reported")
UNANNOUNCED = replace(A, is_announced=False)
SILENT = AgentCall(conversation="conv_other", id="", tool="", paths=None, kind=CallKind.TURN, is_left=True)


@pytest.mark.parametrize(
    ("calls", "path", "author"),
    [
        pytest.param([DOUBTED], "h", None, id="its end is only inferred"),
        pytest.param([DOUBTED, ANY_LATER], "h", ANY_LATER, id="a later one of its conversation runs"),
        pytest.param([DOUBTED, ANY_OTHER], "h", None, id="one of another conversation runs"),
        pytest.param([DOUBTED_A], "f", None, id="it named the file"),
        pytest.param([DOUBTED_A, ANY_LATER], "f", DOUBTED_A, id="it named what a later one may touch"),
        pytest.param([replace(DOUBTED_A, ended=1), ANY_LATER], "f", ANY_LATER, id="its end was lost, a later one runs"),
        pytest.param([DOUBTED_A, ANY_OTHER], "f", None, id="it named what another conversation's may touch"),
        pytest.param([EXPECTED], "f", EXPECTED, id="a change is expected of it"),
        pytest.param([EXPECTED], "h", EXTERNAL_CALL, id="no change of this file is expected"),
        pytest.param([EXPECTED, ANY_OTHER], "f", None, id="another conversation may have made what is expected"),
        pytest.param([EXPECTED, ANY_LATER], "f", EXPECTED, id="a change is expected of it, though a later one runs"),
        pytest.param([replace(EXPECTED, doubt="x")], "f", None, id="a change is expected, but its beginning was lost"),
        pytest.param([UNANNOUNCED, ANY_LATER], "f", UNANNOUNCED, id="it named the file, though a later one runs"),
        pytest.param([UNANNOUNCED, ANY_OTHER], "f", None, id="it named the file, but another conversation's runs"),
        pytest.param([EXPECTED, LATER], "f", LATER, id="another call named it since"),
        pytest.param([EXPECTED, OTHER], "f", OTHER, id="another conversation's named it since"),
        pytest.param([EXPECTED, replace(OTHER, is_announced=False)], "f", None, id="the other's beginning was lost"),
        pytest.param([SILENT], "h", None, id="no event of its tools has arrived"),
        pytest.param([SILENT, ANY], "h", ANY, id="a call explains it"),
    ],
)
def test_what_is_not_certain_is_unattributed(
    calls: list[AgentCall], path: str, author: AgentCall | CallInfo | None
) -> None:
    expected = author.info if isinstance(author, AgentCall) else author or of_any(*calls)
    assert whose(calls, path, NOW) == expected


def test_every_rule_has_its_reason() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.reason for rule in RULES)
