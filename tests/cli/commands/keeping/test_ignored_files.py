"""What git ignores is not recorded unless a tool names it; tested with real repositories."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.command_runner import CommandRunner
from tests.support.hooked_agents import ClaudeCode, shell


def git(folder: Path, *words: str) -> None:
    """Run git without the settings of whoever runs the tests."""
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    author = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", "-C", str(folder), *author, *words], check=True, capture_output=True, env=os.environ | own)


def put(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


@pytest.fixture
def project(runner: CommandRunner) -> CommandRunner:
    """Return a git project with a program, whose objects git ignores, and the baseline taken."""
    git(runner.folder, "init", "-q")
    put(runner.folder, {".gitignore": "*.o\n/build/\n", "main.c": "int main;\n", "sub/x.c": "int x;\n"})
    git(runner.folder, "add", "-A")
    git(runner.folder, "commit", "-qm", "first")
    runner.done("record")
    return runner


def recorded(runner: CommandRunner, *words: str) -> list[str]:
    """Record once; return the operation and path of each edit."""
    edits = runner.done("record", *words, "--json").json()["edits"]
    return sorted(f"{edit['operation']} {Path(edit['file_path']).relative_to(runner.folder)}" for edit in edits)


def stored(runner: CommandRunner, text: bytes) -> bool:
    """Return whether the store has a blob with this content."""
    (runner.folder / ".cas" / "tmp" / "probe").write_bytes(text)
    name = runner.done("hash", ".cas/tmp/probe").text.split()[0]
    return runner.cas("cat", name).status == 0


def test_a_build_that_writes_only_ignored_files_yields_no_edit(project: CommandRunner) -> None:
    agent = ClaudeCode(project.folder)
    agent.ask("build it")
    agent.run(
        "mkdir build; for n in $(seq 20); do echo $n > sub/$n.o; echo $n > build/$n; done; echo 1 > a.o; echo 2 > b.o"
    )
    assert project.done("log", "--json").lines() == []
    assert project.done("status", "--json").json()["pending"] == 0
    agent.run("for n in $(seq 20); do echo again $n > sub/$n.o; done; rm build/1; echo 'int y;' > sub/y.c")
    (edit,) = project.done("log", "--json").lines()
    assert (Path(edit["file_path"]).name, edit["status"]) == ("y.c", "pending")
    assert not stored(project, b"again 7\n")


def test_an_ignored_file_that_a_tool_names_is_recorded_and_can_be_undone(project: CommandRunner) -> None:
    put(project.folder, {"build/config": "before\n"})
    agent = ClaudeCode(project.folder)
    agent.ask("configure it")
    agent.write("build/config", "after\n")
    project.write("build/log", b"by a tool of the server\n")
    edits = project.done("log", "--json").lines()
    assert [(Path(edit["file_path"]).name, edit["status"]) for edit in edits] == [
        ("log", "pending"),
        ("config", "pending"),
        ("config", "accepted"),  # what was there before
    ]
    project.done("reject", "--all")
    assert project.bytes("build/config") == b"before\n"
    assert not (project.folder / "build" / "log").exists()


def test_later_changes_of_such_a_file_are_not_recorded_and_not_overwritten(project: CommandRunner) -> None:
    (project.folder / "build").mkdir()
    agent = ClaudeCode(project.folder)
    agent.ask("configure it")
    agent.write("build/config", "one\n")
    agent.run("echo more >> build/config; echo other > build/other")
    assert len(project.done("log", "--json").lines()) == 1
    status = project.done("status")
    assert ("changed outside" in status.text, recorded(project)) == (False, [])
    refused = project.cas("reject", "1")
    assert refused.status == 1
    assert "build/config" in refused.text + refused.said
    assert project.bytes("build/config") == b"one\nmore\n"
    project.done("reject", "1", "--on-external", "discard")
    assert not (project.folder / "build" / "config").exists()
    assert project.bytes("build/other") == b"other\n"


def test_a_recorded_file_that_is_deleted_is_recorded_although_its_name_is_ignored(project: CommandRunner) -> None:
    project.write("sub/a.o", b"one\n")
    (project.folder / "sub/a.o").unlink()
    assert recorded(project) == ["delete sub/a.o"]


def test_every_ignore_file_of_git_counts(project: CommandRunner, tmp_path: Path) -> None:
    git(project.folder, "config", "core.excludesFile", str(tmp_path / "mine"))
    put(tmp_path, {"mine": "*.swp\n!kept.tmp\n"})
    put(
        project.folder,
        {
            ".git/info/exclude": "*.tmp\n!a.swp\n",
            "sub/.gitignore": "*.log\n!y.o\n/deep/*\n!/deep/in\n",
            "deep/.gitignore": "*\n!.gitignore\n!kept\n",
        },
    )
    names = ["a.o", "a.swp", "b.swp", "a.tmp", "kept.tmp", "a.log", "sub/a.log", "sub/y.o", "sub/a.swp", "sub/kept.tmp"]
    names += ["sub/deep/in", "sub/deep/out", "deep/kept", "deep/other", "deep/inner/kept"]
    put(project.folder, dict.fromkeys(names, "x\n"))
    asked = subprocess.run(
        ["git", "-C", str(project.folder), "ls-files", "-o", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
    )
    assert recorded(project) == sorted(f"create {path}" for path in asked.stdout.splitlines())


def test_a_change_of_what_git_ignores_is_noticed(project: CommandRunner, tmp_path: Path) -> None:
    put(project.folder, {"a.x": "1\n", "sub/a.x": "1\n"})
    assert recorded(project) == ["create a.x", "create sub/a.x"]
    put(project.folder, {"a.x": "2\n", "sub/a.x": "2\n", ".git/info/exclude": "*.x\n"})
    assert recorded(project) == []
    put(project.folder, {".git/info/exclude": "/*.x\n"})
    assert recorded(project) == ["edit sub/a.x"]
    put(tmp_path, {"mine": "a.x\n"})
    put(project.folder, {"sub/a.x": "3\n"})
    git(project.folder, "config", "core.excludesFile", str(tmp_path / "mine"))
    assert recorded(project) == []
    put(tmp_path, {"mine": "\n"})
    assert recorded(project) == ["edit sub/a.x"]


def test_a_file_in_the_index_is_recorded_whatever_patterns_say(project: CommandRunner) -> None:
    """As it is, as git notes it, and as git forgets it: each time nothing but the index changes."""
    put(project.folder, {"a.o": "1\n", "build/deep/keep": "1\n", "build/deep/other": "1\n", "build/other": "1\n"})
    assert recorded(project) == []
    git(project.folder, "add", "-f", "a.o", "build/deep/keep")
    assert recorded(project) == ["create a.o", "create build/deep/keep"]
    put(project.folder, {"a.o": "2\n", "build/deep/keep": "2\n", "build/deep/other": "2\n", "build/other": "2\n"})
    assert recorded(project) == ["edit a.o", "edit build/deep/keep"]
    put(project.folder, {"build/deep/keep": "3\n", "build/deep/new": "3\n"})
    assert recorded(project) == ["edit build/deep/keep"]
    git(project.folder, "rm", "-qf", "--cached", "a.o", "build/deep/keep")
    put(project.folder, {"a.o": "3\n", "build/deep/keep": "4\n"})
    assert recorded(project) == []
    assert not stored(project, b"4\n")


def test_tracked_files_are_in_the_baseline_and_in_snapshots(runner: CommandRunner) -> None:
    git(runner.folder, "init", "-q")
    put(runner.folder, {".gitignore": "*.o\n", "kept.o": "kept\n", "left.o": "left\n"})
    git(runner.folder, "add", "-f", "kept.o")
    runner.done("record")
    assert (stored(runner, b"kept\n"), stored(runner, b"left\n")) == (True, False)
    runner.done("snapshot")
    entries = {
        Path(each["path"]).name: each["kind"]
        for each in runner.done("snapshot", "show", "2", "--json").json()["entries"]
    }
    assert entries == {".gitignore": "file", "kept.o": "file", "left.o": "left-out"}


def test_a_workspace_inside_a_repository_heeds_the_ignore_files_above(tmp_path: Path) -> None:
    top = tmp_path / "top"
    put(top, {".gitignore": "*.o\n/libs/one/out/\n", "libs/.gitignore": "*.log\n", "libs/one/a.c": "a\n"})
    git(top, "init", "-q")
    put(top, {".git/info/exclude": "*.tmp\n", "libs/one/kept.o": "1\n"})
    git(top, "add", "-f", "libs/one/kept.o")
    runner = CommandRunner(top / "libs" / "one")
    runner.done("record")
    put(runner.folder, {"kept.o": "2\n", "b.o": "x\n", "b.log": "x\n", "b.tmp": "x\n", "out/x": "x\n", "b.c": "x\n"})
    assert recorded(runner) == ["create b.c", "edit kept.o"]
    put(top, {".gitignore": "*.c\n"})
    put(runner.folder, {"b.o": "y\n", "c.c": "y\n"})
    assert recorded(runner) == ["create b.o", "create out/x"]
    git(top, "add", "-f", "libs/one/c.c")
    put(runner.folder, {"b.o": "z\n", "c.c": "z\n"})
    assert recorded(runner) == ["create c.c", "edit b.o"]
    put(runner.folder, {"c.c": "zz\n"})
    assert recorded(runner) == ["edit c.c"]


def test_a_repository_inside_the_workspace_has_rules_and_an_index_of_its_own(
    project: CommandRunner, tmp_path: Path
) -> None:
    library = tmp_path / "library"
    put(library, {"lib.c": "lib\n", "kept.o": "1\n", ".gitignore": "*.log\n"})
    git(library, "init", "-q")
    git(library, "add", "-f", "lib.c", "kept.o", ".gitignore")
    git(library, "commit", "-qm", "first")
    git(project.folder, "submodule", "--quiet", "add", str(library), "vendor")
    git(project.folder, "clone", "-q", str(library), "clone")
    recorded(project)
    files = {"kept.o": "2\n", "new.o": "2\n", "a.log": "2\n", "lib.c": "2\n"}
    for folder in ("vendor", "clone"):
        put(project.folder / folder, files)
    expected = [
        f"{operation} {folder}/{name}"
        for folder in ("clone", "vendor")
        for operation, name in (("create", "new.o"), ("edit", "kept.o"), ("edit", "lib.c"))
    ]
    assert recorded(project) == sorted(expected)
    put(project.folder, {"clone/.git/info/exclude": "new.*\n", "clone/new.o": "3\n", "vendor/new.o": "3\n"})
    assert recorded(project) == ["edit vendor/new.o"]
    git(project.folder / "clone", "add", "-f", "new.o")
    put(project.folder, {"clone/new.o": "4\n"})
    assert recorded(project) == ["edit clone/new.o"]


def test_a_folder_without_git_heeds_its_ignore_files_too(runner: CommandRunner) -> None:
    put(runner.folder, {".gitignore": "*.o\n", "a.c": "1\n"})
    runner.done("record")
    put(runner.folder, {"a.o": "1\n", "a.c": "2\n"})
    assert recorded(runner) == ["edit a.c"]


def test_a_setting_records_what_git_ignores(project: CommandRunner) -> None:
    put(project.folder, {"a.o": "1\n", "build/x": "1\n"})
    recorded(project)
    project.done("config", "set", "record.ignored", "on")
    recorded(project)
    put(project.folder, {"a.o": "2\n", "build/x": "2\n"})
    assert recorded(project) == ["edit a.o", "edit build/x"]
    project.done("config", "unset", "record.ignored")
    put(project.folder, {"a.o": "3\n", "build/x": "3\n"})
    assert recorded(project) == []


def test_our_own_ignore_file_can_include_what_git_ignores(project: CommandRunner) -> None:
    put(project.folder, {".casignore": "!/build/\n!a.o\n"})
    recorded(project)
    put(project.folder, {"a.o": "1\n", "b.o": "1\n", "build/x": "1\n", "build/b.o": "1\n"})
    assert recorded(project) == ["create a.o", "create build/x"]


def test_a_named_folder_is_recorded_although_git_ignores_it(project: CommandRunner) -> None:
    put(project.folder, {"build/x": "1\n", "build/x.o": "1\n"})
    recorded(project, "build")
    put(project.folder, {"build/x": "2\n", "build/x.o": "2\n"})
    assert recorded(project) == []
    assert recorded(project, "build") == ["edit build/x"]


def test_a_restore_leaves_what_git_ignores(project: CommandRunner) -> None:
    put(project.folder, {"a.o": "before\n", "build/x": "before\n"})
    project.done("snapshot")
    put(
        project.folder,
        {"a.o": "after\n", "b.o": "new\n", "build/x": "after\n", "build/y": "new\n", "main.c": "changed\n"},
    )
    project.done("snapshot", "restore", "2")
    left = {path: project.bytes(path) for path in ("a.o", "b.o", "build/x", "build/y", "main.c")}
    assert left == {
        "a.o": b"after\n",
        "b.o": b"new\n",
        "build/x": b"after\n",
        "build/y": b"new\n",
        "main.c": b"int main;\n",
    }


def test_a_restore_leaves_files_that_git_ignores_since(project: CommandRunner) -> None:
    put(project.folder, {"notes/a": "1\n", "notes/b": "1\n"})
    project.done("snapshot")
    put(project.folder, {".gitignore": "notes/\n", "notes/a": "2\n", "notes/c": "2\n"})
    (project.folder / "notes/b").unlink()
    ran = project.done("snapshot", "restore", "2", "notes")
    assert "Left alone notes" in ran.text
    assert (project.bytes("notes/a"), project.bytes("notes/c")) == (b"2\n", b"2\n")


def test_the_index_of_a_repository_that_is_removed_no_longer_counts(project: CommandRunner) -> None:
    put(project.folder, {"a.o": "1\n"})
    git(project.folder, "add", "-f", "a.o")
    recorded(project)
    shell("rm -rf .git", folder=project.folder)
    put(project.folder, {"a.o": "2\n", "main.c": "2\n"})
    assert recorded(project) == ["edit main.c"]
