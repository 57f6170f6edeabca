"""How well language models choose from the lists of tools: readings that were made by models with a list alone."""

import pytest

from mcptools.catalog.tool_list import SETS
from tests.support.mcp_agent import connected
from tests.support.tool_choice import READINGS, TASKS, digest, share_right, text_for_a_model


def test_models_choose_the_right_tool_of_the_default_set() -> None:
    shares = [share_right("default", answers) for answers in READINGS["default"]["answers"]]
    assert len(shares) >= 5
    assert min(shares) >= 0.95


@pytest.mark.parametrize("name", ["default", "all"])
def test_readings_were_made_with_todays_list(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Where this fails, models have to read the list again: CONTRIBUTING.md says how."""
    with connected(tmp_path_factory.mktemp("root"), options=["--tools", name]) as agent:
        assert digest(text_for_a_model(agent.tools())) == READINGS[name]["digest"]


@pytest.mark.parametrize("name", ["default", "all", "official"])
def test_every_list_was_read_five_times(name: str) -> None:
    assert len(READINGS[name]["answers"]) >= 5
    assert {len(answers) for answers in READINGS[name]["answers"]} == {len(TASKS)} == {60}


def test_tasks_name_tools_of_their_lists() -> None:
    for task in TASKS:
        assert {*task.default} <= {*SETS["default"], "none"}
        assert {*task.all} <= {*SETS["all"], "none"}
    assert len({task.task for task in TASKS}) == len(TASKS)
