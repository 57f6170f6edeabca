"""Served directories, without a server: an open call does not delay look-ups of other paths."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread

import pytest

from mcptools.files.workspaces import Directories
from mcptools.model.limits import ServerLimits
from mcptools.model.session import Session
from mcptools.tools.editing import AnchorOp
from mcptools.tools.patch_strategies import PatchOp, Strategy
from objstore import CallInfo
from tests.support.direct_tools import Tools
from tests.support.mcp_agent import SECONDS_TO_ANSWER

ROUNDS = 40


@pytest.fixture
def directories(tmp_path: Path) -> Iterator[Directories]:
    directories = Directories([str(tmp_path)])
    directories.changing("file", lambda: None)
    yield directories
    directories.close()


def check_all_return(*functions: Callable[[], object]) -> None:
    """Check that all functions return when run concurrently, on threads that are abandoned if they don't."""
    returned = [Event() for _ in functions]
    errors: list[Exception] = []

    def run(work: Callable[[], object], event: Event) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - reported by the test's own thread
            errors.append(error)
        event.set()

    for work, event in zip(functions, returned, strict=True):
        Thread(target=run, args=(work, event), daemon=True).start()
    waiting = [number for number, event in enumerate(returned) if not event.wait(SECONDS_TO_ANSWER)]
    assert not waiting, f"functions {waiting} did not return"
    assert not errors, errors


def test_paths_can_be_looked_up_while_a_call_is_open(directories: Directories) -> None:
    workspace, _ = directories.changing("file", lambda: None)
    with workspace.call(CallInfo(tool="test")):
        check_all_return(
            lambda: directories.changing("other", lambda: None),
            lambda: directories.files_of("file"),
            lambda: directories.recorded_of("file"),
        )


def test_concurrent_calls_that_use_the_directories_do_not_deadlock(directories: Directories, tmp_path: Path) -> None:
    tools = Tools(directories, Session(), ServerLimits())
    for name in ("patched", "batched", "anchored"):
        (tmp_path / name).write_text("a\nb\n")

    def patch(name: str, strategy: Strategy) -> None:
        for old, new in [("a", "c"), ("c", "a")] * (ROUNDS // 2):
            text = f"--- f\n+++ f\n@@ -1,2 +1,2 @@\n-{old}\n+{new}\n b\n"
            tools.apply_patches(strategy, [PatchOp(file_path=name, patch=text)])

    def anchor() -> None:
        for _ in range(ROUNDS):
            with pytest.raises(Exception, match="nor of a version"):
                tools.edit_text_file("anchored", "0" * 64, [AnchorOp(op="delete", anchor="1:00")])

    def write() -> None:
        for number in range(ROUNDS):
            tools.write_file("written", f"{number}\n")

    check_all_return(
        lambda: patch("patched", Strategy.ATOMIC), lambda: patch("batched", Strategy.TRY_REVERT), anchor, write, write
    )


def test_concurrent_calls_open_a_store_once(tmp_path: Path) -> None:
    directories = Directories([str(tmp_path)])
    with ThreadPoolExecutor(8) as threads:
        futures: list[Future[object]] = [threads.submit(directories.changing, "f", lambda: None) for _ in range(8)]
    (workspace,) = directories.opened()
    assert all(found.result() == (workspace, ()) for found in futures)
    directories.close()
