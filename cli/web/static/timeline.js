// Timeline: a slider over the history of a file or of the workspace, the state at a moment, and its restore.

/** @import {EditSummary, Moment, State, Timeline} from "./types.d.ts" */
import { decide, get, Refused, useAnswer } from "./api.js";
import { Reason } from "./edits_sheet.js";
import { EditLine, Lines } from "./lines.js";
import { PlotFigure } from "./plot.js";
import { FileName } from "./queue.js";
import { answer, perform } from "./decisions.js";
import { blameAddress, timelineAddress } from "./routes.js";
import { say, set, state } from "./state.js";
import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { clock, counted, size } from "./words.js";

/** The history of a file, or of the workspace (""). @param {{ path: string }} properties */
export function TimelineScreen({ path }) {
  const [timeline, show] = useState(/** @type {Timeline | null} */ (null));
  const [at, go] = useState(-1);
  const [error, fail] = useState("");
  const version = state.queue?.version;
  const ask = async (/** @type {number | undefined} */ before) => {
    try {
      const found = /** @type {Timeline} */ (await get("timeline", { path: path || undefined, before }));
      if (before === undefined) show(found);
      else {
        show((/** @type {Timeline | null} */ known) => ({ ...found, points: [...found.points, ...(known?.points ?? [])] }));
        go((/** @type {number} */ n) => n + found.points.length);
      }
      fail("");
    } catch (refusal) {
      if (!(refusal instanceof Refused)) throw refusal;
      fail(refusal.message);
    }
  };
  useEffect(() => {
    go(-1);
    show(null);
  }, [path]);
  useEffect(() => {
    ask(undefined);
  }, [path, version]);
  const points = timeline?.points ?? [];
  const last = points.length - 1;
  const here = at < 0 ? last : Math.min(at, last);
  const point = points[here];
  return html`<main class="page timeline-page" id="file" tabindex="-1"><div class="in">
    <div class="head"><h1>Timeline</h1><p class="dim">${path ? html`<${FileName} name=${timeline?.name ?? ""} />` : "The whole workspace"}, edit by edit. A restore is a change of yours, and can be taken back.</p></div>
    <div>
      ${error && html`<p role="alert" class="note warn">${error}</p>`}
      ${!timeline && !error && html`<p role="status">Loading …</p>`}
      ${timeline && !point && html`<p class="dim">Nothing is recorded here yet.</p>`}
      ${point && html`<${Slider} points=${points} here=${here} go=${go} />`}
      ${timeline?.more && html`<button type="button" class="b" onClick=${() => ask(points[0].seq)}>Show what came before</button>`}
      ${path && html`<div class="chips"><a class="b" href=${blameAddress(path)}>Blame</a><a class="b" href=${timelineAddress("")}>Whole workspace</a></div>`}
      ${point && html`<p class="point" aria-live="polite"><${EditLine} edit=${point} />${!path && html`<br /><span class="name">${point.name}</span>`}</p><${Reason} edit=${point} />`}
    </div>
    ${point && (path ? html`<${StateThen} point=${point} />` : html`<${MomentThen} point=${point} />`)}
    ${point && path && html`<${PlotFigure} name="file" path=${path} />`}
  </div></main>`;
}

/** The slider that chooses a moment. @param {{ points: EditSummary[], here: number, go: (at: number) => void }} properties */
function Slider({ points, here, go }) {
  const last = points.length - 1;
  const moved = (/** @type {Event} */ event) => go(Number(/** @type {HTMLInputElement} */ (event.target).value));
  return html`<div class="slider">
    <button type="button" class="b icon" data-repeats disabled=${here <= 0} onClick=${() => go(here - 1)} aria-label="Earlier">‹</button>
    <input type="range" min="0" max=${last} value=${here} onInput=${moved} aria-label="Moment"
      aria-valuetext=${`${here + 1} of ${last + 1}: edit ${points[here].seq}, ${clock(points[here].timestamp)}`} />
    <button type="button" class="b icon" data-repeats disabled=${here >= last} onClick=${() => go(here + 1)} aria-label="Later">›</button>
    <span class="of">${clock(points[here].timestamp)}, ${here + 1} of ${last + 1}</span>
  </div>`;
}

/** The file as it was, compared with the file now. @param {{ point: EditSummary }} properties */
function StateThen({ point }) {
  const [before, turn] = useState(0);
  const [then, error] = /** @type {[State | null, string]} */ (useAnswer("/api/state", { path: point.path, seq: point.seq, before, count: 2000 }));
  const restore = async () => {
    const body = { path: point.path, seq: point.seq, before: before === 1, dry_run: true };
    const outcome = await decide("restore", body);
    if (outcome.outcome === "decided") {
      const again = (/** @type {object} */ extra) => answer(() => perform("restore", { ...body, ...extra }));
      set({ sheet: { kind: "restore", message: outcome.message, effects: outcome.files, again } });
    } else say(outcome.message, { is_failure: outcome.outcome !== "nothing-to-do" });
  };
  const word = before ? "before" : "after";
  return html`<section class="then" aria-label="The moment">
    <div class="chips">
      <label class="check"><input type="checkbox" checked=${before === 1} onChange=${() => turn(before ? 0 : 1)} /> before this edit</label>
      <button type="button" class="b main" disabled=${!!state.queue?.read_only || !then || then.same || !then.kept} onClick=${restore}>Restore the file as it was ${word} edit ${point.seq}</button>
    </div>
    ${error && html`<p role="alert" class="note warn">${error}</p>`}
    ${then && html`<p>${stateInWords(then, word)}</p>
      ${then.total > then.rows.length && html`<p class="small dim">The first ${counted(then.rows.length, "row")} of ${then.total.toLocaleString("en")} are shown.</p>`}
      <${Lines} rows=${then.rows} label="How it differs from now" />`}
  </section>`;
}

/** @param {State} then @param {string} word */
function stateInWords(then, word) {
  if (!then.kept) return "Its text is no longer kept.";
  if (!then.exists) return `The file did not exist ${word} this edit.`;
  if (then.same) return "The file has not changed since then.";
  if (then.too_large) return `It was ${size(then.size)}: too large to be compared here.`;
  if (then.binary) return `It was ${size(then.size)}, and binary.`;
  return "What a restore would take out (−) and bring back (+):";
}

/** The files that differ between a moment and now. @param {{ point: EditSummary }} properties */
function MomentThen({ point }) {
  const [then, error] = /** @type {[Moment | null, string]} */ (useAnswer("/api/moment", { seq: point.seq }));
  return html`<section class="then" aria-label="The moment">
    ${error && html`<p role="alert" class="note warn">${error}</p>`}
    ${then && html`<h2>${then.files.length ? `${counted(then.files.length, "file")} ${then.files.length === 1 ? "differs" : "differ"} from now` : "No file differs from now"}</h2>
      ${!then.files.length && html`<p class="dim">Move the slider back: the files that were other ones then are listed here, each with its own timeline.</p>`}
      <ul class="items">${then.files.map(({ path, name, what }) => html`<li key=${path}><a href=${timelineAddress(path)}><${FileName} name=${name} /></a> ${what}</li>`)}</ul>
      ${then.more && html`<p class="small dim">More files differ; these are the first ${then.files.length.toLocaleString("en")}.</p>`}`}
  </section>`;
}
