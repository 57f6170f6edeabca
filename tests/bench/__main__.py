"""Run the benchmarks that are named, or all: `python -m tests.bench [NAME…]`.

They are the names in BENCHES. CAS_BENCH_BLOBS=1000000 has `store` go up to a million blobs, in more than an hour, and
CAS_BENCH_EDITS=1000000 (`make curves`) has `curves` go up to a million edits, in hours. Peers other than git are
installed by the group `bench` of pyproject.toml.
"""

import compileall
import os
import sys
from collections.abc import Callable
from typing import Final

import cli
import mcptools
import objstore
from tests.bench.background_gc import bench_upkeep
from tests.bench.bisect import bench_bisect
from tests.bench.command import bench_command
from tests.bench.curves import bench_curves
from tests.bench.diff import bench_diff
from tests.bench.hook import bench_hook
from tests.bench.large import bench_large
from tests.bench.measure import Report, finish
from tests.bench.releases import bench_releases
from tests.bench.remote import bench_remote
from tests.bench.repack import bench_repack
from tests.bench.review import bench_review
from tests.bench.server import bench_server
from tests.bench.snapshot import bench_snapshot
from tests.bench.status import bench_status
from tests.bench.store import bench_store
from tests.bench.toggle import bench_toggle
from tests.bench.web import bench_web
from tests.bench.web_load import bench_web_load
from tests.bench.write import bench_write

BENCHES: Final[dict[str, Callable[[Report], None]]] = {
    "write": bench_write,
    "curves": bench_curves,
    "toggle": bench_toggle,
    "review": bench_review,
    "releases": bench_releases,
    "status": bench_status,
    "diff": bench_diff,
    "command": bench_command,
    "bisect": bench_bisect,
    "upkeep": bench_upkeep,
    "repack": bench_repack,
    "snapshot": bench_snapshot,
    "hook": bench_hook,
    "large": bench_large,
    "server": bench_server,
    "store": bench_store,
    "remote": bench_remote,
    "web": bench_web,
    "web_load": bench_web_load,
}


def main(names: list[str]) -> int:
    """Run the benchmarks; return 1 if a target is missed, 2 for an unknown name."""
    unknown = set(names) - set(BENCHES)
    if unknown:
        print(f"No benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}.", file=sys.stderr)
        return 2
    # As it is installed: else, where the environment forbids bytecode, each command would be compiled at each start.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for package in (objstore, mcptools, cli):
        for folder in package.__path__:
            compileall.compile_dir(folder, quiet=1)
    reports = []
    for name in names or BENCHES:
        print(f"\n{name}: {BENCHES[name].__doc__}")
        report = Report(name)
        BENCHES[name](report)
        reports.append(report)
    print()
    return finish(reports)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
