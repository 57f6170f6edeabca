"""The plugin for opencode in a real Node process: events of its hooks become edits, and a rejection comes back."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cli.setup.plans import Programs, Scope, plan
from objstore import EditView, Workspace

__all__ = ["played"]

PATIENCE: Final = 120.0  # seconds
ROOT: Final = Path(__file__).resolve().parents[2]

HOSTS: Final = {
    "version 1": """\
const client = { session: { get: async ({ path }) => ({ data: { id: path.id, parentID: parents[path.id] } }) } }
const hooks = await plugin.server({ client, directory })
const begin = (id = "ses_1") =>
  hooks.event({ event: { type: "session.created", properties: { info: { id, parentID: parents[id] } } } })
const ask = (text) => hooks["chat.message"]({ sessionID: "ses_1", agent: "build" }, { parts: [{ type: "text", text }] })
const emit = async (type, properties) => {
  hooks.event({ event: { type, properties } }) // it is not waited for
  await settled()
}
const end = () => hooks.event({ event: { type: "session.idle", properties: { sessionID: "ses_1" } } })
async function question(tool, callID, args, reply, meanwhile) {
  await hooks["tool.execute.before"]({ tool, sessionID: "ses_1", callID }, { args })
  const asked = { id: `per_${callID}`, sessionID: "ses_1", permission: tool, patterns: ["*"], metadata: {}, always: [] }
  await emit("permission.asked", { ...asked, tool: { messageID: "msg_1", callID } })
  meanwhile()
  await emit("permission.replied", { sessionID: "ses_1", requestID: asked.id, reply })
}
async function tool(name, callID, args, act, sessionID = "ses_1") {
  const call = { tool: name, sessionID, callID }
  await hooks["tool.execute.before"](call, { args })
  await act()
  const output = { title: "", output: "done", metadata: {} }
  await hooks["tool.execute.after"]({ ...call, args }, output)
  said.push(output.output)
}
""",
    "version 2": """\
const hooks = {}
const waiting = []
let wake = () => {}
async function* events({ signal }) {
  signal.addEventListener("abort", () => wake())
  while (!signal.aborted) {
    while (waiting.length) yield waiting.shift()
    await new Promise((resolve) => (wake = resolve))
  }
}
const cleanup = await plugin.setup({
  location: { directory: "/nowhere" },
  session: {
    get: async ({ sessionID }) => ({ id: sessionID, parentID: parents[sessionID], location: { directory } }),
    hook: async (name, call) => (hooks[name] = call),
  },
  tool: { hook: async (name, call) => (hooks[name] = call) },
  event: { subscribe: events },
})
async function emit(type, data) {
  waiting.push({ type, data })
  wake()
  await settled()
}
const begin = (sessionID = "ses_1") => emit("session.created", { sessionID })
const ask = (text) => hooks["prompt"]({ sessionID: "ses_1", messageID: "msg_1", prompt: { text } })
const end = async () => {
  await emit("session.idle", { sessionID: "ses_1" })
  cleanup()
}
async function question(tool, id, input, reply, meanwhile) {
  await hooks["execute.before"]({ tool, sessionID: "ses_1", agent: "build", messageID: "msg_1", id, input })
  const asked = { id: `per_${id}`, sessionID: "ses_1", action: tool, resources: ["*"] }
  await emit("permission.v2.asked", { ...asked, source: { type: "tool", messageID: "msg_1", callID: id } })
  meanwhile()
  await emit("permission.v2.replied", { sessionID: "ses_1", requestID: asked.id, reply })
}
async function tool(name, id, input, act, sessionID = "ses_1") {
  const call = { tool: name, sessionID, agent: "build", messageID: "msg_1", id, input }
  await hooks["execute.before"](call)
  await act()
  const failed = { ...call, status: "error", error: new Error("not this one") }
  if (input.fails) return hooks["execute.after"](failed).then(() => said.push(failed.error.message))
  const content = said.length % 2 ? "done" : [{ type: "text", text: "done" }]
  const after = { ...call, status: "completed", result: Object.freeze({ output: {}, content }) }
  await hooks["execute.after"](after)
  said.push(JSON.stringify(after.result.content))
}
""",
}
"""How each version of the client calls the plugin, as its pages say."""

REPORTED_AT: Final = {"version 1": 3, "version 2": 4}
"""The result that carries a rejection: the next, or, where an error has no place for it, the one after."""

SESSION: Final = """\
import { execSync } from "node:child_process"
import { appendFileSync, readdirSync, writeFileSync } from "node:fs"
const { default: plugin } = await import(process.argv[2])
const [directory, cas] = process.argv.slice(3)
const said = []
const parents = { ses_2: "ses_1", ses_3: "ses_2" }
const running = () => process.getActiveResourcesInfo().includes("ProcessWrap")
async function settled() {
  do await new Promise((resolve) => setTimeout(resolve, 200)) // until what an event started has ended
  while (running())
}
%s
await begin()
await ask("use digits")
const file = `${directory}/new.txt`
await tool("write", "call_1", { filePath: file, path: file, content: "new\\n" }, () => writeFileSync(file, "new\\n"))
const command = "printf 'one\\\\n2\\\\n' > a.txt"
await tool("bash", "call_2", { command }, () => execSync(command, { cwd: directory }))
execSync(`"${cas}" reject 2 --reason "two is a word"`, { cwd: directory })
await tool("bash", "call_3", { command: "true", fails: true }, () => {})
await tool("bash", "call_4", { command: "true" }, () => {})
await begin("ses_2")
await begin("ses_3")
const inner = () => tool("bash", "call_6", { command: "b" }, () => appendFileSync(file, "theirs\\n"), "ses_3")
await tool("bash", "call_5", { command: "a" }, inner, "ses_2")
await question("bash", "call_7", { command: "c" }, "reject", () => appendFileSync(file, "mine\\n"))
await question("bash", "call_8", { command: "d" }, "once", () => {})
appendFileSync(file, "perhaps theirs\\n") // its end is never reported
await end()
console.log(JSON.stringify(said))
"""


def played(node: str, folder: Path) -> Iterator[tuple[str, bool, str]]:
    """Play sessions of opencode in `folder` with that Node; yield what is asked, whether it holds, and words on it."""
    for version, host in HOSTS.items():
        for what, holds, words in _played(node, folder / version, SESSION % host, REPORTED_AT[version]):
            yield f"{what} ({version})", holds, words


def _played(node: str, folder: Path, script: str, expected: int) -> Iterator[tuple[str, bool, str]]:
    workspace, program = folder / "project", folder / "cas"
    workspace.mkdir(parents=True)
    (workspace / "a.txt").write_text("one\ntwo\n")
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -P -m cli "$@"\n')
    program.chmod(0o755)
    for step in plan(
        "opencode", Scope(project=workspace, home=folder), Programs(cas=str(program), server="editledger")
    ):
        if content := step.apply(""):  # the other step only empties the file of earlier versions
            step.path.parent.mkdir(parents=True, exist_ok=True)
            step.path.write_text(content)
    plugins = workspace / ".opencode" / "plugins"
    (workspace / ".opencode" / "package.json").write_text('{"type": "module"}\n')
    session = folder / "session.mjs"
    session.write_text(script)
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
        views = opened.history.edits()
    yield "its tools' edits are recorded", _shape(views) == EXPECTED, f"{len(views)} edits"
    said = json.loads(done.stdout)
    results = [number for number, words in enumerate(said, start=1) if "two is a word" in words]
    yield "a rejection reaches it once", results == [expected], f"at result {results} of {len(said)}"
    log = workspace / ".cas" / "hook.log"
    yield "no hook had a fault", not log.exists(), log.read_text() if log.exists() else ""


EXPECTED: Final = [
    ("ses_1", "write", "create", "new.txt", "pending", "use digits"),
    ("ses_1", "bash", "edit", "a.txt", "rejected", "use digits"),
    ("ses_1", "bash", "edit", "new.txt", "pending", "use digits"),
    ("external", "", "edit", "new.txt", "accepted", ""),
    ("external", "", "edit", "new.txt", "pending", ""),  # unattributed: the end of the tool was not reported
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
