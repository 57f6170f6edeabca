// The view of one file's changes, built without preact: sections of rows, a heading above each change, and the current
// change.
//
// When an agent changes the file, the view is redrawn so that the line which the reader looks at keeps its place on the
// screen.

/** @import {Change, File as ChangedFile, Row} from "./types.d.ts" */
/** @import {HeadActs} from "./change_head.js" */
/** @import {Mark} from "./diff_rows.js" */
/** @import {Section} from "./sections.js" */
import { headElement } from "./change_head.js";
import { paint, paired, rowElement } from "./diff_rows.js";
import { button, element } from "./elements.js";
import { sectionsOf, WHOLE } from "./sections.js";
import { look, markRow } from "./shown.js";
import { counted } from "./words.js";

const ROW_HEIGHT = 20;
const HEAD_HEIGHT = 37;
/** Sections next to the current one that are drawn at once; others are drawn when they come near the screen. */
const NEAR = 4;
/** Rows that are searched for the line which was on the screen. */
const AROUND = 400;
/** Lines that one click on a gap shows. */
const LINES = 1000;

/**
 * @typedef {HeadActs & {
 *   rows: import("./sections.js").Rows,
 *   syntax: (first: number, count: number) => Promise<Mark[][]>,
 *   lines: (first: number, count: number) => Promise<Row[]>,
 *   rest: (row: number, key: string, from: number) => Promise<{ t: string, cut: number }>,
 * }} ViewActs
 */
/** A line on the screen: its distance from the top, and how to find it after a redraw. @typedef {{ top: number, index: number, is_head: boolean, row: number, text: string }} Place */

export class DiffView {
  /** @param {HTMLElement} pane the scrolling element @param {HTMLElement} body the element that holds the rows */
  constructor(pane, body) {
    this.pane = pane;
    this.body = body;
    /** @type {ChangedFile | null} */
    this.file = null;
    this.cursor = -1;
    this.is_split = false;
    /** @type {Map<number, HTMLElement>} */
    this.heads = new Map();
    /** The element of each drawn row; side by side, two rows share one. @type {Map<number, HTMLElement>} */
    this.drawn = new Map();
    /** Opened gaps: the key of the change above each. @type {Set<string>} */
    this.opened = new Set();
    /** Keys of changes whose text changed while they were current. @type {Set<string>} */
    this.altered = new Set();
    this.near = new IntersectionObserver((entries) => this.arrived(entries), { root: pane, rootMargin: "1500px 0px" });
    this.visible = new IntersectionObserver((entries) => this.coloured(entries), { root: pane, rootMargin: "200px 0px" });
    /** @type {Map<Element, Section>} */
    this.sections = new Map();
  }

  /** Stop all observers. */
  close() {
    this.near.disconnect();
    this.visible.disconnect();
  }

  /**
   * Draw a file with a current change; the line on the screen stays where it is.
   * @param {ChangedFile} file @param {number} cursor @param {ViewActs} acts @param {boolean} is_split whether side by side
   */
  show(file, cursor, acts, is_split) {
    const old = this.file;
    const place = old && old.document === file.document ? this.place() : null;
    const had_focus = this.body.contains(document.activeElement);
    this.file = file;
    this.acts = acts;
    this.cursor = cursor;
    this.is_split = is_split;
    this.body.classList.toggle("split", is_split);
    const most = file.all.reduce((n, change) => Math.max(n, change.line_before + change.removed, change.line_after + change.inserted), 0);
    this.digits = Math.max(3, String(most + 10).length);
    const seen = place && !place.is_head && old ? sameChange(old.all[place.index], file.all) : cursor;
    this.build(file, seen);
    if (old && place) this.put(place, seen);
    if (had_focus) this.heads.get(cursor)?.focus({ preventScroll: true });
  }

  /** Make the sections, and draw those next to the change on the screen. @param {ChangedFile} file @param {number} seen its index */
  build(file, seen) {
    this.near.disconnect();
    this.visible.disconnect();
    this.sections.clear();
    this.heads.clear();
    this.drawn.clear();
    /** Changes by the row above which their headings are. @type {Map<number, number[]>} */
    this.starts = new Map();
    const whole = element("div", { class: "rows whole" });
    file.all.forEach((change, index) => {
      if (!change.rows) whole.append(this.head(index));
      else this.starts?.set(change.row, [...(this.starts.get(change.row) ?? []), index]);
    });
    const sections = sectionsOf(file.total, file.all);
    const elements = sections.map((section) => this.empty(section));
    this.body.replaceChildren(...(whole.childElementCount ? [whole] : []), ...elements);
    this.body.style.setProperty("--longest", String(Math.min(file.longest, 2060)));
    this.body.style.setProperty("--digits", String(this.digits));
    const row = file.all[seen]?.row ?? 0;
    const current = Math.max(0, sections.findIndex(({ end }) => row < end));
    elements.forEach((made, at) => {
      const rows = Math.abs(at - current) <= NEAR ? this.acts?.rows.here(sections[at]) : null;
      if (rows) this.draw(made, sections[at], rows);
      else this.near.observe(made);
    });
  }

  /** Return an empty section, about as high as it will be with its rows. @param {Section} section */
  empty(section) {
    const made = element("div", { class: "rows" });
    let heads = 0;
    for (const row of this.starts?.keys() ?? []) heads += row >= section.start && row < section.end ? 1 : 0;
    const height = (section.end - section.start) * ROW_HEIGHT + heads * HEAD_HEIGHT;
    made.style.containIntrinsicSize = `auto 1px auto ${height}px`;
    made.style.minHeight = `${height}px`;
    this.sections.set(made, section);
    return made;
  }

  /** Draw sections that came near the screen, once their rows have arrived. @param {IntersectionObserverEntry[]} entries */
  arrived(entries) {
    for (const { target, isIntersecting } of entries) {
      const section = this.sections.get(target);
      if (!isIntersecting || !section || !this.acts) continue;
      this.near.unobserve(target);
      const made = /** @type {HTMLElement} */ (target);
      const { rows } = this.acts;
      const here = rows.here(section);
      if (here) this.keeping(() => this.draw(made, section, here));
      else {
        rows.of(section).then(
          (late) => made.isConnected && this.keeping(() => this.draw(made, section, late)),
          () => made.isConnected && this.near.observe(made),
        );
      }
    }
  }

  /** Draw a section. @param {HTMLElement} into @param {Section} section @param {Row[]} rows */
  draw(into, section, rows) {
    const file = /** @type {ChangedFile} */ (this.file);
    into.style.minHeight = "";
    /** @type {{ row: Row, index: number }[]} */
    let waiting = [];
    let change = -1;
    const flush = () => {
      const is_split = this.is_split && (change < 0 || file.all[change].rows <= WHOLE);
      if (is_split) for (const pair of paired(waiting)) into.append(this.pair(pair));
      else for (const { row, index } of waiting) into.append(this.row(row, index));
      waiting = [];
    };
    rows.forEach((row, at) => {
      const index = section.start + at;
      const owner = row.c ?? -1;
      const heads = this.starts?.get(index);
      if (heads || owner !== change || row.k === "~") flush();
      change = owner;
      for (const head of heads ?? []) into.append(this.head(head));
      if (row.k === "~") into.append(this.gap(row, rows[at - 1], index));
      else waiting.push({ row, index });
    });
    flush();
    look(into);
    this.visible.observe(into);
  }

  /** @param {number} index */
  head(index) {
    const file = /** @type {ChangedFile} */ (this.file);
    const how = { is_current: index === this.cursor, is_altered: this.altered.has(file.all[index].key) };
    const made = headElement(file, index, how, /** @type {ViewActs} */ (this.acts));
    if (!file.all[index].rows) made.dataset.of = file.all[index].key;
    this.heads.set(index, made);
    return made;
  }

  /** Redraw a heading. @param {number} index */
  headAgain(index) {
    const before = this.heads.get(index);
    if (!before || !this.file?.all[index]) return null;
    const has_focus = before.contains(document.activeElement);
    const made = this.head(index);
    before.replaceWith(made);
    if (has_focus) made.focus({ preventScroll: true });
    return made;
  }

  /** @param {Row} row @param {number} index @param {"both" | "old" | "new"} [sides] */
  row(row, index, sides = "both") {
    const made = rowElement(row, this.look(index, sides));
    if (index < 0) return made; // a line of an opened gap
    made.dataset.row = String(index);
    const change = this.file?.all[row.c ?? -1];
    if (change) markRow(made, change.key, index - change.row, row);
    if (!this.drawn.has(index)) this.drawn.set(index, made);
    return made;
  }

  /** How a row is drawn. @param {number} index @param {"both" | "old" | "new"} sides */
  look(index, sides) {
    const more = async (/** @type {Row} */ row, /** @type {HTMLElement} */ into) => {
      const change = this.file?.all[row.c ?? -1];
      const rest = await this.acts?.rest(index - (change?.row ?? 0), change?.key ?? "", row.t.length);
      if (!rest) return;
      row.t += rest.t;
      row.cut = rest.cut;
      if (!row.cut) delete into.dataset.cut;
      paint(into, row, [], this.look(index, sides));
    };
    return { digits: this.digits ?? 3, sides, more };
  }

  /** @param {[{ row: Row, index: number } | null, { row: Row, index: number } | null]} pair */
  pair([before, after]) {
    const empty = () => element("div", { class: "row none", "data-n": "" });
    return element(
      "div",
      { class: "pair" },
      before ? this.row(before.row, before.index, "old") : empty(),
      after ? this.row(after.row, after.index, "new") : empty(),
    );
  }

  // ---- gaps

  /** @param {Row} row @param {Row | undefined} before @param {number} index */
  gap(row, before, index) {
    const hidden = row.hidden ?? 0;
    const above = this.file?.all.findLast((change) => change.rows && change.row <= index)?.key ?? "";
    const first = row.n ?? (before?.n ?? 0) + 1;
    const skew = (row.o ?? (before?.o ?? 0) + 1) - first;
    const open = () => this.open(made, above, first, hidden, skew);
    const made = button(`⋯ ${counted(hidden, "line")} not shown`, open, { class: "gap", "data-row": index });
    if (this.opened.has(above)) queueMicrotask(open);
    return made;
  }

  /**
   * Show the lines of a gap.
   * @param {HTMLElement} gap @param {string} above @param {number} first @param {number} hidden @param {number} skew old minus new line number
   */
  async open(gap, above, first, hidden, skew) {
    const count = Math.min(hidden, LINES);
    const rows = await this.acts?.lines(first, count);
    if (!rows || !gap.isConnected) return;
    this.opened.add(above);
    const had_focus = gap === document.activeElement;
    this.keeping(() => {
      const made = rows.map((row) => {
        const whole = { ...row, k: /** @type {const} */ (" "), o: (row.n ?? first) + skew };
        return this.is_split ? this.pair([{ row: whole, index: -1 }, { row: whole, index: -1 }]) : this.row(whole, -1);
      });
      if (hidden > count) {
        const rest = () => this.open(left, above, first + count, hidden - count, skew);
        const left = button(`⋯ ${counted(hidden - count, "line")} not shown`, rest, { class: "gap" });
        made.push(left);
      }
      gap.replaceWith(...made);
    });
    if (had_focus) this.heads.get(this.cursor)?.focus({ preventScroll: true });
  }

  // ---- colour

  /** Request the syntax marks of sections in view. @param {IntersectionObserverEntry[]} entries */
  coloured(entries) {
    for (const { target, isIntersecting } of entries) {
      const section = this.sections.get(target);
      if (!isIntersecting || !section || !this.acts) continue;
      this.visible.unobserve(target);
      const { acts } = this;
      const rows = acts.rows.here(section);
      acts.syntax(section.start, section.end - section.start).then(
        (marks) => target.isConnected && rows && this.colour(target, section, rows, marks),
        () => undefined, // the text is readable without colour
      );
    }
  }

  /** @param {Element} into @param {Section} section @param {Row[]} rows @param {Mark[][]} marks */
  colour(into, section, rows, marks) {
    for (const made of into.querySelectorAll(".row[data-row]")) {
      const index = Number(/** @type {HTMLElement} */ (made).dataset.row);
      const at = index - section.start;
      if (index < 0 || !marks[at]?.length || !rows[at]) continue;
      paint(/** @type {HTMLElement} */ (made), rows[at], marks[at], this.look(index, "both"));
    }
  }

  // ---- the current change, and the scroll position

  /** Make a change the current one, and scroll to it. @param {number} index @param {{ focus?: boolean }} [how] */
  select(index, { focus = true } = {}) {
    const before = this.cursor;
    this.cursor = index;
    if (before !== index) this.headAgain(before);
    if (!this.file?.all[index]) return;
    if (!this.heads.has(index)) this.reach(index);
    const head = this.headAgain(index);
    if (!head) return;
    const pane = this.pane.getBoundingClientRect();
    const top = head.getBoundingClientRect().top - pane.top;
    if (!this.isWhole(index) || top > pane.height * 0.8) {
      this.pane.scrollTop += top - Math.min(pane.height * 0.15, 120);
    }
    if (focus) head.focus({ preventScroll: true });
  }

  /** Scroll to the section of a change, and draw it. @param {number} index */
  reach(index) {
    const row = this.file?.all[index].row ?? 0;
    for (const [made, section] of this.sections) {
      if (row < section.start || row >= section.end) continue;
      made.scrollIntoView({ block: "start" });
      const rows = this.acts?.rows.here(section);
      if (rows && !made.childElementCount) {
        this.near.unobserve(made);
        this.draw(/** @type {HTMLElement} */ (made), section, rows);
      } else if (!rows) {
        this.acts?.rows.of(section).then(() => {
          if (this.cursor === index && made.isConnected) this.select(index);
        }, () => undefined);
      }
    }
  }

  /** Return whether a change is wholly on the screen. @param {number} index */
  isWhole(index) {
    const change = this.file?.all[index];
    const head = this.heads.get(index)?.getBoundingClientRect();
    if (!change || !head) return false;
    const pane = this.pane.getBoundingClientRect();
    if (head.top < pane.top - 1 || head.bottom > pane.bottom + 1) return false;
    if (!change.rows) return true;
    const last = this.drawn.get(change.row + change.rows - 1)?.getBoundingClientRect();
    return last !== undefined && last.bottom <= pane.bottom + 1;
  }

  /** Return the line that keeps its place: the current heading if it is on the screen, else the topmost row. @returns {Place | null} */
  place() {
    const pane = this.pane.getBoundingClientRect();
    const head = this.heads.get(this.cursor)?.getBoundingClientRect();
    if (head && head.bottom > pane.top && head.top < pane.bottom) {
      return { top: head.top, index: this.cursor, is_head: true, row: 0, text: "" };
    }
    for (const made of this.body.children) {
      const box = made.getBoundingClientRect();
      if (box.bottom <= pane.top || box.top >= pane.bottom) continue;
      for (const row of made.querySelectorAll(".row[data-row]")) {
        const { top } = row.getBoundingClientRect();
        if (top < pane.top) continue;
        const at = Number(/** @type {HTMLElement} */ (row).dataset.row);
        const index = this.file?.all.findLastIndex((change) => change.rows && change.row <= at) ?? -1;
        return { top, index, is_head: false, row: at - (this.file?.all[index]?.row ?? 0), text: row.textContent ?? "" };
      }
    }
    return null;
  }

  /** Scroll so that a line is where it was before the redraw. @param {Place} place @param {number} index of its change now */
  put(place, index) {
    const found = place.is_head ? this.heads.get(index) : this.rowNear((this.file?.all[index]?.row ?? 0) + place.row, place.text);
    if (found) this.pane.scrollTop += found.getBoundingClientRect().top - place.top;
  }

  /** Return the row with this text that is nearest to a place, else the row at the place. @param {number} at @param {string} text */
  rowNear(at, text) {
    for (let off = 0; off < AROUND; off += 1) {
      for (const made of [this.drawn.get(at + off), this.drawn.get(at - off)]) {
        if (made && made.textContent === text) return made;
      }
    }
    return this.drawn.get(at);
  }

  /** Change what is drawn, and keep the place of the line which the reader looks at. @param {() => void} change */
  keeping(change) {
    const pane = this.pane.getBoundingClientRect();
    const current = this.heads.get(this.cursor);
    const box = current?.getBoundingClientRect();
    /** @type {Element | undefined} */
    let held = box && box.bottom > pane.top && box.top < pane.bottom ? current : undefined;
    held ??= [...this.body.children].find((made) => made.getBoundingClientRect().bottom > pane.top + 1);
    const top = held?.getBoundingClientRect().top ?? 0;
    this.pane.style.overflowAnchor = "none"; // else the browser would scroll too
    change();
    if (held?.isConnected) this.pane.scrollTop += held.getBoundingClientRect().top - top;
    this.pane.style.overflowAnchor = "";
  }
}

/** Return the index of the change that continues an earlier one: of the same key, else with most hunks in common; -1: none. @param {Change | undefined} change @param {Change[]} all */
export function sameChange(change, all) {
  if (!change) return -1;
  const same = all.findIndex(({ key }) => key === change.key);
  if (same >= 0) return same;
  let best = -1;
  let most = 0;
  all.forEach(({ units }, index) => {
    const common = units.filter((unit) => change.units.includes(unit)).length;
    if (common > most) [best, most] = [index, common];
  });
  return best;
}
