"""How the cost of bulk work grows with the history: seconds and peak memory, next to git, restic and borg.

Seconds are those of the processor, which other processes disturb less; waiting for the disk comes on top. Each peer is
measured where it does the same, restic and borg only if they are on PATH. The files are those of Python's standard
library, of about 12 kB, with 20 edits each. The 1,000 newest edits are pending. Each run of more than one size writes
the table and the chart of `docs/benchmarks.md`.
"""

import os
import random
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import log10
from operator import attrgetter
from pathlib import Path
from shutil import copytree, rmtree, which
from typing import IO, Final, NamedTuple, TypeAlias

from objstore import Action, Decided, Hunk, Seq, Unit, Workspace
from tests.bench.bulk import Bulk
from tests.bench.measure import Report

__all__ = ["bench_curves", "report_growth"]

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
MOST: Final = int(os.environ.get("CAS_BENCH_EDITS", "100000"))
EDITS_A_FILE: Final = 20
EDITS_A_CALL: Final = 10
PENDING: Final = 1_000
LARGE: Final = 50 << 20
GROWTH: Final = 1.3
"""How many times as much as in proportion a command may take after ten times as many edits."""

SHORT: Final = 2.0
"""Seconds below which a command that can be repeated runs three times: one run differs by a seventh."""

LEAST: Final = 0.1
"""Seconds below which a command's time is that of its start, which differs by as much."""

PAGE: Final = Path(__file__).parents[2] / "docs/benchmarks.md"
CHART: Final = PAGE.with_name("curves.svg")
TABLE: Final = re.compile(r"(<!-- table: begin[^\n]*-->\n).*(\n<!-- table: end -->)", re.DOTALL)

TARGETS: Final = {
    "diff": ("-", "-"),
    "diff again": ("<= 1.5", "-"),
    "stats": ("<= 1", "-"),
    "reject 500": ("<= 3", "-"),
    "reject 1,000": ("<= 3", "-"),
    "undo": ("<= 3", "-"),
    "fsck": ("<= 30", "<= 150"),
    "export --bundle": ("-", "-"),
    "import": ("<= 40", "-"),
    "export --patch": ("-", "<= 100"),
    "gc": ("-", "-"),
    "first record": ("-", "-"),
    "first record, one folder": ("-", "-"),
    "check it": ("-", "-"),
    "export it": ("-", "-"),
    "restore it": ("-", "-"),
}
"""Seconds of the processor, and megabytes, at 100,000 edits; from the first record on, of as many files.

The first diff of a store that was written at once reads every edit of each file that has pending ones, and keeps what
it found: no diff after it does so again.
"""

OF_GIT: Final = {"first record": "<= 1.5", "first record, one folder": "<= 1.5", "export --patch": "<= 2.5"}
"""How many times git's seconds at 100,000; of fewer files, Python's start is most of ours.

`git format-patch` alone takes 0.4 ms for a patch, 39 s for 100,000.
"""

PEERS: Final = {
    "git": {
        "init": ["git init --quiet"],
        # Its housekeeping would go on in the background, on one of the processors, and in a folder that is removed.
        "first record": [
            "git add --all",
            "git -c user.name=cas -c user.email=cas@localhost -c gc.auto=0 commit --quiet -m .",
        ],
        "check it": ["git fsck --full"],
        "export it": ["git bundle create --quiet ../git.bundle HEAD"],
        "restore it": ["git checkout --quiet HEAD ."],
    },
    "restic": {
        "init": ["restic init --quiet"],
        "first record": ["restic backup --quiet ."],
        "check it": ["restic check --quiet --read-data"],
        "export it": ["restic dump --quiet latest /"],
        "restore it": ["restic restore --quiet latest --target ."],
    },
    "borg": {
        "init": ["borg init --encryption none"],
        "first record": ["borg create ::first ."],
        "check it": ["borg check --verify-data"],
        "export it": ["borg export-tar ::first ../borg.tar"],
        "restore it": ["borg extract ::first"],
    },
}
"""What does the same as ours, on the same files."""

OURS: Final = {
    "init": ["cas init"],
    "first record": ["cas record"],
    "check it": ["cas fsck"],
    "export it": ["cas export --bundle ../ours.bundle"],
    "restore it": ["cas snapshot restore 1"],
}
"""The first snapshot is the baseline, with all files."""

STYLE: Final = """<style>text{font:10px sans-serif;fill:#5b6270}polyline{fill:none}
.cas{stroke:#1f6feb;stroke-width:2}
.git{stroke:#8a6100;stroke-dasharray:4 3}
.restic{stroke:#2d7d46;stroke-dasharray:4 3}
.borg{stroke:#8c3a8f;stroke-dasharray:4 3}
.linear{stroke:#b5b9c2;stroke-dasharray:1 3}</style>"""

MEASURED: Final = """
import os, resource, sys, time
began = time.perf_counter()
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, status = os.waitpid(child, 0)
took = time.perf_counter() - began
used = resource.getrusage(resource.RUSAGE_CHILDREN)
peak = used.ru_maxrss << (0 if sys.platform == "darwin" else 10)
cpu = used.ru_utime + used.ru_stime
os.write(2, b"\\nmeasured %d %.4f %.4f %d" % (os.waitstatus_to_exitcode(status), took, cpu, peak))
"""
"""Run a command from a small process: its peak memory would otherwise be that of the benchmark that forks it."""


class Cost(NamedTuple):
    """What a command took."""

    seconds: float  # until it ended
    processor: float  # seconds of processor time
    megabytes: float


Programs: TypeAlias = dict[str, Cost]
"""What a command took by program, ours (`cas`) first; only of programs that have such a command."""

Costs: TypeAlias = dict[str, dict[int, Programs]]
"""By command and number of edits."""

Sizes: TypeAlias = dict[int, dict[str, float]]
"""Megabytes of the store of a first record, by number of files and program."""


def bench_curves(report: Report) -> None:
    """Measure every bulk command at each size, and what it takes more than in proportion."""
    sizes = [size for size in SIZES if size <= MOST]
    costs: Costs = {name: {} for name in TARGETS}
    stored: Sizes = {}
    # In this file's folder, not in /tmp: that may be a memory file system.
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix="bench-") as scratch:
        folder = Path(scratch)
        _git("init", "--quiet", cwd=folder)  # so that nothing is a part of the project's repository
        start = min(_run("cas", "--help", cwd=folder).processor for _ in range(5))
        for size in sizes:
            stored[size] = {}
            for name, programs in _costs(folder / str(size), size, stored[size]):
                costs[name].setdefault(size, {}).update(programs)
                _print(name, size, programs)
            rmtree(folder / str(size))
        few, many = (_record_large(folder / f"large{count}", count) for count in (4, 40))
        report.ratio("first record of 40 files of 50 MB, MB of memory", many.megabytes, "<= 250")
        report.ratio("the same / of 4 files", many.megabytes / few.megabytes, "<= 1.1")
    for name, by_size in costs.items():
        for size, programs in by_size.items():
            ours, theirs = programs["cas"], programs.get("git")
            seconds, megabytes = TARGETS[name] if size == SIZES[2] else ("-", "-")
            report.ratio(f"{name}, {size:,}: seconds", ours.processor, seconds)
            report.ratio(f"{name}, {size:,}: MB", ours.megabytes, megabytes)
            if theirs is not None:
                target = OF_GIT.get(name, "-") if size == SIZES[2] else "-"
                ratio = ours.processor / max(0.01, theirs.processor)
                report.ratio(f"{name}, {size:,}: seconds / git's", ratio, target)
        report_growth(report, name, {size: programs["cas"].processor for size, programs in by_size.items()}, start)
    if len(sizes) > 1:
        _write_page(costs, stored, sizes, report)


def report_growth(report: Report, name: str, seconds: Mapping[int, float], start: float) -> None:
    """Report what a command takes for more edits, of what is in proportion: a miss if that is more than GROWTH.

    `seconds`: of the processor, by number of edits, ascending. `start`: those of a command that does nothing.
    """
    for fewer, more in pairwise(seconds):
        if name == "gc" and fewer <= PENDING:
            continue  # nothing expires in it
        before, after = (max(LEAST, seconds[size] - start) for size in (fewer, more))
        what = f"{name}: growth from {fewer:,} to {more:,} edits, of what is in proportion"
        report.ratio(what, after / before / (more / fewer), f"<= {GROWTH}")


def _costs(root: Path, size: int, stored: dict[str, float]) -> Iterator[tuple[str, Programs]]:
    """Yield what each command takes on a history of `size` edits, and git's on the same commits.

    `stored`: gets the megabytes of the stores of a first record, by program.
    """
    root.mkdir()
    ours, theirs = root / "ours", root / "git"
    _history(ours, theirs, size)
    _run("cas", "record", cwd=ours)  # as in a workspace in use: without a scan before, a decision reads every file

    def both(own: str, gits: str = "", *, at: Path = ours, gits_at: Path = theirs) -> Programs:
        found = {"cas": _run(*own.split(), cwd=at)}
        return found | {"git": _run(*gits.split(), cwd=gits_at)} if gits else found

    def reading(own: str, gits: str = "") -> Programs:
        found = {"cas": _usual(lambda: _run(*own.split(), cwd=ours))}
        return found | {"git": _usual(lambda: _run(*gits.split(), cwd=theirs))} if gits else found

    yield "diff", both("cas diff", f"git diff HEAD~{PENDING}")
    yield "diff again", both("cas diff", f"git diff HEAD~{PENDING}")
    yield "stats", reading("cas stats")
    pending = [str(seq) for seq in range(size - PENDING + 1, size + 1)]
    yield "reject 500", both(f"cas reject {' '.join(pending[-500:])}")
    both("cas undo")
    yield "reject 1,000", both(f"cas reject {' '.join(pending)}")
    yield "undo", both("cas undo")
    yield "fsck", reading("cas fsck", "git fsck --full")
    yield "export --bundle", both("cas export --bundle ../bundle", "git bundle create --quiet ../bundle.git main")
    gits = "git clone --quiet --branch main bundle.git cloned"
    yield "import", both("cas import bundle imported", gits, at=root, gits_at=root)
    rmtree(root / "imported")
    rmtree(root / "cloned")
    yield "export --patch", reading("cas export --patch", "git format-patch --stdout --root main")
    yield "gc", both("cas gc --older-than 0s", "git gc --quiet")
    rmtree(ours)
    rmtree(theirs)
    yield "first record, one folder", _of_one_folder(root / "folder", size)
    yield from _of_files(root / "files", size, stored)


def _history(ours: Path, theirs: Path, size: int) -> None:
    """Record `size` edits in a new workspace, and commit each to a new git repository."""
    ours.mkdir()
    theirs.mkdir()
    _git("init", "--quiet", "--initial-branch=main", cwd=theirs)
    importer = subprocess.Popen(["git", "fast-import", "--quiet"], cwd=theirs, stdin=subprocess.PIPE)
    assert importer.stdin is not None
    bulk = Bulk(ours)
    texts = {name: content.splitlines(keepends=True) for name, content in _sources(size // EDITS_A_FILE)}
    for name, lines in texts.items():
        bulk.begin(name, b"".join(lines))
    _commit(importer.stdin, {name: b"".join(lines) for name, lines in texts.items()})
    names, chance = list(texts), random.Random(5)
    call: dict[str, tuple[bytes, Hunk]] = {}
    for number in range(size):
        name = names[number * 7 % len(names)] if number % 3 else chance.choice(names)
        if name in call or len(call) == EDITS_A_CALL:
            bulk.call(f"session {number // 500}", [(each, *made) for each, made in call.items()])
            call = {}
        call[name] = _edited(texts[name], number, chance)
        _commit(importer.stdin, {name: call[name][0]})
    bulk.call("last", [(each, *made) for each, made in call.items()])
    bulk.close()
    importer.stdin.close()
    if importer.wait():
        raise AssertionError("git could not import the history")
    _git("reset", "--quiet", "--hard", "main", cwd=theirs)
    with Workspace.open(ours) as workspace:
        accepted = [Unit(Seq(seq), hunk) for seq in range(1, size - PENDING + 1) for hunk in (0, 1)]
        if accepted and not isinstance(workspace.decide(Action.ACCEPT, accepted), Decided):
            raise AssertionError("the older edits were not accepted")


def _edited(lines: list[bytes], number: int, chance: random.Random) -> tuple[bytes, Hunk]:
    """Change a line, add three, or remove two; return the text and the hunk."""
    at, kind = chance.randrange(len(lines)), chance.random()
    new = [b"    # step %d %d\n" % (number, line) for line in range(3)]
    old = 0
    if kind < 0.6:
        new, old = [b"    value_%d = %d\n" % (number, chance.randrange(10**9))], 1
    elif kind >= 0.9 and len(lines) > at + 2:
        new, old = [], 2
    lines[at : at + old] = new
    return b"".join(lines), Hunk(at, old, at, len(new))


def _sources(files: int) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of so many files: copies of the standard library's."""
    library = Path(sysconfig.get_path("stdlib"))
    found = sorted(
        path
        for path in library.rglob("*.py")
        if 8_000 < path.stat().st_size < 16_000 and "site-packages" not in path.parts
    )
    for number in range(files):
        path = found[number % len(found)]
        yield f"part{number // 50}/{path.stem}_{number}.py", path.read_bytes().replace(b"\r\n", b"\n")


def _commit(stream: IO[bytes], files: Mapping[str, bytes]) -> None:
    stream.write(b"commit refs/heads/main\ncommitter cas <cas@localhost> 1790000000 +0000\ndata 1\n.\n")
    for name, content in files.items():
        stream.write(b"M 100644 inline %b\ndata %d\n" % (name.encode(), len(content)))
        stream.write(content + b"\n")


def _of_one_folder(root: Path, count: int) -> Programs:
    """Return what the first record of `count` small files in one folder takes, and git's."""
    found: Programs = {}
    for program, commands in {"cas": OURS, "git": PEERS["git"]}.items():
        own = root / program
        own.mkdir(parents=True)
        for number in range(count):
            (own / f"file{number}.py").write_bytes(_small_file(number))
        found[program] = _usual(partial(_record_first, own, program, commands))
        rmtree(own)
    return found


def _small_file(number: int) -> bytes:
    return b"".join(b"line_%d = %d\n" % (line, number * line) for line in range(60))


def _together(costs: Sequence[Cost]) -> Cost:
    """Return what commands that ran one after another took."""
    return Cost(
        sum(each.seconds for each in costs),
        sum(each.processor for each in costs),
        max(each.megabytes for each in costs),
    )


def _of_files(root: Path, count: int, stored: dict[str, float]) -> Iterator[tuple[str, Programs]]:
    """Yield what the first record of `count` small files takes, and what can be done with its store."""
    files = root / "files"
    for number in range(count):
        path = files / f"part{number // 200}/file{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_small_file(number))
    for program, commands in {"cas": OURS, **PEERS}.items():
        if program != "cas" and which(program) is None:
            print(f"  {program} is not installed: it is left out", flush=True)
            continue
        own = root / program
        copytree(files, own)
        for name, words in commands.items():
            if name == "restore it":
                for folder in own.glob("part*"):
                    rmtree(folder)
            if name == "first record":
                yield name, {program: _usual(partial(_record_first, own, program, commands))}
                stored[program] = _megabytes(_store(own, program))
            elif name != "init":
                yield name, {program: _together([_run(*command.split(), cwd=own) for command in words])}
        if sum(1 for _ in own.glob("part*/*.py")) != count:
            raise AssertionError(f"{program} did not restore every file")
        rmtree(own)
    rmtree(root)


def _record_first(folder: Path, program: str, commands: Mapping[str, Sequence[str]]) -> Cost:
    """Return what the first record of a folder takes, in a new store that replaces the one before."""
    store = _store(folder, program)
    if store.exists():
        rmtree(store)
    for command in commands["init"]:
        _run(*command.split(), cwd=folder)
    return _together([_run(*command.split(), cwd=folder) for command in commands["first record"]])


def _usual(run: Callable[[], Cost]) -> Cost:
    """Return what a command takes: if that is short, the median of three runs by processor time."""
    first = run()
    costs = [first, run(), run()] if first.processor < SHORT else [first]
    return sorted(costs, key=attrgetter("processor"))[len(costs) // 2]


def _store(folder: Path, program: str) -> Path:
    """Return where a program has its store of a folder: restic and borg next to it, as they would record it."""
    names = {"cas": ".cas", "git": ".git"}
    return folder / names[program] if program in names else folder.with_name(f"{program}-store")


def _megabytes(store: Path) -> float:
    """Return what a store takes on the disk."""
    return sum(path.lstat().st_blocks for path in store.rglob("*")) * 512 / 1e6


def _record_large(root: Path, count: int) -> Cost:
    root.mkdir()
    chance = random.Random(7)
    for number in range(count):
        (root / f"asset{number}").write_bytes(chance.randbytes(LARGE))
    _run("cas", "init", cwd=root)
    recorded = _run("cas", "record", cwd=root)
    rmtree(root)
    return recorded


def _run(*words: str, cwd: Path) -> Cost:
    """Run a command, which must succeed; return what it took."""
    program = [sys.executable, "-m", "editledger.cas"] if words[0] == "cas" else [words[0]]
    command = [sys.executable, "-S", "-c", MEASURED, *program, *words[1:]]
    environment = os.environ | {
        "RESTIC_REPOSITORY": str(_store(cwd, "restic")),
        "RESTIC_CACHE_DIR": str(cwd.with_name("restic-cache")),
        "RESTIC_PASSWORD": "cas",
        "BORG_REPO": str(_store(cwd, "borg")),
        "BORG_BASE_DIR": str(cwd.with_name("borg-cache")),
        "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
    }
    ran = subprocess.run(
        command, cwd=cwd, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    before, _, measured = ran.stderr.rpartition(b"\nmeasured ")
    status, seconds, processor, peak = measured.split()
    if int(status):
        raise AssertionError(f"{' '.join(words)} failed: {before.decode(errors='replace')}")
    return Cost(float(seconds), float(processor), int(peak) / 1e6)


def _git(*words: str, cwd: Path) -> None:
    subprocess.run(["git", *words], cwd=cwd, check=True)


def _print(name: str, size: int, programs: Programs) -> None:
    for program, cost in programs.items():
        took = f"{cost.seconds:8.2f} s, {cost.processor:8.2f} of it busy, {cost.megabytes:5.0f} MB"
        print(f"  {name:<16} {size:>9,}  {program:<6} {took}", flush=True)


# ---- the page


def _write_page(costs: Costs, stored: Sizes, sizes: Sequence[int], report: Report) -> None:
    """Write the table, with missed targets as plain as others, and the chart."""
    head = [f"| command | {' | '.join(f'{size:,}' for size in sizes)} | target at 100,000 |"]
    head.append(f"|---|{'---|' * len(sizes)}---|")
    rows = []
    for name, by_size in costs.items():
        cells = [_cell(by_size[size]) for size in sizes]
        rows.append(f"| {name} | {' | '.join(cells)} | {_said(report, f'{name}, {SIZES[2]:,}: ')} |")
    in_stores = [
        ", ".join(_named(program, f"{found:.1f} MB") for program, found in stored[size].items()) for size in sizes
    ]
    rows.append(f"| its store | {' | '.join(in_stores)} | |")
    growth = [found for found in report.targets if ": growth " in found.what and not found.is_met]
    grown = [f"- **{found.what}: {found.value:.2f}**" for found in growth] or ["- none"]
    lines = "ours a blue line, git brown, restic green, borg purple, linear growth dotted"
    chart = f"![Seconds of the processor by edits: {lines}.]({CHART.name})"
    beyond = f"Growth beyond linear, more than {GROWTH} times what is in proportion:"
    text = "\n".join([chart, "", *head, *rows, "", beyond, "", *grown])
    page = PAGE.read_text()
    PAGE.write_text(TABLE.sub(lambda match: f"{match[1]}\n{text}\n{match[2]}", page))
    CHART.write_text(_chart(costs, sizes))


def _said(report: Report, beginning: str) -> str:
    """Return the targets of the figures that begin so, and which of them are missed."""
    found = [target for target in report.targets if target.what.startswith(beginning) and target.target != "-"]
    return "; ".join(
        f"{each.what.removeprefix(beginning)} {each.target}{'' if each.is_met else ' **missed**'}" for each in found
    )


def _cell(programs: Programs) -> str:
    said = (_named(program, f"{cost.processor:.2f} s, {cost.megabytes:.0f} MB") for program, cost in programs.items())
    return "; ".join(said)


def _named(program: str, figure: str) -> str:
    return figure if program == "cas" else f"{program} {figure}"


def _chart(costs: Costs, sizes: Sequence[int]) -> str:
    """Return a small chart for each command, on logarithmic axes."""
    width, height, columns = 200, 150, 3
    rows = -(-len(costs) // columns)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width * columns} {height * rows}">',
        "<title>Seconds of the processor that each command takes, by edits in the history</title>",
        STYLE,
    ]
    for number, (name, by_size) in enumerate(costs.items()):
        left, top = number % columns * width, number // columns * height
        first = by_size[sizes[0]]["cas"].processor
        lines = {"linear": [first * size / sizes[0] for size in sizes]}
        lines |= {program: [by_size[size][program].processor for size in sizes] for program in by_size[sizes[0]]}
        parts.append(f'<text x="{left + 12}" y="{top + 16}">{name}: {lines["cas"][-1]:.1f} s</text>')
        for kind, values in lines.items():
            points = " ".join(
                f"{left + 12 + at * 176 / max(1, len(sizes) - 1):.0f},{top + height - 12 - _height(value):.0f}"
                for at, value in enumerate(values)
            )
            parts.append(f'<polyline class="{kind}" points="{points}"/>')
    return "\n".join([*parts, "</svg>\n"])


def _height(seconds: float) -> float:
    """Return the height of a time: from 10 ms at the bottom to 1,000 s at the top of a chart."""
    return 110 * min(1.0, max(0.0, (log10(max(seconds, 1e-3)) + 2) / 5))
