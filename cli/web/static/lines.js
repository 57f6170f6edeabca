// An edit on one line, and rows of a diff in a box, for dialogs and lists.

/** @import {EditSummary, Row} from "./types.d.ts" */
import { rowElement } from "./diff_rows.js";
import { element } from "./elements.js";
import { look as noteShown, markRow } from "./shown.js";
import { html, useLayoutEffect, useRef } from "./vendor/preact-htm.js";
import { ago, editWords, short } from "./words.js";

const GROUP = 100;

/** An edit on one line. @param {{ edit: EditSummary }} properties */
export function EditLine({ edit }) {
  return html`<b>Edit ${edit.seq}</b> · ${editWords(edit)} · ${ago(edit.timestamp)}${edit.prompt && html`<br /><q>${short(edit.prompt, 300)}</q>`}`;
}

/**
 * Rows of a diff in a box. `of`: the key of their change, or the name of their hunk, if they are rows of one, the first of
 * them its row `at`.
 * @param {{ rows: Row[], label: string, of?: string, at?: number }} properties
 */
export function Lines({ rows, label, of = "", at = 0 }) {
  const own = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => {
    const look = { more: () => undefined };
    const made = rows.filter(({ k }) => k !== "~").map((row, index) => {
      const [drawn, text] = rowElement(row, look);
      if (of) markRow(text, of, at + index, row);
      return drawn;
    });
    own.current?.replaceChildren(...grouped(made));
    noteShown(own.current);
  }, [rows, of, at]);
  const has_numbers = rows.some(({ o, n }) => o !== undefined || n !== undefined);
  return rows.length > 0 && html`<div class=${`code lines ${has_numbers ? "" : "bare"}`} tabindex="0" role="group" aria-label=${label} ref=${own}></div>`;
}

/** Return rows in groups, of which the browser lays out those that are looked at. @param {HTMLElement[]} rows */
function grouped(rows) {
  if (rows.length <= GROUP) return rows;
  const groups = [];
  for (let at = 0; at < rows.length; at += GROUP) {
    const group = element("div", { class: "rows" }, ...rows.slice(at, at + GROUP));
    group.style.containIntrinsicSize = `auto 1px auto ${20 * Math.min(GROUP, rows.length - at)}px`;
    groups.push(group);
  }
  return groups;
}

/** A sentence with commands between backquotes, which are shown as code. @param {{ text: string }} properties */
export function Prose({ text }) {
  return text.split("`").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));
}
