"""The clients' own programs: which version is tried, how it is installed and run, and what its tools are called.

Each is installed by npm into a cache folder (CAS_CLIENTS, or `editledger/clients` in the user's cache). A program runs
with a home of its own; it needs no account, and its proxy refuses all that isn't loopback.
"""

import json
import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from tests.clients.dialects import ToolCall

__all__ = ["PROGRAMS", "CannotRun", "Place", "Program", "installed"]

PATIENCE: Final = 600
"""Seconds for the installation of one program."""


class CannotRun(Exception):
    """A program can't be tried here; its text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one run of a program happens."""

    home: Path
    project: Path
    address: str  # of the model


class Program(ABC):
    """One client."""

    name: ClassVar[str]  # as `cas setup` has it
    package: ClassVar[str]
    version: ClassVar[str]
    command: ClassVar[str]

    @abstractmethod
    def words(self, prompt: str, address: str, *, continuing: bool) -> list[str]:
        """Return the arguments with which it works on a prompt, and ends.

        `address`: of the model. `continuing`: in its last session.
        """

    @abstractmethod
    def prepare(self, place: Place) -> dict[str, str]:
        """Write the settings that a person would have; return its environment."""

    @property
    def with_servers(self) -> "Program":
        """Return the program as it offers the tools of MCP servers to a model at once."""
        return self

    @property
    def untrusted(self) -> "Program | None":
        """Return the program as it is run by whoever has given no trust yet; None: it needs none."""
        return None

    @property
    def on_screen(self) -> "Program | None":
        """Return the program as a person sees it, who may type Esc; None: that is not tried."""
        return None

    def trust(self, place: Place, path: Path, environment: Mapping[str, str]) -> None:  # noqa: B027 - not all need it
        """Give the trust that `untrusted` has not, as a person does; `path`: the program itself."""

    def reads(self, path: Path) -> list[ToolCall]:
        """Return the calls that it wants before it edits a file."""
        del path
        return []

    @abstractmethod
    def write(self, path: Path, content: str) -> ToolCall:
        """Return the call of its tool that writes a file."""

    @abstractmethod
    def edit(self, path: Path, old: str, new: str) -> ToolCall:
        """Return the call of its tool that edits a file."""

    @abstractmethod
    def shell(self, command: str) -> ToolCall:
        """Return the call of its shell."""

    @staticmethod
    def ours(tool: str, **given: object) -> ToolCall:
        """Return a call of a tool of our server."""
        return ToolCall(name=f"editledger:{tool}", given=given)


class OpenCode(Program):
    """opencode."""

    name, package, version, command = "opencode", "opencode-ai", "1.18.33", "opencode"

    def words(self, prompt: str, address: str, *, continuing: bool) -> list[str]:  # noqa: ARG002 - as the base has it
        return ["run", *(["--continue"] if continuing else []), "--model", "scripted/model", prompt]

    def prepare(self, place: Place) -> dict[str, str]:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": place.address, "apiKey": "none"},
            "models": {"model": {"tool_call": True, "limit": {"context": 100_000, "output": 10_000}}},
        }
        settings = {"provider": {"scripted": provider}, "small_model": "scripted/model", "share": "disabled"}
        off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
        environment = {f"OPENCODE_DISABLE_{name}": "1" for name in off}
        # It wants packages for plugins, which the proxy refuses.
        return environment | {"OPENCODE_CONFIG_CONTENT": json.dumps(settings), "npm_config_fetch_retries": "0"}

    def write(self, path: Path, content: str) -> ToolCall:
        return ToolCall(name="write", given={"filePath": str(path), "content": content})

    def edit(self, path: Path, old: str, new: str) -> ToolCall:
        return ToolCall(name="edit", given={"filePath": str(path), "oldString": old, "newString": new})

    def shell(self, command: str) -> ToolCall:
        return ToolCall(name="bash", given={"command": command, "description": "work"})


class ClaudeCode(Program):
    """Claude Code."""

    name, package, version, command = "claude-code", "@anthropic-ai/claude-code", "2.1.197", "claude"

    def __init__(self, *, is_on_screen: bool = False) -> None:
        self._is_on_screen: Final = is_on_screen

    @property
    def on_screen(self) -> "ClaudeCode":
        return ClaudeCode(is_on_screen=True)

    def words(self, prompt: str, address: str, *, continuing: bool) -> list[str]:  # noqa: ARG002 - as the base has it
        print_only = [] if self._is_on_screen else ["-p"]
        return [*(["--continue"] if continuing else []), *print_only, prompt, "--dangerously-skip-permissions"]

    def prepare(self, place: Place) -> dict[str, str]:
        folder = place.home / ".claude"
        folder.mkdir(exist_ok=True)
        (folder / "settings.json").write_text('{"enableAllProjectMcpServers": true}')
        if self._is_on_screen:  # what a person has answered before
            answered = {
                "hasCompletedOnboarding": True,
                "theme": "dark",
                "bypassPermissionsModeAccepted": True,
                "customApiKeyResponses": {"approved": ["none"], "rejected": []},
                "projects": {str(place.project): {"hasTrustDialogAccepted": True}},
            }
            (place.home / ".claude.json").write_text(json.dumps(answered))
        return {
            "ANTHROPIC_BASE_URL": place.address,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",  # else it refuses to work as root without asking
        }

    def write(self, path: Path, content: str) -> ToolCall:
        return ToolCall(name="Write", given={"file_path": str(path), "content": content})

    def edit(self, path: Path, old: str, new: str) -> ToolCall:
        return ToolCall(name="Edit", given={"file_path": str(path), "old_string": old, "new_string": new})

    def reads(self, path: Path) -> list[ToolCall]:
        return [ToolCall(name="Read", given={"file_path": str(path)})]

    def background(self, command: str) -> ToolCall:
        """Return the call of its shell that goes on after its answer."""
        return ToolCall(name="Bash", given={"command": command, "description": "work", "run_in_background": True})

    def shell(self, command: str) -> ToolCall:
        return ToolCall(name="Bash", given={"command": command, "description": "work"})


class Codex(Program):
    """Codex. Which tools it offers depends on the name of the model."""

    name, package, version, command = "codex", "@openai/codex", "0.169.0", "codex"

    def __init__(self, model: str = "gpt-5.5", *, is_trusted: bool = True) -> None:
        self._model: Final = model
        self._is_trusted: Final = is_trusted

    @property
    def with_servers(self) -> "Codex":
        return Codex("gpt-5.1-codex")

    def words(self, prompt: str, address: str, *, continuing: bool) -> list[str]:
        # Hooks are trusted one by one in its own screen; headless, only by this.
        trusted = ["--dangerously-bypass-hook-trust"] if self._is_trusted else []
        trusted.append("--dangerously-bypass-approvals-and-sandbox")
        last = ["resume", "--last"] if continuing else []
        url = f"model_providers.scripted.base_url={json.dumps(address)}"
        return ["exec", *trusted, "--skip-git-repo-check", "-c", url, "--model", self._model, *last, prompt]

    def prepare(self, place: Place) -> dict[str, str]:
        folder = place.home / ".codex"
        folder.mkdir(exist_ok=True)
        lines = [
            'model_provider = "scripted"',
            "[model_providers.scripted]",
            'name = "scripted"',
            f"base_url = {json.dumps(place.address)}",
            'wire_api = "responses"',
            *(self._project(place) if self._is_trusted else []),
        ]
        settings = folder / "config.toml"
        kept = settings.read_text() if settings.exists() else ""
        if "model_providers.scripted" not in kept:
            settings.write_text("\n".join(lines) + "\n" + kept)
        return {"CODEX_HOME": str(folder)}

    @property
    def untrusted(self) -> "Codex":
        return Codex(is_trusted=False)

    def trust(self, place: Place, path: Path, environment: Mapping[str, str]) -> None:
        folder = place.home / ".codex"
        with (folder / "config.toml").open("a") as settings:
            settings.write("\n".join(["", *self._project(place), ""]))
        with subprocess.Popen(
            [path, "app-server"],
            cwd=place.project,
            env={**environment, "CODEX_HOME": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                self._ask(process, "initialize", {"clientInfo": {"name": "tests", "version": "1"}})
                listed = self._ask(process, "hooks/list", {"cwds": [str(place.project)]})["data"]
                hooks = [hook for each in listed for hook in each["hooks"]]
                state = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in hooks}
                edit = {"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
                self._ask(process, "config/batchWrite", {"edits": [edit]})
            finally:
                process.kill()

    @staticmethod
    def _project(place: Place) -> list[str]:
        return [f"[projects.{json.dumps(str(place.project))}]", 'trust_level = "trusted"']

    @staticmethod
    def _ask(process: "subprocess.Popen[bytes]", method: str, given: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        """Ask its app server something; return the result."""
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"id": method, "method": method, "params": given}).encode() + b"\n")
        process.stdin.flush()
        while line := process.stdout.readline():
            said = json.loads(line)
            if said.get("id") == method:
                return said["result"]
        raise CannotRun("the app server of Codex has ended")

    def write(self, path: Path, content: str) -> ToolCall:
        lines = "".join(f"+{line}\n" for line in content.splitlines())
        return ToolCall(name="apply_patch", given=f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n")

    def edit(self, path: Path, old: str, new: str) -> ToolCall:
        change = f"@@\n-{old}\n+{new}\n"
        return ToolCall(name="apply_patch", given=f"*** Begin Patch\n*** Update File: {path}\n{change}*** End Patch\n")

    def shell(self, command: str) -> ToolCall:
        return ToolCall(name="exec_command", given={"cmd": command, "yield_time_ms": 60_000})


class Gemini(Program):
    """Gemini CLI."""

    name, package, version, command = "gemini", "@google/gemini-cli", "0.61.0", "gemini"

    def __init__(self, *, is_trusted: bool = True) -> None:
        self._is_trusted: Final = is_trusted

    @property
    def untrusted(self) -> "Gemini":
        return Gemini(is_trusted=False)

    def trust(self, place: Place, path: Path, environment: Mapping[str, str]) -> None:  # noqa: ARG002 - as the base has it
        rules = {str(place.project): "TRUST_FOLDER"}
        (place.home / ".gemini" / "trustedFolders.json").write_text(json.dumps(rules))

    def words(self, prompt: str, address: str, *, continuing: bool) -> list[str]:  # noqa: ARG002 - as the base has it
        last = ["--resume", "latest"] if continuing else []
        return ["--yolo", "--model", "gemini-2.5-pro", *last, "--prompt", prompt]

    def prepare(self, place: Place) -> dict[str, str]:
        folder = place.home / ".gemini"
        folder.mkdir(exist_ok=True)
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False},
            "telemetry": {"enabled": False},
        }
        (folder / "settings.json").write_text(json.dumps(settings))
        return {
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": place.address,
            **({"GEMINI_CLI_TRUST_WORKSPACE": "true"} if self._is_trusted else {}),
        }

    def write(self, path: Path, content: str) -> ToolCall:
        return ToolCall(name="write_file", given={"file_path": str(path), "content": content})

    def edit(self, path: Path, old: str, new: str) -> ToolCall:
        given = {"file_path": str(path), "old_string": old, "new_string": new, "instruction": "change it"}
        return ToolCall(name="replace", given=given)

    def shell(self, command: str) -> ToolCall:
        return ToolCall(name="run_shell_command", given={"command": command, "description": "work"})


class Copilot(Program):
    """Copilot's own program, which runs the hooks that `cas setup vscode` installs."""

    name, package, version, command = "vscode", "@github/copilot", "1.0.102", "copilot"

    def __init__(self, *, is_trusted: bool = True) -> None:
        self._is_trusted: Final = is_trusted

    @property
    def untrusted(self) -> "Copilot":
        return Copilot(is_trusted=False)

    def trust(self, place: Place, path: Path, environment: Mapping[str, str]) -> None:  # noqa: ARG002 - as the base has it
        (place.home / ".copilot" / "config.json").write_text(json.dumps({"trustedFolders": [str(place.project)]}))

    def words(self, prompt: str, address: str, *, continuing: bool) -> list[str]:  # noqa: ARG002 - as the base has it
        words = ["--prompt", prompt, "--allow-all-tools", "--allow-all-paths"]
        return ["--continue", *words] if continuing else words

    def prepare(self, place: Place) -> dict[str, str]:
        folder = place.home / ".copilot"
        folder.mkdir(exist_ok=True)
        servers = place.project / ".vscode" / "mcp.json"
        if servers.exists():  # it doesn't read the servers of VS Code's settings
            ours = json.loads(servers.read_text())["servers"]["editledger"]
            entry = ours | {"type": "local", "args": ["."], "tools": ["*"]}
            (folder / "mcp-config.json").write_text(json.dumps({"mcpServers": {"editledger": entry}}))
        if self._is_trusted and not (folder / "config.json").exists():
            self.trust(place, folder, {})
        return {
            "COPILOT_PROVIDER_BASE_URL": place.address,
            "COPILOT_MODEL": "gpt-4.1",
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        }

    def write(self, path: Path, content: str) -> ToolCall:
        return ToolCall(name="create", given={"path": str(path), "file_text": content})

    def edit(self, path: Path, old: str, new: str) -> ToolCall:
        return ToolCall(name="edit", given={"path": str(path), "old_str": old, "new_str": new})

    def shell(self, command: str) -> ToolCall:
        given: dict[str, Any] = {"command": command, "description": "work", "mode": "sync", "initial_wait": 60}
        return ToolCall(name="bash", given=given)


PROGRAMS: Final[Mapping[str, Program]] = {
    program.command: program for program in (OpenCode(), ClaudeCode(), Codex(), Gemini(), Copilot())
}
"""The clients, by their commands."""


def cache_folder() -> Path:
    """Return the folder into which programs are installed."""
    named = os.environ.get("CAS_CLIENTS")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "editledger" / "clients"


def installed(program: Program) -> Path:
    """Return the path of a program, which is installed first if it is missing. Raises CannotRun."""
    folder = cache_folder() / f"{program.command}-{program.version}"
    path = folder / "node_modules" / ".bin" / program.command
    npm = shutil.which("npm")
    if not path.exists():
        if npm is None:
            raise CannotRun("npm is not installed")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}\n')
        words = [npm, "install", "--no-audit", "--no-fund", f"{program.package}@{program.version}"]
        ran = subprocess.run(words, cwd=folder, capture_output=True, timeout=PATIENCE, check=False)
        if ran.returncode or not path.exists():
            lines = ran.stderr.decode(errors="replace").strip().splitlines()
            raise CannotRun(f"npm could not install {program.package}: {lines[0] if lines else ran.returncode}")
    return path
