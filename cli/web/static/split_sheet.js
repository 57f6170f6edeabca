// The dialog that splits a change: tick the lines that are to be taken out; the rest stays to be decided.

/** @import {EditDetail, Row} from "./types.d.ts" */
/** @import {Sheet} from "./state.js" */
import { perform } from "./decisions.js";
import { Dialog } from "./dialog.js";
import { useEdits } from "./edits_sheet.js";
import { markRow } from "./shown.js";
import { pickedRows } from "./review.js";
import { say, set, state } from "./state.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { counted, editWords } from "./words.js";

/** A hunk of the change; `parts`: the positions of the rows of each proposal. @typedef {{ unit: string, status: string, edit: EditDetail, rows: Row[], parts: number[][] }} Hunk */
/** Which rows are ticked: the name of the hunk, and the position of the row. @typedef {readonly string[]} Ticked */

/** The dialog. @param {{ sheet: Extract<Sheet, { kind: "split" }>, close: () => void }} properties */
export function SplitSheet({ sheet, close }) {
  const [edits, error] = useEdits(sheet.units);
  const [ticked, tick] = useState(/** @type {Ticked} */ ([]));
  const hunks = hunksOf(edits);
  const rows = hunks.flatMap((hunk) => hunk.rows.map((row, at) => ({ name: `${hunk.unit} ${at}`, row })));
  useEffect(() => {
    if (edits) tick(rows.filter(({ row }) => isPicked(row)).map(({ name }) => name));
  }, [edits === null]);
  const why = state.queue?.read_only ?? "";
  const take = async () => {
    for (const { unit, status, rows: own } of hunks) {
      const chosen = own.flatMap((_, at) => (ticked.includes(`${unit} ${at}`) ? [at] : []));
      if (chosen.length && (await perform("split", { unit, rows: chosen, status }))?.outcome !== "decided") return;
    }
    say(`Took out ${counted(ticked.length, "line")}; the rest of the change is left to decide.`, { can_undo: true });
    set({ sheet: null });
  };
  const proposals = hunks.flatMap(({ unit, parts }) => (parts.length > 1 ? parts.map((part, at) => ({ words: `Part ${at + 1}${hunks.length > 1 ? ` of ${unit}` : ""}: ${counted(part.length, "line")}`, names: part.map((row) => `${unit} ${row}`) })) : []));
  const toggle = (/** @type {readonly string[]} */ names) => {
    const are_all = names.every((name) => ticked.includes(name));
    tick(are_all ? ticked.filter((name) => !names.includes(name)) : [...new Set([...ticked, ...names])]);
  };
  const foot = html`<span class="small dim grow">${counted(ticked.length, "line")} to take out, ${(rows.length - ticked.length).toLocaleString("en")} left to decide</span>
    <button type="button" class="b" onClick=${close}>Cancel</button>
    <button type="button" class="b main" disabled=${!!why || !ticked.length} onClick=${take}>Take out ${counted(ticked.length, "line")}</button>`;
  return html`<${Dialog} title="Split the change" close=${close} foot=${foot}>
    <p class="dim"><b class="mono">${sheet.where}</b>. Tick the lines that you don’t want: added ones go, removed ones come back, by an edit of yours. The rest stays to be decided.</p>
    ${proposals.length > 1 && html`<div class="chips" role="group" aria-label="Proposals">${proposals.map(({ words, names }) => html`<button type="button" key=${words} class=${`pill b ${names.every((name) => ticked.includes(name)) ? "on" : ""}`}
      aria-pressed=${names.every((name) => ticked.includes(name))} onClick=${() => toggle(names)}>${words}</button>`)}</div>`}
    ${error && html`<p role="alert">${error}</p>`}
    ${!edits && !error && html`<p role="status">Loading …</p>`}
    ${edits && !rows.length && html`<p>No line of it can be taken out by itself.</p>`}
    ${hunks.map((hunk) => html`<div class="card" key=${hunk.unit}><div class="card-head"><b>Edit ${hunk.edit.seq}</b><span class="dim">${editWords(hunk.edit)}</span></div>
      <${Pick} hunk=${hunk} ticked=${ticked} toggle=${toggle} /></div>`)}
  <//>`;
}

/** The lines of a hunk, each with a box; Shift takes all between. @param {{ hunk: Hunk, ticked: Ticked, toggle: (names: string[]) => void }} properties */
function Pick({ hunk: { unit, rows }, ticked, toggle }) {
  const own = useRef(/** @type {HTMLElement | null} */ (null));
  const anchor = useRef(0);
  useLayoutEffect(() => {
    own.current?.querySelectorAll(".c").forEach((text, at) => markRow(/** @type {HTMLElement} */ (text), unit, at, rows[at]));
  }, [rows]);
  const clicked = (/** @type {number} */ at) => (/** @type {MouseEvent} */ event) => {
    const [first, last] = event.shiftKey ? [Math.min(anchor.current, at), Math.max(anchor.current, at)] : [at, at];
    anchor.current = at;
    toggle(rows.flatMap((_, row) => (row >= first && row <= last ? [`${unit} ${row}`] : [])));
  };
  return html`<div class="code pick" ref=${own}>${rows.map((row, at) => html`<label class=${`r ${row.k === "-" ? "del" : "add"}`} key=${at}>
    <span class="box"><input type="checkbox" checked=${ticked.includes(`${unit} ${at}`)} onClick=${clicked(at)} aria-label=${`${row.k === "-" ? "Removed" : "Added"} line ${row.o ?? row.n}`} /></span>
    <span class="n old">${row.o ?? ""}</span><span class="n">${row.n ?? ""}</span><span class="g" aria-hidden="true">${row.k === "-" ? "−" : "+"}</span><span class="c">${row.t}</span></label>`)}</div>`;
}

/** @param {EditDetail[] | null} edits @returns {Hunk[]} */
function hunksOf(edits) {
  return (edits ?? []).flatMap((edit) => edit.hunks.filter(({ rows, status, name }) => rows.length > 1 && status !== "rejected" && status !== "away" && !name.endsWith(":0")).map(({ name: unit, status, rows, splits }) => {
    const parts = splits.map((part) => part.map((row) => rows.findIndex((one) => one.k === row.k && one.o === row.o && one.n === row.n)).filter((at) => at >= 0));
    return { unit, status, edit, rows, parts };
  }));
}

/** Return whether a row is among those that the person chose. @param {Row} row */
function isPicked({ k, t }) {
  return pickedRows().some((picked) => picked.k === k && picked.t === t);
}
