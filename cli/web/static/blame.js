// Blame: a file's current lines, each with the edit that wrote it and that edit's prompt.

/** @import {Blame, EditSummary} from "./types.d.ts" */
import { get, Refused } from "./api.js";
import { FileName } from "./queue.js";
import { fileAddress, timelineAddress } from "./routes.js";
import { state } from "./state.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { ago, clock, short } from "./words.js";

const COUNT = 2000;

/** Consecutive lines of one hunk; unit null: from before the first edit. @typedef {{ first: number, unit: string | null, lines: string[] }} Run */

/** The lines of a file with their edits. @param {{ path: string, line: number }} properties */
export function BlameScreen({ path, line }) {
  const [blame, show] = useState(/** @type {Blame | null} */ (null));
  const [error, fail] = useState("");
  const own = useRef(/** @type {HTMLElement | null} */ (null));
  const version = state.queue?.version;
  const ask = async (/** @type {number} */ first) => {
    try {
      const found = /** @type {Blame} */ (await get("blame", { path, first, count: COUNT }));
      show((/** @type {Blame | null} */ before) =>
        before && first > 1 ? { ...found, first: before.first, lines: [...before.lines, ...found.lines], edits: { ...before.edits, ...found.edits } } : found);
      fail("");
    } catch (refusal) {
      if (!(refusal instanceof Refused)) throw refusal;
      fail(refusal.message);
    }
  };
  const begin = Math.max(1, Math.floor((line - 1) / COUNT) * COUNT + 1);
  useEffect(() => {
    ask(begin);
  }, [path, begin, version]);
  const is_here = blame !== null;
  useLayoutEffect(() => {
    if (line > 1) own.current?.querySelector(".asked")?.scrollIntoView({ block: "center" });
  }, [is_here, line]);
  const document = state.queue?.files.find((file) => file.path === path)?.document;
  const end = blame ? blame.first + blame.lines.length - 1 : 0;
  return html`<div class="screen"><div class="pane" tabindex="0" role="region" aria-label="Blame" ref=${own}>
    <div class="filehead"><h2>Blame: <${FileName} name=${blame?.name ?? ""} /></h2>
      <p class="facts">Each line with the edit that wrote it, and that edit's prompt. Lines without one were there before, or are yours.</p>
      <div class="acts">${document !== undefined && html`<a class="button" href=${fileAddress(document, null)}>Changes</a>`}
        <a class="button" href=${timelineAddress(path)}>Timeline</a></div>
      ${error && html`<p role="alert" class="note warn">${error}</p>`}
      ${!blame && !error && html`<p role="status">Loading …</p>`}</div>
    ${blame && blame.first > 1 && html`<p class="meta pad">Lines before ${blame.first} are not shown. <button type="button" onClick=${() => ask(1)}>Show from the beginning</button></p>`}
    ${blame && runs(blame).map((run) => html`<${RunLines} key=${run.first} run=${run} edit=${edit(blame, run.unit)} line=${line} />`)}
    ${blame && end < blame.total && html`<p class="pad"><button type="button" onClick=${() => ask(end + 1)}>Show more lines</button></p>`}
  </div></div>`;
}

/** Return the edit that a unit is a hunk of. @param {Blame} blame @param {string | null} unit */
function edit(blame, unit) {
  return unit ? blame.edits[unit.split(":")[0]] : undefined;
}

/** Group consecutive lines of one hunk. @param {Blame} blame @returns {Run[]} */
function runs(blame) {
  /** @type {Run[]} */
  const found = [];
  for (const { n, t, unit } of blame.lines) {
    const last = found.at(-1);
    if (last && last.unit === unit && last.lines.length < 200) last.lines.push(t);
    else found.push({ first: n, unit, lines: [t] });
  }
  return found;
}

/** Lines of one edit. @param {{ run: Run, edit: EditSummary | undefined, line: number }} properties */
function RunLines({ run, edit: behind, line }) {
  return html`<div class=${behind ? "blame" : "blame own"}>
    <div class="why">${behind && html`<p><b>Edit ${behind.seq}</b> · ${behind.who || behind.tool} · ${""}
      <time title=${clock(behind.time)}>${ago(behind.time)}</time> · ${behind.status}</p>
      ${behind.prompt && html`<p><q>${short(behind.prompt, 240)}</q></p>`}
      ${behind.reason && html`<p>${short(behind.reason, 240)}</p>`}`}</div>
    <div class="lines" tabindex="0" role="group" aria-label=${`Lines ${run.first} to ${run.first + run.lines.length - 1}`}>
      ${run.lines.map((text, at) => html`<div class=${run.first + at === line && line > 1 ? "row same asked" : "row same"}
        data-n=${String(run.first + at).padStart(5)}>${text || "\u200b"}</div>`)}</div>
  </div>`;
}
