// A dialog: the focus moves to its first control, and back when it closes; Escape and its button close it.

/** @import {Child} from "./vendor/preact-htm.js" */
import { Icon } from "./icons.js";
import { html, useLayoutEffect, useRef } from "./vendor/preact-htm.js";

/** A dialog. @param {{ title: string, children: Child, close: () => void, foot?: Child, kind?: string, onKey?: (event: KeyboardEvent) => void }} properties */
export function Dialog({ title, children, close, foot = null, kind = "", onKey }) {
  const own = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useLayoutEffect(() => {
    const dialog = own.current;
    const before = document.activeElement;
    dialog?.showModal();
    if (dialog && !dialog.querySelector("[autofocus]")) firstOf(dialog)?.focus();
    return () => {
      dialog?.close(); // elements outside an open dialog can't have the focus
      const current = document.querySelector(".change.now");
      const back = before?.isConnected && before !== document.body ? before : current;
      if (back instanceof HTMLElement) back.focus({ preventScroll: true });
    };
  }, []);
  // The event arrives late: that of a removed dialog must not close the next one.
  const closed = (/** @type {Event} */ event) => /** @type {Element} */ (event.target).isConnected && close();
  return html`<dialog class=${`sheet ${kind}`} ref=${own} aria-labelledby="sheet-title" onCancel=${close} onClose=${closed} onKeyDown=${onKey}>
    <header><div class="grow"><h2 id="sheet-title">${title}</h2></div>
      <button type="button" class="b icon plain" onClick=${close} aria-label="Close"><${Icon} name="cross" /></button></header>
    <div class="body" tabindex="0" role="region" aria-label="Details">${children}</div>
    ${foot && html`<footer>${foot}</footer>`}
  </dialog>`;
}

/** Return where to begin: the first control, but not the button that closes the dialog; if that is further down than is shown, the text above. @param {HTMLDialogElement} dialog @returns {HTMLElement | null} */
function firstOf(dialog) {
  /** @type {HTMLElement | null} */
  const body = dialog.querySelector(".body");
  /** @type {HTMLElement | null} */
  const control = dialog.querySelector(".body :is(a[href], button, input, select, textarea), footer button");
  return body && control && body.scrollHeight <= body.clientHeight ? control : body;
}
