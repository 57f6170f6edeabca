"""`cas status` as a whole command, against `git status` and against a command that does nothing."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from objstore import CallInfo, Operation, Workspace
from tests.bench.measure import Report, timed_in_turn, wait_until_settled

__all__ = ["ENTRY", "bench_status"]

FILES: Final = 100
EDITS: Final = 1_000
ROUNDS: Final = 40
ENTRY: Final = "import sys; from editledger.cas import main; sys.exit(main())"
"""What the installed script does."""

HELLO: Final = """
import click

@click.command()
def hello():
    click.echo("hello")

hello()
"""


def bench_status(report: Report) -> None:
    """Time `cas status` on 1,000 edits in 100 files; git has the same files, modified since the commit."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        root = Path(folder) / "work"
        root.mkdir()
        hello = Path(folder) / "hello.py"
        hello.write_text(HELLO)
        for i in range(FILES):
            (root / f"file{i}.py").write_text(f"# file {i}\n" + "value = 1\n" * 50)
        git = ["git", "-c", "user.name=b", "-c", "user.email=b@localhost", "-C", str(root)]
        subprocess.run([*git, "init", "-q"], check=True)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "base"], check=True)
        with Workspace.init(root) as workspace:
            for i in range(EDITS):
                name = f"file{i % FILES}.py"
                with workspace.call(CallInfo(tool="bench", conversation=f"c{i // 50}")) as call:
                    text = call.read(name).bytes
                    call.write(name, text + b"value = %d\n" % i, operation=Operation.EDIT)
                    call.commit()
        past = (root / "file0.py").stat().st_mtime - 60
        for i in range(FILES):
            os.utime(root / f"file{i}.py", (past, past))
        wait_until_settled()

        def ran(*command: str) -> None:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

        ran(sys.executable, "-c", ENTRY, "-C", str(root), "status")
        times = timed_in_turn(
            {
                "cas": lambda _: ran(sys.executable, "-c", ENTRY, "-C", str(root), "status"),
                "git": lambda _: ran(*git, "status"),
                "click": lambda _: ran(sys.executable, str(hello)),
                "python": lambda _: ran(sys.executable, "-c", "pass"),
            },
            ROUNDS,
        )
    ours = report.times("cas status", times["cas"])
    report.times("git status", times["git"])
    bare = report.times("a click command that says hello", times["click"])
    report.times("python -c pass", times["python"])
    report.ratio("cas status / click", ours / bare, "<= 1.8")
