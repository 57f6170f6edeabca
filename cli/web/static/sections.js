// The sections of a diff: each is drawn when it comes near the screen. Their rows are requested in chunks.

/** @import {Change, Row} from "./types.d.ts" */

/** Rows in one chunk. */
export const CHUNK = 2000;
/** Rows of a section; it may have a few more, to end with a change. */
const SECTION = 200;
/** A change of more rows than this is divided between sections, is not folded, and not shown side by side. */
export const WHOLE = 400;

/** Rows [start, end) of a diff. @typedef {{ start: number, end: number }} Section */

/**
 * Divide rows into sections of about 200 rows, without dividing small changes.
 * @param {number} total @param {readonly Change[]} changes @returns {Section[]}
 */
export function sectionsOf(total, changes) {
  /** @type {Section[]} */
  const made = [];
  const small = changes.filter(({ rows }) => rows > 0 && rows <= WHOLE).sort((a, b) => a.row - b.row);
  let at = 0;
  for (let start = 0; start < total; ) {
    let end = Math.min(start + SECTION, total);
    while (at < small.length && small[at].row + small[at].rows <= end) at += 1;
    if (at < small.length && small[at].row < end) end = small[at].row + small[at].rows;
    made.push({ start, end: Math.min(end, total) });
    start = end;
  }
  return made;
}

/** The rows that the server has sent, by chunk; each chunk is requested once. */
export class Rows {
  /** @param {(first: number, count: number) => Promise<Row[]>} ask */
  constructor(ask) {
    this.ask = ask;
    /** @type {Map<number, Promise<Row[]>>} */
    this.chunks = new Map();
    /** @type {Map<number, Row[]>} */
    this.known = new Map();
  }

  /** Store rows that begin at a chunk's first row. @param {number} first @param {Row[]} rows */
  take(first, rows) {
    this.known.set(first / CHUNK, rows);
    this.chunks.set(first / CHUNK, Promise.resolve(rows));
  }

  /** Return the rows of a section if all of them have arrived. @param {Section} section @returns {Row[] | null} */
  here({ start, end }) {
    const found = [];
    for (let chunk = Math.floor(start / CHUNK); chunk * CHUNK < end; chunk += 1) {
      const rows = this.known.get(chunk);
      if (!rows) return null;
      found.push(...rows.slice(Math.max(0, start - chunk * CHUNK), end - chunk * CHUNK));
    }
    return found;
  }

  /** Return the rows of a section. @param {Section} section @returns {Promise<Row[]>} */
  async of(section) {
    const asked = [];
    for (let chunk = Math.floor(section.start / CHUNK); chunk * CHUNK < section.end; chunk += 1) {
      asked.push(this.chunk(chunk));
    }
    await Promise.all(asked);
    return this.here(section) ?? [];
  }

  /** Return the rows of a chunk. @param {number} chunk @returns {Promise<Row[]>} */
  chunk(chunk) {
    let asked = this.chunks.get(chunk);
    if (!asked) {
      asked = this.ask(chunk * CHUNK, CHUNK).then((rows) => {
        this.known.set(chunk, rows);
        return rows;
      });
      asked.catch(() => this.chunks.delete(chunk));
      this.chunks.set(chunk, asked);
    }
    return asked;
  }
}
