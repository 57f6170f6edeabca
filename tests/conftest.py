"""What holds for all tests: how hard hypothesis looks, what they wait for, and what the processes they start inherit.

HYPOTHESIS_PROFILE is `quick`, `ci` (the default), `mutants` or `long`.
"""

import ctypes
import gc
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

from objstore.storage.index import database, log_index
from tests.support.fork_server import share_forked_programs

# A shell that runs the tests in the background has them ignore Ctrl-C, and every process they start inherits that; a
# login on a terminal would not have it so.
for interrupting in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(interrupting) is signal.SIG_IGN:
        signal.signal(interrupting, signal.default_int_handler if interrupting is signal.SIGINT else signal.SIG_DFL)

# Without bytecode pytest would rewrite every test again in each process and each run.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# The C library returns a large buffer to the system when it is freed, and gets the next one page by page: a third of
# what a test of large files takes. Keep such buffers.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
if hasattr(library := ctypes.CDLL(None), "mallopt"):  # glibc
    library.mallopt(M_MMAP_THRESHOLD, 128 << 20)
    library.mallopt(M_TRIM_THRESHOLD, 256 << 20)

# A disk's file system takes a quarter of the processor's time in tests that copy workspaces, and one in memory little.
# `make large` leaves more there than it may take.
MEMORY: Final = Path("/dev/shm")  # noqa: S108 - pytest makes a folder in it that is the user's alone
ROOM: Final = 4 << 30
"""Bytes that must be free in memory before the tests' folders are made there."""

if (
    not os.environ.keys() & {"TMPDIR", "CAS_LARGE_MB"}
    and os.access(MEMORY, os.W_OK | os.X_OK)
    and shutil.disk_usage(MEMORY).free > ROOM
):
    tempfile.tempdir = str(MEMORY)

TESTS: Final = Path(__file__).parent

# What programs keep in the user's state folder is not that of whoever runs the tests.
STATE: Final = tempfile.TemporaryDirectory(prefix="editledger-state-")
os.environ["XDG_STATE_HOME"] = STATE.name


def pytest_configure(config: pytest.Config) -> None:
    """Do once what each process that runs all tests would do: compile them if none is compiled yet, import programs."""
    is_worker = hasattr(config, "workerinput")
    if is_worker or config.args_source != pytest.Config.ArgsSource.TESTPATHS or not config.getoption("numprocesses"):
        return
    share_forked_programs()
    if any(TESTS.rglob("*-pytest-*.pyc")):
        return
    halves = (["tests/objstore"], ["tests", "--ignore=tests/objstore"])
    command = [sys.executable, "-m", "pytest", "--collect-only"]
    compiling = [subprocess.Popen([*command, *half], cwd=TESTS.parent, stdout=subprocess.DEVNULL) for half in halves]
    for each in compiling:
        each.wait()  # a test that can't be compiled fails later, in its place


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage among what the tests are made of, half a million objects that stay: a third of the time.

    Nor later: each look at them takes a quarter of a second.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_sessionfinish() -> None:
    """Scan once what is left; pytest does so five times, as other interpreters need it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_failed_hooks() -> Iterator[None]:
    """Forget the hooks that a test lets fail: a mark in a folder above concerns the workspaces of later tests too."""
    yield
    Path(STATE.name, "editledger", "hook-failures").unlink(missing_ok=True)


settings.register_profile(
    "ci",
    max_examples=12,  # `make laws` takes 2,000
    deadline=None,
    print_blob=True,
    # No verdict may depend on how fast the machine is.
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("mutants", settings.get_profile("ci"), max_examples=18)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=10)
settings.register_profile("long", settings.get_profile("ci"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def prepared(db: sqlite3.Connection) -> None:
    """Prepare an index as ever, but for its syncs: nothing cuts the power of the process that the tests run in."""
    db.execute("PRAGMA synchronous = OFF")  # a new one is written before it says how it is synced
    database.prepare(db)
    db.execute("PRAGMA synchronous = OFF")


vars(log_index)["prepare"] = prepared
