// Dialogs with the questions of a decision, and the facts that a person needs to answer them.

/** @import {Child} from "./vendor/preact-htm.js" */
/** @import {Effect} from "./types.d.ts" */
/** @import {Sheet} from "./state.js" */
import { CommentSheet, RejectSheet } from "./comment_sheet.js";
import { ConflictSheet } from "./conflict_sheet.js";
import { Dialog } from "./dialog.js";
import { EditsSheet } from "./edits_sheet.js";
import { KeysSheet } from "./keys_sheet.js";
import { Lines, Prose } from "./lines.js";
import { MessagesSheet } from "./messages.js";
import { SplitSheet } from "./split_sheet.js";
import { set, state } from "./state.js";
import { html } from "./vendor/preact-htm.js";
import { UnshownSheet } from "./unshown_sheet.js";
import { WholeSheet } from "./whole_sheet.js";
import { ago, counted } from "./words.js";

/** Close the open dialog; nothing is decided. */
export function closeSheet() {
  set({ sheet: null });
}

/** The open dialog. */
export function Sheets() {
  const { sheet } = state;
  switch (sheet?.kind) {
    case "conflict":
      return html`<${ConflictSheet} sheet=${sheet} close=${closeSheet} />`;
    case "external-changes":
      return html`<${External} sheet=${sheet} />`;
    case "unchecked":
      return html`<${Unchecked} sheet=${sheet} />`;
    case "confirm":
      return html`<${Confirm} sheet=${sheet} />`;
    case "running":
      return html`<${Running} sheet=${sheet} />`;
    case "unshown":
      return html`<${UnshownSheet} sheet=${sheet} close=${closeSheet} />`;
    case "restore":
      return html`<${Restore} sheet=${sheet} />`;
    case "edits":
      return html`<${Dialog} title="Single edits" close=${closeSheet}><${EditsSheet} sheet=${sheet} /><//>`;
    case "split":
      return html`<${SplitSheet} sheet=${sheet} close=${closeSheet} />`;
    case "comment":
      return html`<${CommentSheet} sheet=${sheet} close=${closeSheet} />`;
    case "reject":
      return html`<${RejectSheet} sheet=${sheet} close=${closeSheet} />`;
    case "whole":
      return html`<${WholeSheet} sheet=${sheet} close=${closeSheet} />`;
    case "messages":
      return html`<${Dialog} title="What you did" close=${closeSheet}><${MessagesSheet} /><//>`;
    case "keys":
      return html`<${Dialog} title="Keys" close=${closeSheet}><${KeysSheet} /><//>`;
    default:
      return null;
  }
}

/** A list of the effects on files. @param {{ title: string, effects: Effect[] }} properties */
function Effects({ title, effects }) {
  return html`<p>${title}</p><ul class="effects">${effects.map(({ name, words }) => html`<li key=${name}>${words}</li>`)}</ul>`;
}

/** The question about files that were changed outside. @param {{ sheet: Extract<Sheet, { kind: "external-changes" }> }} properties */
function External({ sheet: { outcome, again } }) {
  const answer = (/** @type {"keep" | "discard"} */ on_external) => () => again({ on_external, ticket: outcome.ticket });
  /** @type {Child} */
  const foot = html`<span class="grow"></span><button type="button" class="b" onClick=${closeSheet}>Abort: decide nothing</button>
    <button type="button" class="b no" onClick=${answer("discard")}>Drop them</button>
    <button type="button" class="b main" onClick=${answer("keep")}>Keep the changes</button>`;
  return html`<${Dialog} title="Changed outside meanwhile" close=${closeSheet} foot=${foot}>
    <p class="dim">${outcome.message}</p>
    ${outcome.external_changes.map(({ path, name, change, taken_by, rows }) => html`<div class="card" key=${path}>
      <div class="card-head"><b class="mono">${name}</b><span class="dim">${change}${taken_by ? `, a ${taken_by} is there now` : ""}</span></div><${Lines} rows=${rows} label=${`What changed in ${name}`} /></div>`)}
  <//>`;
}

/** What the button of a question does. */
const DOES = { accept: "Accept", reject: "Reject", reset: "Reopen", undo: "Undo", redo: "Redo" };
/** Hunks that a question lists. */
const MOST_LISTED = 100;

/** The question before a decision on more than was on the screen, or one that breaks names. @param {{ sheet: Extract<Sheet, { kind: "confirm" }> }} properties */
function Confirm({ sheet: { outcome, again } }) {
  const foot = html`<span class="grow"></span><button type="button" class="b" onClick=${closeSheet}>Cancel</button>
    <button type="button" class="b main" onClick=${() => again({ ticket: outcome.ticket })}>${DOES[outcome.action]}</button>`;
  const { listed } = outcome;
  return html`<${Dialog} title=${outcome.title} kind="narrow" close=${closeSheet} foot=${foot}>
    <p>${outcome.message}</p>
    ${listed.length > 0 && html`<ul class="effects">${listed.slice(0, MOST_LISTED).map(({ name, status }) => html`<li key=${name}><span class="mono">${name}</span>, ${status}</li>`)}</ul>`}
    ${listed.length > MOST_LISTED && html`<p class="small">and ${counted(listed.length - MOST_LISTED, "more hunk")}</p>`}
    <p class="dim small">One ${outcome.action === "undo" ? "redo" : "undo"} brings all of it back.</p>
  <//>`;
}

/** A check that failed or was stopped, with the end of its output. @param {{ sheet: Extract<Sheet, { kind: "unchecked" }> }} properties */
function Unchecked({ sheet: { outcome } }) {
  const foot = html`<span class="grow"></span><button type="button" class="b main" onClick=${closeSheet}>Close</button>`;
  return html`<${Dialog} title=${outcome.title} close=${closeSheet} foot=${foot}>
    <p><${Prose} text=${outcome.message} /></p>
    ${outcome.output.length > 0 && html`<pre class="output" tabindex="0" aria-label="The end of its output">${outcome.output.join("\n")}</pre>`}
  <//>`;
}

/** The question about a running call that may change the files. @param {{ sheet: Extract<Sheet, { kind: "running" }> }} properties */
function Running({ sheet: { outcome, again } }) {
  const foot = html`<span class="grow"></span><button type="button" class="b" onClick=${closeSheet}>Leave it as it is</button>
    <button type="button" class="b no" onClick=${() => again({ running: "now" })}>Reject now</button>
    <button type="button" class="b main" onClick=${() => again({ running: "wait" })}>Wait for the end of the turn</button>`;
  return html`<${Dialog} title="An agent is at work" kind="narrow" close=${closeSheet} foot=${foot}>
    <p class="dim">${outcome.message}</p>
    <ul class="effects">${outcome.calls.map(({ client, tool, began, names }) => html`<li>${client || "An agent"} runs ${tool}, begun ${ago(began)}${names.length ? `: ${names.join(", ")}` : ""}</li>`)}</ul>
  <//>`;
}

/** The question before a restore, with its effects. @param {{ sheet: Extract<Sheet, { kind: "restore" }> }} properties */
function Restore({ sheet: { message, effects, again } }) {
  const foot = html`<span class="grow"></span><button type="button" class="b" onClick=${closeSheet}>Leave it as it is</button>
    <button type="button" class="b main" onClick=${() => again({ dry_run: false })}>Restore</button>`;
  return html`<${Dialog} title="Restore" kind="narrow" close=${closeSheet} foot=${foot}>
    <p>${message}</p>
    <${Effects} title="This happens to your files, as an edit of yours that you can reject:" effects=${effects} />
  <//>`;
}
