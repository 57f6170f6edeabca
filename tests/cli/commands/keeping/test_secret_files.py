"""Files whose names look like secrets are taken by no scan; tested with a real repository."""

from pathlib import Path

import pytest

from tests.cli.commands.keeping.test_ignored_files import git, put, recorded, stored
from tests.support.command_runner import CommandRunner
from tests.support.hooked_agents import ClaudeCode

TEXT = "TOKEN=hunter2\n"
NAMES = [".env", "conf/.env.local", "conf/server.pem", "conf/id_ed25519", ".aws/credentials", "conf/Prod.ENV"]
OTHERS = [".env.example", "conf/id_map.py", "conf/id_rsa.pub", "conf/credentials.py", "conf/keys.md", ".npmrc"]


@pytest.fixture
def project(runner: CommandRunner) -> CommandRunner:
    """Return a git project whose secrets are partly committed, partly ignored, and partly neither."""
    git(runner.folder, "init", "-q")
    put(runner.folder, dict.fromkeys([*NAMES, *OTHERS], TEXT) | {".gitignore": ".env\n", "main.c": "int main;\n"})
    git(runner.folder, "add", "-f", "conf/.env.local", "main.c", ".gitignore")
    git(runner.folder, "commit", "-qm", "first")
    return runner


def test_no_scan_takes_a_file_that_looks_like_a_secret(project: CommandRunner) -> None:
    for path in OTHERS:
        (project.folder / path).write_text(f"no secret, {path}\n")
    agent = ClaudeCode(project.folder)
    agent.ask("go")
    agent.run("true")
    project.done("record")
    project.done("snapshot")
    for number, path in enumerate(NAMES):
        (project.folder / path).write_text(f"{number} {TEXT}")
    agent.run("cat .env > new.key; echo 1 >> main.c")
    project.done("snapshot")
    project.done("record")
    assert [Path(edit["file_path"]).name for edit in project.done("log", "--json").lines()] == ["main.c"]
    texts = [TEXT, *(f"{number} {TEXT}" for number in range(len(NAMES)))]
    assert not any(stored(project, text.encode()) for text in texts)
    held = {
        Path(entry["path"]).name
        for entry in project.done("snapshot", "show", "2", "--json").json()["entries"]
        if entry["kind"] == "file"
    }
    assert held == {*(Path(path).name for path in OTHERS), "main.c", ".gitignore"}


def test_status_counts_the_files_that_look_like_secrets_in_one_line(project: CommandRunner) -> None:
    project.done("record")
    (line,) = [line for line in project.done("status").text.splitlines() if "secret" in line]
    assert line == (
        "6 files are not recorded, because their names look like secrets: .aws, .env, conf/.env.local and 3 more "
        "(`cas config set record.secrets 'default !NAME'` allows one)"
    )
    found = project.done("status", "--json").json()["secrets"]
    assert found == {
        "not_recorded": [".aws", ".env", "conf/.env.local", "conf/Prod.ENV", "conf/id_ed25519", "conf/server.pem"],
        "stored": [],
    }
    for path in NAMES[1:4]:
        (project.folder / path).unlink()
    assert "3 files are not recorded" in project.done("status").text
    project.done("config", "set", "record.secrets", "none")
    assert "look like secrets" not in project.done("status").text


def test_the_setting_decides_what_looks_like_a_secret(project: CommandRunner) -> None:
    project.done("record")
    project.done("config", "set", "record.secrets", "default !.env.local /conf/keys.md !.aws/")
    project.cas("record")  # which says that it doesn't know what they held before
    put(project.folder, {"conf/.env.local": "1\n", "conf/keys.md": "1\n", "keys.md": "1\n", ".aws/config": "1\n"})
    put(project.folder, {".aws/credentials": "1\n"})
    assert recorded(project) == ["create .aws/config", "create keys.md", "edit conf/.env.local"]
    assert "conf/keys.md" in project.done("status", "--json").json()["secrets"]["stored"]
    project.done("config", "set", "record.exclude", "*.c /conf/")
    put(project.folder, {"main.c": "2\n", "conf/id_map.py": "2\n", "b.py": "2\n"})
    assert recorded(project) == ["create b.py"]


def test_a_secret_that_a_tool_names_is_recorded_and_status_says_that_it_is_stored(project: CommandRunner) -> None:
    project.done("record")
    agent = ClaudeCode(project.folder)
    agent.ask("rotate it")
    agent.write(".env", "TOKEN=other\n")
    found = project.done("status")
    said = "stored although the name looks like a secret: .env (`cas purge .env` removes the bytes)"
    assert said in found.text.splitlines()
    project.done("reject", "1")
    assert project.bytes(".env") == TEXT.encode()
    project.write("conf/server.pem", b"by our tool\n")
    assert project.done("status", "--json").json()["secrets"]["stored"] == [".env", "conf/server.pem"]
    assert "5 files" not in project.done("status").text
    # Later changes are not recorded.
    put(project.folder, {".env": "TOKEN=third\n", "conf/server.pem": "third\n"})
    agent.run("true")
    assert recorded(project) == []
    assert "changed outside" not in project.done("status").text
    assert not stored(project, b"TOKEN=third\n")


def test_a_secret_that_was_recorded_before_it_looked_like_one_is_said_to_be_stored(project: CommandRunner) -> None:
    project.done("config", "set", "record.secrets", "none")
    project.done("record")
    project.done("config", "unset", "record.secrets")
    put(project.folder, {"main.c": "2\n"})
    project.done("record")
    found = project.done("status", "--json").json()["secrets"]
    assert set(found["stored"]) == {
        "conf/.env.local",
        "conf/server.pem",
        "conf/id_ed25519",
        "conf/Prod.ENV",
        ".aws",
    }


def test_a_restore_leaves_secrets_that_it_did_not_take(project: CommandRunner) -> None:
    project.done("snapshot")
    put(
        project.folder,
        {".env": "new\n", "conf/other.key": "new\n", "new/.env": "new\n", "main.c": "2\n", "new/x": "1\n"},
    )
    project.done("snapshot", "restore", "1")
    assert {path: (project.folder / path).exists() for path in (".env", "conf/other.key", "new/.env", "new/x")} == {
        ".env": True,
        "conf/other.key": True,
        "new/.env": True,
        "new/x": False,
    }
    assert project.bytes(".env") == b"new\n"
    assert project.bytes("main.c") == b"int main;\n"


def test_a_named_folder_has_secrets_that_are_not_taken_either(project: CommandRunner) -> None:
    project.done("record")
    put(project.folder, {".aws/credentials": "2\n", ".aws/config": "2\n", "conf/server.pem": "2\n"})
    assert recorded(project, "conf") == []
    assert not stored(project, b"2\n")
