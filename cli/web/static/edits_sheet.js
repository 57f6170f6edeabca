// The single edits that make a change, with buttons to decide on each hunk.

/** @import {EditDetail, EditSummary, Edits, Status} from "./types.d.ts" */
/** @import {Sheet} from "./state.js" */
import { useAnswer } from "./api.js";
import { decideOnUnits } from "./decisions.js";
import { Lines } from "./lines.js";
import { state } from "./state.js";
import { html } from "./vendor/preact-htm.js";
import { clockOrDay, editWords, short, STATUSES } from "./words.js";

/** Request the edits that hunks belong to, and again when the store has changed. @param {string[]} units @returns {[EditDetail[] | null, string]} */
export function useEdits(units) {
  const [found, error] = /** @type {[Edits | null, string]} */ (useAnswer("/api/edits", { units: units.join(",") }));
  return [found?.edits ?? null, error];
}

/** Show the edits that hunks belong to. @param {{ sheet: Extract<Sheet, { kind: "edits" }> }} properties */
export function EditsSheet({ sheet }) {
  const [edits, error] = useEdits(sheet.units);
  if (error) return html`<p role="alert">${error}</p>`;
  if (!edits) return html`<p role="status">Loading …</p>`;
  const why = state.queue?.read_only ?? "";
  return html`<p class="dim">What each edit did by itself, without later edits.</p>
    ${edits.map((edit) => html`<div class="card" key=${edit.seq}>
      <div class="card-head"><b>Edit ${edit.seq}</b><span class="dim">${editWords(edit)} · ${clockOrDay(edit.timestamp)}</span></div>
      ${edit.hunks.map((hunk) => html`<div key=${hunk.name} class="hunk">
        ${(hunk.words || !hunk.rows.length) && html`<p class="from" data-of=${hunk.rows.length ? null : hunk.name}>${hunk.words || hunk.name}</p>`}
        <${Lines} rows=${hunk.rows} label=${`Lines of hunk ${hunk.name}`} of=${hunk.name} />
        <div class="from hunk-foot"><span class="small dim">${hunk.name} · ${STATUSES[hunk.status]}</span><span class="grow"></span><${Verdicts} unit=${hunk.name} status=${hunk.status} why=${why} /></div>
      </div>`)}
      ${edit.prompt && html`<p class="from">“${short(edit.prompt, 300)}”</p>`}
      <${Reason} edit=${edit} />
    </div>`)}`;
}

/** Why an edit was decided so: the reason, and the check with the end of its output. @param {{ edit: EditSummary }} properties */
export function Reason({ edit }) {
  return html`${edit.reason && html`<p class="from">${edit.status}: ${short(edit.reason, 300)}</p>`}
    ${edit.check && html`<pre class="output" tabindex="0" aria-label=${`What was checked for edit ${edit.seq}`}>${edit.check}</pre>`}`;
}

/** Decide on one hunk. @param {{ unit: string, status: Status, why: string }} properties */
function Verdicts({ unit, status, why }) {
  if (status === "away") return null;
  const choices = /** @type {const} */ ([["accept", "accepted", "Accept"], ["reject", "rejected", "Reject"], ["reset", "pending", "Reopen"]]);
  return choices.filter(([, is]) => is !== status).map(([action, , word]) => html`<button type="button" key=${action} class="b"
    disabled=${!!why} aria-label=${`${word} ${unit}`} onClick=${() => decideOnUnits(action, { [unit]: status })}>${word}</button>`);
}
