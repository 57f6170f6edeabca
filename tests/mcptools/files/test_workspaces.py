"""Directories without a server: a held call does not delay look-ups of other paths."""

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


def answered(*works: Callable[[], object]) -> None:
    """Check that all of these come to an end, done at once on threads that nobody waits for if they don't."""
    done = [Event() for _ in works]
    errors: list[Exception] = []

    def run(work: Callable[[], object], end: Event) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - told on the test's own thread
            errors.append(error)
        end.set()

    for work, end in zip(works, done, strict=True):
        Thread(target=run, args=(work, end), daemon=True).start()
    waiting = [number for number, end in enumerate(done) if not end.wait(SECONDS_TO_ANSWER)]
    assert not waiting, f"no end to works {waiting}"
    assert not errors, errors


def test_while_a_call_is_held_every_path_can_be_looked_up(directories: Directories) -> None:
    workspace, _ = directories.changing("file", lambda: None)
    with workspace.call(CallInfo(tool="test")):
        answered(
            lambda: directories.changing("other", lambda: None),
            lambda: directories.files_of("file"),
            lambda: directories.recorded_of("file"),
        )


def test_calls_that_look_back_at_the_directories_and_others_all_end(directories: Directories, tmp_path: Path) -> None:
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

    answered(
        lambda: patch("patched", Strategy.ATOMIC), lambda: patch("batched", Strategy.TRY_REVERT), anchor, write, write
    )


def test_a_store_is_opened_once_for_concurrent_calls(tmp_path: Path) -> None:
    directories = Directories([str(tmp_path)])
    with ThreadPoolExecutor(8) as threads:
        wanted: list[Future[object]] = [threads.submit(directories.changing, "f", lambda: None) for _ in range(8)]
    (workspace,) = directories.opened()
    assert all(found.result() == (workspace, ()) for found in wanted)
    directories.close()
