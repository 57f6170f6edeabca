"""Mutation testing: change one place of a module, and see whether a test of that module fails.

`python -m tests.mutants --mutants 80 --seed 27` draws the places. The changes are those of cosmic-ray: to a comparison,
a number, a condition, a loop. Its own command knows one list of tests for all modules, takes no sample, and changes the
tree itself; here each change is made in a copy.
"""

import argparse
import difflib
import os
import random
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Final

__all__ = ["MODULES", "draw_mutants"]

ROOT: Final = Path(__file__).resolve().parents[1]

TEXT: Final = "text/test_diff text/test_rebase text/test_splice ../mcptools/edit/test_unified_diff"
WEAVE: Final = (
    "weave/test_line_weave weave/test_conflict_markers weave/test_neighbours weave/test_weave_laws "
    "history/documents/test_loader review/planning/test_planner review/test_diagrams"
)
CRASH: Final = (
    "disk/file_changes/test_apply storage/recovery/test_power_cut review/test_refusals storage/recovery/test_crash"
)
LOG: Final = (
    "storage/log/test_frames storage/log/test_segments storage/store/test_object_store storage/log/test_read_ahead"
)
RETENTION: Final = "upkeep/retention/test_expiry upkeep/retention/test_compaction"
FILES: Final = (
    "disk/file_changes/test_hardlinks disk/file_changes/test_cross_device_staging disk/fs/test_modeless_filesystem"
)
PATHS: Final = "disk/fs/test_confined_path disk/fs/test_case_folding"

MODULES: Final = {
    "objstore/text/band.py": "text/test_band text/test_diff",
    "objstore/text/diff.py": TEXT,
    "objstore/text/hunks.py": f"{TEXT} model/test_record_codec ../mcptools/edit/test_exact",
    "objstore/weave/line_weave.py": WEAVE,
    "objstore/weave/conflicts.py": WEAVE,
    "objstore/weave/placement.py": WEAVE,
    "objstore/weave/reinsertion.py": WEAVE,
    "objstore/weave/document.py": f"../golden/test_golden_stores {WEAVE}",
    "objstore/review/planning/replay_check.py": "review/test_similar_lines",
    "objstore/disk/fs/confined_path.py": f"{PATHS} disk/fs/test_path_races disk/file_changes/test_hardlinks",
    "objstore/disk/fs/reserved_names.py": f"{PATHS} history/test_revspec",
    "objstore/disk/file_changes/apply.py": f"{CRASH} {FILES}",
    "objstore/storage/recovery/roll_forward.py": CRASH,
    "objstore/storage/log/segments.py": f"{LOG} upkeep/retention/test_compaction",
    "objstore/storage/log/frames.py": f"{LOG} ../test_fuzz_corpus",
    "objstore/upkeep/retention/compaction.py": RETENTION,
    "objstore/upkeep/retention/expiry.py": f"{RETENTION} ../cli/commands/keeping/test_gc",
    "objstore/storage/index/refcounts.py": f"storage/index/test_log_index review/test_large_states {RETENTION}",
}
"""The modules that decide about bytes, paths and durability, and the tests in `tests/objstore` that have to notice a
change of each, quickest first."""

TIMEOUT: Final = 1200
"""Seconds for the tests of one mutant; one that takes longer is noticed."""

LEFT_OUT: Final = ("core/RemoveDecorator", "core/ReplaceBinaryOperator_BitOr")
"""Operators that mostly break an import: the first a record's decorator, the second the union of two types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A module with one change."""

    module: str
    line: int
    operator: str
    before: str
    after: str

    def __str__(self) -> str:
        """Return its place, and the lines that differ."""
        lines = difflib.unified_diff(self.before.splitlines(), self.after.splitlines(), n=0, lineterm="")
        return "\n    ".join([f"{self.module}:{self.line} {self.operator}", *list(lines)[3:]])


def draw_mutants(modules: list[str], mutants: int, seed: int) -> list[Mutant]:
    """Draw a number of changes that compile: first the place, then one of the operators that fit there."""
    plugins, trees, mutating = (import_module(f"cosmic_ray.{name}") for name in ("plugins", "ast", "mutating"))
    named = [(name, plugins.get_operator(name)) for name in sorted(plugins.operator_names())]
    plain = {name: made for name, made in named if not name.startswith(LEFT_OUT) and not made.arguments()}
    at: defaultdict[tuple[str, tuple[int, int]], list[tuple[str, int]]] = defaultdict(list)
    for module in modules:
        nodes = list(trees.ast_nodes(trees.get_ast_from_path(ROOT / module)))
        for name, operator in plain.items():
            positions = (start for node in nodes for start, _ in operator().mutation_positions(node))
            for occurrence, start in enumerate(positions):
                at[module, start].append((name, occurrence))
    chance = random.Random(seed)
    places = sorted(at)
    chance.shuffle(places)  # all of them, so that fewer mutants are the first of more
    found: list[Mutant] = []
    for module, (line, column) in places:
        if len(found) == mutants:
            break
        name, occurrence = chance.choice(at[module, (line, column)])
        before = (ROOT / module).read_text()
        try:
            after = mutating.mutate_code(before, plain[name](), occurrence)
            compile(after, module, "exec", dont_inherit=True)
        except (AttributeError, SyntaxError):
            continue  # ExceptionReplacer fails at `except (a.b, c)`, and breaks `except f(x)`: try the next place
        operator = name.removeprefix("core/")
        found.append(Mutant(module=module, line=line, operator=operator, before=before, after=after))
    return found


def first_failing_test(copy: Path, tests: Iterable[str]) -> str:
    """Run tests in a copy of the tree; return the first that fails (empty: none)."""
    words = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--hypothesis-seed=0", *tests]
    environment = os.environ | {"PYTHONPATH": str(copy), "HYPOTHESIS_PROFILE": "mutants"}
    with (copy / "out").open("w+") as out:  # no pipe: a process that hangs may have left others that keep it open
        try:
            status = subprocess.run(
                words, cwd=copy, env=environment, stdout=out, stderr=out, timeout=TIMEOUT, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            return "none in time"
        out.seek(0)
        found = re.findall(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", out.read(), re.MULTILINE)
    return (found or [f"status {status}"])[0] if status else ""


def main() -> int:
    """Try mutants, and print which test noticed each; return 0 if each was noticed."""
    parser = argparse.ArgumentParser(prog="tests.mutants", description=__doc__)
    parser.add_argument("--mutants", type=int, default=100)
    parser.add_argument("--seed", type=int, default=27)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="as objstore/text/diff.py; all by default")
    asked = parser.parse_args()
    mutants = draw_mutants(asked.modules or list(MODULES), asked.mutants, asked.seed)
    times = count(1)  # of the first seconds of 1970
    copies: SimpleQueue[Path] = SimpleQueue()

    def try_mutant(mutant: Mutant) -> str:
        copy = copies.get()
        file = copy / mutant.module
        try:
            file.write_text(mutant.after)
            os.utime(file, times=(next(times),) * 2)  # else bytecode of another of its size might be taken
            return first_failing_test(copy, [f"tests/objstore/{name}.py" for name in MODULES[mutant.module].split()])
        finally:
            file.write_text(mutant.before)
            copies.put(copy)

    with TemporaryDirectory(prefix="editledger-mutants-") as folder, ThreadPoolExecutor(asked.jobs) as pool:
        Path(folder).chmod(0o755)  # some tests run as another user, who has to import the copy
        for job in range(asked.jobs):
            kept = shutil.ignore_patterns(".*", "build", "bench-*", "__pycache__")
            copies.put(Path(shutil.copytree(ROOT, Path(folder, str(job)), ignore=kept)))
        noticed = []
        for mutant, by in zip(mutants, pool.map(try_mutant, mutants), strict=True):
            noticed += [by] if by else []
            print(f"{'noticed' if by else 'MISSED '} {mutant}\n    {by}".rstrip(), flush=True)
        # Which test fails before anything is changed notices nothing.
        tests = sorted({test.partition("[")[0] for test in noticed if "::" in test})
        if tests and (wrong := first_failing_test(copies.get(), tests)):
            sys.exit(f"Without a change this test fails, too: {wrong}")
    print(f"{len(mutants)} changes: {len(noticed)} noticed, {len(mutants) - len(noticed)} not")
    return 0 if len(noticed) == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
