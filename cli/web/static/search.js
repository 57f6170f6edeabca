// Search in the history: by inserted or removed text, by path, or by prompt.

/** @import {Search} from "./types.d.ts" */
import { get, Refused } from "./api.js";
import { EditLine, Lines } from "./lines.js";
import { blameAddress, searchAddress, timelineAddress } from "./routes.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { counted } from "./words.js";

/** The search form and its results. @param {{ text: string, where: "text" | "path" | "prompt" }} properties */
export function SearchScreen({ text, where }) {
  const [found, show] = useState(/** @type {Search | null} */ (null));
  const [error, fail] = useState("");
  const [is_asking, wait] = useState(false);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const choice = useRef(/** @type {HTMLSelectElement | null} */ (null));
  const ask = async (/** @type {number | undefined} */ before) => {
    wait(true);
    try {
      const more = /** @type {Search} */ (await get("search", { q: text, in: where, before }));
      show((/** @type {Search | null} */ known) => (known && before !== undefined ? { ...more, hits: [...known.hits, ...more.hits] } : more));
      fail("");
    } catch (refusal) {
      if (!(refusal instanceof Refused)) throw refusal;
      fail(refusal.message);
    }
    wait(false);
  };
  useEffect(() => {
    show(null);
    if (text) ask(undefined);
  }, [text, where]);
  useLayoutEffect(() => field.current?.focus(), []);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    location.hash = searchAddress(field.current?.value ?? "", choice.current?.value ?? "text");
  };
  return html`<main class="page search-page" id="file" tabindex="-1"><div class="in">
    <div><h1>Search</h1><p class="dim">Finds every text that an edit added or removed, whatever was decided.</p></div>
    <div>
      <form role="search" class="chips" onSubmit=${submit}>
        <input type="search" ref=${field} defaultValue=${text} aria-label="What to search for" required />
        <select ref=${choice} aria-label="Where to search">
          ${[["text", "in inserted and removed lines"], ["path", "in paths"], ["prompt", "in prompts"]].map(([value, words]) => html`<option key=${value} value=${value} selected=${value === where}>${words}</option>`)}
        </select>
        <button type="submit" class="b main">Search</button>
      </form>
      <p class="small dim" role="status">${is_asking ? "Searching …" : found ? foundWords(found, text) : ""}</p>
      ${error && html`<p role="alert" class="note warn">${error}</p>`}
    </div>
    ${found && html`<ol class="hits items">${found.hits.map(({ edit, rows }) => html`<li key=${edit.seq}>
      <p><a href=${timelineAddress(edit.path)}><span class="name">${edit.name}</span></a> · <${EditLine} edit=${edit} /></p>
      <${Lines} rows=${rows} label=${`Lines of edit ${edit.seq}`} />
      <p><a href=${blameAddress(edit.path)}>Blame</a></p></li>`)}</ol>
      ${found.more && html`<p><button type="button" class="b" disabled=${is_asking} onClick=${() => ask(found.before)}>Search further back</button></p>`}`}
  </div></main>`;
}

/** @param {Search} found @param {string} text */
function foundWords({ hits, more }, text) {
  if (!hits.length) return `No edit ${more ? "so far " : ""}has “${text}” there.`;
  return `${counted(hits.length, "edit")}${more ? " so far" : ""}`;
}
