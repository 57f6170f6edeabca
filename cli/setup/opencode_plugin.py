"""The plugin for opencode: a JavaScript file that passes that program's hooks to ours, one JSON object an event.

Source: the client's plugin pages. Version 2 calls `setup`; version 1, from 1.18.29 on, `server` of the same object.
"""

import json
from collections.abc import Collection
from typing import Final

from objstore import FAILED

__all__ = ["FIRST_WORDS", "plugin"]

FIRST_WORDS: Final = "// Written by `cas setup opencode`"
"""Beginning of the file in every version of ours; a file that begins otherwise is not ours."""

_PROGRAM: Final = "@CAS@"
"""Placeholder for the command `cas`, as a string of JavaScript."""

_READS: Final = "@READS@"
"""Placeholder for the tools that change no file, as a list of JavaScript: nothing is reported of them."""

_FAILED: Final = "@FAILED@"
"""Placeholder for what a shell does if the command fails, as a string of JavaScript."""

_PLUGIN: Final = """\
// Written by `cas setup opencode`: tells the recorder of file edits what each tool is about to do, and when it is over.
import { spawn } from "node:child_process"

const CAS = @CAS@
const READS = new Set(@READS@)

const PATIENCE = 30_000 // milliseconds

// Whatever fails here, the agent goes on.
async function tell(event) {
  if (READS.has(event.tool)) return ""
  try {
    const said = await asked(JSON.stringify(event))
    return said ? (JSON.parse(said).context ?? "") : ""
  } catch {
    return ""
  }
}

// If even `cas` can't run, a shell leaves the mark that `cas status` shows.
function mark() {
  spawn("sh", ["-c", @FAILED@], { stdio: "ignore" }).on("error", () => {})
}

function asked(event) {
  return new Promise((resolve, reject) => {
    const hook = spawn(CAS, ["hook", "opencode"], { stdio: ["pipe", "pipe", "ignore"] })
    let said = ""
    const late = setTimeout(() => {
      hook.kill("SIGKILL")
      resolve(said)
    }, PATIENCE)
    hook.on("error", (error) => {
      mark()
      reject(error)
    })
    hook.on("close", (status) => {
      clearTimeout(late)
      if (status > 0) mark()
      resolve(said)
    })
    hook.stdin.on("error", () => {})
    hook.stdout.on("data", (chunk) => (said += chunk))
    hook.stdin.end(event)
  })
}

const DEEPEST = 20 // sessions that send each other
const LAST_WORDS = 1000 // characters of an answer

// A session that another one has sent works for that one. `found` gives what the client knows of a session.
function kinship(found) {
  const parents = new Map()
  async function parent(id) {
    try {
      if (!parents.has(id)) parents.set(id, (await found(id)).parentID)
    } catch {} // it may be known next time
    return parents.get(id)
  }
  return async (sessionID) => {
    let first = sessionID
    for (let depth = 0; depth < DEEPEST; depth++) first = (await parent(first)) ?? first
    return first === sessionID ? { sessionID } : { sessionID: first, agent_id: sessionID }
  }
}

// What a person is asked about tools: the answer names the question, and that the call. "permission.updated" is how
// older versions ask.
function questions() {
  const calls = new Map()
  return (type, said) => {
    const kind = /^permission\\.(?:v2\\.)?(asked|updated|replied)$/.exec(type)?.[1]
    if (!kind) return undefined
    if (kind !== "replied") {
      const callID = said.tool?.callID ?? said.source?.callID ?? said.callID
      if (callID) calls.set(said.id, callID)
      return callID && { hook: "permission.asked", callID }
    }
    const id = said.requestID ?? said.permissionID
    const callID = calls.get(id)
    calls.delete(id)
    const hook = (said.reply ?? said.response) === "reject" ? "permission.rejected" : "permission.allowed"
    return callID && { hook, callID }
  }
}

// What our own server said last: it names the conversation that a call began.
function lastWords(tool, content) {
  const said = Array.isArray(content) ? content.at(-1)?.text : content
  return tool?.includes("editledger") && typeof said === "string" ? said.slice(-LAST_WORDS) : undefined
}

// Returns what adds a text to what the agent reads of a tool's result: the client's own tools give a text, those of MCP
// servers a list of parts. Undefined if there is no place for it: then the hook is not asked for a text.
function placeIn(result) {
  if (typeof result?.output === "string") return (said) => (result.output += `\\n\\n${said}`)
  if (Array.isArray(result?.content)) return (said) => result.content.push({ type: "text", text: said })
}

// The same for a prompt: its last part gives the ids, and one that is longer comes after it.
function placeAfter(parts) {
  const last = parts?.at?.(-1)
  if (typeof last?.id !== "string") return undefined
  const { sessionID, messageID } = last
  const id = `${last.id}z`
  return (text) => parts.push({ id, sessionID, messageID, type: "text", text, synthetic: true })
}

// opencode doesn't wait for its events; this passes them on one after the other all the same.
function inTurn() {
  let last = Promise.resolve()
  return (work) => (last = last.then(work).catch(() => {}))
}

// Version 1 calls this.
const server = async ({ client, directory }) => {
  const question = questions()
  const next = inTurn()
  const who = kinship(async (id) => (await client.session.get({ path: { id } })).data)
  return {
    "chat.message": async (input, output) => {
      const words = (output.parts ?? []).filter((part) => part.type === "text").map((part) => part.text)
      const prompt = words.join("\\n")
      const add = placeAfter(output.parts)
      const by = { ...(await who(input.sessionID)), agent: input.agent, directory }
      const said = await tell({ hook: "chat.message", ...by, prompt, hears: Boolean(add) })
      if (said) add(said)
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      await tell({ hook: "tool.execute.before", tool, ...(await who(sessionID)), callID, args, directory })
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, output) => {
      const result = lastWords(tool, output?.output ?? output?.content)
      const add = placeIn(output)
      const by = { tool, ...(await who(sessionID)), callID, args, directory }
      const said = await tell({ hook: "tool.execute.after", ...by, result, hears: Boolean(add) })
      if (said) add(said)
    },
    event: async ({ event }) => {
      const turn = event.type === "session.idle" || event.type === "session.created"
      const report = turn ? { hook: event.type } : question(event.type, event.properties ?? {})
      if (!report) return
      const sessionID = event.properties?.sessionID ?? event.properties?.info?.id
      await next(async () => tell({ ...report, ...(await who(sessionID)), directory }))
    },
  }
}

// Version 2 calls this. Its hooks and events may be those of sessions in other folders.
async function setup(ctx) {
  const next = inTurn()
  const who = kinship((sessionID) => ctx.session.get({ sessionID }))
  async function folder(sessionID) {
    try {
      return (await ctx.session.get({ sessionID })).location.directory
    } catch {
      return ctx.location?.directory
    }
  }
  async function pass(hook, { sessionID, agent, tool, id, input, result }, hears = false) {
    const directory = await folder(sessionID)
    const by = { ...(await who(sessionID)), agent, tool, callID: id, args: input, directory }
    return tell({ hook, ...by, result: lastWords(tool, result?.content), hears })
  }
  await ctx.session.hook("prompt", async ({ sessionID, prompt }) => {
    const directory = await folder(sessionID)
    await tell({ hook: "chat.message", ...(await who(sessionID)), prompt: prompt?.text, directory })
  })
  await ctx.tool.hook("execute.before", async (event) => {
    await pass("tool.execute.before", event)
  })
  await ctx.tool.hook("execute.after", async (event) => {
    const content = event.status === "completed" ? event.result?.content : undefined
    // A message is sent once, so it waits for a result that has a place for it. Whether a person let it run goes first.
    if (content === undefined) {
      await next(() => pass("tool.execute.failed", event))
      return
    }
    const said = await pass("tool.execute.after", event, true)
    if (!said) return
    const longer = typeof content === "string" ? `${content}\\n\\n${said}` : [...content, { type: "text", text: said }]
    event.result = { ...event.result, content: longer }
  })
  const question = questions()
  const gone = new AbortController()
  const listen = async () => {
    for await (const event of ctx.event.subscribe({ signal: gone.signal })) {
      const said = event.data ?? {}
      const asked = question(event.type, said)
      if (asked) next(() => pass(asked.hook, { sessionID: said.sessionID, id: asked.callID }))
      if (event.type === "session.idle" || event.type === "session.created") next(() => pass(event.type, said))
    }
  }
  listen().catch(() => {}) // it ends with the program
  return () => gone.abort()
}

export default { id: "editledger", server, setup }
"""


def plugin(program: str, reads: Collection[str]) -> str:
    """Return the plugin that calls the command `program`. `reads`: tools that change no file."""
    given = {_PROGRAM: program, _READS: sorted(reads), _FAILED: FAILED.replace("CLIENT", "opencode")}
    text = _PLUGIN
    for placeholder, value in given.items():
        text = text.replace(placeholder, json.dumps(value))
    return text
