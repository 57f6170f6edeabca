// The single edits that make a change, with buttons to decide on each hunk or to split it.

/** @import {EditDetail, Edits, Row, Status} from "./types.d.ts" */
/** @import {Sheet} from "./state.js" */
import { get, Refused } from "./api.js";
import { decideOnUnits, perform } from "./review.js";
import { EditLine, Lines } from "./lines.js";
import { set, state } from "./state.js";
import { html, useEffect, useState } from "./vendor/preact-htm.js";

/** Show the edits that hunks belong to. @param {{ sheet: Extract<Sheet, { kind: "edits" }> }} properties */
export function EditsSheet({ sheet }) {
  const [edits, show] = useState(/** @type {EditDetail[] | null} */ (null));
  const [error, fail] = useState("");
  const version = state.queue?.version;
  useEffect(() => {
    get("edits", { units: sheet.units.join(",") }).then(
      (/** @type {Edits} */ found) => show(found.edits),
      (refusal) => fail(refusal instanceof Refused ? refusal.message : String(refusal)),
    );
  }, [sheet.units, version]);
  if (error) return html`<p role="alert">${error}</p>`;
  if (!edits) return html`<p role="status">Loading …</p>`;
  const why = state.queue?.read_only ?? "";
  return html`<p class="meta">${sheet.splitting
    ? "A part that you take out is removed by an edit of yours; the rest stays as it is."
    : "What each edit did by itself, without later edits."}</p>
    <ol class="conflicts">${edits.map((edit) => html`<li key=${edit.seq}>
      <p><${EditLine} edit=${edit} /></p>
      ${edit.hunks.map((hunk) => html`<div key=${hunk.unit} class="hunk">
        <p data-of=${hunk.rows.length ? null : hunk.unit}><b>${hunk.unit}</b> ${hunk.status} ${hunk.words}</p>
        ${sheet.splitting && hunk.splits.length > 1
          ? hunk.splits.map((rows, part) => html`<${Part} key=${part} unit=${hunk.unit} part=${part} rows=${rows} status=${hunk.status} why=${why} />`)
          : html`<${Lines} rows=${hunk.rows} label=${`Lines of hunk ${hunk.unit}`} of=${hunk.unit} />
            ${sheet.splitting && html`<p class="meta">It can't be split further.</p>`}
            <${Verdicts} unit=${hunk.unit} status=${hunk.status} why=${why} />`}
      </div>`)}
    </li>`)}</ol>`;
}

/** Decide on one hunk. @param {{ unit: string, status: Status, why: string }} properties */
function Verdicts({ unit, status, why }) {
  if (status === "away") return null;
  const choices = /** @type {const} */ ([["accept", "accepted", "Accept"], ["reject", "rejected", "Reject"], ["reset", "pending", "Make pending"]]);
  return html`<div class="acts">${choices.filter(([, is]) => is !== status).map(([action, , word]) => html`<button type="button" key=${action}
    disabled=${!!why} aria-label=${`${word} ${unit}`} onClick=${() => decideOnUnits(action, { [unit]: status })}>${word}</button>`)}</div>`;
}

/** Take one part of a hunk out. @param {{ unit: string, part: number, rows: Row[], status: Status, why: string }} properties */
function Part({ unit, part, rows, status, why }) {
  const take = async () => {
    const { outcome } = await perform("split", { unit, part, status });
    if (outcome === "decided") set({ sheet: null });
  };
  return html`<${Lines} rows=${rows} label=${`Part ${part + 1} of ${unit}`} />
    <div class="acts"><button type="button" disabled=${!!why} onClick=${take}>Take this part out</button></div>`;
}
