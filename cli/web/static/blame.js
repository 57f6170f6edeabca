// Blame: a file's current lines, each with the edit that wrote it and that edit's prompt.

/** @import {Blame, EditSummary} from "./types.d.ts" */
import { get, Refused } from "./api.js";
import { Icon } from "./icons.js";
import { FileName } from "./queue.js";
import { fileAddress, timelineAddress } from "./routes.js";
import { state } from "./state.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { clock, clockOrDay, counted, short, STATUSES } from "./words.js";

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
  return html`<main class="file" id="file" tabindex="-1">
    <header class="file-head"><a class="b icon plain phone-only" href="#/" aria-label="Back to the queue"><${Icon} name="back" /></a>
      <h1 class="path clip"><span class="sr">Blame: </span><${FileName} name=${blame?.name ?? ""} /></h1><span class="dim small more">${blame && counted(blame.total, "line")}</span><span class="grow"></span>
      <span class="legend desk more"><span><i class="old"></i>older</span><span><i></i>newer</span></span>
      ${document !== undefined && html`<a class="b" href=${fileAddress(document, null)}>Changes</a>`}<a class="b" href=${timelineAddress(path)}>Timeline</a></header>
    <div class="scroll" tabindex="0" role="region" aria-label="The file, each line with its origin" ref=${own}><div class="code blame">
      ${error && html`<p role="alert" class="note warn">${error}</p>`}
      ${!blame && !error && html`<p role="status">Loading …</p>`}
    ${blame && blame.first > 1 && html`<p class="note">Lines before ${blame.first} are not shown. <button type="button" class="b" onClick=${() => ask(1)}>Show from the beginning</button></p>`}
    ${blame && runs(blame).map((run) => html`<${RunLines} key=${run.first} run=${run} edit=${edit(blame, run.unit)} line=${line} age=${age(blame, run.unit)} />`)}
    ${blame && end < blame.total && html`<p class="note"><button type="button" class="b" onClick=${() => ask(end + 1)}>Show more lines</button></p>`}
  </div></div></main>`;
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

/** Return how new an edit is among those of the file: 0 to 3. @param {Blame} blame @param {string | null} unit */
function age(blame, unit) {
  const own = edit(blame, unit);
  if (!own) return 0;
  const all = Object.values(blame.edits).map(({ seq }) => seq).sort((a, b) => a - b);
  return all.length < 2 ? 3 : 1 + Math.round((2 * all.indexOf(own.seq)) / (all.length - 1));
}

/** Lines of one edit. @param {{ run: Run, edit: EditSummary | undefined, line: number, age: number }} properties */
function RunLines({ run, edit: behind, line, age: how_new }) {
  const lines = Math.max(1, run.lines.length - 1);
  const title = behind ? [behind.turn ? `Turn ${behind.turn}` : `Edit ${behind.seq}`, short(behind.prompt, 240)].filter(Boolean).join(" · ") : "";
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => place.current?.style.setProperty("--lines", String(Math.min(4, lines))), [lines]);
  return html`<div class="block"><i class=${`a${how_new}`}></i>
    <div class="by" ref=${place}>${behind && html`<p class="asked-for" title=${`${title}${behind.reason && `\n\nRejected: ${behind.reason}`}`}>${title}</p>
      ${run.lines.length > 2 && html`<span class="sub clip">${behind.who || behind.tool_name} · edit ${behind.seq} · <time title=${clock(behind.timestamp)}>${clockOrDay(behind.timestamp)}</time> · ${STATUSES[behind.status]}</span>`}`}</div>
    <div class="lines">${run.lines.map((text, at) => html`<div class=${run.first + at === line && line > 1 ? "r asked" : "r"} key=${at}><span class="n">${run.first + at}</span><span class="c">${text}</span></div>`)}</div>
  </div>`;
}
