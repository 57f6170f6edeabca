// One line of a diff as an element: number, sign, and text with differing words marked and syntax coloured.

/** @import {Row} from "./types.d.ts" */
import { element } from "./elements.js";

/** @typedef {[start: number, end: number, kind: string]} Mark */

const CLASSES = { " ": "same", "-": "del", "+": "ins", "~": "gap" };

/** How a row is drawn. @typedef {{ digits: number, sides: "both" | "old" | "new", more: (row: Row, into: HTMLElement) => void }} Look */

/** Return the element of a row other than a gap. @param {Row} row @param {Look} look */
export function rowElement(row, look) {
  const made = element("div", { class: `row ${CLASSES[row.k]}`, "data-n": numbers(row, look) });
  paint(made, row, [], look);
  return made;
}

/** Return the line numbers of a row, padded to align in columns. @param {Row} row @param {Look} look */
function numbers(row, { digits, sides }) {
  const padded = (/** @type {number | undefined} */ n) => String(n ?? "").padStart(digits);
  if (sides === "old") return padded(row.o);
  if (sides === "new") return padded(row.n);
  return `${padded(row.o)} ${padded(row.n)}`;
}

/** Write a row's text into its element. @param {HTMLElement} into @param {Row} row @param {readonly Mark[]} marks @param {Look} look */
export function paint(into, row, marks, look) {
  const pieces = [];
  for (const [start, end, classes] of spans(row.t.length, row.w ?? [], marks)) {
    const text = row.t.slice(start, end);
    pieces.push(classes ? element("span", { class: classes }, text) : text);
  }
  if (row.t === "") pieces.push("\u200b");
  if (row.cut) {
    const text = `… ${row.cut.toLocaleString("en")} more characters`;
    pieces.push(element("button", { type: "button", class: "more", onclick: () => look.more(row, into) }, text));
  }
  if (row.end && row.k !== " ") pieces.push(element("span", { class: "end" }, row.end));
  into.replaceChildren(...pieces);
}

/**
 * Divide a text at the ends of differing words and of syntax marks.
 * @param {number} length @param {readonly (readonly [number, number])[]} words @param {readonly Mark[]} marks
 * @returns {[start: number, end: number, classes: string][]}
 */
export function spans(length, words, marks) {
  const places = new Set([0, length]);
  for (const [start, end] of [...words, ...marks]) places.add(Math.min(start, length)).add(Math.min(end, length));
  const ordered = [...places].sort((a, b) => a - b);
  /** @type {[number, number, string][]} */
  const found = [];
  let word = 0;
  let mark = 0;
  for (let i = 0; i + 1 < ordered.length; i += 1) {
    const start = ordered[i];
    while (word < words.length && words[word][1] <= start) word += 1;
    while (mark < marks.length && marks[mark][1] <= start) mark += 1;
    const classes = [];
    if (word < words.length && words[word][0] <= start) classes.push("word");
    if (mark < marks.length && marks[mark][0] <= start) classes.push(marks[mark][2]);
    found.push([start, ordered[i + 1], classes.join(" ")]);
  }
  return found;
}

/**
 * Pair rows for the side-by-side view: the first removed line with the first inserted one, and so on.
 * @param {readonly { row: Row, index: number }[]} rows @returns {[{ row: Row, index: number } | null, { row: Row, index: number } | null][]}
 */
export function paired(rows) {
  /** @type {[{ row: Row, index: number } | null, { row: Row, index: number } | null][]} */
  const pairs = [];
  for (let i = 0; i < rows.length; ) {
    if (rows[i].row.k === " ") {
      pairs.push([rows[i], rows[i]]);
      i += 1;
      continue;
    }
    let j = i;
    while (j < rows.length && rows[j].row.k === "-") j += 1;
    let k = j;
    while (k < rows.length && rows[k].row.k === "+") k += 1;
    for (let at = 0; at < Math.max(j - i, k - j); at += 1) {
      pairs.push([i + at < j ? rows[i + at] : null, j + at < k ? rows[j + at] : null]);
    }
    i = Math.max(k, i + 1);
  }
  return pairs;
}
