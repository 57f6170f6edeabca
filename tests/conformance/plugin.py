"""The plugin for opencode in a real Node process: what its hooks are told becomes edits, and a rejection comes back."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cli.wiring.plans import Programs, Scope, plan
from objstore import EditView, Workspace

__all__ = ["played"]

PATIENCE: Final = 120.0  # seconds
ROOT: Final = Path(__file__).resolve().parents[2]

SESSION: Final = """\
import { execSync } from "node:child_process"
import { appendFileSync, writeFileSync } from "node:fs"
const { Editledger } = await import(process.argv[2])
const [directory, cas] = process.argv.slice(3)
const hooks = await Editledger({ directory })
const said = []

async function tool(name, callID, args, act) {
  const call = { tool: name, sessionID: "ses_1", callID }
  await hooks["tool.execute.before"](call, { args })
  act()
  const output = { title: "", output: "done", metadata: {} }
  await hooks["tool.execute.after"]({ ...call, args }, output)
  said.push(output.output)
}

await hooks.event({ event: { type: "session.created", properties: { info: { id: "ses_1" } } } })
await hooks["chat.message"]({ sessionID: "ses_1", agent: "build" }, { parts: [{ type: "text", text: "use digits" }] })
const file = `${directory}/new.txt`
await tool("write", "call_1", { filePath: file, content: "new\\n" }, () => writeFileSync(file, "new\\n"))
const command = "printf 'one\\\\n2\\\\n' > a.txt"
await tool("bash", "call_2", { command }, () => execSync(command, { cwd: directory }))
execSync(`"${cas}" reject 2 --reason "two is a word"`, { cwd: directory })
await tool("bash", "call_3", { command: "true" }, () => {})
await tool("read", "call_4", { filePath: file }, () => {})
appendFileSync(file, "mine\\n")
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "ses_1" } } })
console.log(JSON.stringify(said))
"""


def played(node: str, folder: Path) -> Iterator[tuple[str, bool, str]]:
    """Play a session of opencode in `folder` with that Node; yield what is asked, whether it holds, and words on it."""
    workspace, program = folder / "project", folder / "cas"
    workspace.mkdir()
    (workspace / "a.txt").write_text("one\ntwo\n")
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -P -m cli "$@"\n')
    program.chmod(0o755)
    for step in plan(
        "opencode", Scope(project=workspace, home=folder), Programs(cas=str(program), server="editledger")
    ):
        step.path.parent.mkdir(parents=True, exist_ok=True)
        step.path.write_text(step.apply(""))
    plugins = workspace / ".opencode" / "plugin"
    (workspace / ".opencode" / "package.json").write_text('{"type": "module"}\n')
    session = folder / "session.mjs"
    session.write_text(SESSION)
    for words in (["init"], ["record"]):
        subprocess.run([program, *words], cwd=workspace, check=True, capture_output=True, timeout=PATIENCE)
    done = subprocess.run(
        [node, str(session), str(plugins / "editledger.js"), str(workspace), str(program)],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("CAS_")},
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    if done.returncode:
        yield "a session of opencode", False, done.stderr.strip().splitlines()[-1]
        return
    with Workspace.open(workspace) as opened:
        views = opened.edits()
    yield "its tools' edits are recorded", _shape(views) == EXPECTED, f"{len(views)} edits"
    said = json.loads(done.stdout)
    told = [number for number, words in enumerate(said, start=1) if "two is a word" in words]
    yield "a rejection reaches it once", told == [3], f"at result {told} of {len(said)}"
    log = workspace / ".cas" / "hook.log"
    yield "no hook had a fault", not log.exists(), log.read_text() if log.exists() else ""


EXPECTED: Final = [
    ("ses_1", "write", "create", "new.txt", "pending", "use digits"),
    ("ses_1", "bash", "edit", "a.txt", "rejected", "use digits"),
    ("external", "", "edit", "new.txt", "accepted", ""),
]


def _shape(views: list[EditView]) -> list[tuple[str, str, str, str, str, str]]:
    return [
        (
            view.edit.conversation,
            view.edit.tool,
            str(view.edit.operation),
            os.fsdecode(view.edit.path),
            str(view.status),
            view.edit.notes.get("prompt", ""),
        )
        for view in views
    ]
