// The store: its size, what the agents did turn by turn, and what gc would free, each plot with its table.

/** @import {Plot, Store} from "./types.d.ts" */
import { get, Refused } from "./api.js";
import { Prose } from "./lines.js";
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
      <${Figure} name="store" version=${version ?? ""} />
      <${Figure} name="activity" version=${version ?? ""} />
    </div>`}
  </div></div>`;
}

/** A plot with its table. @param {{ name: string, version: string }} properties */
function Figure({ name, version }) {
  const [plot, show] = useState(/** @type {Plot | null} */ (null));
  useEffect(() => {
    fetch(`/plots/${name}.json`, { credentials: "same-origin" }).then(async (answer) => answer.ok && show(await answer.json()), () => undefined);
  }, [version]);
  return plot && html`<figure class="plot">
    <figcaption><h3>${plot.title}</h3><p><${Prose} text=${plot.summary} /></p></figcaption>
    <img key=${version} src=${`/plots/${name}.svg`} alt=${plot.summary} />
    <details><summary>The same as a table</summary><div class="lines" tabindex="0" role="group" aria-label=${plot.title}>
      <table class="facts"><thead><tr>${plot.columns.map((word) => html`<th scope="col" key=${word}>${word}</th>`)}</tr></thead>
      <tbody>${plot.rows.map((cells, at) => html`<tr key=${at}>${cells.map((cell, column) => html`<td key=${column}>${cell}</td>`)}</tr>`)}</tbody></table></div></details>
  </figure>`;
}
