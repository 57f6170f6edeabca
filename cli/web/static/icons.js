// The page's icons, drawn by symbols of index.html: each next to a word, or on a button that has a label.

import { html } from "./vendor/preact-htm.js";

const SVG = "http://www.w3.org/2000/svg";

/** An icon for preact. @param {{ name: string, kind?: string }} properties */
export function Icon({ name, kind = "" }) {
  return html`<svg aria-hidden="true" class=${kind || null}><use href=${`#i-${name}`} /></svg>`;
}

/** Return an icon as an element. @param {string} name */
export function iconElement(name) {
  const made = document.createElementNS(SVG, "svg");
  made.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#i-${name}`);
  made.append(use);
  return made;
}
