"""Measure how many broken names a rejection names, on releases of real packages, with pyflakes or tsc as judge.

    python -m tests.bench.still_works FOLDER [MOST]

FOLDER has a folder for each package, with one for each release, with its wheel: `pip download --no-deps` puts it there.
Between two releases that follow each other, each hunk of each Python file is taken out of the newer one, alone (MOST of
them at random, 40 by default), as a rejection of it would. A file that is new with a release is taken out as a whole.
pyflakes, which is needed for this only, and knows nothing of this program, says which names become undefined. For
imports between files, its scopes say which names the imported module has.

Of npm's packages (`npm pack` puts them there as `.tgz`), the TypeScript compiler is the judge, of JavaScript too. It is
looked for in the folder that NODE_PATH names, with `@types/node`.
"""

import ast
import importlib
import json
import random
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

from objstore.text.diff import diff_lines
from objstore.text.needs.broken_names import Program, broken_names
from objstore.text.needs.python_names import python_names
from objstore.text.needs.python_program import PythonProgram
from objstore.text.needs.script_names import DECLARES_GLOBAL, imported_files, script_names
from objstore.text.needs.script_program import ScriptProgram
from objstore.text.needs.source_kinds import is_script

# Installed for this measurement only.
checker: Any = importlib.import_module("pyflakes.checker")
messages: Any = importlib.import_module("pyflakes.messages")

MOST = 40
SEED = 7

Sources = Mapping[str, bytes]
Broken = tuple[str, str]
"""A path and a name."""


@cache
def judged(path: str, source: bytes) -> tuple[frozenset[str], frozenset[str], tuple[tuple[str, str], ...], bool]:
    """Return what pyflakes finds undefined, the module's names, its imports, and whether it may have more names."""
    try:
        compile(source, path, "exec", dont_inherit=True)  # which finds more than a parser does
        found = checker.Checker(ast.parse(source), filename=path)
    except (SyntaxError, ValueError):
        return frozenset({"(syntax)"}), frozenset(), (), True
    kinds = (messages.UndefinedName, messages.UndefinedExport)
    undefined = frozenset(str(each.message_args[0]) for each in found.messages if isinstance(each, kinds))
    scopes = [*found.deadScopes]
    module = next(scope for scope in scopes if isinstance(scope, checker.ModuleScope))
    has_star = any(isinstance(each, messages.ImportStarUsed) for each in found.messages)
    imports = {
        (binding.module, binding.real_name)
        for scope in scopes
        for binding in scope.values()
        if isinstance(binding, checker.ImportationFrom)
    }
    return undefined, frozenset(module), tuple(sorted(imports)), has_star or "__getattr__" in module


def target(path: str, module: str, sources: Sources) -> str:
    """Return the file of a module that a file imports ("": none of these)."""
    if module.startswith("."):
        dots = len(module) - len(module.lstrip("."))
        folder = path.split("/")[:-dots]
        parts = [*folder, *(part for part in module.lstrip(".").split(".") if part)]
    else:
        parts = module.split(".")
    name = "/".join(parts)
    return next((each for each in (f"{name}.py", f"{name}/__init__.py") if each in sources), "")


def judgement(path: str, sources: Sources) -> set[Broken]:
    """Return what is broken in a file, as the judge sees it."""
    undefined, _, imports, _ = judged(path, sources[path])
    found = {(path, name) for name in undefined}
    for module, name in imports:
        file = target(path, module, sources)
        if not file:
            continue
        _, names, _, is_open = judged(file, sources[file])
        base = file.removesuffix("__init__.py")
        is_submodule = file != base and any(f"{base}{name}{end}" in sources for end in (".py", "/__init__.py"))
        if not is_open and name not in names and not is_submodule:
            found.add((path, name))
    gone = {module for module, _ in imports if module.startswith(".") and not target(path, module, sources)}
    return found | {(path, module) for module in gone if module.strip(".")}


def judge(before: Sources, after: Sources) -> set[Broken]:
    """Return what is broken after a change that was not before."""
    found: set[Broken] = set()
    for path in after:
        if path.endswith(".py"):
            found |= judgement(path, after) - (judgement(path, before) if path in before else set())
    return found


class Compiler:
    """The TypeScript compiler, as a process that judges one program after the other."""

    def __init__(self) -> None:
        """Start it."""
        script = Path(__file__).with_name("typescript_judge.cjs")
        self._process = subprocess.Popen(["node", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._base: Sources = {}
        self._found: set[Broken] = set()

    def judge(self, before: Sources, after: Sources) -> set[Broken]:
        """Return what is broken after a change that was not before."""
        if before is not self._base:
            self._base = before
            self._found = self._asked({"files": {path: _decoded(text) for path, text in before.items()}})
        changed = {path for path in {*before, *after} if before.get(path) != after.get(path)}
        texts = {path: after.get(path) for path in changed}
        change = {path: None if text is None else _decoded(text) for path, text in texts.items()}
        return self._asked({"change": change}) - self._found

    def _asked(self, question: object) -> set[Broken]:
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return {(path, name) for path, name in json.loads(self._process.stdout.readline())}


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def packed_releases(folder: Path) -> Iterator[tuple[str, Sources]]:
    """Yield the releases of a package of npm, oldest first, each with its sources: those of `src`, if it has some."""
    archives = sorted(folder.glob("*/*.tgz"), key=lambda path: [int(n) for n in re.findall(r"\d+", path.parent.name)])
    for path in archives:
        with tarfile.open(path) as archive:
            texts = {
                member.name.partition("/")[2]: file.read()
                for member in archive.getmembers()
                if member.isfile() and (file := archive.extractfile(member)) is not None
            }
        own = {name: text for name, text in texts.items() if is_script(name) and not _TESTS.search(name)}
        sources = {name: text for name, text in own.items() if name.startswith("src/")}
        yield path.parent.name, sources or {n: text for n, text in own.items() if not _COMPILED.match(n)}


_COMPILED = re.compile(r"(dist|build|types|umd|es|legacy)/")
_TESTS = re.compile(r"(^|/)(tests?|__tests__|benchmarks|examples)/|\.min\.|\.test\.")


def releases(folder: Path) -> Iterator[tuple[str, Sources]]:
    """Yield the releases of a package, oldest first, each with its Python files."""
    wheels = sorted(folder.glob("*/*.whl"), key=lambda path: [int(n) for n in re.findall(r"\d+", path.parent.name)])
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            yield wheel.parent.name, {name: archive.read(name) for name in archive.namelist() if name.endswith(".py")}


def rejections(old: Sources, new: Sources) -> Iterator[tuple[str, Sources]]:
    """Yield what taking out each hunk alone would leave, with its name."""
    for path, source in sorted(new.items()):
        if path not in old:
            yield path, {name: text for name, text in new.items() if name != path}
            continue
        before, after = old[path].splitlines(keepends=True), source.splitlines(keepends=True)
        for number, hunk in enumerate(diff_lines(old[path], source), start=1):
            kept = before[hunk.old_start : hunk.old_end]
            text = b"".join([*after[: hunk.new_start], *kept, *after[hunk.new_end :]])
            yield f"{path}:{number}", dict(new) | {path: text}


names_of = cache(python_names)
script_names_of = cache(script_names)


def python_program(sources: Sources) -> Program:
    """Return sources as this program sees them."""
    return PythonProgram(sources, lambda path: names_of(sources[path]))


def script_program(sources: Sources) -> Program:
    """Return sources as this program sees them."""
    declaring = [path for path, text in sources.items() if path.endswith(".d.ts") or _declares(text)]
    return ScriptProgram(sources, lambda path: script_names_of(sources[path], path), declaring)


@cache
def _declares(text: bytes) -> bool:
    return DECLARES_GLOBAL in imported_files(text)


def told(before: Sources, after: Sources, program: Callable[[Sources], Program]) -> set[Broken]:
    """Return what this program says is broken."""
    first, second = program(before), program(after)
    found = broken_names(first, second, {path: path if path in before else "" for path in after})
    return {(each.path, each.name or each.module or "(syntax)") for each in found}


def measure(folder: Path, most: int) -> tuple[int, int, int, int, list[str]]:
    """Return rejections, those that break names, those that name them, sound ones warned of, and the misses."""
    chance = random.Random(SEED)
    tried = broken = named = false = 0
    misses: list[str] = []
    is_of_npm = any(folder.glob("*/*.tgz"))
    found = list(packed_releases(folder) if is_of_npm else releases(folder))[-20:]
    judged_by = Compiler().judge if is_of_npm else judge
    program = script_program if is_of_npm else python_program
    for (_, old), (version, new) in pairwise(found):
        all_of_them = list(rejections(old, new))
        for name, after in chance.sample(all_of_them, min(most, len(all_of_them))):
            expected, said = judged_by(new, after), told(new, after, program)
            tried += 1
            broken += bool(expected)
            named += bool(expected and said)
            false += bool(said and not expected)
            if bool(expected) != bool(said):
                misses.append(f"{folder.name} {version} {name}: judge {sorted(expected)[:3]}, told {sorted(said)[:3]}")
    return tried, broken, named, false, misses


def main() -> None:
    """Print a table."""
    folder, most = Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else MOST
    total = [0, 0, 0, 0]
    print(f"{'package':14} {'tried':>6} {'broken':>7} {'told':>6} {'share':>7} {'false':>6} {'share':>7}")
    for package in sorted(path for path in folder.iterdir() if path.is_dir()):
        began = perf_counter()
        *row, misses = measure(package, most)
        total = [a + b for a, b in zip(total, row, strict=True)]
        show(package.name, row)
        print(f"{'':14} {perf_counter() - began:.0f} s", *misses, sep="\n    ", file=sys.stderr)
    show("all", total)


def show(name: str, row: list[int]) -> None:
    """Print one row."""
    tried, broken, named, false = row
    shares = f"{named / max(1, broken):7.1%}", f"{false / max(1, tried - broken):7.1%}"
    print(f"{name:14} {tried:6} {broken:7} {named:6} {shares[0]} {false:6} {shares[1]}", flush=True)


if __name__ == "__main__":
    main()
