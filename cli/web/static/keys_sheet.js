// The dialog with all keys, and the switch that turns them off.

import { keysHere, switchKeys } from "./keys.js";
import { state } from "./state.js";
import { html } from "./vendor/preact-htm.js";

/** All keys of the screen with what they do. */
export function KeysSheet() {
  const switched = (/** @type {Event} */ event) => switchKeys(/** @type {HTMLInputElement} */ (event.target).checked);
  return html`<dl class="all-keys">${keysHere().map(({ key, words }) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${words}</dd></div>`)}</dl>
    <p><label class="check"><input type="checkbox" checked=${state.has_keys} onChange=${switched} /> Use single keys. Every action has a button too.</label></p>
    <p class="small dim">The terminal’s review has the same keys. On other screens some do nothing, and are not listed there. Keys that are pressed while something loads are kept.</p>`;
}
