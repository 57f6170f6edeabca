"""Measure how many broken names a rejection names, on releases of real packages, with pyflakes as judge.

    python -m tests.bench.still_works FOLDER [MOST]

FOLDER has a folder for each package, with one for each release, with its wheel: `pip download --no-deps` puts it there.
Between two releases that follow each other, each hunk of each Python file is taken out of the newer one, alone (MOST of
them at random, 40 by default), as a rejection of it would. A file that is new with a release is taken out as a whole.
pyflakes, which is needed for this only, and knows nothing of this program, says which names become undefined. For
imports between files, its scopes say which names the imported module has.
"""

import ast
import importlib
import random
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

from objstore.needs.broken_names import Program, broken_names
from objstore.needs.python_names import python_names
from objstore.text.diff import diff_lines

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


def program(sources: Sources) -> Program:
    """Return sources as this program sees them."""
    return Program(sources, lambda path: names_of(sources[path]))


def told(before: Sources, after: Sources) -> set[Broken]:
    """Return what this program says is broken."""
    first, second = program(before), program(after)
    found = broken_names(first, second, {path: path if path in before else "" for path in after})
    return {(each.path, each.name or each.module or "(syntax)") for each in found}


def measure(folder: Path, most: int) -> tuple[int, int, int, int, list[str]]:
    """Return rejections, those that break names, those that name them, sound ones warned of, and the misses."""
    chance = random.Random(SEED)
    tried = broken = named = false = 0
    misses: list[str] = []
    found = list(releases(folder))[-20:]
    for (_, old), (version, new) in pairwise(found):
        all_of_them = list(rejections(old, new))
        for name, after in chance.sample(all_of_them, min(most, len(all_of_them))):
            expected, said = judge(new, after), told(new, after)
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
