// The dialog that splits a change: tick the parts that are to be taken out; the rest stays to be decided.

/** @import {EditDetail, Status} from "./types.d.ts" */
/** @import {Sheet} from "./state.js" */
import { perform } from "./decisions.js";
import { Dialog } from "./dialog.js";
import { editWords } from "./conflict_sheet.js";
import { useEdits } from "./edits_sheet.js";
import { Lines } from "./lines.js";
import { pickedRows } from "./review.js";
import { say, set, state } from "./state.js";
import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { counted } from "./words.js";

/** @typedef {{ unit: string, part: number, status: Status }} Part */

/** The dialog. @param {{ sheet: Extract<Sheet, { kind: "split" }>, close: () => void }} properties */
export function SplitSheet({ sheet, close }) {
  const [edits, error] = useEdits(sheet.units);
  const [ticked, tick] = useState(/** @type {readonly string[]} */ ([]));
  const parts = partsOf(edits);
  useEffect(() => {
    if (edits) tick(parts.filter(({ rows }) => rows.some((row) => isPicked(row))).map(({ name }) => name));
  }, [edits === null]);
  const why = state.queue?.read_only ?? "";
  const chosen = parts.filter(({ name }) => ticked.includes(name));
  const take = async () => {
    for (const { unit, part, status } of [...chosen].reverse()) {
      const { outcome } = await perform("split", { unit, part, status }); // from the last on: those before keep their numbers
      if (outcome !== "decided") return;
    }
    say(`Took out ${counted(chosen.length, "part")}; ${counted(parts.length - chosen.length, "part")} ${parts.length - chosen.length === 1 ? "is" : "are"} left to decide.`);
    set({ sheet: null });
  };
  const toggle = (/** @type {string} */ name) => tick(ticked.includes(name) ? ticked.filter((one) => one !== name) : [...ticked, name]);
  const foot = html`<span class="small dim grow">${parts.length ? `${counted(chosen.length, "part")} to take out, ${parts.length - chosen.length} stay` : ""}</span>
    <button type="button" class="b" onClick=${close}>Cancel</button>
    <button type="button" class="b main" disabled=${!!why || !chosen.length} onClick=${take}>Take out ${counted(chosen.length, "part")}</button>`;
  return html`<${Dialog} title="Split the change" close=${close} foot=${foot}>
    <p class="dim"><b class="mono">${sheet.where}</b>. Tick the parts that you don’t want. An edit of yours takes them out of the file; the rest stays to be decided.</p>
    ${error && html`<p role="alert">${error}</p>`}
    ${!edits && !error && html`<p role="status">Loading …</p>`}
    ${edits && !parts.length && html`<p>It can’t be split further: each of its edits is one piece.</p>`}
    ${edits?.map((edit) => html`<div class="card" key=${edit.seq}><div class="card-head"><b>Edit ${edit.seq}</b><span class="dim">${editWords(edit)}</span></div>
      ${edit.hunks.map((hunk) => (hunk.splits.length > 1
        ? hunk.splits.map((rows, at) => html`<label class="part" key=${at}><input type="checkbox" checked=${ticked.includes(`${hunk.unit} ${at}`)} onChange=${() => toggle(`${hunk.unit} ${at}`)} aria-label=${`Part ${at + 1} of ${hunk.unit}`} /><${Lines} rows=${rows} label=${`Part ${at + 1} of ${hunk.unit}`} /></label>`)
        : html`<${Lines} rows=${hunk.rows} label=${`Lines of ${hunk.unit}`} />`))}</div>`)}
  <//>`;
}

/** @param {EditDetail[] | null} edits */
function partsOf(edits) {
  return (edits ?? []).flatMap(({ hunks }) => hunks.filter(({ splits }) => splits.length > 1).flatMap(({ unit, status, splits }) => splits.map((rows, part) => ({ name: `${unit} ${part}`, unit, part, status, rows }))));
}

/** Return whether a row is among those that the person chose. @param {{ k: string, t: string }} row */
function isPicked({ k, t }) {
  return pickedRows().some((picked) => picked.k === k && picked.t === t);
}
