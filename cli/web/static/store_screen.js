// The screen of the store: its size, the activity turn by turn, and what gc would free, each plot with its table.

/** @import {Store} from "./types.d.ts" */
import { useAnswer } from "./api.js";
import { Prose } from "./lines.js";
import { PlotFigure } from "./plot.js";
import { html } from "./vendor/preact-htm.js";

/** Numbers and plots of the store. */
export function StoreScreen() {
  const [store, error] = /** @type {[Store | null, string]} */ (useAnswer("/api/store"));
  return html`<main class="page store-page" id="file" tabindex="-1"><div class="in">
    <div><h1>Store</h1><p class="dim">Every state of every file that was edited, kept until nothing needs it.</p>
      ${error && html`<p role="alert" class="note warn">${error}</p>`}
      ${!store && !error && html`<p role="status">Loading …</p>`}</div>
    ${store && html`
      <dl class="figures">${store.facts.map(({ name, value }) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
      <section aria-label="What can be freed"><h2>What can be freed</h2><p><${Prose} text=${store.gc} /></p></section>
      <${PlotFigure} name="store" words="The curve shows when the bytes that are here now were added, and the column how many these are." />
      <${PlotFigure} name="activity" />
    `}
  </div></main>`;
}
