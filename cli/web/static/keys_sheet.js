// The dialog with all keys, and the switch that turns them off.

import { KEYS, switchKeys } from "./keys.js";
import { state } from "./state.js";
import { html } from "./vendor/preact-htm.js";

/** All keys with what they do. */
export function KeysSheet() {
  const switched = (/** @type {Event} */ event) => switchKeys(/** @type {HTMLInputElement} */ (event.target).checked);
  return html`<table class="keys"><thead><tr><th scope="col">Key</th><th scope="col">does</th></tr></thead>
    <tbody>${KEYS.map(({ key, words }) => html`<tr key=${key}><th scope="row"><kbd>${key}</kbd></th><td>${words}</td></tr>`)}</tbody></table>
    <p><label class="check"><input type="checkbox" checked=${state.has_keys} onChange=${switched} /> Use single keys. Every action has a button too.</label></p>`;
}
