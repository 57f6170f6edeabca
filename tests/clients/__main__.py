"""Run the clients through the scenarios: `python -m tests.clients [--write] [--only SCENARIO] [CLIENT]...`.

Prints a table of clients and scenarios, and why what failed did. `--write` keeps the events of the clients' hooks in
`tests/cli/hooks/recorded`, where `make test` replays it; otherwise a difference in the events' shape is a failure.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.clients.client_run import ClientRun
from tests.clients.programs import PROGRAMS, CannotRun, Program, installed
from tests.clients.recordings import differences, keep
from tests.clients.scenarios import SCENARIOS, NotTried
from tests.clients.scripted_model import ScriptedModel, scripted_model

RECORDED: Final = ("session", "server")
"""The scenarios whose events are kept."""

OK: Final = "ok"


def main(arguments: list[str]) -> int:
    """Run what is asked for; return 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.clients")
    parser.add_argument("clients", nargs="*", choices=[[], *PROGRAMS], metavar="CLIENT", help=", ".join(PROGRAMS))
    parser.add_argument("--only", action="append", choices=list(SCENARIOS), help="a scenario to run")
    parser.add_argument("--write", action="store_true", help="keep the events for `make test`")
    given = parser.parse_args(arguments)
    names = given.only or list(SCENARIOS)
    print(f"{'':22}" + "".join(f"{name:>14}" for name in names))
    failures: list[str] = []
    with scripted_model() as model, TemporaryDirectory(prefix="editledger-clients-") as folder:
        for command in given.clients or PROGRAMS:
            program = PROGRAMS[command]
            print(f"{command + ' ' + program.version:22}", end="", flush=True)
            failures += _client(program, names, model, Path(folder), is_write=given.write)
        beyond = sorted(model.refused)
    print(f"\nrefused beyond loopback: {', '.join(beyond) or 'nothing'}")
    for failure in failures:
        print(f"\n{failure}")
    return bool(failures)


def _client(program: Program, names: list[str], model: ScriptedModel, folder: Path, *, is_write: bool) -> list[str]:
    """Run one client through the scenarios; print its row, and return what failed."""
    try:
        path = installed(program)
    except (CannotRun, OSError, subprocess.TimeoutExpired) as error:
        print(f"  can't run: {error}")
        return []
    failures = []
    for name in names:
        began = time.monotonic()
        said = OK
        try:
            place = folder / program.command / name.replace(" ", "-")
            run = ClientRun(program, path, model, place, server=name == "server")
            SCENARIOS[name](run)
            if name in RECORDED:
                _compare(run, name, is_write=is_write)
        except NotTried:
            said = "-"
        except Exception as error:  # noqa: BLE001 - the others are tried all the same
            model.faults.clear()
            said = "FAILED"
            failures.append(f"{program.command}, {name}: {type(error).__name__}: {error}")
        print(f"{said if said == '-' else f'{said} {time.monotonic() - began:3.0f} s':>14}", end="", flush=True)
    print()
    return failures


def _compare(run: ClientRun, name: str, *, is_write: bool) -> None:
    """Keep the events of a scenario, or raise AssertionError if they have changed."""
    if is_write:
        keep(run, name)
    elif changed := differences(run, name):
        raise AssertionError("\n".join(changed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
