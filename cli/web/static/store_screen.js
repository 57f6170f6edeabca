// The screen of the store: its size, the activity turn by turn, and what gc would free, each plot with its table.

/** @import {Store} from "./types.d.ts" */
import { get, Refused } from "./api.js";
import { Prose } from "./lines.js";
import { PlotFigure } from "./plot.js";
import { state } from "./state.js";
import { html, useEffect, useState } from "./vendor/preact-htm.js";

/** Numbers and plots of the store. */
export function StoreScreen() {
  const [store, show] = useState(/** @type {Store | null} */ (null));
  const [error, fail] = useState("");
  const version = state.queue?.version;
  useEffect(() => {
    get("store").then(show, (refusal) => fail(refusal instanceof Refused ? refusal.message : String(refusal)));
  }, [version]);
  return html`<div class="screen"><div class="pane" tabindex="0" role="region" aria-label="Store">
    <div class="filehead"><h2>Store</h2>
      ${error && html`<p role="alert" class="note warn">${error}</p>`}
      ${!store && !error && html`<p role="status">Loading …</p>`}</div>
    ${store && html`<div class="pad">
      <table class="facts"><tbody>${store.facts.map(({ name, value }) => html`<tr key=${name}><th scope="row">${name}</th><td>${value}</td></tr>`)}</tbody></table>
      <h3>What gc would free</h3>
      <p><${Prose} text=${store.gc} /></p>
      <${PlotFigure} name="store" />
      <${PlotFigure} name="activity" />
    </div>`}
  </div></div>`;
}
