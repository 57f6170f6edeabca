// A plot that the server draws, with a table of the same numbers.

/** @import {Plot} from "./types.d.ts" */
import { address, useAnswer } from "./api.js";
import { Prose } from "./lines.js";
import { secret } from "./secret.js";
import { state } from "./state.js";
import { html } from "./vendor/preact-htm.js";

/** A plot with its table. @param {{ name: "store" | "activity" | "file", path?: string, words?: string }} properties `path`: of the file; `words`: in place of the summary, where the page says that already */
export function PlotFigure({ name, path, words }) {
  const [plot] = /** @type {[Plot | null, string]} */ (useAnswer(`/plots/${name}.json`, { path }));
  const version = state.queue?.version;
  return plot && html`<figure class="figure">
    <figcaption><h2>${plot.title}</h2><p class="dim"><${Prose} text=${words ?? plot.summary} /></p></figcaption>
    <img key=${version} src=${`${address(`/plots/${name}.svg`, { path, secret: secret() })}#untitled`} alt=${plot.summary} />
    <details><summary>The same as a table</summary><div class="scrolls" tabindex="0" role="group" aria-label=${plot.title}>
      <table class="table"><thead><tr>${plot.columns.map((word) => html`<th scope="col" key=${word}>${word}</th>`)}</tr></thead>
      <tbody>${plot.rows.map((cells, at) => html`<tr key=${at}>${cells.map((cell, column) => html`<td key=${column}>${cell}</td>`)}</tr>`)}</tbody></table></div></details>
  </figure>`;
}
