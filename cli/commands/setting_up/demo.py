"""The demonstration: an agent edits a copy of real source files through the server, a person reviews with `cas`.

Everything is real: the server is a process of its own, the client is the protocol's official one, the files are a copy
of packages from Python's standard library, and every review step is the `cas` command run as a process. The expected
content of each file is computed here, by plain replacement in the original text, and compared by hash. The first
difference ends the demonstration with status 1.
"""

import difflib
import json as jsonlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Final, TypeAlias

import anyio
import click
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

__all__ = ["run"]

PACKAGES: Final = ("json", "email", "logging")
"""Packages of the standard library to copy: they exist on every machine, in every supported version."""

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class Differs(Exception):
    """Raised when a result differs from the expected one."""


def run() -> int:
    """Run the demonstration in a temporary folder; return its exit status."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cas-demo-") as folder:
        stage = DemoWorkspace(Path(os.path.realpath(folder)) / "project")
        try:
            stage.set_up()
            anyio.run(lambda: with_agent(stage.root, lambda agent: first_session(stage, agent)))
            review(stage)
            anyio.run(lambda: with_agent(stage.root, lambda agent: second_session(stage, agent)))
            review_conflict(stage)
            without_index(stage)
        except Differs as difference:
            click.secho(f"\nDIFFERS: {difference}", fg="red", err=True)
            return 1
    click.echo(f"\n{stage.checks} checks passed in {time.monotonic() - began:.1f} s.")
    return 0


# ---- the stage


class DemoWorkspace:
    """The demonstration's folder, the expected content of each file in it, and the `cas` command run there."""

    def __init__(self, root: Path) -> None:
        self.root: Final = root
        self.original: dict[str, bytes] = {}
        self.checks = 0

    def set_up(self) -> None:
        """Copy real source files and make the copy a workspace."""
        library = Path(sysconfig.get_paths()["stdlib"])
        for package in PACKAGES:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(library / package, self.root / package, ignore=ignored)
        files = [path for path in self.root.rglob("*") if path.is_file()]
        self.original = {path.relative_to(self.root).as_posix(): path.read_bytes() for path in files}
        self.say(f"A copy of {', '.join(PACKAGES)} from Python's library: {len(files)} files.")
        self.cas("init")

    def say(self, sentence: str) -> None:
        """Print the title of a section."""
        click.secho(f"\n# {sentence}", bold=True)

    def must(self, condition: object, fact: str) -> None:
        """Count a check, and stop if it fails."""
        if not condition:
            raise Differs(fact)
        self.checks += 1

    def holds(self, name: str, expected: bytes | None) -> None:
        """Check a file against its expected content (None: it must not exist), by hash."""
        path = self.root / name
        found = sha256(path.read_bytes()).hexdigest() if path.exists() else None
        wanted = None if expected is None else sha256(expected).hexdigest()
        self.must(found == wanted, f"{name} has {found}, and must have {wanted}")

    def only_differ(self, *names: str) -> None:
        """Check that all files except these are unchanged copies."""
        for name, content in self.original.items():
            if name not in names:
                self.holds(name, content)

    def cas(self, *arguments: str, status: int = 0, show: bool = True) -> str:
        """Run `cas` as a person would, show its output, and return it."""
        if show:
            click.secho("$ cas " + " ".join(arguments), fg="cyan")
        command = [sys.executable, "-m", "cli", "-C", str(self.root), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
        if show:
            click.echo(_shortened(done.stdout + done.stderr))
        self.must(done.returncode == status, f"cas {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
        return done.stdout + done.stderr

    def log(self) -> list[dict[str, Json]]:
        """Return every edit, oldest first, as reported by `cas log --json`."""
        lines = self.cas("log", "--json", "--reverse", show=False).splitlines()
        return [jsonlib.loads(line) for line in lines]


def _shortened(text: str, most: int = 16) -> str:
    lines = text.rstrip("\n").split("\n")
    shown = lines if len(lines) <= most else [*lines[:most], f"… {len(lines) - most} more lines"]
    return "\n".join("  " + line for line in shown)


# ---- the agent


class Agent:
    """A scripted agent: it calls the server's tools as a language model would."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._conversation = ""

    def new_turn(self) -> None:
        """Begin a new conversation: the server names it in its first answer."""
        self._conversation = ""

    async def call(self, tool: str, **arguments: Json) -> Mapping[str, Json]:
        """Call a tool and return its structured answer; a refusal stops the demonstration."""
        changing = tool not in {"read_file", "read_text_file", "list_directory"}
        if changing:
            arguments["mcp_conversation_id"] = self._conversation
        result = await self._client.call_tool(tool, arguments)
        answer = result.structured_content or {}
        if result.is_error:
            raise Differs(f"{tool} was refused: {jsonlib.dumps(answer)}")
        if changing:
            self._conversation = str(answer.get("mcp_conversation_id") or self._conversation)
        shown = arguments.get("path") or arguments.get("source") or ""
        click.echo(f"  agent  {tool:<22} {PurePath(str(shown)).name}")
        return answer


async def with_agent(root: Path, act: Callable[[Agent], Awaitable[None]]) -> None:
    """Start the server as a process of its own, connect the official client, and let the agent act."""
    server = StdioServerParameters(
        command=sys.executable, args=["-P", "-m", "mcptools", str(root)], env=dict(os.environ)
    )
    async with Client(stdio_client(server)) as client:
        await act(Agent(client))


DECODER: Final = "json/decoder.py"
ENCODER: Final = "json/encoder.py"
TOOL: Final = "json/tool.py"
MOVED_FROM: Final = "email/quoprimime.py"
MOVED_TO: Final = "email/quoted_printable.py"
DELETED: Final = "email/base64mime.py"
CREATED: Final = "json/README.txt"
EDITS_MADE: Final = 7

EARLY: Final = (b"class JSONDecodeError(ValueError):", b"class JSONDecodeError(ValueError):  # raised by loads")
LATER: Final = (b"class JSONDecoder(object):", b"class JSONDecoder:")
LAST: Final = (b"    def raw_decode(self, s, idx=0):", b"    def raw_decode(self, s, idx=0, /):")
ON_EARLY: Final = (b"  # raised by loads", b"  # what loads() raises")


def replaced(content: bytes, *changes: tuple[bytes, bytes]) -> bytes:
    """Return `content` with each text, which must occur once, replaced."""
    for old, new in changes:
        if content.count(old) != 1:
            raise Differs(f"the library's source has {content.count(old)} times {old!r}")
        content = content.replace(old, new)
    return content


async def first_session(stage: DemoWorkspace, agent: Agent) -> None:
    """Let the agent create, edit, rewrite, move and delete, over two conversations."""
    stage.say("An agent works, through the MCP server (conversation one)")
    read = await agent.call("read_text_file", path=DECODER)
    stage.must("raw_decode" in jsonlib.dumps(read), "the agent does not see the file it reads")
    await agent.call("multi_edit_text_file", path=str(stage.root / DECODER), edits=_edits(EARLY))
    await agent.call("multi_edit_text_file", path=str(stage.root / DECODER), edits=_edits(LATER, LAST))
    encoder = stage.original[ENCODER].decode()
    await agent.call(
        "edit_file_diff", path=str(stage.root / ENCODER), diff=_diff(ENCODER, encoder, _commented(encoder))
    )
    await agent.call("write_file", path=str(stage.root / CREATED), content="What is in here.\n")

    agent.new_turn()
    stage.say("It goes on (conversation two): a whole-file rewrite, a move, a delete")
    await agent.call("write_file", path=str(stage.root / TOOL), content=_rewritten(stage.original[TOOL].decode()))
    await agent.call("move_file", source=str(stage.root / MOVED_FROM), destination=str(stage.root / MOVED_TO))
    await agent.call("delete_file", path=str(stage.root / DELETED))
    stage.holds(MOVED_TO, stage.original[MOVED_FROM])
    stage.holds(DELETED, None)
    stage.only_differ(DECODER, ENCODER, TOOL, MOVED_FROM, DELETED)


def review(stage: DemoWorkspace) -> None:
    """Review as a person would: look, reject an early edit, accept it again, reject one hunk, bring files back."""
    stage.say("A person looks")
    stage.cas("status")
    stage.cas("show", "1")
    decoder = stage.original[DECODER]
    stage.must(len(stage.log()) == EDITS_MADE, f"the log does not show {EDITS_MADE} edits")

    stage.say("Reject edit 1; edit 2, made later in the same file, stays")
    stage.cas("reject", "1", "--reason", "the comment says nothing new")
    stage.holds(DECODER, replaced(decoder, LATER, LAST))
    stage.say("On second thoughts, accept it")
    stage.cas("accept", "1")
    stage.holds(DECODER, replaced(decoder, EARLY, LATER, LAST))

    stage.say("Of the rewritten file, reject one hunk and keep the rest")
    text = stage.original[TOOL].decode()
    rewrite = next(edit for edit in stage.log() if str(edit["file_path"]).endswith(TOOL))
    hunks = rewrite["hunks"]
    stage.must(isinstance(hunks, list) and len(hunks) == len(("top", "end")), f"the rewrite has not two hunks: {hunks}")
    stage.cas("reject", f"{rewrite['seq']}:1")
    stage.holds(TOOL, (text + TRAILER).encode())
    stage.cas("undo")
    stage.holds(TOOL, _rewritten(text).encode())

    stage.say("Reject the move and the delete: both files are back")
    for edit in stage.log():
        if edit["operation"] in {"move", "delete"}:
            stage.cas("reject", str(edit["seq"]))
    stage.holds(MOVED_FROM, stage.original[MOVED_FROM])
    stage.holds(MOVED_TO, None)
    stage.holds(DELETED, stage.original[DELETED])

    stage.say("The person types too; nothing of that is lost")
    mine = (stage.root / DECODER).read_bytes() + b"# mine\n"
    (stage.root / DECODER).write_bytes(mine)
    stage.cas("reject", "2", status=1)
    stage.holds(DECODER, mine)
    stage.cas("reject", "2", "--on-external", "keep")
    stage.holds(DECODER, replaced(decoder, EARLY) + b"# mine\n")
    stage.cas("accept", "2")
    stage.only_differ(DECODER, ENCODER, TOOL)


async def second_session(stage: DemoWorkspace, agent: Agent) -> None:
    """Let the agent change a line that its own earlier edit inserted."""
    stage.say("The agent comes back and edits the very line that edit 1 put in")
    await agent.call("multi_edit_text_file", path=str(stage.root / DECODER), edits=_edits(ON_EARLY))


def review_conflict(stage: DemoWorkspace) -> None:
    """Run into a real conflict: it is named, nothing changes, and a cascade resolves it."""
    stage.say("Now edit 1 can't go alone: the conflict is named, and nothing changes")
    decoder = stage.original[DECODER]
    before = (stage.root / DECODER).read_bytes()
    said = stage.cas("reject", "1", status=1)
    last = stage.log()[-1]
    stage.must(f"edit {last['seq']}" in said and "edit 1" in said, f"the conflict is not named: {said}")
    stage.holds(DECODER, before)
    stage.cas("reject", "1", "--cascade")
    stage.holds(DECODER, replaced(decoder, LATER, LAST) + b"# mine\n")
    stage.cas("undo")
    stage.holds(DECODER, before)


def without_index(stage: DemoWorkspace) -> None:
    """Delete all derived data and continue."""
    stage.say("Delete the index: the journal is the only truth")
    report = stage.cas("status", "--json", show=False)
    for path in (stage.root / ".cas").glob("index.sqlite*"):
        path.unlink()
    stage.must(stage.cas("status", "--json", show=False) == report, "without the index, status says something else")
    stage.cas("reject", "--all", "--on-external", "keep", show=False)
    for name, content in stage.original.items():
        stage.holds(name, content + b"# mine\n" if name == DECODER else content)
    stage.holds(CREATED, None)
    stage.cas("status")
    stage.say("Every agent's edit is rejected: each file is what it was, with what the person typed")


# ---- texts

TRAILER: Final = "\n# Rewritten by an agent.\n"


def _rewritten(text: str) -> str:
    head, _, rest = text.partition("\n")
    return f"{head} (and more)\n{rest}{TRAILER}"


def _commented(text: str) -> str:
    return text.replace("import re\n", "import re  # escapes\n", 1)


def _edits(*changes: tuple[bytes, bytes]) -> list[Json]:
    return [{"old_string": old.decode(), "new_string": new.decode()} for old, new in changes]


def _diff(name: str, before: str, after: str) -> str:
    lines: Sequence[str] = before.splitlines(keepends=True)
    return "".join(difflib.unified_diff(lines, after.splitlines(keepends=True), f"a/{name}", f"b/{name}"))
