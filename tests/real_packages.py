"""Search, in real packages with their own tests, for the edit that breaks them, and take it out with a check.

    python -m tests.real_packages FOLDER

FOLDER has a folder for each package, with the source distributions of two releases or more, which
`pip download --no-deps --no-binary :all:` puts there. The files of the newer of two releases that follow each other are
recorded on top of the older one, then an edit of each source, and among these one that breaks a function. `cas bisect`
has to name that edit with the package's own tests, and `cas reject --check` has to refuse what leaves it, and to take
it out.
"""

import ast
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, log2
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from objstore import CallInfo, Workspace
from tests.support.command_runner import PROGRAM, environment

__all__ = ["Trial", "broken_functions", "tried"]

Files = Mapping[str, bytes]

_MOST_TRIED: Final = 12
"""Functions that are broken one after the other until the tests notice one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of one search."""

    edits: int
    culprit: int  # the number of the edit that breaks the package
    named: int  # the edit that was named
    runs: int

    @property
    def most(self) -> int:
        """Return how many runs a search by halving may need."""
        return ceil(log2(self.edits)) + 1


def tried(folder: Path, old: Files, new: Files, module: str, tests: Sequence[str]) -> Trial:
    """Record a history in an empty folder, and search it. `module`: the file to break. Raises AssertionError."""
    for path, text in old.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text)
    for words in (("init",), ("record",)):
        assert cas(*words, folder=folder).returncode == 0
    whole, culprit = {**old, **new}, 0
    with Workspace.open(folder) as workspace:
        for path in (path for path in new if new[path] != old.get(path)):
            _record(workspace, path, new[path])
        first = workspace.history.end().next_edit - 1
        sources = [path for path in whole if path.endswith((".py", ".md")) and path != module]
        for at, path in enumerate(sources):
            if at == len(sources) // 2:
                culprit = _record(workspace, module, _noticed(folder, whole, module, tests))
            _record(workspace, path, whole[path] + b"\n# seen\n")
        last = _record(workspace, "NOTES", b"later\n")
    found = cas("bisect", "--good", str(first) if first else "1 week ago", "--", *tests, folder=folder)
    said = re.search(r"fails with edit (\d+) \((\d+) run", found.stdout)
    assert said is not None, found
    check = " ".join(tests)
    refused = cas("reject", str(last), "--check", check, folder=folder)
    assert (refused.returncode, (folder / "NOTES").exists()) == (1, True), refused
    done = cas("reject", said[1], "--cascade", "--check", check, folder=folder)
    assert done.returncode == 0, done
    assert subprocess.run(tests, cwd=folder, check=False, capture_output=True).returncode == 0
    return Trial(edits=last - first, culprit=culprit, named=int(said[1]), runs=int(said[2]))


def broken_functions(source: bytes) -> Iterator[bytes]:
    """Yield a source with each of its functions broken, one at a time."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.body[-1].lineno > node.lineno:
            at = node.body[-1]
            raising = b" " * at.col_offset + b"raise ArithmeticError\n"
            yield b"".join([*lines[: at.lineno - 1], raising, *lines[at.lineno - 1 :]])


# ---- inside


def cas(*words: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run the program, for as long as the tests of a package take."""
    own = environment({})
    return subprocess.run([*PROGRAM, *words], cwd=folder, env=own, check=False, capture_output=True, text=True)


def _record(workspace: Workspace, path: str, content: bytes) -> int:
    with workspace.call(CallInfo(tool="edit", conversation="agent")) as call:
        call.write(path, content)
        return call.commit().edits[0].seq


def _noticed(folder: Path, files: Files, module: str, tests: Sequence[str]) -> bytes:
    """Return the module with a function broken whose failure the tests notice."""
    with TemporaryDirectory(dir=folder.parent) as scratch:
        for path, text in files.items():
            (Path(scratch) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(scratch) / path).write_bytes(text)
        for at, broken in enumerate(broken_functions(files[module])):
            (Path(scratch) / module).write_bytes(broken)
            if subprocess.run(tests, cwd=scratch, check=False, capture_output=True).returncode:
                return broken
            if at == _MOST_TRIED:
                break
    raise AssertionError(module)


def _releases(folder: Path) -> Iterator[Files]:
    """Yield the files of a package's source distributions, oldest first."""
    for path in sorted(folder.glob("*.tar.gz"), key=lambda path: [int(n) for n in re.findall(r"\d+", path.name)]):
        with tarfile.open(path) as archive:
            yield {
                member.name.partition("/")[2]: file.read()
                for member in archive.getmembers()
                if member.isfile() and (file := archive.extractfile(member)) is not None
            }


def _largest(files: Files) -> str:
    """Return the largest module that is no test."""
    own = [path for path in files if path.endswith(".py") and "test" not in path and "/" in path]
    return max((path for path in own if not path.startswith(("docs/", "doc/"))), key=lambda path: len(files[path]))


def main() -> None:
    """Search each package of a folder."""
    tests = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-o", "addopts="]
    for package in sorted(path for path in Path(sys.argv[1]).iterdir() if path.is_dir()):
        for old, new in pairwise(_releases(package)):
            with TemporaryDirectory(prefix="real-") as scratch:
                root = Path(scratch, "project")
                root.mkdir()
                source = ["env", "PYTHONPATH=src:.", *tests]
                found = tried(root, old, new, _largest(new), source)
                named = "named" if found.named == found.culprit else f"NOT named, but {found.named}"
                sys.stdout.write(f"{package.name:16} {found.edits:3} edits: {named} in {found.runs} runs\n")
                assert found.named == found.culprit


if __name__ == "__main__":
    main()
