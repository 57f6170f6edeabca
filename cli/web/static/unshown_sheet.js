// The dialog that shows what a decision covers and the page has not shown yet, and asks again.

/** @import {EditDetail, File as ChangedFile, Row, Span} from "./types.d.ts" */
/** @import {Sheet} from "./state.js" */
import { get, Refused } from "./api.js";
import { Dialog } from "./dialog.js";
import { EditLine, Lines } from "./lines.js";
import { html, useEffect, useState } from "./vendor/preact-htm.js";

/** Rows for one request. */
const ROWS = 5000;
/** Characters of a cut line for one request. */
const CHARACTERS = 100_000;
const WORDS = { accept: "Accept", reject: "Reject", reset: "Reopen" };

/** Rows of a change or hunk that follow one another, with what they are rows of. @typedef {{ of: string, title: unknown, at: number, rows: Row[], words: string }} Part */
/** @typedef {Extract<Sheet, { kind: "unshown" }>} Unshown */

/** Show what was not on the screen, with a button to decide. @param {{ sheet: Unshown, close: () => void }} properties */
export function UnshownSheet({ sheet, close }) {
  const { outcome, action, again } = sheet;
  const [parts, show] = useState(/** @type {Part[]} */ ([]));
  const [left, count] = useState(outcome.changes.length + outcome.hunks.length);
  const [error, fail] = useState("");
  useEffect(() => {
    let is_open = true;
    const arrived = (/** @type {Part[]} */ more) => {
      if (!is_open) return;
      show((/** @type {Part[]} */ before) => [...before, ...more]);
      count((/** @type {number} */ n) => n - 1);
    };
    load(outcome, arrived).catch((refusal) => {
      if (!(refusal instanceof Refused)) throw refusal;
      fail(`${refusal.message} Close this, look at the changes again, then decide.`);
    });
    return () => {
      is_open = false;
    };
  }, [outcome]);
  const words = `${WORDS[action]} all of it`;
  const foot = html`<span class="grow"></span><button type="button" class="b" onClick=${close}>Leave it as it is</button>
    <button type="button" class=${`b ${action}`} disabled=${left > 0} onClick=${() => again({})}>${words}</button>`;
  return html`<${Dialog} title="Not on the screen yet" close=${close} foot=${foot}>
    <p>${outcome.message} ${left > 0 && !error ? "They are being fetched." : "Here they are."}</p>
    ${error && html`<p role="alert">${error}</p>`}
    ${parts.map(({ of, title, at, rows, words: said }) => html`<div class="card" key=${`${of} ${at}`}>
      <div class="card-head" data-of=${rows.length ? null : of}><b class="mono">${title}</b> ${said}</div>
      <${Lines} rows=${rows} label="Lines that were not on the screen" of=${of} at=${at} /></div>`)}
  <//>`;
}

/** Request what was not on the screen, one change or hunk after the other. @param {Unshown["outcome"]} outcome @param {(parts: Part[]) => void} arrived */
async function load(outcome, arrived) {
  for (const { document, name, key, rows } of outcome.changes) arrived(await ofChange(document, name, key, rows));
  for (const unit of outcome.hunks) arrived(await ofUnit(unit));
}

/** @param {number} document @param {string} name @param {string} key @param {Span[]} spans @returns {Promise<Part[]>} */
async function ofChange(document, name, key, spans) {
  /** @type {Part[]} */
  const parts = [];
  for (const [start, end] of spans) {
    for (let at = start; at < end || (at === start && end === 0); at += ROWS) {
      // Where the change begins may be different by now; its rows, which its key covers, are not.
      const place = await placeOf(document, key);
      const first = place.row + at;
      /** @type {ChangedFile} */
      const file = await get("file", { document, first, count: Math.min(ROWS, end - at) });
      const change = file.all.find((one) => one.key === key);
      if (change?.row !== place.row) throw new Refused(409, "The file has changed meanwhile.");
      await Promise.all(file.rows.map((row, index) => whole(row, document, key, at + index)));
      parts.push({ of: key, title: `${name}, ${change.words || `line ${(change.new_start + 1).toLocaleString("en")}`}`, at, rows: file.rows, words: "" });
      if (end === 0) break;
    }
  }
  return parts;
}

/** @param {number} document @param {string} key */
async function placeOf(document, key) {
  /** @type {ChangedFile} */
  const file = await get("file", { document, count: 0 });
  const change = file.all.find((one) => one.key === key);
  if (!change) throw new Refused(409, "The file has changed meanwhile.");
  return change;
}

/** Add the characters that a row lacks. @param {Row} row @param {number} document @param {string} key @param {number} index */
async function whole(row, document, key, index) {
  while (row.cut) {
    const rest = await get("line", { document, row: index, key, first: row.t.length, count: CHARACTERS });
    row.t += rest.t;
    row.cut = rest.cut;
  }
}

/** @param {string} unit @returns {Promise<Part[]>} */
async function ofUnit(unit) {
  /** @type {{ edits: EditDetail[] }} */
  const { edits } = await get("edits", { units: unit });
  return edits.flatMap((edit) => edit.hunks.map((hunk) => ({
    of: hunk.name, title: html`${edit.name}, hunk ${hunk.name}: <${EditLine} edit=${edit} />`, at: 0, rows: hunk.rows, words: hunk.words,
  })));
}
