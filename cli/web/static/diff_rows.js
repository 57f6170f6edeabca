// One line of a diff as an element: its numbers, its sign, and its text with differing words, white space and syntax marked.

/** @import {Row} from "./types.d.ts" */
import { element } from "./elements.js";

/** @typedef {[start: number, end: number, kind: string]} Mark */
/** How a row is drawn. `is_space`: white space is the change, so all of it is drawn. @typedef {{ more: (row: Row, into: HTMLElement) => void, is_space?: boolean }} Look */
/** A row and its place in the diff; -1: it is a line of an opened gap. @typedef {{ row: Row, index: number }} Placed */

const KINDS = { " ": "same", "-": "del", "+": "add", "~": "gap" };
const SAID = { "-": "removed", "+": "added" };
const MOVED = { "-": "moved away", "+": "moved here" };
/** Classes of the syntax marks. @type {Record<string, string>} */
const SYNTAX = { keyword: "k", string: "s", comment: "m", number: "n1", name: "f" };
/** Characters of a line that is no longer wrapped: a browser takes seconds to break it. */
const HUGE = 4000;
/** Columns of indentation below which a wrapped line hangs at most. */
const DEEPEST = 40;

/** Return the element of a row other than a gap, and the element with its text. @param {Row} row @param {Look} look @returns {[HTMLElement, HTMLElement]} */
export function rowElement(row, look) {
  const text = element("span", { class: "c" });
  const made = element("div", { class: `r ${row.moved ? "mv" : KINDS[row.k]}` }, number(row.o, "n old"), number(row.n, "n"), sign(row), text);
  paint(text, row, [], look);
  return [made, text];
}

/** Return two rows that are next to each other, and the elements with their texts. @param {Placed | null} before @param {Placed | null} after @param {Look} look @returns {[HTMLElement, HTMLElement[]]} */
export function pairElement(before, after, look) {
  const made = element("div", { class: before && before === after ? "r pair eq" : "r pair" });
  const texts = [before, after].map((each, at) => {
    if (!each) {
      made.append(...["n none", "g none", `c none ${at ? "rt" : "l"}`].map((name) => element("span", { class: name })));
      return null;
    }
    const { row } = each;
    const kind = row.k === " " ? "" : ` ${row.moved ? "mv" : KINDS[row.k]}`;
    const text = element("span", { class: `c ${at ? "rt" : "l"}${kind}` });
    made.append(number(at ? row.n : row.o, `n${kind}`), sign(row, kind), text);
    paint(text, row, [], look);
    return text;
  });
  return [made, texts.filter((text) => text !== null)];
}

/** @param {number | undefined} n @param {string} name */
function number(n, name) {
  return element("span", { class: name }, n === undefined ? "" : String(n));
}

/** @param {Row} row @param {string} [kind] */
function sign(row, kind = "") {
  const made = element("span", { class: `g${kind}` });
  if (row.k === "-" || row.k === "+") made.append(row.k === "-" ? "−" : "+", element("span", { class: "sr" }, ` ${(row.moved ? MOVED : SAID)[row.k]}`));
  return made;
}

/** Write a row's text into its element. @param {HTMLElement} into @param {Row} row @param {readonly Mark[]} marks @param {Look} look */
export function paint(into, row, marks, look) {
  /** @type {(Node | string)[]} */
  const pieces = [];
  const words = row.w ?? [];
  for (const [start, end, classes, is_word] of spans(row.t.length, words, marks)) {
    const text = row.t.slice(start, end);
    const is_space = is_word ? look.is_space || isBlank(row.t, words, start) : look.is_space && row.k !== " " && !words.length;
    const drawn = is_space ? spaces(text) : [text];
    if (classes) pieces.push(element("span", { class: classes }, ...drawn));
    else pieces.push(...drawn);
  }
  if (row.cut) {
    const text = `… ${row.cut.toLocaleString("en")} more characters`;
    pieces.push(element("button", { type: "button", class: "rest", onclick: () => look.more(row, into) }, text));
  }
  if (row.end && row.k !== " ") pieces.push(element("span", { class: "end" }, row.end));
  into.replaceChildren(...pieces);
  into.classList.toggle("huge", row.t.length > HUGE);
  const deep = Math.min(DEEPEST, columns(row.t));
  if (deep) into.style.setProperty("--i", String(deep));
}

/** Return whether the differing word at a place is white space alone: syntax marks divide words. @param {string} text @param {readonly (readonly [number, number])[]} words @param {number} at */
function isBlank(text, words, at) {
  const [start, end] = words.find((word) => word[0] <= at && at < word[1]) ?? [at, at];
  return !text.slice(start, end).trim();
}

/** Return the columns of a line's indentation. @param {string} text */
function columns(text) {
  let found = 0;
  for (const character of text) {
    if (character === " ") found += 1;
    else if (character === "\t") found += 4 - (found % 4);
    else break;
  }
  return found;
}

/** Return a text in pieces of which each space and tab is drawn over; what is copied stays true. @param {string} text */
function spaces(text) {
  return text.split(/([ \t])/).filter(Boolean).map((piece) => {
    if (piece === " ") return element("span", { class: "sp" }, piece);
    return piece === "\t" ? element("span", { class: "tab" }, piece) : piece;
  });
}

/**
 * Divide a text at the ends of differing words and of syntax marks.
 * @param {number} length @param {readonly (readonly [number, number])[]} words @param {readonly Mark[]} marks
 * @returns {[start: number, end: number, classes: string, is_word: boolean][]}
 */
export function spans(length, words, marks) {
  const places = new Set([0, length]);
  for (const [start, end] of [...words, ...marks]) places.add(Math.min(start, length)).add(Math.min(end, length));
  const ordered = [...places].sort((a, b) => a - b);
  /** @type {[number, number, string, boolean][]} */
  const found = [];
  let word = 0;
  let mark = 0;
  for (let i = 0; i + 1 < ordered.length; i += 1) {
    const start = ordered[i];
    while (word < words.length && words[word][1] <= start) word += 1;
    while (mark < marks.length && marks[mark][1] <= start) mark += 1;
    const classes = [];
    const is_word = word < words.length && words[word][0] <= start;
    if (is_word) classes.push("w");
    if (mark < marks.length && marks[mark][0] <= start) classes.push(SYNTAX[marks[mark][2]] ?? "");
    found.push([start, ordered[i + 1], classes.join(" ").trim(), is_word]);
  }
  return found;
}

/**
 * Pair rows for the side-by-side view: the first removed line with the first added one, and so on.
 * @param {readonly Placed[]} rows @returns {[Placed | null, Placed | null][]}
 */
export function paired(rows) {
  /** @type {[Placed | null, Placed | null][]} */
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
