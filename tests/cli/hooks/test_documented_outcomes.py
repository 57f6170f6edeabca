"""The tests are named here that hold the rows of the tables in docs/agents.md of what becomes of a change."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
PAGE: Final = ROOT / "docs" / "agents.md"

CALLS: Final = "cli/hooks/test_call_attribution.py"
DOUBTS: Final = "cli/hooks/test_uncertain_changes.py"
MARKS: Final = "cli/hooks/test_failure_marks.py"
DECIDERS: Final = "cli/hooks/test_deciders.py"
SESSIONS: Final = "objstore/agents/test_hook_sessions.py"
GIT: Final = "objstore/agents/test_git_changes.py"
RESTORED: Final = "objstore/agents/test_git_restore.py"
BROUGHT: Final = "objstore/agents/test_git_brings.py"
RETURNED: Final = "objstore/agents/test_returned_lines.py"

RECORDED: Final = {
    "a tool named the file": (CALLS, "test_changes_of_a_running_tool_are_attributed_to_its_agent_by_cas_record"),
    "the same, and the file was unchanged": (
        DOUBTS,
        "test_a_named_file_that_was_unchanged_at_the_end_of_its_call_is_expected_until_the_turn_ends",
    ),
    "shells of one session alone ran": (
        "objstore/review/calls/test_attribution.py",
        "test_a_change_of_an_unnamed_file_is_attributed_to_the_only_call_that_may_touch_any_file",
    ),
    "shells of two sessions ran": (
        SESSIONS,
        "test_what_several_agents_may_have_changed_is_unattributed_however_it_is_found",
    ),
    "the end of a tool was not reported": (
        DOUBTS,
        "test_what_was_typed_after_an_interruption_is_never_certainly_the_agents",
    ),
    "the client's program was killed": (
        "cli/hooks/test_abandoned_calls.py",
        "test_what_changed_before_anyone_noticed_the_death_may_be_either_s",
    ),
    "an agent begins a tool, or": (
        DOUBTS,
        "test_what_a_call_wrote_while_another_of_its_agent_ran_is_its_own_once_its_end_is_reported",
    ),
    "the beginning of a shell was not reported": (
        "objstore/agents/test_missing_reports.py",
        "test_what_was_found_while_an_unannounced_shell_ran_awaits_review_once_it_is_reported",
    ),
    "a tool waits for your permission": (
        CALLS,
        "test_changes_are_unattributed_if_a_person_was_asked_about_a_call_that_never_ended",
    ),
    "a shell runs on in the background": (
        CALLS,
        "test_a_background_shell_may_have_made_changes_until_it_or_its_session_ends",
    ),
    "a process that a shell began runs on": (
        DOUBTS,
        "test_while_a_process_of_a_shell_lives_only_named_calls_are_certain",
    ),
    "a shell of a killed client": (
        "cli/hooks/test_abandoned_calls.py",
        "test_what_the_shell_of_a_killed_client_left_behind_writes_is_not_the_persons",
    ),
    "a subagent works on": (SESSIONS, "test_what_a_subagent_does_belongs_to_the_turn_whose_prompt_sent_it"),
    "in a session's first turn": (
        DOUBTS,
        "test_a_turn_without_events_of_tools_leaves_what_changed_unattributed_and_says_so_once",
    ),
    "a hook failed": (MARKS, "test_nothing_of_an_agent_in_a_read_only_store_is_accepted"),
    "the log of what hooks reported": (
        "objstore/review/calls/test_evidence_log.py",
        "test_what_changed_while_the_log_was_damaged_is_never_accepted",
    ),
    "between two tools": (DOUBTS, "test_a_shell_that_leaves_no_process_behind_leaves_nothing_unattributed"),
    "a formatter changes a file": (
        "objstore/agents/test_formatting.py",
        "test_a_formatters_change_right_after_an_edit_belongs_to_its_call",
    ),
    "you keep what a decision finds": (
        SESSIONS,
        "test_a_decision_that_keeps_changes_found_during_a_call_leaves_them_pending",
    ),
    "git switches, merges": (GIT, "test_what_git_brings_is_one_event_and_awaits_no_review"),
    "`git reset --hard`": (GIT, "test_rejecting_what_an_agents_git_took_away_brings_a_persons_lines_back"),
    "lines under review leave": (RETURNED, "test_lines_under_review_stay_under_review_whatever_git_does"),
    "lines under review come back": (
        GIT,
        "test_lines_under_review_that_git_brings_back_with_other_endings_await_review",
    ),
    "a file is deleted and made again": (
        RETURNED,
        "test_a_line_under_review_in_a_file_that_is_made_again_awaits_review",
    ),
    "a merge that stops at conflicts": (GIT, "test_what_a_merge_with_conflicts_deletes_is_gits_or_awaits_review"),
    "lines come that an agent put": (GIT, "test_lines_that_an_agent_put_into_git_unseen_await_review_when_they_come"),
    "you commit pending edits": (GIT, "test_a_persons_commit_accepts_the_edits_that_it_contains"),
    "an agent's shell commits them": (GIT, "test_an_agents_commit_accepts_nothing_and_is_recorded"),
    "a worktree, clone or submodule": (
        BROUGHT,
        "test_a_submodule_that_appears_moves_and_goes_is_one_event_each",
    ),
    "an agent works in a worktree": (RESTORED, "test_the_status_names_an_ignored_worktree_where_an_agent_works"),
    "a sparse checkout takes": (BROUGHT, "test_a_sparse_checkout_takes_and_brings_files_without_an_edit"),
    "a folder is moved away": (RETURNED, "test_a_folder_that_leaves_and_returns_is_no_edit"),
    "a file system is not mounted": (
        "objstore/worktree/test_mounts.py",
        "test_what_would_change_a_file_that_is_not_mounted_now_changes_nothing",
    ),
    "a file changes while no look can see it": (
        "objstore/agents/test_newly_covered.py",
        "test_what_an_agent_may_have_changed_unseen_awaits_review",
    ),
    "a tool of our server changes a file": (
        "mcptools/tools/calls/test_outer_workspaces.py",
        "test_what_a_tool_changes_awaits_review_in_the_workspaces_around_too",
    ),
}
"""By the beginning of each row of the table of changes: the file below `tests`, and the test in it."""

DECIDED: Final = {
    "runs `cas accept`": (DECIDERS, "test_decision_inside_an_agents_shell_is_refused_and_changes_nothing"),
    "decides on the page that": (
        DECIDERS,
        "test_page_that_an_agents_client_started_decides_nothing_while_a_call_runs",
    ),
    "writes other settings": (
        "cli/commands/setting_up/test_config.py",
        "test_a_policy_written_into_the_file_by_hand_is_reported_by_status",
    ),
    "decides where a person has allowed it": (
        DECIDERS,
        "test_marked_decision_is_in_status_and_doctor_until_a_person_acknowledges_it",
    ),
    "decides in the chat": (
        "mcptools/view/test_tickets.py",
        "test_a_process_of_the_agents_own_decides_nothing_unless_the_person_has_allowed_it",
    ),
    "writes `review.accept`": (DECIDERS, "test_mark_counts_only_as_a_person_set_it"),
    "has `.casignore`": (
        DECIDERS,
        "test_rule_that_newly_leaves_out_a_covered_path_is_said_before_and_after_the_next_scan",
    ),
    "decides by a script": (DECIDERS, "test_records_say_through_what_a_person_decided"),
}
"""By the beginning of each row of the table about deciders that promises something, and of one that does not."""


def table_after(heading: str) -> list[list[str]]:
    """Return the cells of the rows of the table with this heading."""
    lines = PAGE.read_text().split(heading, 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [re.split(r" \| ", line.removeprefix("| ").removesuffix(" |")) for line in lines]


def rows_after(heading: str) -> list[str]:
    """Return the first cells of the rows of the table with this heading."""
    return [cells[0] for cells in table_after(heading)]


@cache
def functions_in(file: str) -> frozenset[str]:
    body = ast.parse((ROOT / "tests" / file).read_bytes()).body
    return frozenset(part.name for part in body if isinstance(part, ast.FunctionDef))


def test_every_row_about_changes_is_held_by_a_test() -> None:
    rows = rows_after("| what happened | what is recorded |")
    assert [row for row in rows if sum(row.startswith(beginning) for beginning in RECORDED) != 1] == []
    assert [beginning for beginning in RECORDED if sum(row.startswith(beginning) for row in rows) != 1] == []


def test_every_row_about_deciders_that_promises_something_is_held_by_a_test() -> None:
    table = table_after("| what an agent does | prevented or shown |")
    promised = [does for does, becomes in table if not becomes.startswith("neither")]
    assert [row for row in promised if sum(row.startswith(beginning) for beginning in DECIDED) != 1] == []
    assert [beginning for beginning in DECIDED if sum(does.startswith(beginning) for does, _ in table) != 1] == []


@pytest.mark.parametrize(("file", "name"), sorted({*RECORDED.values(), *DECIDED.values()}))
def test_the_tests_that_hold_the_rows_exist(file: str, name: str) -> None:
    assert name in functions_in(file)
