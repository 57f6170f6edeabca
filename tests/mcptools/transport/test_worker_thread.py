"""What a call does while it holds the lock: only what it must, and nothing after it was cancelled."""

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
from objstore.fs.writer_lock import WriterLock
from tests.support.direct_tools import Tools


class Lookout(Watch):
    """Sees, whenever a call asks whether it is still wanted, whether another could write."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._lock = WriterLock(str(root / ".cas" / "lock"))
        self.waited = 0  # times that another would have had to wait
        self.asked = 0

    def check(self) -> None:
        self.asked += 1
        if self._lock.acquire_now():
            self._lock.release()
        else:
            self.waited += 1


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    directories = Directories([str(tmp_path)])
    tools = Tools(directories, Session(), ServerLimits())
    tools.write_file("store", "made\n")
    yield tools
    directories.close()


def refused(root: Path, call: Callable[[], object]) -> tuple[Lookout, Failure]:
    """Return how a call was waited for that is refused, and how it was refused."""
    lookout = Lookout(root)
    with pytest.raises(Failure) as refusal:
        lookout.run(call)
    return lookout, refusal.value


def test_the_lock_is_free_while_a_missing_string_is_searched(tools: Tools, tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("".join(f"line {number} of many\n" for number in range(500)))
    edits = [EditOp(old_string="xine 77 of many", new_string="")]
    lookout, refusal = refused(tmp_path, lambda: tools.multi_edit_text_file(str(file), edits))
    assert refusal.hint.startswith("Nearest is line 78: ")
    assert lookout.asked > 500
    assert lookout.waited < 5


def diff(*changes: str) -> str:
    """Return a patch of lines, with wrong numbers, that puts an exclamation mark behind each."""
    hunks = "".join(
        f"@@ -{number * 5 + 1} +{number * 5 + 1} @@\n-{line}\n+{line}!\n" for number, line in enumerate(changes)
    )
    return f"--- f\n+++ f\n{hunks}"


LINES = [f"line {number}" for number in range(1, 101)]
PATCH = diff(*LINES)


def edited(tools: Tools) -> object:
    edits = [EditOp(old_string=f"{line}\n", new_string=f"{line}!\n") for line in LINES]
    return tools.multi_edit_text_file(f"{tools.list_allowed_directories().text}/f", edits)


def applied(tools: Tools, strategy: Strategy, *patches: str) -> object:
    return tools.apply_patches(strategy, [PatchOp(file_path="f", patch=patch) for patch in patches])


MANY: list[Callable[[Tools], object]] = [
    edited,
    lambda tools: tools.edit_file_diff("f", PATCH),
    lambda tools: tools.apply_patch("f", PATCH),
    lambda tools: applied(tools, Strategy.TRY_REVERT, diff(*LINES[:50]), diff(*LINES[50:])),
    lambda tools: applied(tools, Strategy.ATOMIC, PATCH),
    lambda tools: applied(tools, Strategy.PROGRESSIVE, PATCH),
    lambda tools: applied(tools, Strategy.BACKUP_RESTORE, PATCH),
]


@pytest.mark.parametrize("many", MANY)
def test_the_lock_is_free_while_many_places_are_searched(
    many: Callable[[Tools], object], tools: Tools, tmp_path: Path
) -> None:
    (tmp_path / "f").write_text("above\n" + "".join(f"{line}\n" for line in LINES))
    lookout = Lookout(tmp_path)
    lookout.run(lambda: many(tools))
    assert (tmp_path / "f").read_text() == "above\n" + "".join(f"{line}!\n" for line in LINES)
    assert lookout.asked > 100
    assert lookout.waited < 10


@pytest.mark.parametrize("many", MANY)
def test_many_places_are_looked_for_in_the_file_as_it_is_under_the_lock(
    many: Callable[[Tools], object], tools: Tools, tmp_path: Path
) -> None:
    file = tmp_path / "f"
    file.write_text("above\n" + "".join(f"{line}\n" for line in LINES))

    class Meddler(Lookout):
        def check(self) -> None:
            if self.asked == 90:
                file.write_text("below\n" + file.read_text())
            super().check()

    Meddler(tmp_path).run(lambda: many(tools))
    assert file.read_text() == "below\nabove\n" + "".join(f"{line}!\n" for line in LINES)


@pytest.mark.parametrize("many", MANY)
def test_a_refusal_of_many_places_does_not_take_the_lock(
    many: Callable[[Tools], object], tools: Tools, tmp_path: Path
) -> None:
    text = "above\n" + "".join(f"{line}\n" for line in LINES[:-1])
    (tmp_path / "f").write_text(text)
    lookout, refusal = refused(tmp_path, lambda: many(tools))
    assert refusal.hint
    assert lookout.waited < 10
    assert (tmp_path / "f").read_text() == text


@pytest.mark.parametrize("strategy", Strategy)
def test_the_lock_is_free_while_patches_are_parsed(strategy: Strategy, tools: Tools, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("line 1\n")
    lookout = Lookout(tmp_path)
    lookout.run(lambda: applied(tools, strategy, "words\n" * 20_000 + diff("line 1")))
    assert (tmp_path / "f").read_text() == "line 1!\n"
    assert lookout.asked > 50
    assert lookout.waited < 10


def test_looking_for_a_word_in_a_file_of_many_lines_can_be_ended(tools: Tools, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("line\n" * 20_000)
    for look in (tools.read_file_by_keyword, tools.grep_files):
        lookout = Lookout(tmp_path)
        lookout.run(partial(look, "f", "word"))
        assert lookout.asked >= 20
