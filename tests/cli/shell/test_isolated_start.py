"""Start `cas`, its hook and the server in projects whose own packages have the names of ours.

The command is started as pip, pipx and uv install it (a wheel in an environment of its own, and a script), as an
editable install does, and as a module.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.support.command_runner import environment
from tests.support.sampling import sampled_product

ROOT: Final = Path(__file__).parents[3]
PACKAGES: Final = ("cli", "objstore", "mcptools")
MODULES: Final = ("contextlib.py", "dataclasses.py", "click.py", "msgpack.py", "pygments.py")
FOREIGN: Final = "raise SystemExit('the project was imported')\n"
STOP: Final = json.dumps({"hook_event_name": "Stop", "session_id": "s"}).encode()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment into which the wheel is installed."""
    folder = tmp_path_factory.mktemp("installed")
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(folder))
    place = folder / "environment"
    venv.create(place, symlinks=True)
    (packages,) = place.glob("lib/python*/site-packages")
    with zipfile.ZipFile(built) as wheel:
        wheel.extractall(packages)
    # The dependencies come from here; `.pth` files of that folder are not read, so nothing else does.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place / "bin" / "python"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with packages and modules of such names, each of which says so when it is imported."""
    project = tmp_path / "project"
    for package in PACKAGES:
        (project / package).mkdir(parents=True)
        (project / package / "__init__.py").write_text(FOREIGN)
    for module in MODULES:
        (project / module).write_text(FOREIGN)
    return project


def script(python: Path, name: str, folder: Path) -> list[str]:
    """Return the command of a script as installers write it."""
    target = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"][name]
    module, _, function = target.partition(":")
    (folder / "bin").mkdir(exist_ok=True)
    path = folder / "bin" / name
    path.write_text(f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n")
    return [str(python), str(path)]


def ran(
    command: Sequence[str], *words: str, folder: Path, search: str | None, given: bytes = b""
) -> "subprocess.CompletedProcess[bytes]":
    variables = {name: value for name, value in environment({}).items() if name != "PYTHONPATH"}
    variables |= {} if search is None else {"PYTHONPATH": search}
    return subprocess.run(
        [*command, *words], cwd=folder, env=variables, input=given, capture_output=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    ("kind", "search"), sampled_product(["wheel", "editable"], [None, ".", "{project}", "cli:.", ""])
)
def test_command_hook_and_server_start_whatever_a_project_calls_its_packages(
    kind: str, search: str | None, installed: Path, project: Path, tmp_path: Path
) -> None:
    python = installed if kind == "wheel" else Path(sys.executable)
    search = None if search is None else search.format(project=project)
    cas, server = (script(python, name, tmp_path) for name in ("cas", "editledger"))
    assert ran(cas, "init", folder=project, search=search).returncode == 0
    status = ran(cas, "status", folder=project, search=search)
    assert (status.returncode, status.stderr) == (0, b"")
    assert ran(cas, "hook", "claude-code", folder=project, search=search, given=STOP).returncode == 0
    assert not (project / ".cas" / "hook.log").exists()
    assert b"usage: editledger" in ran(server, "--help", folder=project, search=search).stdout


@pytest.mark.parametrize("module", ["editledger.cas", "cli"])
def test_isolated_python_starts_the_modules_anywhere(module: str, installed: Path, project: Path) -> None:
    command = [str(installed), "-I", "-m", module]
    assert ran(command, "init", folder=project, search=".").returncode == 0
    assert ran(command, "status", folder=project, search=".").returncode == 0


def test_module_of_our_own_name_starts_where_a_project_has_packages_of_the_others(
    installed: Path, project: Path
) -> None:
    for module in MODULES:
        (project / module).unlink()  # `python -m` itself would import them
    command = [str(installed), "-m", "editledger.cas"]
    assert ran(command, "init", folder=project, search=".").returncode == 0
    assert ran(command, "status", folder=project, search=".").returncode == 0


def test_module_starts_with_our_objstore_where_a_project_has_its_own(installed: Path, project: Path) -> None:
    for name in (*MODULES, "cli/__init__.py"):
        (project / name).unlink()
    (project / "cli").rmdir()
    assert ran([str(installed), "-m", "cli"], "init", folder=project, search=".").returncode == 0


def test_installation_that_only_pythonpath_finds_starts_too(installed: Path, project: Path, tmp_path: Path) -> None:
    (packages,) = installed.parents[1].glob("lib/python*/site-packages")
    search = os.pathsep.join([str(project), str(packages), sysconfig.get_path("purelib")])
    base = [str(Path(sys.executable).resolve()), *script(installed, "cas", tmp_path)[1:]]
    for module in MODULES:
        (project / module).unlink()  # no environment holds the dependencies, so they are where the project is
    assert ran(base, "init", folder=project, search=search).returncode == 0
    assert ran(base, "status", folder=project, search=search).returncode == 0
