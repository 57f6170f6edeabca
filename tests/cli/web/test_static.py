"""The page's own files: their types hold, they run no text from files, and vendored code is unchanged."""

import os
import re
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

FOLDER: Final = Path(__file__).resolve().parents[3] / "cli" / "web" / "static"
MODULES: Final = sorted(FOLDER.glob("*.js"))
NPM: Final = Path(os.environ.get("EDITLEDGER_NPM", FOLDER.parents[2] / "build" / "npm"))
TSC: Final = NPM / "node_modules" / ".bin" / "tsc"
IS_REQUIRED: Final = "typescript" in os.environ.get("EDITLEDGER_REQUIRES", "").split()

OPTIONS: Final = (
    "--noEmit",
    "--allowJs",
    "--checkJs",
    "--strict",
    *("--target", "es2024"),
    *("--lib", "es2024,dom,dom.iterable"),
    *("--module", "esnext"),
    *("--moduleResolution", "bundler"),
    "--allowImportingTsExtensions",
)

NUMBERED: Final = re.compile("[ad][0-5]")
"""Classes whose number the page computes: how new a line is, and how deep in folders a file."""

RUNS_TEXT: Final = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|eval\(|new Function|setTimeout\([\"'`]|DOMParser"
)


@pytest.mark.skipif(not IS_REQUIRED and not TSC.exists(), reason="TypeScript is not below EDITLEDGER_NPM")
def test_types_of_the_page_hold() -> None:
    checked = subprocess.run([TSC, *OPTIONS, *MODULES], capture_output=True, text=True, check=False)
    assert (checked.stdout, checked.returncode) == ("", 0)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_no_module_can_run_a_text(module: Path) -> None:
    assert RUNS_TEXT.findall(module.read_text()) == []


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_modules_say_what_they_are_and_are_short(module: Path) -> None:
    lines = module.read_text().splitlines()
    assert lines[0].startswith("// ")
    assert len(lines) <= 500


def test_each_class_of_the_style_sheet_is_named_by_the_page() -> None:
    rules = re.sub(r"/\*.*?\*/|\{[^{}]*\}", "", (FOLDER / "page.css").read_text(), flags=re.DOTALL)
    styled = dict.fromkeys(re.findall(r"\.([a-z][\w-]*)", rules, re.IGNORECASE))
    pages = [*MODULES, FOLDER / "index.html", FOLDER.parents[1] / "screen" / "syntax.py"]
    named = set(re.findall(r"[\w-]+", "\n".join(page.read_text() for page in pages)))
    assert [name for name in styled if name not in named and not NUMBERED.fullmatch(name)] == []


def test_the_page_names_no_other_host_and_no_style_or_script_of_its_own() -> None:
    page = (FOLDER / "index.html").read_text()
    addresses = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert [each for each in addresses if not (FOLDER.parent / each.lstrip("/")).is_file()] == []
    assert re.findall(r"<style|style=|<script(?! type=\"module\" src=)| on[a-z]+=", page) == []
    assert re.findall(r"https?:", (FOLDER / "page.css").read_text()) == []


def test_what_is_vendored_is_what_its_page_says() -> None:
    vendored = FOLDER / "vendor"
    (stated,) = re.findall(r"^[0-9a-f]{64}$", (vendored / "README.md").read_text(), re.MULTILINE)
    assert sha256((vendored / "preact-htm.js").read_bytes()).hexdigest() == stated
