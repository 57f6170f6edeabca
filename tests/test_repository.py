"""Check the repository itself: locks, documents, the wheel, and which module imports what."""

import ast
import os
import re
import subprocess
import sys
import tokenize
import tomllib
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Final

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from pathspec import GitIgnoreSpec

from tests.mutants import MODULES, draw_mutants
from tests.support.architecture_drawing import PAGE, contracted_packages, with_drawing

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = ("objstore", "mcptools", "cli", "editledger")
"""What is shipped. In the source tree, `editledger` is in `cli/start`."""
LOCKS: Final = (
    "requirements/bench.txt",
    "requirements/browser.txt",
    "requirements/dev.txt",
    "requirements/engine.txt",
    "requirements/mutants.txt",
    "requirements/runtime.txt",
)

# Spelled in pieces, so that this file may be read by the test that looks for them.
REGISTRY_HOSTS: Final = tuple(
    ".".join(labels)
    for labels in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("debian", "org"),
        ("registry", "yarnpkg"),
    )
)
FOREIGN_PATH: Final = re.compile(r"(?<![\w.~-])/(?:work|farm|tmp/venv)/")

NAMES_WITHOUT_A_CONCEPT: Final = {"common", "helper", "helpers", "manager", "misc", "util", "utils"}
OTHERWISE_NAMED: Final = {
    "markdown_it": "markdown-it-py",
    "tree_sitter": "tree-sitter",
    "tree_sitter_javascript": "tree-sitter-javascript",
    "tree_sitter_typescript": "tree-sitter-typescript",
}
"""Distributions whose packages have another name."""

IMPURE: Final = {
    "ctypes",
    "fcntl",
    "filelock",
    "glob",
    "mmap",
    "os",
    "pathlib",
    "random",
    "secrets",
    "shutil",
    "socket",
    "sqlite3",
    "subprocess",
    "tempfile",
    "time",
}


@cache
def project() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@cache
def tree() -> tuple[Path, ...]:
    """Return every file that a commit of the whole tree would hold."""
    ignored = GitIgnoreSpec.from_lines([*(ROOT / ".gitignore").read_text().splitlines(), ".git"])
    found = []
    for folder, subfolders, names in os.walk(ROOT):
        here = Path(folder).relative_to(ROOT)
        subfolders[:] = [name for name in subfolders if not ignored.match_file(f"{here / name}/")]
        found += [ROOT / here / name for name in names if not ignored.match_file(str(here / name))]
    return tuple(sorted(found))


def modules() -> list[Path]:
    return [path for path in tree() if path.suffix == ".py"]


def locked(lock: str) -> dict[str, str]:
    """Return the version that a lock file pins for each distribution it names."""
    pins = re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", (ROOT / lock).read_text(), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


PURE_PACKAGES: Final = (
    "objstore/text",
    "objstore/text/needs",
    "objstore/model",
    "objstore/weave",
    "mcptools/answers",
    "mcptools/edit",
)
"""Packages that take values and return values: no disk, no clock, no database."""


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(path.read_bytes())


def imported(source: ast.Module) -> Iterator[str]:
    """Yield the top-level package of each import, wherever it is in the module."""
    for node in ast.walk(source):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield node.module.partition(".")[0]


def summary(path: Path) -> str:
    """Return the first line of a module's docstring, "" if it has none; nothing behind it is read."""
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.STRING:
                docstring = ast.literal_eval(token.string)
                return docstring.lstrip().partition("\n")[0] if isinstance(docstring, str) else ""
            if token.type not in {tokenize.ENCODING, tokenize.COMMENT, tokenize.NL}:
                break
    return ""


def shipped() -> list[Path]:
    """Return the modules of the four packages."""
    return [path for path in modules() if path.relative_to(ROOT).parts[0] in PACKAGES]


# ---- versions


def test_the_changelog_names_the_version_of_the_project() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    (heading, body), *_ = re.findall(r"^## \[([^\]]+)\][^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if heading == "Unreleased":
        coming = re.search(r"^Becomes (\S+)\.$", body, re.MULTILINE)
        assert coming is not None, "the unreleased section has to say which version it becomes"
        heading = coming[1]
    assert heading == project()["project"]["version"]


def test_all_tools_agree_on_the_oldest_python() -> None:
    oldest = project()["project"]["requires-python"].removeprefix(">=")
    tools = project()["tool"]
    assert tools["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    assert tools["mypy"]["python_version"] == oldest


# ---- locks


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_files_contain_pins_and_hashes_and_no_host(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert "://" not in text
    entries = re.sub(r"^ *#.*\n", "", text, flags=re.MULTILINE).replace(" \\\n", " ").splitlines()
    pin = re.compile(r"[a-z0-9._-]+==[^ ;]+( ; [^#]+?)?( +--hash=sha256:[0-9a-f]{64})+")
    assert [entry for entry in entries if pin.fullmatch(entry) is None] == []
    assert entries


def test_lock_files_satisfy_the_requirements_of_the_project() -> None:
    wanted = {
        "requirements/dev.txt": project()["project"]["dependencies"]
        + project()["project"]["optional-dependencies"]["remote"]
        + project()["dependency-groups"]["dev"]
        + project()["build-system"]["requires"],
        "requirements/runtime.txt": project()["project"]["dependencies"],
        "requirements/bench.txt": project()["dependency-groups"]["bench"],
        "requirements/browser.txt": project()["dependency-groups"]["browser"],
        "requirements/engine.txt": project()["dependency-groups"]["engine"],
        "requirements/mutants.txt": project()["dependency-groups"]["mutants"],
    }
    for lock, requirements in wanted.items():
        pins = locked(lock)
        for requirement in map(Requirement, requirements):
            pin = pins[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(Version(pin)), f"{lock}: {requirement} has {pin}"


def test_runtime_lock_has_the_pins_of_the_development_lock() -> None:
    assert locked("requirements/runtime.txt").items() <= locked("requirements/dev.txt").items()


# ---- the tree


def test_no_file_names_a_registry_host_or_a_path_of_one_machine() -> None:
    found = []
    for path in tree():
        text = path.read_bytes().decode(errors="replace")
        found += [f"{path.relative_to(ROOT)}: {host}" for host in REGISTRY_HOSTS if host in text]
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in FOREIGN_PATH.finditer(text)]
    assert found == []


def test_every_module_has_a_summary_as_first_line() -> None:
    silent = [path for path in modules() if path.stat().st_size and " " not in summary(path)]
    assert silent == []


def test_every_module_is_named_for_a_concept() -> None:
    assert [path for path in modules() if {path.stem, path.parent.name} & NAMES_WITHOUT_A_CONCEPT] == []


def test_pure_packages_use_neither_disk_nor_clock() -> None:
    pure = [path for package in PURE_PACKAGES for path in sorted((ROOT / package).glob("*.py"))]
    reaching = []
    for path in pure:
        source = parsed(path)
        reaching += [f"{path.relative_to(ROOT)} imports {name}" for name in imported(source) if name in IMPURE]
        reaching += [
            f"{path.relative_to(ROOT)} calls open, line {node.lineno}"
            for node in ast.walk(source)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open"
        ]
    assert reaching == []


def test_no_text_of_the_core_names_a_command() -> None:
    """Surfaces add the commands: the page has buttons, and the chat has words of its own."""
    naming = []
    for path in shipped():
        if path.relative_to(ROOT).parts[0] != "objstore":
            continue
        source = parsed(path)
        said = {node.value for node in ast.walk(source) if isinstance(node, ast.Expr)}
        naming += [
            f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"
            for node in ast.walk(source)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in said
            if re.search(r"`cas\b|(?<![./\w])cas [a-z{`-]", node.value)
        ]
    assert naming == []


def test_packages_import_exactly_the_declared_dependencies() -> None:
    stated = project()["project"]
    extras = [text for texts in stated["optional-dependencies"].values() for text in texts]
    declared = {Requirement(text).name for text in [*stated["dependencies"], *extras]}
    used = {name for path in shipped() for name in imported(parsed(path))}
    used = {OTHERWISE_NAMED.get(name, name) for name in used}
    assert used - sys.stdlib_module_names - set(PACKAGES) == declared


# ---- exceptions to the rules


def test_every_disabled_rule_states_its_reason() -> None:
    lint = project()["tool"]["ruff"]["lint"]
    off = list(lint["ignore"])
    for rules in lint["per-file-ignores"].values():
        off += rules
    reasoned = re.findall(r'^    "([A-Z]+[0-9]*)", +# \S+ \S+ .+$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert sorted(reasoned) == sorted(off)


def test_every_suppressed_warning_states_its_reason() -> None:
    excuse = re.compile(r"# (?:noqa|type: ignore)\b(.*)")
    reasoned = re.compile(r"(?:: [A-Z0-9, ]+ -{1,2}|\[[a-z, -]+\] {2}#) \S.*")
    bare = []
    for path in (path for path in modules() if path != Path(__file__).resolve()):
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            found = excuse.search(line)
            if found is not None and reasoned.fullmatch(found[1]) is None:
                bare.append(f"{path.relative_to(ROOT)}:{number}: {found[0]}")
    assert bare == []


# ---- what is shipped


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")))
    with zipfile.ZipFile(built) as archive:
        yield archive


def test_wheel_contains_exactly_the_four_packages(wheel: zipfile.ZipFile) -> None:
    version = project()["project"]["version"]
    shipped = {name for name in wheel.namelist() if not name.startswith(f"editledger-{version}.dist-info/")}
    ours = {path.relative_to(ROOT) for path in tree()}
    assert shipped == {str(path).removeprefix("cli/start/") for path in ours if path.parts[0] in PACKAGES}
    assert {f"{package}/py.typed" for package in PACKAGES} <= shipped


def test_wheel_contains_the_licence(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith("/licenses/LICENSE")]
    assert wheel.read(name) == (ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize("command", ["cas", "editledger"])
def test_every_command_names_a_callable(command: str) -> None:
    target = project()["project"]["scripts"][command]
    assert callable(EntryPoint(command, target, "console_scripts").load())


# ---- what a developer types


def test_continuous_integration_runs_make_test() -> None:
    script = ROOT / ".ci" / "run"
    lines = script.read_text().splitlines()
    assert lines[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in lines
    assert lines[-1] == "make test"
    assert os.access(script, os.X_OK)


@pytest.mark.parametrize(("command", "step"), [("make demo", "cas demo"), ("make test", "-m pytest")])
def test_the_readme_shows_commands_that_exist(command: str, step: str) -> None:
    readme = (ROOT / "README.md").read_text()
    assert re.search(rf"^\$ {command}\b", readme, re.MULTILINE)
    program, target = command.split()
    # A make above this test must not pass its own options down.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    trial = subprocess.run(
        [program, "--dry-run", target], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert trial.returncode == 0, trial.stderr
    assert step in trial.stdout


def test_every_target_is_listed_by_help() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert sorted(re.findall(r"^([a-z-]+):.* ## ", makefile, re.MULTILINE)) == sorted(phony.split())


def test_the_table_for_contributors_has_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):.* ## ", makefile, re.MULTILINE)) - {"help", "setup"}
    rows = re.findall(r"^\| (`make .+?) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert targets - {name for row in rows for name in re.findall(r"`make ([a-z-]+)", row)} == set()


def test_modules_and_tests_of_the_mutants_exist() -> None:
    assert [name for name in MODULES if not (ROOT / name).is_file()] == []
    tests = {f"tests/objstore/{name}.py" for names in MODULES.values() for name in names.split()}
    assert [name for name in sorted(tests) if not (ROOT / name).is_file()] == []


def test_mutants_of_handlers_that_the_operator_cannot_change_are_left_out(tmp_path: Path) -> None:
    pytest.importorskip("cosmic_ray")
    module = tmp_path / "module.py"
    module.write_text("try:\n    pass\nexcept (a.b, c):\n    pass\nexcept f(x):\n    pass\nexcept d:\n    pass\n")
    drawn = draw_mutants([str(module)], 100, 27)
    assert [mutant.line for mutant in drawn if mutant.operator == "ExceptionReplacer"].count(7) == 1
    for mutant in drawn:
        compile(mutant.after, str(module), "exec")


def test_links_between_documents_are_valid() -> None:
    broken = []
    for page in (path for path in tree() if path.suffix == ".md"):
        links = re.findall(r"\]\(([^)#\s]+)", page.read_text())
        inside = [link for link in links if "://" not in link]
        broken += [f"{page.relative_to(ROOT)} -> {link}" for link in inside if not (page.parent / link).exists()]
    assert broken == []


# ---- the page about the architecture


def test_architecture_drawing_matches_the_import_contracts() -> None:
    page = PAGE.read_text()
    assert page == with_drawing(page), "run `python -m tests.support.architecture_drawing`"


def test_every_package_of_the_contract_is_described() -> None:
    rows = re.findall(r"^\| (`[^|]+`) \| [^|]+ \|$", PAGE.read_text(), re.MULTILINE)
    described = {name for row in rows for name in re.findall(r"`([^`]+?)(?:/|\.py)`", row)}
    packages = {
        f"{distribution.replace('.', '/')}/{package}"
        for distribution, layers in contracted_packages().items()
        for layer in layers
        for package in layer
        if package != "__main__"
    }
    assert packages - described == set()


def test_every_path_on_the_page_exists() -> None:
    paths = re.findall(r"`((?:objstore|mcptools|cli|tests|docs)/[\w./]*)`", PAGE.read_text())
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_architecture_page_lists_at_least_twelve_tasks_with_few_modules_each() -> None:
    _, _, table = PAGE.read_text().partition("## Where do I change what")
    rows = re.findall(r"^\| (?!task|-)([^|]+) \| ([^|]+) \|$", table, re.MULTILINE)
    assert len(rows) >= 12  # as many as the project asks for
    modules_named = {task: re.findall(r"`((?:objstore|mcptools|cli)/[\w./]+(?<!\.md))`", where) for task, where in rows}
    assert [task for task, named in modules_named.items() if not 1 <= len(named) <= 4] == []


# ---- decisions


def test_every_decision_is_listed_and_fits_on_a_page() -> None:
    folder = ROOT / "docs/decisions"
    pages = sorted(folder.glob("[0-9]*.md"))
    assert re.findall(r"\]\(([0-9][^)]+)\)", (folder / "README.md").read_text()) == [page.name for page in pages]
    assert [page.name for page in pages if len(page.read_text().splitlines()) > 50] == []


def test_every_decision_that_a_module_names_exists() -> None:
    named = {
        (str(path.relative_to(ROOT)), page)
        for path in tree()
        if path.suffix == ".py"
        for page in re.findall(r"docs/decisions/[\w.-]+\.md", path.read_text())
    }
    assert [(module, page) for module, page in sorted(named) if not (ROOT / page).is_file()] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_sql_query_uses_numbered_parameters(package: str) -> None:
    """To Python 3.14, `?1` is a name, and values in a sequence have none: the question is refused."""
    for path in sorted((ROOT / package).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"\?\W*[a-zA-Z]{0,2}\W*[0-9]", text):  # nor in two strings that are one
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not re.search(r"(=|[<>(,]|AND|OR|LIMIT|IN) ?\?[0-9]", node.value), (path, node.lineno)
