"""The demonstration: an agent edits real source in three turns, a person reviews the result with `cas`.

Everything is real: the files are a copy of a package from Python's standard library, the agent's tools report to
`cas hook` as Claude Code does, and every step of the review is the `cas` command, run as a process of its own. Where
git is installed, the copy is a repository. After each step the files are compared with what they must hold; the first
difference ends the demonstration with status 1.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click

__all__ = ["DECODER", "ENCODER", "SCANNER", "TOOL", "Differs", "Stage", "run"]

PACKAGE: Final = "json"
"""The package of the standard library that is copied: it exists in every supported version."""

DECODER: Final = "json/decoder.py"
ENCODER: Final = "json/encoder.py"
SCANNER: Final = "json/scanner.py"
TOOL: Final = "json/tool.py"

WORKS: Final = f"echo '[1]' | PYTHONPATH=. {sys.executable} -S -m json.tool"
"""A command that succeeds if the copied package's own command line works."""

WHY: Final = "Callers catch ValueError already."
HERS: Final = "There will be no other formats."
QUESTION: Final = "Say which errors end the program."


class Differs(Exception):
    """Raised when a result differs from the expected one."""


def run() -> int:
    """Run the demonstration in a temporary folder; return its exit status."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cas-demo-") as folder:
        try:
            _story(Stage(Path(os.path.realpath(folder)) / "project"))
        except Differs as difference:
            click.secho(f"\nDIFFERS: {difference}", fg="red", err=True)
            return 1
    click.echo(f"\nThat took {time.monotonic() - began:.1f} s. To begin in your own project: cas setup claude-code")
    return 0


def _story(stage: "Stage") -> None:
    stage.set_up()
    stage.turn("Explain what the decoder and the scanner raise.")
    stage.agent_inserts(
        DECODER, "class JSONDecodeError", "# Raised for malformed documents: msg, doc and pos say where."
    )
    stage.agent_inserts(SCANNER, "def py_make_scanner", "# The scanner raises StopIteration at the end of a document.")
    stage.stop()
    stage.turn("Now give the decoder an error class of its own.")
    before = stage.text(DECODER), stage.text(ENCODER)
    stage.agent_inserts(DECODER, "class JSONDecoder", "class DecoderError(ValueError):\n    pass\n\n")
    stage.agent_inserts(ENCODER, "class JSONEncoder", "class EncoderError(ValueError):\n    pass\n\n")
    stage.stop()
    stage.turn("And explain the command line.")
    stage.agent_inserts(
        TOOL, "def main", "# Reads a file or standard input, and writes the document in a readable form."
    )
    stage.stop()

    stage.say("You come back, and look at what the agent changed: three prompts, four files.")
    stage.cas()
    stage.cas("diff")
    stage.say("The error classes are not what you want. You take out the second turn alone, and say why.")
    stage.cas("reject", "--turn", "2", "-m", WHY)
    stage.must((stage.text(DECODER), stage.text(ENCODER)) == before, "the second turn is not out of the files")
    line = 1 + stage.text(TOOL).splitlines().index(
        "# Reads a file or standard input, and writes the document in a readable form."
    )
    stage.say("About the third turn you have a question.")
    stage.cas("comment", f"{TOOL}:{line}", "-m", QUESTION)
    stage.say("With your next prompt, the agent gets both, once.")
    received = stage.turn("Go on.")
    stage.must(WHY in received and QUESTION in received, "the agent did not get the reason and the question")
    click.echo(_indented(received))
    stage.stop()
    if stage.has_git:
        _branch_and_back(stage)
    _break_and_find(stage)
    if find_spec("obstore") is not None:
        _share(stage)
    stage.say("You accept the rest. Every step can be taken back: cas undo.")
    stage.cas("accept", "--all")
    stage.cas("log", "--turns")
    stage.cas("fsck", show=False)


def _branch_and_back(stage: "Stage") -> None:
    stage.say("You look at another branch, with the agent's work put away, and come back.")
    stage.git("stash", "--quiet")
    stage.git("checkout", "--quiet", "older")
    stage.cas()
    stage.git("checkout", "--quiet", "main")
    stage.git("stash", "pop", "--quiet")
    stage.cas()
    pending = [edit for edit in stage.log() if edit["status"] == "pending"]
    stage.must(len(pending) == 3, f"{len(pending)} edits are pending, and not 3")  # noqa: PLR2004 -- as said above


def _break_and_find(stage: "Stage") -> None:
    stage.turn("Prepare the command line for other formats.")
    stage.agent_inserts(ENCODER, "class JSONEncoder", "# Other formats have encoders of their own.")
    before = stage.text(TOOL)
    stage.agent_inserts(TOOL, "def main", "json = None")
    stage.agent_inserts(SCANNER, "def py_make_scanner", "# Other formats have scanners of their own.")
    stage.stop()
    stage.say("The command line fails now. Which edit broke it? Copies with some of the edits are tried.")
    stage.cas("bisect", "--", "/bin/sh", "-c", WORKS)
    stage.say("You take that edit out, if the command line then works again.")
    broken = next(edit for edit in stage.log() if str(edit["file_path"]).endswith(TOOL))
    stage.cas("reject", str(broken["seq"]), "--check", WORKS)
    stage.must(stage.text(TOOL) == before, "the edit that broke the command line is not out of the file")


def _share(stage: "Stage") -> None:
    bucket = f"file://{stage.root.parent}/bucket"
    stage.say("A colleague reviews too, in a folder of her own; a bucket is between you, here another folder.")
    stage.cas("remote", "add", "team", bucket)
    stage.cas("push", "team")
    hers = stage.root.parent / "colleague"
    hers.mkdir()
    stage.cas("init", at=hers, show=False)
    stage.cas("remote", "add", "team", bucket, at=hers, show=False)
    stage.cas("pull", "team", at=hers)
    unwanted = next(edit for edit in stage.log() if str(edit["file_path"]).endswith(ENCODER))
    named = f"project/{unwanted['seq']}:1"
    stage.cas("show", named, at=hers)
    stage.cas("reject", named, "-m", HERS, at=hers)
    stage.say("Your files change when you pull, by the rules for your own decisions, and the agent reads her reason.")
    stage.cas("pull", "team")
    stage.must("Other formats" not in stage.text(ENCODER), "her rejection was not carried out")
    received = stage.turn("Go on.")
    stage.must(HERS in received, "the agent did not get her reason")
    click.echo(_indented(received))
    stage.stop()


class Stage:
    """The demonstration's folder, the agent that works in it, and the `cas` command run there."""

    def __init__(self, root: Path) -> None:
        self.root: Final = root
        self.has_git: Final = shutil.which("git") is not None
        self._calls = 0

    def set_up(self) -> None:
        """Copy real source files, and make the copy a repository and a workspace."""
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(sysconfig.get_paths()["stdlib"]) / PACKAGE, self.root / PACKAGE, ignore=ignored)
        self.say(f"A copy of Python's own package {PACKAGE}, and an agent that you let work in it.")
        if self.has_git:
            (self.root / ".gitignore").write_text(".cas/\n")
            self.git("init", "--quiet", "--initial-branch=main")
            self.git("add", ".")
            self.git("commit", "--quiet", "-m", "Import the package")
            self.git("checkout", "--quiet", "-b", "older")
            (self.root / "json" / "NOTES").write_text("An older branch.\n")
            self.git("add", ".")
            self.git("commit", "--quiet", "-m", "Add notes")
            self.git("checkout", "--quiet", "main")
        self.cas("init")
        self.cas("record", show=False)

    # ---- what is shown

    def say(self, sentence: str) -> None:
        """Print what happens next."""
        click.secho(f"\n{sentence}", bold=True)

    def must(self, condition: object, otherwise: str) -> None:
        """Stop if something is not as it must be."""
        if not condition:
            raise Differs(otherwise)

    def text(self, name: str) -> str:
        """Return a file's text."""
        return (self.root / name).read_text(encoding="utf-8")

    # ---- the person

    def cas(self, *arguments: str, show: bool = True, at: Path | None = None) -> str:
        """Run `cas` as a person would, show its output, and return it. `at`: the folder (None: the demonstration's)."""
        color = "always" if sys.stdout is not None and sys.stdout.isatty() else "never"
        command = [
            sys.executable,
            "-P",
            "-m",
            "editledger.cas",
            "-C",
            str(at or self.root),
            "--color",
            color,
            *arguments,
        ]
        if show:
            shown = [f'"{word}"' if " " in word else word for word in arguments]
            click.secho(("$ " if at is None else f"{at.name} $ ") + " ".join(["cas", *shown]), fg="cyan")
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- our own command
        if show:
            click.echo(_indented(done.stdout + done.stderr))
        self.must(done.returncode == 0, f"cas {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def log(self) -> list[dict[str, object]]:
        """Return every edit, as `cas log --json` reports it."""
        return [json.loads(line) for line in self.cas("log", "--json", show=False).splitlines()]

    def git(self, *arguments: str) -> None:
        """Run git as a person would, without the settings of the machine."""
        if arguments[0] in {"checkout", "stash"} and (self.root / ".cas").exists():
            click.secho("$ " + " ".join(["git", *(word for word in arguments if word != "--quiet")]), fg="cyan")
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        who = ("-c", "user.name=You", "-c", "user.email=you@example.org")
        subprocess.run(["git", *who, *arguments], cwd=self.root, env=kept | own, check=True)  # noqa: S603, S607 -- git

    # ---- the agent

    def turn(self, prompt: str) -> str:
        """Give the agent a prompt, and return the context that the hook adds to it."""
        click.secho(f'\nYou: "{prompt}"', fg="green")
        answer = self._hook(hook_event_name="UserPromptSubmit", prompt=prompt)
        return str(json.loads(answer)["hookSpecificOutput"]["additionalContext"]) if answer.strip() else ""

    def stop(self) -> None:
        """Let the agent end its turn."""
        self._hook(hook_event_name="Stop")

    def agent_inserts(self, name: str, beginning: str, lines: str) -> None:
        """Let the agent insert lines above the first line of a file that begins with a text."""
        click.echo(f"  agent  edits {name}")
        self._calls += 1
        path = self.root / name
        call = {
            "tool_name": "Edit",
            "tool_use_id": f"call-{self._calls}",
            "tool_input": {"file_path": str(path)},
        }
        self._hook(hook_event_name="PreToolUse", **call)
        old = self.text(name)
        at = old.find(f"\n{beginning}") + 1
        self.must(at, f"{name} has no line that begins with {beginning!r}")
        path.write_text(f"{old[:at]}{lines}\n{old[at:]}", encoding="utf-8")
        self._hook(hook_event_name="PostToolUse", **call)

    def _hook(self, **event: object) -> str:
        given = json.dumps({"session_id": "demo", "cwd": str(self.root), **event})
        command = [sys.executable, "-P", "-m", "editledger.cas", "hook", "claude-code"]
        done = subprocess.run(  # noqa: S603 -- our own command
            command, input=given, capture_output=True, text=True, check=True, cwd=self.root
        )
        return done.stdout


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.rstrip("\n").split("\n"))
