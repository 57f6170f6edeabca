"""What a call does while others wait for it: no more than it has to, and nothing that a cancelled call goes on with."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcptools.directories import Directories
from mcptools.failures import Failure
from mcptools.session import Session
from mcptools.tools import EditOp, Limits, Tools
from mcptools.watching import Watch
from objstore.writerlock import WriterLock


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
    tools = Tools(directories, Session(), Limits())
    tools.write_file("store", "made\n")
    yield tools
    directories.close()


def refused(root: Path, call: Callable[[], object]) -> tuple[Lookout, Failure]:
    """Return how a call was waited for that is refused, and how it was refused."""
    lookout = Lookout(root)
    with pytest.raises(Failure) as refusal:
        lookout.run(call)
    return lookout, refusal.value


def test_nobody_waits_while_a_string_is_looked_for_that_is_not_there(tools: Tools, tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("".join(f"line {number} of many\n" for number in range(500)))
    edits = [EditOp(old_string="xine 77 of many", new_string="")]
    lookout, refusal = refused(tmp_path, lambda: tools.multi_edit_text_file(str(file), edits))
    assert refusal.hint.startswith("Nearest is line 78: ")
    assert lookout.asked > 500
    assert lookout.waited < 5
