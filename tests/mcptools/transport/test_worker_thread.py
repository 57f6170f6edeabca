"""Calls search and parse without the writer lock, and check for cancellation often."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from mcptools.files.workspaces import Directories
from mcptools.model.cancellation import Watch
from mcptools.model.failures import Failure
from mcptools.model.limits import ServerLimits
from mcptools.model.session import Session
from mcptools.tools.editing import EditOp
from mcptools.tools.patch_strategies import PatchOp, Strategy
from objstore.disk.fs.writer_lock import WriterLock
from tests.support.direct_tools import Tools


class LockWatch(Watch):
    """A watch that tries, whenever a call checks for cancellation, whether another writer could get the lock."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._lock = WriterLock(str(root / ".cas" / "lock"))
        self.blocked = 0  # how often another writer would have had to wait
        self.checks = 0

    def check(self) -> None:
        self.checks += 1
        if self._lock.acquire_now():
            self._lock.release()
        else:
            self.blocked += 1


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    directories = Directories([str(tmp_path)])
    tools = Tools(directories, Session(), ServerLimits())
    tools.write_file("store", "made\n")
    yield tools
    directories.close()


def run_refused(root: Path, call: Callable[[], object]) -> tuple[LockWatch, Failure]:
    """Run a call that is refused; return its watch and the failure."""
    watch = LockWatch(root)
    with pytest.raises(Failure) as refusal:
        watch.run(call)
    return watch, refusal.value


def test_lock_is_free_while_a_missing_string_is_searched(tools: Tools, tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("".join(f"line {number} of many\n" for number in range(500)))
    edits = [EditOp(old_string="xine 77 of many", new_string="")]
    watch, refusal = run_refused(tmp_path, lambda: tools.multi_edit_text_file(str(file), edits))
    assert refusal.hint.startswith("Nearest is line 78: ")
    assert watch.checks > 500
    assert watch.blocked < 5


def diff(*changes: str) -> str:
    """Return a patch with wrong line numbers that appends an exclamation mark to each line."""
    hunks = "".join(
        f"@@ -{number * 5 + 1} +{number * 5 + 1} @@\n-{line}\n+{line}!\n" for number, line in enumerate(changes)
    )
    return f"--- f\n+++ f\n{hunks}"


LINES = [f"line {number}" for number in range(1, 101)]
PATCH = diff(*LINES)


def edit_many(tools: Tools) -> object:
    edits = [EditOp(old_string=f"{line}\n", new_string=f"{line}!\n") for line in LINES]
    return tools.multi_edit_text_file(f"{tools.list_allowed_directories().text}/f", edits)


def apply_many(tools: Tools, strategy: Strategy, *patches: str) -> object:
    return tools.apply_patches(strategy, [PatchOp(file_path="f", patch=patch) for patch in patches])


EDITS_OF_MANY_LINES: list[Callable[[Tools], object]] = [
    edit_many,
    lambda tools: tools.edit_file_diff("f", PATCH),
    lambda tools: tools.apply_patch("f", PATCH),
    lambda tools: apply_many(tools, Strategy.TRY_REVERT, diff(*LINES[:50]), diff(*LINES[50:])),
    lambda tools: apply_many(tools, Strategy.ATOMIC, PATCH),
    lambda tools: apply_many(tools, Strategy.PROGRESSIVE, PATCH),
    lambda tools: apply_many(tools, Strategy.BACKUP_RESTORE, PATCH),
]


@pytest.mark.parametrize("edit_lines", EDITS_OF_MANY_LINES)
def test_lock_is_free_while_many_strings_are_searched(
    edit_lines: Callable[[Tools], object], tools: Tools, tmp_path: Path
) -> None:
    (tmp_path / "f").write_text("above\n" + "".join(f"{line}\n" for line in LINES))
    watch = LockWatch(tmp_path)
    watch.run(lambda: edit_lines(tools))
    assert (tmp_path / "f").read_text() == "above\n" + "".join(f"{line}!\n" for line in LINES)
    assert watch.checks > 100
    assert watch.blocked < 10


@pytest.mark.parametrize("edit_lines", EDITS_OF_MANY_LINES)
def test_strings_are_searched_again_if_the_file_changes_before_the_lock(
    edit_lines: Callable[[Tools], object], tools: Tools, tmp_path: Path
) -> None:
    file = tmp_path / "f"
    file.write_text("above\n" + "".join(f"{line}\n" for line in LINES))

    class WatchThatWrites(LockWatch):
        def check(self) -> None:
            if self.checks == 90:
                file.write_text("below\n" + file.read_text())
            super().check()

    WatchThatWrites(tmp_path).run(lambda: edit_lines(tools))
    assert file.read_text() == "below\nabove\n" + "".join(f"{line}!\n" for line in LINES)


@pytest.mark.parametrize("edit_lines", EDITS_OF_MANY_LINES)
def test_refused_edit_of_many_lines_does_not_take_the_lock(
    edit_lines: Callable[[Tools], object], tools: Tools, tmp_path: Path
) -> None:
    text = "above\n" + "".join(f"{line}\n" for line in LINES[:-1])
    (tmp_path / "f").write_text(text)
    watch, refusal = run_refused(tmp_path, lambda: edit_lines(tools))
    assert refusal.hint
    assert watch.blocked < 10
    assert (tmp_path / "f").read_text() == text


@pytest.mark.parametrize("strategy", Strategy)
def test_lock_is_free_while_patches_are_parsed(strategy: Strategy, tools: Tools, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("line 1\n")
    watch = LockWatch(tmp_path)
    watch.run(lambda: apply_many(tools, strategy, "words\n" * 20_000 + diff("line 1")))
    assert (tmp_path / "f").read_text() == "line 1!\n"
    assert watch.checks > 50
    assert watch.blocked < 10


def test_search_in_a_file_of_many_lines_can_be_cancelled(tools: Tools, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("line\n" * 20_000)
    for look in (tools.read_file_by_keyword, tools.grep_files):
        watch = LockWatch(tmp_path)
        watch.run(partial(look, "f", "word"))
        assert watch.checks >= 20
