// The question before a whole file or turn is decided on: what that covers, and which of it was not on the screen.

/** @import {Sheet} from "./state.js" */
import { Dialog } from "./dialog.js";
import { Icon } from "./icons.js";
import { leftIn } from "./decisions.js";
import { decideOnWhole } from "./keys.js";
import { state } from "./state.js";
import { html } from "./vendor/preact-htm.js";
import { counted, short } from "./words.js";

/** The dialog. @param {{ sheet: Extract<Sheet, { kind: "whole" }>, close: () => void }} properties */
export function WholeSheet({ sheet: { what, turn: number }, close }) {
  const { file, queue } = state;
  const turn = queue?.turns.find((one) => one.turn === number);
  const changes = what === "file" ? (file ? leftIn(file) : 0) : (turn?.files.reduce((n, one) => n + one.changes, 0) ?? 0);
  const names = what === "turn" ? (turn?.files.map(({ document }) => queue?.files.find((one) => one.document === document)?.name ?? "") ?? []) : [];
  const act = (/** @type {"accept" | "reject"} */ action) => () => decideOnWhole(action, what, number);
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.repeat || (event.key !== "a" && event.key !== "x")) return;
    event.preventDefault();
    act(event.key === "a" ? "accept" : "reject")();
  };
  const foot = html`<span class="grow"></span><button type="button" class="b" onClick=${close}>Cancel</button>
    <button type="button" class="b" onClick=${act("accept")} aria-keyshortcuts="a"><span class="yes"><${Icon} name="check" /></span>Accept ${counted(changes, "change")} <kbd class="desk" aria-hidden="true">a</kbd></button>
    <button type="button" class="b" onClick=${act("reject")} aria-keyshortcuts="x"><span class="nay"><${Icon} name="cross" /></span>Reject ${counted(changes, "change")} <kbd class="desk" aria-hidden="true">x</kbd></button>`;
  return html`<${Dialog} title=${what === "file" ? "The rest of the file" : `The whole of turn ${number}`} close=${close} foot=${foot} onKey=${pressed}>
    ${what === "file" ? html`<p><b class="mono">${file?.name}</b>: ${counted(changes, "change")} left to decide, of all turns.</p>`
      : html`<p>${short(turn?.prompt ?? "", 400)}</p><p class="dim">${counted(changes, "change")} left, in ${counted(names.length, "file")}. Files that other turns changed too keep those changes.</p>
        <ul class="effects small">${names.slice(0, 30).map((name) => html`<li key=${name} class="mono">${name}</li>`)}${names.length > 30 && html`<li>and ${counted(names.length - 30, "more file")}</li>`}</ul>`}
  <//>`;
}
