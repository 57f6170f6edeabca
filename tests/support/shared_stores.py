"""Two stores with one bucket: `desk` has pushed its changes, and somebody else's workspace has pulled them."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from objstore import Workspace
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import UnsyncedDisk

__all__ = ["AFTER", "BEFORE", "carried", "pull", "pushed_desk"]

BEFORE: Final = b"".join(b"line %d\n" % number for number in range(30))
AFTER: Final = BEFORE.replace(b"line 3\n", b"LINE 3\n").replace(b"line 20\n", b"LINE 20\n")


def pushed_desk(folder: Path, created: Mapping[str, bytes] = MappingProxyType({})) -> Path:
    """Make the workspace `desk`, which has pushed two changes of `a.txt`, and the files that it created."""
    root = folder / "desk"
    root.mkdir()
    (root / "a.txt").write_bytes(BEFORE)
    Workspace.init(root, UnsyncedDisk()).close()
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        write(workspace, "a.txt", AFTER)
        for name, content in created.items():
            write(workspace, name, content)
        workspace.remotes.add("team", (folder / "bucket").as_uri())
        workspace.remotes.push("team")
    return root


def pull(root: Path, desk: Path) -> None:
    """Let the workspace in `root` pull what desk has pushed."""
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        if not workspace.remotes.all():
            workspace.remotes.add("team", desk.with_name("bucket").as_uri())
        workspace.remotes.pull("team")


def carried(desk: Path) -> list[tuple[str, str]]:
    """Let desk carry out what was decided, and return each result with the reason of the decision."""
    with Workspace.open(desk, UnsyncedDisk()) as workspace:
        return [(each.result, each.reason) for each in workspace.remote_decisions.carry("team")]
