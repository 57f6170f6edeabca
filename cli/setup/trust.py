"""Find clients that don't load our hooks because the user has not trusted the folder or the hooks yet.

Facts from the clients' own programs, tried with them (`make clients`): in a folder without trust, Gemini CLI and Codex
ignore the project's settings, and Copilot's program ignores its hooks. Codex also ignores each hook whose present text
was not trusted. Trust is the user's to give, so it is only looked for here.
"""

import hashlib
import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cli.setup.hook_lists import is_ours
from cli.setup.jsonc_edit import loaded
from cli.setup.plans import Scope
from cli.setup.settings_files import text_of

__all__ = ["MissingTrust", "missing_trust"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingTrust:
    """A part of the setup that a client doesn't load, and how the user can trust it."""

    what: str
    way: str

    def __str__(self) -> str:
        return f"{self.what}; {self.way}"


def missing_trust(client: str, scope: Scope, root: Path | None) -> MissingTrust | None:
    """Return what is missing before a client loads our setup; None: nothing is known to.

    `scope`: for whom it is set up. `root`: the project in which it is to work; None: any.
    """
    look = _LOOKS.get(client)
    return None if look is None else look(scope, root)


# ---- Gemini CLI

_FORCED: Final = "GEMINI_CLI_TRUST_WORKSPACE"
_LEVELS: Final = frozenset({"TRUST_FOLDER", "TRUST_PARENT", "DO_NOT_TRUST"})


def _gemini(scope: Scope, root: Path | None) -> MissingTrust | None:
    if root is None or os.environ.get(_FORCED) == "true":
        return None
    folder = _of_user(scope).folder("gemini")
    named = os.environ.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH")
    is_checked = _value(_json(folder / "settings.json"), "security", "folderTrust", "enabled") is not False
    if not is_checked or _trusts(_json(Path(named) if named else folder / "trustedFolders.json"), root):
        return None
    return MissingTrust(
        what=f"Gemini CLI does not trust {root}, and loads neither our hooks nor our server there",
        way=f"start `gemini` there and trust the folder, or set {_FORCED}=true where it can't ask",
    )


def _trusts(rules: object, root: Path) -> bool:
    """Return whether the longest rule about a folder trusts it."""
    if not isinstance(rules, Mapping):
        return False
    found = [
        (len(path), level)
        for path, level in rules.items()
        if isinstance(level, str)
        and level in _LEVELS
        and _is_below(root, Path(path).parent if level == "TRUST_PARENT" else Path(path))
    ]
    return bool(found) and max(found)[1] != "DO_NOT_TRUST"


# ---- Codex

_EVENTS: Final[Mapping[str, str]] = {
    "PreToolUse": "pre_tool_use",
    "PostToolUse": "post_tool_use",
    "PermissionRequest": "permission_request",
    "UserPromptSubmit": "user_prompt_submit",
    "SessionStart": "session_start",
    "SessionEnd": "session_end",
    "Stop": "stop",
    "SubagentStart": "subagent_start",
    "SubagentStop": "subagent_stop",
    "Interrupt": "interrupt",
}
"""Codex's names of events in its list of trusted hooks."""


def _codex(scope: Scope, _: Path | None) -> MissingTrust | None:
    said = _toml(_of_user(scope).folder("codex") / "config.toml")
    project = scope.project
    if project is not None and not _is_trusted_project(_value(said, "projects"), project):
        return MissingTrust(
            what=f"Codex does not trust {project}, and loads neither our hooks nor our server there",
            way="start `codex` there and trust the folder, then type /hooks in it and trust our hooks",
        )
    trusted = _value(said, "hooks", "state")
    hooks = list(_our_hooks(scope.folder("codex") / "hooks.json"))
    new = [event for event, key, text in hooks if _value(trusted, key, "trusted_hash") != text]
    if not new:
        return None
    which = "our hooks" if len(new) == len(hooks) else f"our hooks of {', '.join(new)}"
    return MissingTrust(
        what=f"Codex does not trust {which} as they are now, and doesn't run them",
        way="type /hooks in Codex and trust them",
    )


def _is_trusted_project(projects: object, root: Path) -> bool:
    """Return whether the project, or the git repository around it, is trusted."""
    for folder in (root, *_repositories_around(root)):
        level = _value(projects, str(folder), "trust_level") or _value(
            projects, os.path.realpath(folder), "trust_level"
        )
        if level is not None:
            return bool(level == "trusted")
    return False


def _repositories_around(root: Path) -> Iterator[Path]:
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            yield folder
            return


def _our_hooks(file: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the event of each of our hooks in a file, the key of its trust, and the hash that Codex compares."""
    events = _value(_json(file), "hooks")
    ours = is_ours("codex", "cas")
    for event, groups in events.items() if isinstance(events, Mapping) else ():
        for at, group in enumerate(groups if isinstance(groups, list) else ()):
            hooks = _value(group, "hooks")
            for within, hook in enumerate(hooks if isinstance(hooks, list) else ()):
                if event in _EVENTS and ours(hook):
                    key = f"{os.path.realpath(file)}:{_EVENTS[event]}:{at}:{within}"
                    yield event, key, _hash(_EVENTS[event], _value(group, "matcher"), hook)


def _hash(event: str, matcher: object, hook: Mapping[str, object]) -> str:
    kept = {name: hook[name] for name in ("type", "command", "timeout", "statusMessage") if name in hook}
    hooks = [{"async": False, **kept}]
    said = {"event_name": event, "hooks": hooks, **({} if matcher is None else {"matcher": matcher})}
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


# ---- Copilot's program


def _copilot(scope: Scope, root: Path | None) -> MissingTrust | None:
    folder = Path(os.environ.get("COPILOT_HOME") or scope.home / ".copilot")
    # The program writes this file at its first start. Who has only the editor is asked by that.
    if scope.project is None or root is None or not (folder / "config.json").exists():
        return None
    for name in ("config.json", "settings.json"):
        said = _json(folder / name)
        for key in ("trustedFolders", "trusted_folders"):
            listed = _value(said, key)
            paths = [Path(path) for path in listed if isinstance(path, str)] if isinstance(listed, list) else []
            if any(_is_below(root, path) for path in paths):
                return None
    return MissingTrust(
        what=f"Copilot's program does not trust {root}, and runs no hooks there",
        way="start `copilot` there and trust the folder for future sessions, or pass --trust-folder with --prompt",
    )


_LOOKS: Final[Mapping[str, Callable[[Scope, Path | None], MissingTrust | None]]] = {
    "gemini": _gemini,
    "codex": _codex,
    "vscode": _copilot,
}


def _of_user(scope: Scope) -> Scope:
    return Scope(project=None, home=scope.home, platform=scope.platform)


def _is_below(path: Path, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _json(path: Path) -> object:
    """Return the content of a file; one that is missing or can't be read counts as empty."""
    try:
        return loaded((text_of(path) or "").removeprefix("\ufeff"))
    except (OSError, ValueError):
        return None


def _toml(path: Path) -> object:
    try:
        return tomllib.loads(text_of(path) or "")
    except (OSError, ValueError):
        return None


def _value(said: Any, *names: str) -> Any:  # noqa: ANN401 - whatever a settings file holds
    for name in names:
        said = said.get(name) if isinstance(said, Mapping) else None
    return said
