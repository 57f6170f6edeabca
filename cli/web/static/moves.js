// Lines that only moved within a file: found among the removed and added rows, to be shown as such.

/** @import {Row} from "./types.d.ts" */
/** @import {Moved} from "./change_head.js" */

/** Least lines and characters of a block that counts as moved; shorter ones are equal by chance. */
const LEAST_LINES = 2;
const LEAST_CHARACTERS = 24;
const MOST_PLACES = 20;

/**
 * Mark the rows that moved within their file; return for each change that holds nothing else where its other end is.
 * @param {readonly Row[]} rows @returns {Map<number, Moved>}
 */
export function markMoves(rows) {
  /** @type {Map<string, number[]>} */
  const added = new Map();
  rows.forEach(({ k, t }, at) => k === "+" && t.trim() && added.set(t, [...(added.get(t) ?? []), at].slice(0, MOST_PLACES)));
  /** @type {Map<number, Moved>} */
  const ends = new Map();
  for (let at = 0; at < rows.length; at += 1) {
    if (rows[at].k !== "-") continue;
    const [to, length] = longest(rows, at, added.get(rows[at].t) ?? []);
    if (length < LEAST_LINES || characters(rows.slice(at, at + length)) < LEAST_CHARACTERS) continue;
    for (let i = 0; i < length; i += 1) rows[at + i].moved = rows[to + i].moved = true;
    ends.set(rows[at].c ?? -1, { row: to, line: rows[to].n ?? 0, is_away: true });
    ends.set(rows[to].c ?? -1, { row: at, line: rows[at].o ?? 0, is_away: false });
    at += length - 1;
  }
  for (const { k, c, moved } of rows) if (c !== undefined && k !== " " && !moved) ends.delete(c);
  return ends;
}

/** Return where the longest equal block begins, and its length. @param {readonly Row[]} rows @param {number} at @param {readonly number[]} places @returns {[number, number]} */
function longest(rows, at, places) {
  let best = 0;
  let where = -1;
  for (const place of places) {
    let length = 0;
    while (isSame(rows[at + length], rows[place + length], rows[at].c)) length += 1;
    if (length > best) [best, where] = [length, place];
  }
  return [where, best];
}

/** @param {Row | undefined} from @param {Row | undefined} to @param {number | undefined} change */
function isSame(from, to, change) {
  return from?.k === "-" && to?.k === "+" && from.c === change && to.c !== change && !to.moved && !to.cut && from.t === to.t && from.end === to.end;
}

/** @param {readonly Row[]} rows */
function characters(rows) {
  return rows.reduce((n, { t }) => n + t.trim().length, 0);
}
