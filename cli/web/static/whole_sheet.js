// The question before a whole file or turn is decided on: what that covers, and which of it was not on the screen.

/** @import {Sheet} from "./state.js" */
import { Dialog } from "./dialog.js";
import { Icon } from "./icons.js";
import { leftIn } from "./decisions.js";
import { decideOnWhole } from "./keys.js";
import { sessionName } from "./queue.js";
import { state } from "./state.js";
import { html } from "./vendor/preact-htm.js";
import { counted, short } from "./words.js";

/** The dialog. @param {{ sheet: Extract<Sheet, { kind: "whole" }>, close: () => void }} properties */
export function WholeSheet({ sheet: { what, number }, close }) {
  const { file, queue } = state;
  const turns = what === "file" ? [] : (queue?.turns.filter((one) => one[what] === number) ?? []);
  const documents = new Set(turns.flatMap(({ files }) => files.map(({ document }) => document)));
  const names = queue?.files.filter(({ document }) => documents.has(document)).map(({ name }) => name) ?? [];
  // A change may be of several turns of a session: there, it is counted only if there is one.
  const left = what === "file" ? (file ? leftIn(file) : 0) : turns.length > 1 ? null : (turns[0]?.files.reduce((n, one) => n + one.changes, 0) ?? 0);
  const all = left === null ? "all changes" : counted(left, "change");
  const act = (/** @type {"accept" | "reject"} */ action) => () => decideOnWhole(action, what, number);
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.repeat || (event.key !== "a" && event.key !== "x")) return;
    event.preventDefault();
    act(event.key === "a" ? "accept" : "reject")();
  };
  const foot = html`<span class="grow"></span><button type="button" class="b" onClick=${close}>Cancel</button>
    <button type="button" class="b" onClick=${act("accept")} aria-keyshortcuts="a"><span class="yes"><${Icon} name="check" /></span>Accept ${all} <kbd class="desk" aria-hidden="true">a</kbd></button>
    <button type="button" class="b" onClick=${act("reject")} aria-keyshortcuts="x"><span class="nay"><${Icon} name="cross" /></span>Reject ${all} <kbd class="desk" aria-hidden="true">x</kbd></button>`;
  const title = what === "file" ? "The rest of the file" : what === "turn" ? `The whole of turn ${number}` : `The whole of session ${sessionName(queue, number)}`;
  return html`<${Dialog} title=${title} close=${close} foot=${foot} onKey=${pressed}>
    ${what === "file" ? html`<p><b class="mono">${file?.name}</b>: ${all} left to decide, of all turns.</p>`
      : html`<p>${short(turns[0]?.prompt ?? "", 400)}</p><p class="dim">${all} left, in ${counted(names.length, "file")}. Files that other ${what}s changed too keep those changes.</p>
        <ul class="effects small">${names.slice(0, 30).map((name) => html`<li key=${name} class="mono">${name}</li>`)}${names.length > 30 && html`<li>and ${counted(names.length - 30, "more file")}</li>`}</ul>`}
  <//>`;
}
