// An edit on one line, and rows of a diff in a box, for dialogs and lists.

/** @import {EditSummary, Row} from "./types.d.ts" */
import { rowElement } from "./diff_rows.js";
import { html, useLayoutEffect, useRef } from "./vendor/preact-htm.js";
import { ago, short } from "./words.js";

/** An edit on one line. @param {{ edit: EditSummary }} properties */
export function EditLine({ edit }) {
  return html`<b>Edit ${edit.seq}</b> · ${edit.who || edit.tool} · ${ago(edit.time)} · ${edit.status}
    ${edit.turn > 0 && ` · turn ${edit.turn}`}${edit.prompt && html`<br /><q>${short(edit.prompt, 300)}</q>`}`;
}

/** Rows of a diff in a box. @param {{ rows: Row[], label: string }} properties */
export function Lines({ rows, label }) {
  const own = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => {
    const digits = Math.max(0, ...rows.map(({ o, n }) => String(Math.max(o ?? 0, n ?? 0) || "").length));
    const look = { digits, sides: /** @type {const} */ ("both"), more: () => undefined };
    own.current?.replaceChildren(...rows.filter(({ k }) => k !== "~").map((row) => rowElement(row, look)));
  }, [rows]);
  return rows.length > 0 && html`<div class="lines" tabindex="0" role="group" aria-label=${label} ref=${own}></div>`;
}

/** A sentence with commands between backquotes, which are shown as code. @param {{ text: string }} properties */
export function Prose({ text }) {
  return text.split("`").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));
}
