// Dialogs with the questions of a decision, and the facts that a person needs to answer them.

/** @import {Child} from "./vendor/preact-htm.js" */
/** @import {Conflict, Effect} from "./types.d.ts" */
/** @import {Sheet} from "./state.js" */
import { CommentSheet, RejectSheet } from "./comment_sheet.js";
import { EditsSheet } from "./edits_sheet.js";
import { KeysSheet } from "./keys_sheet.js";
import { EditLine, Lines } from "./lines.js";
import { set, state } from "./state.js";
import { UnshownSheet } from "./unshown_sheet.js";
import { html, useLayoutEffect, useRef } from "./vendor/preact-htm.js";
import { ago } from "./words.js";

/** Close the open dialog; nothing is decided. */
export function closeSheet() {
  set({ sheet: null });
}

/** The open dialog. */
export function Sheets() {
  const { sheet } = state;
  switch (sheet?.kind) {
    case "conflicted":
      return html`<${Conflicted} sheet=${sheet} />`;
    case "external":
      return html`<${External} sheet=${sheet} />`;
    case "confirm":
      return html`<${Confirm} sheet=${sheet} />`;
    case "unshown":
      return html`<${Dialog} title="Not on the screen yet"><${UnshownSheet} sheet=${sheet} close=${closeSheet} /><//>`;
    case "running":
      return html`<${Running} sheet=${sheet} />`;
    case "restore":
      return html`<${Restore} sheet=${sheet} />`;
    case "edits":
      return html`<${Dialog} title=${sheet.splitting ? "Split: take out a part" : "Single edits"}><${EditsSheet} sheet=${sheet} /><//>`;
    case "comment":
      return html`<${Dialog} title=${`Comment on ${sheet.where}`}><${CommentSheet} sheet=${sheet} close=${closeSheet} /><//>`;
    case "reject":
      return html`<${Dialog} title=${`Reject ${sheet.where}`}><${RejectSheet} sheet=${sheet} close=${closeSheet} /><//>`;
    case "keys":
      return html`<${Dialog} title="Keys"><${KeysSheet} /><//>`;
    default:
      return null;
  }
}

/** A dialog; Escape and its button close it, and the focus goes back. @param {{ title: string, children: Child }} properties */
function Dialog({ title, children }) {
  const own = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useLayoutEffect(() => {
    const dialog = own.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close(); // elements outside an open dialog can't have the focus
      const current = document.querySelector(".head.current");
      const back = before?.isConnected && before !== document.body ? before : current;
      if (back instanceof HTMLElement) back.focus({ preventScroll: true });
    };
  }, []);
  // The event arrives late: that of a removed dialog must not close the next one.
  const closed = (/** @type {Event} */ event) => /** @type {Element} */ (event.target).isConnected && closeSheet();
  return html`<dialog ref=${own} aria-labelledby="sheet-title" onCancel=${closeSheet} onClose=${closed}>
    <div class="top"><h2 id="sheet-title">${title}</h2>
    <button type="button" onClick=${closeSheet}>Close</button></div>
    ${children}
  </dialog>`;
}

/** A conflict: which edits need which, and the ways out. @param {{ sheet: Extract<Sheet, { kind: "conflicted" }> }} properties */
function Conflicted({ sheet: { outcome, again } }) {
  const all = new Map(outcome.conflicts.map((conflict) => [`${conflict.unit} ${conflict.needs} ${conflict.line}`, conflict]));
  return html`<${Dialog} title="Other edits need this">
    <p>${outcome.message}</p>
    <ul class="conflicts">${[...all].map(([name, conflict]) => html`<li key=${name}><${Need} conflict=${conflict} /></li>`)}</ul>
    ${outcome.accept_first.length > 0 && html`<p>To keep them, accept ${outcome.accept_first.join(", ")} first.</p>`}
    ${outcome.reject_first.length > 0 && html`<p>${outcome.accept_first.length > 0 ? "Or reject" : "Reject"} ${outcome.reject_first.join(", ")} first.</p>`}
    ${outcome.can_cascade && html`<${Effects} title="With the edits that need it, this happens:" effects=${outcome.cascade} />`}
    ${outcome.can_keep_lines && html`<${Effects} title="With the lines of others kept, this happens:" effects=${outcome.keep_lines} />`}
    <div class="acts">
      ${outcome.can_keep_lines && html`<button type="button" onClick=${() => again({ keep_lines: true, ticket: outcome.ticket })}>Keep the lines of others</button>`}
      ${outcome.can_cascade && html`<button type="button" onClick=${() => again({ cascade: true, ticket: outcome.ticket })}>Reject these too</button>`}
      ${outcome.can_mark && html`<button type="button" onClick=${() => again({ markers: true, ticket: outcome.ticket })}>Write conflict markers</button>`}
      <button type="button" onClick=${closeSheet}>Leave it as it is</button>
    </div>
  <//>`;
}

/** One hunk that needs others. @param {{ conflict: Conflict }} properties */
function Need({ conflict }) {
  return html`<p><span class="name">${conflict.name}:${conflict.line}</span>: hunk ${conflict.unit} needs ${conflict.needs.join(", ")}.</p>
    <${Lines} rows=${[...conflict.removed.map((t) => ({ k: "-", t })), ...conflict.inserted.map((t) => ({ k: "+", t }))]} label=${`Lines of ${conflict.unit}`} />
    <ul class="edits">${conflict.edits.map((edit) => html`<li key=${edit.seq}><${EditLine} edit=${edit} /></li>`)}</ul>`;
}

/** A list of the effects on files. @param {{ title: string, effects: Effect[] }} properties */
function Effects({ title, effects }) {
  return html`<p>${title}</p><ul class="effects">${effects.map(({ name, words }) => html`<li key=${name}>${words}</li>`)}</ul>`;
}

/** The question about files that were changed outside. @param {{ sheet: Extract<Sheet, { kind: "external" }> }} properties */
function External({ sheet: { outcome, again } }) {
  const answer = (/** @type {"keep" | "discard"} */ on_external) => () => again({ on_external, ticket: outcome.ticket });
  return html`<${Dialog} title="Changed outside meanwhile">
    <p>${outcome.message}</p>
    <ul class="conflicts">${outcome.changes.map(({ path, name, what, rows }) => html`<li key=${path}>
      <p><span class="name">${name}</span> ${what}</p><${Lines} rows=${rows} label=${`What changed in ${name}`} /></li>`)}</ul>
    <div class="acts">
      <button type="button" onClick=${answer("keep")}>Keep the changes</button>
      <button type="button" onClick=${answer("discard")}>Discard them</button>
      <button type="button" onClick=${closeSheet}>Abort: decide nothing</button>
    </div>
  <//>`;
}

/** The question before a decision on more than was on the screen. @param {{ sheet: Extract<Sheet, { kind: "confirm" }> }} properties */
function Confirm({ sheet: { outcome, again } }) {
  return html`<${Dialog} title="More goes along">
    <p>${outcome.message}</p>
    <div class="acts">
      <button type="button" onClick=${() => again({ ticket: outcome.ticket })}>Go ahead</button>
      <button type="button" onClick=${closeSheet}>Leave it as it is</button>
    </div>
  <//>`;
}

/** The question about a running call that may change the files. @param {{ sheet: Extract<Sheet, { kind: "running" }> }} properties */
function Running({ sheet: { outcome, again } }) {
  return html`<${Dialog} title="An agent is at work">
    <p>${outcome.message}</p>
    <ul>${outcome.calls.map(({ client, tool, began, names }) => html`<li>${client} runs ${tool}, since ${ago(began)}${names.length ? `: ${names.join(", ")}` : ""}</li>`)}</ul>
    <div class="acts">
      <button type="button" onClick=${() => again({ running: "wait" })}>Wait for the end of the turn</button>
      <button type="button" onClick=${() => again({ running: "now" })}>Reject now</button>
      <button type="button" onClick=${closeSheet}>Leave it as it is</button>
    </div>
  <//>`;
}

/** The question before a restore, with its effects. @param {{ sheet: Extract<Sheet, { kind: "restore" }> }} properties */
function Restore({ sheet: { message, effects, again } }) {
  return html`<${Dialog} title="Restore">
    <p>${message}</p>
    <${Effects} title="This happens to your files, as an edit of yours that you can reject:" effects=${effects} />
    <div class="acts">
      <button type="button" onClick=${() => again({ dry_run: false })}>Restore</button>
      <button type="button" onClick=${closeSheet}>Leave it as it is</button>
    </div>
  <//>`;
}
