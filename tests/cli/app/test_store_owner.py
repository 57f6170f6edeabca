"""A store of another user is opened only where that was allowed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_runner import CommandRunner

OTHER_USER = 65_534

pytestmark = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")


def change_owner(folder: Path, owner: int) -> None:
    """Change the owner of a folder and everything in it."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner, owner, follow_symlinks=False)


def cas(*words: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    command = [sys.executable, "-P", "-m", "cli", *words]
    return subprocess.run(command, cwd=folder, env=variables | environment, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("words", [("status",), ("log",), ("fsck",), ("config",), ("reject", "1")])
def test_a_store_of_another_user_is_not_opened(runner: CommandRunner, words: tuple[str, ...]) -> None:
    runner.write("a", b"one\n")
    change_owner(runner.folder, OTHER_USER)
    before = (runner.folder / "a").read_bytes()
    ran = cas(*words, folder=runner.folder)
    assert ran.returncode != 0
    assert f"belongs to another user (uid {OTHER_USER})" in ran.stderr
    assert (runner.folder / "a").read_bytes() == before


def test_a_store_of_another_user_is_opened_if_the_variable_or_the_users_list_names_it(
    runner: CommandRunner, tmp_path: Path
) -> None:
    runner.write("a", b"one\n")
    change_owner(runner.folder, OTHER_USER)
    allowed = str(runner.folder)
    assert cas("log", folder=runner.folder, CAS_SAFE_DIRECTORY=f"/elsewhere:{allowed}").returncode == 0
    assert cas("log", folder=runner.folder, CAS_SAFE_DIRECTORY="*").returncode == 0
    assert cas("log", folder=runner.folder, CAS_SAFE_DIRECTORY="/elsewhere").returncode != 0
    own = tmp_path / "own" / "editledger"
    own.mkdir(parents=True)
    (own / "safe-directories").write_text(f"/elsewhere\n{allowed}\n")
    assert cas("log", folder=runner.folder, XDG_CONFIG_HOME=str(own.parent)).returncode == 0


def test_a_store_cannot_allow_itself(runner: CommandRunner) -> None:
    runner.write("a", b"one\n")
    (runner.folder / ".cas" / "safe-directories").write_text("*\n")
    (runner.folder / ".cas" / "config.toml").write_text('[safe]\ndirectory = "*"\n')
    change_owner(runner.folder, OTHER_USER)
    assert cas("log", folder=runner.folder).returncode != 0


def test_root_by_sudo_may_open_only_stores_of_the_calling_user(runner: CommandRunner) -> None:
    runner.write("a", b"one\n")
    change_owner(runner.folder, OTHER_USER)
    assert cas("log", folder=runner.folder, SUDO_UID=str(OTHER_USER)).returncode == 0
    assert cas("log", folder=runner.folder, SUDO_UID="1234").returncode != 0
