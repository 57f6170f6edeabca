// A menu of actions behind one button.

import { Icon } from "./icons.js";
import { html, useEffect, useRef } from "./vendor/preact-htm.js";

/** An action of a menu; `why`: why it is not possible. @typedef {{ words: string, act: () => unknown, letter?: string, why?: string }} Item */

/** A button with a menu, which closes after a choice, by Escape, and by a click elsewhere. @param {{ label: string, icon: string, items: readonly Item[], kind?: string, look?: string }} properties */
export function Menu({ label, icon, items, kind = "", look = "b icon plain" }) {
  const own = useRef(/** @type {HTMLDetailsElement | null} */ (null));
  const close = () => own.current?.removeAttribute("open");
  useEffect(() => {
    const elsewhere = (/** @type {Event} */ event) => event.target instanceof Node && !own.current?.contains(event.target) && close();
    document.addEventListener("pointerdown", elsewhere);
    return () => document.removeEventListener("pointerdown", elsewhere);
  }, []);
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || !own.current?.open) return;
    event.preventDefault();
    event.stopPropagation();
    close();
    own.current.querySelector("summary")?.focus();
  };
  const chosen = (/** @type {Item} */ item) => () => {
    close();
    item.act();
  };
  return html`<details class=${`menu ${kind}`} ref=${own} onKeyDown=${pressed}>
    <summary class=${look} aria-label=${label} title=${label}><${Icon} name=${icon} /></summary>
    <ul>${items.map((item) => html`<li key=${item.words}><button type="button" onClick=${chosen(item)} disabled=${!!item.why} title=${item.why || null}
      aria-keyshortcuts=${item.letter ?? null}>${item.words}${item.letter && html`<kbd aria-hidden="true">${item.letter}</kbd>`}</button></li>`)}</ul>
  </details>`;
}
