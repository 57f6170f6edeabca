"""Completion in the shells installed on this machine."""

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.shell.main import EXIT_USAGE
from tests.support.command_runner import LOGIN, PATIENCE, CommandResult, CommandRunner, cas, environment
from tests.support.fork_server import forked_program

SHELLS = [shell for shell in ("bash", "zsh", "fish") if shutil.which(shell)]

BASH_SCRIPT = """
source <(cas completion bash)
COMP_LINE={line}
COMP_POINT=${{#COMP_LINE}}
_cas_completion cas 2>/dev/null
printf '%s\\n' "${{COMPREPLY[@]}}"
"""

ZSH_SCRIPT = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PS1="READY> "; autoload -Uz compinit; compinit -u -D; source <(cas completion zsh); LISTMAX=1000'
zpty -w shell 'bindkey "^I" complete-word; setopt AUTO_LIST LIST_PACKED; zstyle ":completion:*" list-separator "--"'
zpty -w shell 'echo set"tled"'
zpty -r shell shown '*settled*'
zpty -w -n shell {line}$'\\t\\t'
sleep 0.4
zpty -w -n shell $'\\C-a\\C-kecho do"ne"\\n'
zpty -r shell shown '*done*'
print -r -- "$shown"
zpty -d shell
"""


@pytest.fixture
def program(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a shell that finds `cas` on PATH."""
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "cas"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(forked_program("cli").command)} "$@"\n')
    script.chmod(0o755)
    settings = environment({"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)})
    return settings | {"PATH": f"{script.parent}:{settings['PATH']}"}


def completed(shell: str, line: str, runner: CommandRunner, settings: dict[str, str]) -> str:
    """Return what the shell shows when the tab key is pressed after `line`."""
    script = {
        "bash": BASH_SCRIPT.format(line=shlex.quote(line)),
        "zsh": ZSH_SCRIPT.format(line=shlex.quote(line)),
        "fish": f"cas completion fish | source; complete -C {shlex.quote(line)}",
    }[shell]
    options = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    ran = subprocess.run(
        [shell, *options, "-c", script],
        cwd=runner.folder,
        env=settings,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    return ran.stdout.decode()


@pytest.fixture
def history(runner: CommandRunner) -> CommandRunner:
    """Return a workspace with two edits of two files in two conversations."""
    runner.write("src/first.py", b"1\n2\n3\n", conversation="conv_hello")
    runner.write("second.py", b"1\n", conversation="conv_polish")
    return runner


@pytest.mark.parametrize("command", ["cat", "log", "show", "pin add"])
def test_a_name_that_begins_with_a_dash_is_offered_in_a_form_that_works(runner: CommandRunner, command: str) -> None:
    runner.write("-x", b"1\n", conversation="-s4")
    takes_paths = command != "show"
    for before in ("", "-- "):
        offered = candidates(runner, f"cas {command} {before}")
        assert ("./-x" in offered) is takes_paths
        assert not [name for name in offered if name.startswith("-")]
    assert ("-x" if takes_paths else "-s4") in candidates(runner, f"cas {command} -- -")
    assert "--json" not in candidates(runner, f"cas {command} -- -")
    assert "-s4" in candidates(runner, "cas log --conversation ")
    if takes_paths:
        assert cas(*command.split(), "./-x", folder=runner.folder).status != EXIT_USAGE


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_edits_conversations_files_commands_and_options(
    history: CommandRunner, program: dict[str, str], shell: str
) -> None:
    shown = completed(shell, "cas show ", history, program)
    assert all(name in shown for name in ("conv_hello", "conv_polish", "1", "2"))
    assert "conv_polish" in completed(shell, "cas log --conversation conv_p", history, program)
    assert "second.py" in completed(shell, "cas blame sec", history, program)
    assert "salvage" in completed(shell, "cas sal", history, program)
    assert "--reverse" in completed(shell, "cas log --rev", history, program)


COMPLETED_WORDS = {
    "cas statu": ["status"],
    "cas -C sr": ["-C", "src/"],
    "cas hash src/a": ["hash", "src/at@sign.txt"],
    "cas cat m": ["cat", "my file.txt"],
    "cas cat my\\ f": ["cat", "my file.txt"],
    'cas cat "my f': ["cat", "my file.txt"],
    "cas cat 'my f": ["cat", "my file.txt"],
    "cas blame it": ["blame", "it's.txt"],
    "cas cat 'my ": ["cat", "my file.txt"],
    'cas log --file "my ': ["log", "--file", "my file.txt"],
    "cas cat do": ["cat", "do$llar.txt"],
    "cas log st": ["log", "star*.txt"],
    "cas cat src/at@s": ["cat", "src/at@sign.txt"],
    'cas cat "src/at@s': ["cat", "src/at@sign.txt"],
    'cas cat src/"at': ["cat", "src/at@sign.txt"],
    "cas cat src/c:o": ["cat", "src/c:o=lon.txt"],
    "cas log --file=src/c:o=": ["log", "--file=src/c:o=lon.txt"],
    "cas log --conversation conv_h": ["log", "--conversation", "conv_hello"],
    "cas accept --on-external=k": ["accept", "--on-external=keep"],
    "cas reject 1:": ["reject", "1:0"],
}
"""Lines typed before the tab key is pressed, with the arguments after completion."""


def test_at_a_terminal_bash_completes_quoted_words_and_words_with_separators(
    runner: CommandRunner, program: dict[str, str]
) -> None:
    names = ("my file.txt", "it's.txt", "do$llar.txt", "star*.txt", "src/at@sign.txt", "src/c:o=lon.txt")
    for name in names:
        runner.write(name, b"1\n", conversation="conv_hello")
    with at_terminal("bash", runner.folder, program) as complete:
        for line, arguments in COMPLETED_WORDS.items():
            assert complete(line) == ["cas", *arguments], line


HOSTILE_NAME = 'evil$(touch${IFS}pwned)`touch pwned`;touch pwned|it\'s "a" !! $HOME\\'
SPECIAL_NAMES = ("two words here", "two$words", "*", "~root", "{a,b}", "#no", "a'b", 'c"d', "e!f", "été (1)")


def test_at_a_terminal_bash_completes_any_conversation_name_to_one_word(
    runner: CommandRunner, program: dict[str, str]
) -> None:
    for number, name in enumerate((HOSTILE_NAME, *SPECIAL_NAMES)):
        runner.write(f"f{number}", b"1\n", conversation=name)
    with at_terminal("bash", runner.folder, program) as complete:
        for start in ("", "'", '"'):
            assert complete(f"cas log --conversation {start}evil") == ["cas", "log", "--conversation", HOSTILE_NAME]
            assert complete(f"cas log --conversation={start}evil") == ["cas", "log", f"--conversation={HOSTILE_NAME}"]
            assert complete(f"cas show {start}evil") == ["cas", "show", HOSTILE_NAME]
        for name in SPECIAL_NAMES:
            typed = "".join(f"\\{c}" if c in "*~{#'\"!$ " else c for c in name[:4])
            assert complete(f"cas log --conversation {typed}") == ["cas", "log", "--conversation", name]
    assert not (runner.folder / "pwned").exists()


def test_at_a_terminal_bash_quotes_a_common_prefix(runner: CommandRunner, program: dict[str, str]) -> None:
    for number, name in enumerate(("p$(touch pwned)1", "p$(touch pwned)2", "q r", "q$r", "$(touch pwned)f")):
        runner.write(f"f{number}" if number < 4 else name, b"1\n", conversation=name if number < 4 else "q$r")
    with at_terminal("bash", runner.folder, program) as complete:
        assert complete("cas log --conversation p") == ["cas", "log", "--conversation", "p$(touch pwned)"]
        # With a file among the candidates, bash itself quotes all of them, once.
        assert complete("cas pin add p") == ["cas", "pin", "add", "p$(touch pwned)"]
        assert complete("cas cat \\$\\(") == ["cas", "cat", "$(touch pwned)f"]
    assert candidates(runner, "cas log --conversation q\\", "bash") == ["q\\$r", "q\\ r"]
    assert candidates(runner, "cas log --conversation q\\ ", "bash") == ["q\\ r"]
    assert candidates(runner, "cas accept q\\\\ ") == candidates(runner, "cas accept ") != []
    assert not (runner.folder / "pwned").exists()


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shell != "bash"])
def test_at_a_terminal_zsh_and_fish_complete_any_name_to_one_word(
    runner: CommandRunner, program: dict[str, str], shell: str
) -> None:
    for number, name in enumerate((HOSTILE_NAME, *SPECIAL_NAMES)):
        runner.write(f"f{number} $(touch pwned)", b"1\n", conversation=name)
    with at_terminal(shell, runner.folder, program) as complete:
        for start in ("", "'", '"'):
            assert complete(f"cas log --conversation {start}evil") == ["cas", "log", "--conversation", HOSTILE_NAME]
            assert complete(f"cas show {start}evil") == ["cas", "show", HOSTILE_NAME]
        assert complete("cas log --conversation=evil") == ["cas", "log", f"--conversation={HOSTILE_NAME}"]
        assert complete("cas show 2") == ["cas", "show", "2"]  # with a description that names a file
        assert complete("cas cat f1\\ ") == ["cas", "cat", "f1 $(touch pwned)"]
        for name in SPECIAL_NAMES:
            typed = "".join(f"\\{c}" if c in "*~{#'\"!$ " else c for c in name[:4])
            # click's script for fish cuts words at a comma, so such a name is not offered there.
            expected = name[:4] if shell == "fish" and "," in name else name
            assert complete(f"cas log --conversation {typed}") == ["cas", "log", "--conversation", expected]
    assert not (runner.folder / "pwned").exists()


SHELL_STARTS = {
    "bash": (["--norc", "--noprofile", "-i"], "bind 'set enable-bracketed-paste off'; PS1="),
    "zsh": (["-f", "-i"], "PS1=; autoload -Uz compinit; compinit -u -D; bindkey -e"),
    "fish": (["--no-config", "-i"], "function fish_prompt; end"),
}
"""The options of a shell at a terminal, and its first command."""


@contextmanager
def at_terminal(shell: str, folder: Path, settings: dict[str, str]) -> Iterator[Callable[[str], list[str]]]:
    """Start a shell at a terminal; yield a function that types a line, presses tab and returns the line's words."""
    master, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (50, 2000))
    options, first = SHELL_STARTS[shell]
    load = "cas completion fish | source" if shell == "fish" else f"source <(cas completion {shell})"
    words = [sys.executable, "-P", "-c", LOGIN, shutil.which(shell) or "", *options]
    process = subprocess.Popen(
        words, cwd=folder, env=settings, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
    )
    os.close(terminal)

    def run(line: str, end: str) -> str:
        os.write(master, f"{line}\r".encode())
        shown = b""
        while f"{end}\r\n".encode() not in shown:
            assert select.select([master], [], [], PATIENCE)[0], shown
            shown += os.read(master, 65536)
        return shown.decode()

    def complete(line: str) -> list[str]:
        # Control keys move to both ends of the line, to enclose it in a `printf`.
        shown = run(f"{line}\t\x01printf '<%s>' \x05; echo e\"n\"d", "end")
        return re.findall("<([^<>]*)>", shown[: shown.rindex("end\r\n")].splitlines()[-1])

    try:
        run(f'{first}; {load}; echo set"tled"', "settled")
        yield complete
    finally:
        process.kill()
        process.wait(timeout=PATIENCE)
        os.close(master)


def run_completion(line: str, shell: str, folder: Path) -> CommandResult:
    """Run `cas` as a shell's completion script does when the tab key is pressed after `line`."""
    settings = {"_CAS_COMPLETE": f"{shell}_complete", "COMP_WORDS": line, "COMP_CWORD": line.rpartition(" ")[2]}
    if shell == "zsh":
        settings["COMP_CWORD"] = str(line.count(" "))
    return cas(folder=folder, settings=settings)


def candidates(runner: CommandRunner, line: str, shell: str = "fish", folder: Path | None = None) -> list[str]:
    """Return the candidates; files or folders that the shell itself should list are one entry, `<file>` or `<dir>`."""
    ran = run_completion(line, shell, folder or runner.folder)
    assert (ran.status, ran.said) == (0, "")
    rows = [row.partition(",") for row in ran.text.splitlines() if row]
    return [word.partition("\t")[0] if kind == "plain" else f"<{kind}>" for kind, _, word in rows]


def test_candidates_for_edits_conversations_and_files(history: CommandRunner) -> None:
    assert candidates(history, "cas accept ") == ["2", "1", "second.py", "src/"]
    assert candidates(history, "cas reject se") == ["second.py"]
    assert candidates(history, "cas reject 1:") == ["1:0"]
    assert candidates(history, "cas reject 1:", "bash") == ["0"]
    assert candidates(history, "cas log --conversation=conv_h") == ["--conversation=conv_hello"]
    assert candidates(history, "cas log --conversation=conv_h", "bash") == ["conv_hello"]
    assert candidates(history, "cas log --status=a") == ["--status=accepted", "--status=away"]
    for command in ("accept", "reject", "reset", "review", "status", "log", "record", "watch", "export --patch"):
        assert candidates(history, f"cas {command} --conv conv_h") == ["conv_hello"]
    assert candidates(history, "cas export --diffs hi") == ["<dir>"]
    assert candidates(history, "cas status --status p") == ["pending"]
    assert candidates(history, "cas status --file se") == ["second.py"]
    assert candidates(history, "cas log --status ") == ["pending", "accepted", "rejected", "away"]
    assert candidates(history, "cas cat ") == ["second.py", "src/"]
    assert candidates(history, "cas cat src/") == candidates(history, "cas cat sr") == ["src/first.py"]
    assert candidates(history, "cas cat ", folder=history.folder / "src") == ["first.py"]
    assert candidates(history, "cas cat ../s", folder=history.folder / "src") == ["../second.py", "../src/"]
    assert candidates(history, "cas cat ../../ws/s", folder=history.folder / "src") == [
        "../../ws/second.py",
        "../../ws/src/",
    ]
    assert candidates(history, f"cas cat {history.folder}/se") == [f"{history.folder}/second.py"]
    assert candidates(history, "cas -C src cat ") == ["first.py"]
    assert candidates(history, "cas --color never --debug accept ") == ["2", "1", "second.py", "src/"]
    assert candidates(history, "cas --color=never -C src cat ") == ["first.py"]
    assert candidates(history, "cas --color ne") == ["never"]
    assert candidates(history, "cas --color never log --color ne") == ["never"]
    assert "pin" in candidates(history, "cas ")
    assert candidates(history, "cas pin a") == ["add"]
    assert candidates(history, "cas pin add ") == candidates(history, "cas show ") + candidates(history, "cas cat ")


def test_candidates_for_clients_settings_tools_and_commands(history: CommandRunner) -> None:
    clients = candidates(history, "cas setup ")
    assert {"claude-code", "codex"} <= set(clients)
    assert candidates(history, "cas hook ") == candidates(history, "cas doctor ") == clients
    assert candidates(history, "cas setup co") == ["codex"]
    assert candidates(history, "cas setup codex ") == clients
    assert "--remove" in candidates(history, "cas setup codex -")
    assert candidates(history, "cas doctor codex cl") == ["claude-code", "cline"]
    assert candidates(history, "cas completion ") == ["bash", "zsh", "fish"]
    settings = candidates(history, "cas config get ")
    assert "gc.background" in settings
    assert candidates(history, "cas config set ") == candidates(history, "cas config unset ") == settings
    assert candidates(history, "cas config set gc.background ") == ["on", "off"]
    assert candidates(history, "cas config set --user retention.max_size u") == ["unlimited"]
    assert candidates(history, "cas config get gc.background ") == []
    assert candidates(history, "cas log --tool ") == ["write_file"]
    assert candidates(history, "cas log --tool=w") == ["--tool=write_file"]
    assert candidates(history, "cas log --since y") == ["yesterday"]
    assert candidates(history, "cas help snap") == ["snapshot"]
    assert candidates(history, "cas help snapshot d") == ["delete", "diff"]


def test_candidates_for_snapshots_and_pins_are_numbers(history: CommandRunner) -> None:
    history.done("snapshot", "-m", "before the move")
    history.done("snapshot", "create", "src")
    history.done("pin", "add", "1", "--title", "kept")
    assert candidates(history, "cas snapshot show ") == ["2", "1"]
    assert candidates(history, "cas snapshot diff 1 ") == ["2", "1"]
    assert candidates(history, "cas snapshot diff 1 2 sr") == ["src/first.py"]
    assert candidates(history, "cas snapshot delete 1 ") == ["2", "1"]
    assert candidates(history, "cas snapshot restore ") == ["2", "1"]
    assert candidates(history, "cas snapshot restore 1 sr") == ["src/first.py"]
    assert candidates(history, "cas pin remove ") == ["1"]
    assert run_completion("cas snapshot show ", "fish", history.folder).text == "plain,2\nplain,1\tbefore the move\n"


def test_folders_and_files_on_disk_are_left_to_the_shell(history: CommandRunner, tmp_path: Path) -> None:
    for line in (
        "-C ",
        "-C s",
        "export --patch -o ",
        "salvage .c",
        "import new.bundle o",
        "snapshot create s",
        "mcp s",
    ):
        assert candidates(history, f"cas {line}") == ["<dir>"]
    for line in ("import n", "hash se", "export --bundle n", "amend 1 --from n"):
        assert candidates(history, f"cas {line}") == ["<file>"]
    assert candidates(history, "cas -Csrc cat ") == ["first.py"]
    assert candidates(history, f"cas -C{history.folder} show conv_h", folder=tmp_path) == ["conv_hello"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_clients_settings_numbers_tools_and_folders(
    history: CommandRunner, program: dict[str, str], shell: str
) -> None:
    history.done("snapshot", "-m", "before")
    (history.folder / "other").mkdir()
    shown = {
        "cas setup cod": "codex",
        "cas completion ba": "bash",
        "cas config set gc.b": "gc.background",
        "cas config set gc.background of": "off",
        "cas snapshot show ": "1",
        "cas log --tool wr": "write_file",
        "cas -C ot": "other",
        f"cas -C{history.folder}/src cat fi": "first.py",
    }
    for line, expected in shown.items():
        if shell == "bash" and expected == "other":
            continue  # bash finds folders itself, and only at a terminal
        assert expected in completed(shell, line, history, program), line


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_without_candidates_prints_nothing(tmp_path: Path, shell: str) -> None:
    for line in ("cas show ", "cas 'unclosed", "cas config set no.setting ", "cas -C gone show "):
        ran = run_completion(line, shell, tmp_path)
        assert (ran.text.strip(), ran.said) == ("", "")
    ran = cas(folder=tmp_path, settings={"_CAS_COMPLETE": f"{shell}_complete"})
    assert (ran.status, ran.text.strip(), ran.said) == (0, "", "")


def test_a_name_that_cannot_be_typed_is_not_offered(runner: CommandRunner) -> None:
    runner.write("new\nline", b"1\n")
    runner.write("esc\x1b[31m", b"1\n")
    runner.write("plain", b"1\n")
    assert candidates(runner, "cas cat ") == candidates(runner, "cas cat ", "bash") == ["plain"]
    assert run_completion("cas cat ", "zsh", runner.folder).text == "plain\nplain\n_\n"
