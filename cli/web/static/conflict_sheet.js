// A conflict: the edits that stand in the way, with their lines and prompts, and the ways out.

/** @import {Conflict, Effect} from "./types.d.ts" */
/** @import {Sheet} from "./state.js" */
import { Dialog } from "./dialog.js";
import { Icon } from "./icons.js";
import { Lines } from "./lines.js";
import { html, useState } from "./vendor/preact-htm.js";
import { counted, editWords, short } from "./words.js";

/** A way out. @typedef {{ name: string, words: string, button: string, what: string, effects: Effect[], answer: object | null }} WayOut */

/** The dialog. @param {{ sheet: Extract<Sheet, { kind: "conflict" }>, close: () => void }} properties */
export function ConflictSheet({ sheet: { outcome, again, what }, close }) {
  const ways = waysOut(outcome, what);
  const [name, choose] = useState(ways[0].name);
  const way = ways.find((one) => one.name === name) ?? ways[0];
  const all = [...new Map(outcome.conflicts.map((conflict) => [`${conflict.unit} ${conflict.needs} ${conflict.line}`, conflict])).values()];
  const needs = [...new Set(all.map(({ unit, needs: others }) => `${unit} needs ${others.join(", ")}`))];
  if (outcome.accept_first.length) needs.push(`to keep them, accept ${outcome.accept_first.join(", ")} first`);
  if (outcome.reject_first.length) needs.push(`or reject ${outcome.reject_first.join(", ")} first`);
  const go = () => (way.answer ? again({ ...way.answer, ticket: outcome.ticket }) : close());
  const later = new Set(all.map(({ unit }) => unit.split(":")[0])).size;
  const foot = html`<span class="small dim grow">${short(needs.join("; "), 200)}</span>
    <button type="button" class="b" onClick=${close}>Cancel</button>
    <button type="button" class=${`b ${way.name === "cascade" ? "no" : "main"}`} onClick=${go}>${way.name === "cascade" && html`<${Icon} name="cross" />`}${way.button}</button>`;
  return html`<${Dialog} title=${`${counted(later, "edit")} ${later === 1 ? "needs" : "need"} this`} close=${close} foot=${foot}>
    <p class="dim">Nothing has changed yet. These edits are built on it, so it can’t go while they stay:</p>
    ${all.map((conflict) => html`<${Need} key=${`${conflict.unit} ${conflict.line}`} conflict=${conflict} />`)}
    <h3 id="ways">What should happen?</h3>
    <div role="radiogroup" aria-labelledby="ways">${ways.map((one) => html`<label class="choice" key=${one.name}><input type="radio" name="way" checked=${one.name === name} onChange=${() => choose(one.name)} />
      <span><b>${one.words}</b><span class="dim small">${one.what}</span>
      ${one.effects.length > 0 && html`<ul class="effects small">${one.effects.map(({ name: file, words }) => html`<li key=${file}>${words}</li>`)}</ul>`}</span></label>`)}</div>
  <//>`;
}

/** @param {Extract<Sheet, { kind: "conflict" }>["outcome"]} outcome @param {string} what @returns {WayOut[]} */
function waysOut(outcome, what) {
  /** @type {WayOut[]} */
  const found = [];
  if (outcome.can_cascade) found.push({ name: "cascade", words: `Reject ${what}, and these too`, button: "Reject these too", what: `${outcome.along} ${counted(outcome.cascade.length, "file")} ${outcome.cascade.length === 1 ? "changes" : "change"}; one undo brings all of it back.`, effects: outcome.cascade, answer: { cascade: true } });
  if (outcome.can_keep_lines) found.push({ name: "keep", words: "Keep the lines of others", button: "Keep the lines of others", what: "The file stays, with the lines that others wrote.", effects: outcome.keep_lines, answer: { keep_lines: true } });
  if (outcome.can_mark) found.push({ name: "mark", words: `Reject ${what}, keep these with conflict markers`, button: "Write conflict markers", what: "The file gets conflict markers at these lines, for you or the agent to put right.", effects: [], answer: { markers: true } });
  found.push({ name: "leave", words: "Leave it as it is", button: "Leave it as it is", what: "Nothing is written, and nothing is decided.", effects: [], answer: null });
  return found;
}

/** One edit that needs others. @param {{ conflict: Conflict }} properties */
function Need({ conflict }) {
  const own = conflict.edits.find(({ seq }) => String(seq) === conflict.unit.split(":")[0]) ?? conflict.edits[0];
  return html`<div class="card"><div class="card-head"><b class="mono">${conflict.name} ${conflict.line}</b>${own && html`<span class="dim">${editWords(own)}</span>`}</div>
    <${Lines} rows=${conflict.rows} label=${`Lines of ${conflict.unit}`} />
    ${own?.prompt && html`<p class="from">“${short(own.prompt, 160)}”</p>`}</div>`;
}
