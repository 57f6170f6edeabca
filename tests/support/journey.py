"""Print the walk of one edit and of one rejection through the code: `python -m tests.support.journey [--functions]`.

Both are warm: the same was done before, so that nothing is imported, opened or compiled on the way. Each line is a
module in the order in which it is first entered, with the number of its functions that ran. `--functions` names them.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Final

from mcptools.files.workspaces import Directories
from mcptools.model.limits import ServerLimits
from mcptools.model.session import Session
from mcptools.tools.editing import EditOp
from objstore import Action, Unit, Workspace
from tests.support.direct_tools import Tools

__all__ = ["Walk", "walks"]

ROOT: Final = Path(__file__).resolve().parents[2]
WINGS: Final = ("objstore", "mcptools", "cli")


class Walk:
    """The functions of the project that ran while something was done, in the order of their first calls."""

    def __init__(self, act: Callable[[], object]) -> None:
        """Do it, and take note of each function that is entered in this thread."""
        self._codes: dict[CodeType, None] = {}
        sys.setprofile(self._note)
        try:
            act()
        finally:
            sys.setprofile(None)

    @property
    def modules(self) -> dict[str, list[str]]:
        """Return the names of the functions of each module, such as `objstore.weave.document`."""
        found: dict[str, list[str]] = {}
        for code in self._codes:
            path = Path(code.co_filename)
            if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in WINGS:
                name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
                found.setdefault(name, []).append(code.co_qualname)
        return found

    @property
    def packages(self) -> set[str]:
        """Return the packages of these modules."""
        return {name.rpartition(".")[0] or name for name in self.modules}

    def lines(self, title: str, *, with_functions: bool) -> Iterator[str]:
        """Yield the walk as text."""
        modules = self.modules
        functions = sum(map(len, modules.values()))
        yield f"{title}: {functions} functions in {len(modules)} modules of {len(self.packages)} packages"
        for name, called in modules.items():
            yield f"  {len(called):4d}  {name}"
            yield from (f"          {each}" for each in called if with_functions)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            self._codes[frame.f_code] = None


def walks() -> tuple[Walk, Walk]:
    """Return the walk of a warm edit by a tool of the server, and that of a warm rejection of a hunk."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory())).resolve()
        text = [f"line {number}\n" for number in range(100)]
        (folder / "file").write_text("".join(text))
        stack.enter_context(Workspace.init(folder))
        directories = stack.enter_context(closing(Directories([str(folder)])))
        tools = Tools(directories, Session(), ServerLimits())

        def edit(number: int) -> None:
            tools.multi_edit_text_file(
                str(folder / "file"), [EditOp(old_string=f"line {number}\n", new_string=f"new {number}\n")]
            )

        edit(10)
        edit(20)
        edited = Walk(lambda: edit(30))
        workspace = stack.enter_context(Workspace.open(folder))
        workspace.decide(Action.REJECT, [Unit(workspace.history.edits()[0].seq, 1)])
        second = workspace.history.edits()[1].seq
        return edited, Walk(lambda: workspace.decide(Action.REJECT, [Unit(second, 1)]))


if __name__ == "__main__":
    for title, walk in zip(("An edit through the server's tool", "A rejection of one hunk"), walks(), strict=True):
        sys.stdout.writelines(f"{line}\n" for line in walk.lines(title, with_functions="--functions" in sys.argv))
