// What was on the screen: the rows of changes and of single hunks that were in the document, visible and not cut. A
// decision carries them, and the server refuses one that covers others.
//
// An element that shows a row has the key of its change (or the name of its hunk) as `data-of`, and the number of the
// row within it, from 0, as `data-at`; one that shows a change without rows in words has `data-of` alone. A row of which
// not all characters are shown has `data-cut`.

/** @import {OnScreen, Row, Span} from "./types.d.ts" */

/** The numbers of the rows that were shown, by key or hunk. @type {Map<string, Set<number>>} */
const shown = new Map();
/** Elements that were looked at already. @type {WeakSet<Element>} */
const noted = new WeakSet();

/** Mark an element as the row of a change or hunk. @param {HTMLElement} made @param {string} of @param {number} at @param {Row} row */
export function markRow(made, of, at, row) {
  made.dataset.of = of;
  made.dataset.at = String(at);
  if (row.cut) made.dataset.cut = "";
}

/**
 * Note what is shown now in a part of the document. Rows are visible if their section or box is: to ask for each row would
 * lay out what the browser has put off, once a row.
 * @param {ParentNode | null} [root]
 */
export function look(root = document) {
  /** @type {Map<Element, boolean>} */
  const visible = new Map();
  for (const found of root?.querySelectorAll("[data-of]:not([data-cut])") ?? []) {
    const made = /** @type {HTMLElement} */ (found);
    if (noted.has(made)) continue;
    const holder = made.closest(".rows, .lines") ?? made;
    if (!visible.has(holder)) visible.set(holder, holder.checkVisibility({ visibilityProperty: true }));
    if (!visible.get(holder)) continue;
    noted.add(made);
    const of = made.dataset.of ?? "";
    if (!shown.has(of)) shown.set(of, new Set());
    if (made.dataset.at !== undefined) shown.get(of)?.add(Number(made.dataset.at));
  }
}

/** Return what was on the screen of some changes and hunks. @param {Iterable<string> | null} [names] null: of all changes @returns {OnScreen} */
export function onScreen(names = null) {
  look();
  /** @type {OnScreen} */
  const found = {};
  for (const name of names ?? shown.keys()) {
    const rows = shown.get(name);
    if (rows && (names || !name.includes(":"))) found[name] = ranges(rows);
  }
  return found;
}

/** Return numbers as ranges. @param {Iterable<number>} numbers @returns {Span[]} */
function ranges(numbers) {
  /** @type {Span[]} */
  const found = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const last = found.at(-1);
    if (last && last[1] === number) last[1] += 1;
    else found.push([number, number + 1]);
  }
  return found;
}
