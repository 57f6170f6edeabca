"""What docs/uninstall.md says removes everything: its commands are run after all that can be set up was."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.cli.setup.test_setup_command import run
from tests.support.command_runner import SOURCE, environment
from tests.support.git_repository import git, new_repository
from tests.support.hooked_agents import ClaudeCode

PAGE = Path(SOURCE) / "docs/uninstall.md"


def everything_in(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a folder, but for git's own index and logs."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    own = re.compile(r"\.git/(?!info/)")
    named = {path.relative_to(folder).as_posix(): path for path in found}
    return {name: path.read_bytes() for name, path in named.items() if not own.match(name)}


def test_the_commands_of_the_page_remove_all_that_was_written(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "settings.json").write_text('{"model": "opus"}\n')
    project = new_repository(tmp_path / "repository")
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").write_text('{"permissions": {}}\n')
    (project / "a.txt").write_text("1\n")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "begin")
    before, home_before = everything_in(project), everything_in(home)

    state = {"XDG_STATE_HOME": str(home / ".local/state")}
    assert run(project, home, "setup", "claude-code", "--server", **state).status == 0
    assert run(project, home, "setup", "codex", "--local", "--server", **state).status == 0
    assert run(project, home, "setup", "claude-code", "--user", "--server", **state).status == 0
    agent = ClaudeCode(project)
    agent.write("a.txt", "2\n")
    (home / ".config/editledger").mkdir(parents=True, exist_ok=True)
    (home / ".config/editledger/config.toml").write_text("")
    (home / ".local/state/editledger/workspaces").mkdir(parents=True, exist_ok=True)
    assert everything_in(project).keys() > before.keys()
    assert everything_in(project)[".git/info/exclude"] != before[".git/info/exclude"]
    (project / "a.txt").write_text("1\n")

    [script] = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    program = tmp_path / "bin" / "cas"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m cli "$@"\n')
    program.chmod(0o755)
    settings = state | {"HOME": str(home), "PATH": f"{program.parent}:{os.environ['PATH']}"}
    around = environment(settings)
    del around["XDG_CONFIG_HOME"]
    ran = subprocess.run(
        ["/bin/sh", "-ec", script], cwd=project, env=around, capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ".before-editledger" not in ran.stdout.splitlines()[-1]
    assert everything_in(project) == before
    assert everything_in(home) == home_before
    assert not (project / ".cas").exists()
    assert not (home / ".local/state/editledger").exists()
