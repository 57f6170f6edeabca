// The view of one file's changes, built without preact: sections of rows, a heading above each change, and the current
// change.
//
// When an agent changes the file, the view is redrawn so that the line which the reader looks at keeps its place on the
// screen. What was decided stays where it is, marked, until the file is left.

/** @import {Row} from "./types.d.ts" */
/** @import {HeadActs, Moved} from "./change_head.js" */
/** @import {Mark, Placed} from "./diff_rows.js" */
/** @import {Section} from "./sections.js" */
/** @import {Picked, ShownFile} from "./state.js" */
import { headElement, titleOf } from "./change_head.js";
import { paint, paired, pairElement, rowElement } from "./diff_rows.js";
import { button, element } from "./elements.js";
import { iconElement } from "./icons.js";
import { InView } from "./in_view.js";
import { pickLines } from "./picking.js";
import { sectionsOf, WHOLE } from "./sections.js";
import { sameChange } from "./shown_file.js";
import { look as noteShown, markRow } from "./shown.js";
import { keepingAnswer, lastLine, threadElement } from "./threads.js";
import { counted } from "./words.js";

const ROW_HEIGHT = 20;
const HEAD_HEIGHT = 26;
/** Sections next to the current one that are drawn at once; others are drawn when they come near the screen. */
const NEAR = 3;
/** Rows that are searched for the line which was on the screen. */
const AROUND = 400;
/** Lines that one click on a gap shows. */
const LINES = 1000;

/**
 * @typedef {HeadActs & {
 *   rows: import("./sections.js").Rows,
 *   moves: Map<number, Moved>,
 *   pick: (picked: Picked | null) => void,
 *   syntax: (first: number, count: number) => Promise<Mark[][]>,
 *   lines: (first: number, count: number) => Promise<Row[] | undefined>,
 *   rest: (row: number, key: string, from: number) => Promise<{ t: string, cut: number } | null>,
 * }} ViewActs
 */
/** A line on the screen: its distance from the top, and how to find it after a redraw. @typedef {{ top: number, index: number, is_head: boolean, row: number, text: string }} Place */

export class DiffView {
  /** @param {HTMLElement} pane the scrolling element @param {HTMLElement} body the element that holds the rows */
  constructor(pane, body) {
    this.pane = pane;
    this.body = body;
    /** @type {ShownFile | null} */
    this.file = null;
    this.cursor = -1;
    this.is_split = false;
    /** The elements of each change; the first has its heading. @type {Map<number, HTMLElement[]>} */
    this.changes = new Map();
    /** The element of each drawn row, and its texts; side by side, two rows share one. @type {Map<number, HTMLElement>} */
    this.drawn = new Map();
    /** @type {Map<number, HTMLElement[]>} */
    this.texts = new Map();
    /** The rows that are drawn, by their place in the diff. @type {Map<number, Row>} */
    this.data = new Map();
    /** The comments that are drawn at each change. @type {Map<number, string>} */
    this.threads = new Map();
    /** Opened gaps: the key of the change above each. @type {Set<string>} */
    this.opened = new Set();
    /** Keys of changes whose text changed while they were current. @type {Set<string>} */
    this.altered = new Set();
    this.near = new IntersectionObserver((entries) => this.arrived(entries), { root: pane, rootMargin: "1500px 0px" });
    this.visible = new IntersectionObserver((entries) => this.coloured(entries), { root: pane, rootMargin: "200px 0px" });
    /** @type {Map<Element, Section>} */
    this.sections = new Map();
    this.in_view = new InView(pane, () => this.reveal(this.cursor));
    this.endPicking = pickLines(body, (picked) => this.acts?.pick(picked));
  }

  /** Stop all observers. */
  close() {
    this.near.disconnect();
    this.visible.disconnect();
    this.in_view.close();
    this.endPicking();
  }

  /**
   * Draw a file with a current change; the line on the screen stays where it is.
   * @param {ShownFile} file @param {number} cursor @param {ViewActs} acts @param {boolean} is_split whether side by side
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
    const seen = place && !place.is_head && old ? sameChange(old.all[place.index], file.all) : cursor;
    const is_typing = keepingAnswer(this.body, () => this.build(file, seen));
    if (old && place) this.put(place, seen);
    if (had_focus && !is_typing) this.changes.get(cursor)?.[0].focus({ preventScroll: true });
    this.in_view.watch(this.changes.get(cursor)?.[0]);
  }

  /** Make the sections, and draw those next to the change on the screen. @param {ShownFile} file @param {number} seen its index */
  build(file, seen) {
    this.near.disconnect();
    this.visible.disconnect();
    for (const kept of [this.sections, this.changes, this.drawn, this.texts, this.data, this.threads]) kept.clear();
    /** Changes by the row above which their headings are. @type {Map<number, number[]>} */
    this.starts = new Map();
    const whole = element("div", { class: "rows whole" });
    file.all.forEach((change, index) => {
      if (!change.rows) whole.append(this.change(index, true));
      else this.starts?.set(change.row, [...(this.starts.get(change.row) ?? []), index]);
    });
    const sections = sectionsOf(file.total, file.all);
    const elements = sections.map((section) => this.empty(section));
    this.body.replaceChildren(...(whole.childElementCount ? [whole] : []), ...elements);
    const last = file.all.reduce((n, { old_start, old_count, new_start, new_count }) => Math.max(n, old_start + old_count, new_start + new_count), 0) + 1;
    this.body.style.setProperty("--digits", `${Math.max(3, 1.4 + 0.55 * String(last + 10).length).toFixed(2)}rem`);
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
    const file = /** @type {ShownFile} */ (this.file);
    into.style.minHeight = "";
    /** @type {Placed[]} */
    let waiting = [];
    let target = into;
    let change = -1;
    const flush = () => {
      const is_split = this.is_split && (change < 0 || file.all[change].rows <= WHOLE);
      if (is_split) for (const [before, after] of paired(waiting)) target.append(this.pair(before, after));
      else for (const { row, index } of waiting) target.append(this.row(row, index));
      waiting = [];
      if (change >= 0) this.placeThreads(change);
    };
    rows.forEach((row, at) => {
      const index = section.start + at;
      const owner = row.c ?? -1;
      if (owner !== change || row.k === "~") {
        flush();
        change = owner;
        target = owner < 0 ? into : this.change(owner, Boolean(this.starts?.get(index)?.includes(owner)));
        if (target !== into) into.append(target);
      }
      if (row.k === "~") into.append(this.gap(row, rows[at - 1], index));
      else waiting.push({ row, index });
    });
    flush();
    noteShown(into);
    this.visible.observe(into);
  }

  // ---- changes

  /** Return a new element for the rows of a change. @param {number} index @param {boolean} is_first whether it has the heading */
  change(index, is_first) {
    const made = element("div", { "data-change": index });
    const parts = this.changes.get(index) ?? [];
    if (is_first) {
      this.changes.set(index, [made, ...parts]);
      made.setAttribute("role", "group");
      made.tabIndex = -1;
      made.append(this.head(index));
      const { key, rows } = /** @type {ShownFile} */ (this.file).all[index];
      if (!rows) made.dataset.of = key;
    } else this.changes.set(index, [...parts, made]);
    this.mark(index, made, is_first);
    return made;
  }

  /** Show in an element of a change whether it is current, and what became of it. @param {number} index @param {HTMLElement} made @param {boolean} is_first */
  mark(index, made, is_first) {
    const file = /** @type {ShownFile} */ (this.file);
    const { verdict } = file.all[index];
    const is_current = index === this.cursor;
    const classes = ["change", !is_first && "part", is_current && "now", verdict === "accepted" && "ok", verdict === "rejected" && "out"];
    made.className = classes.filter(Boolean).join(" ");
    if (!is_first) return;
    made.setAttribute("aria-label", titleOf(file, index));
    if (is_current) made.setAttribute("aria-current", "true");
    else made.removeAttribute("aria-current");
  }

  /** @param {number} index */
  head(index) {
    const file = /** @type {ShownFile} */ (this.file);
    const acts = /** @type {ViewActs} */ (this.acts);
    return headElement(file, index, { is_current: index === this.cursor, is_altered: this.altered.has(file.all[index].key), moved: acts.moves.get(index) ?? null }, acts);
  }

  /** Redraw the heading of a change, and its comments if they have changed. @param {number} index */
  again(index) {
    const parts = this.changes.get(index);
    if (!parts || !this.file?.all[index]) return;
    const old = parts[0].querySelector(":scope > .change-head");
    const head = this.head(index);
    const is_other = old && !old.isEqualNode(head); // else a press on a button of it would be lost
    const had_focus = is_other && old.contains(document.activeElement);
    if (is_other) old.replaceWith(head);
    parts.forEach((made, at) => this.mark(index, made, at === 0 && !!old));
    if (had_focus) parts[0].focus({ preventScroll: true });
    this.placeThreads(index);
  }

  /** Draw the comments on a change below the lines that they are about. @param {number} index */
  placeThreads(index) {
    const change = this.file?.all[index];
    const { acts } = this, parts = this.changes.get(index);
    if (!change || !parts || !acts) return;
    const comments = [...change.waiting, ...change.comments], said = JSON.stringify(comments);
    if (this.threads.get(index) === said || (!comments.length && !this.threads.has(index))) return;
    keepingAnswer(this.body, () => {
      for (const part of parts) for (const old of part.querySelectorAll(".thread")) old.remove();
      this.threads.set(index, said);
      for (const comment of comments) {
        let row = change.row + change.rows - 1;
        while (row >= change.row && this.data.get(row)?.n !== lastLine(comment, change)) row -= 1;
        const above = row >= change.row ? this.drawn.get(row) : parts[0].querySelector(":scope > .change-head");
        if (above) above.after(threadElement(comment, acts));
        else this.threads.set(index, ""); // its row is still to be drawn
      }
    });
  }

  // ---- rows

  /** @param {Row} row @param {number} index */
  row(row, index) {
    const [made, text] = rowElement(row, this.look(row, index));
    this.note(made, index, row, text);
    return made;
  }

  /** @param {Placed | null} before @param {Placed | null} after */
  pair(before, after) {
    const one = /** @type {Placed} */ (before ?? after);
    const [made, texts] = pairElement(before, after, this.look(one.row, one.index));
    for (const [at, each] of (before === after ? [before] : [before, after]).filter((each) => each !== null).entries()) {
      this.note(made, each.index, each.row, ...(before === after ? texts : [texts[at]]));
    }
    return made;
  }

  /** Note where a row is drawn. @param {HTMLElement} made @param {number} index @param {Row} row @param {HTMLElement[]} texts */
  note(made, index, row, ...texts) {
    if (index < 0) return; // a line of an opened gap
    if (made.dataset.row === undefined) made.dataset.row = String(index);
    for (const text of texts) {
      const number = text.previousElementSibling?.previousElementSibling;
      if (number instanceof HTMLElement) number.dataset.pick = String(index);
      const change = this.file?.all[row.c ?? -1];
      if (change) markRow(text, change.key, index - change.row, row);
    }
    this.drawn.set(index, made);
    this.texts.set(index, texts);
    this.data.set(index, row);
  }

  /** How a row is drawn. @param {Row} row @param {number} index @returns {import("./diff_rows.js").Look} */
  look(row, index) {
    const is_space = row.c !== undefined && this.file?.all[row.c].whitespace_only;
    const more = async (/** @type {Row} */ cut, /** @type {HTMLElement} */ into) => {
      const change = this.file?.all[row.c ?? -1];
      const rest = await this.acts?.rest(index - (change?.row ?? 0), change?.key ?? "", cut.t.length);
      if (!rest) return;
      cut.t += rest.t;
      cut.cut = rest.cut;
      if (!cut.cut) delete into.dataset.cut;
      paint(into, cut, [], this.look(cut, index));
    };
    return { more, is_space };
  }

  /** Show which rows the person has chosen. @param {Picked | null} picked */
  pick(picked) {
    for (const [index, made] of this.drawn) {
      if (made.dataset.row !== String(index) && made.classList.contains("picked")) continue;
      made.classList.toggle("picked", picked !== null && index >= picked.first && index <= picked.last);
    }
  }

  // ---- gaps

  /** @param {Row} row @param {Row | undefined} before @param {number} index */
  gap(row, before, index) {
    const hidden = row.hidden ?? 0;
    const above = this.file?.all.findLast((change) => change.rows && change.row <= index)?.key ?? "";
    const first = row.n ?? (before?.n ?? 0) + 1;
    const skew = (row.o ?? (before?.o ?? 0) + 1) - first;
    const open = () => this.open(made, above, first, hidden, skew);
    const made = this.fold(hidden, open);
    if (this.opened.has(above)) queueMicrotask(open);
    return made;
  }

  /** @param {number} hidden @param {() => void} open */
  fold(hidden, open) {
    const made = button("", open, { class: "fold" });
    made.append(iconElement("split"), counted(hidden, "unchanged line"));
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
      const made = rows.map((row, at) => {
        const whole = { ...row, k: /** @type {const} */ (" "), n: first + at, o: first + at + skew };
        const placed = { row: whole, index: -1 };
        return this.is_split ? this.pair(placed, placed) : this.row(whole, -1);
      });
      if (hidden > count) made.push(this.fold(hidden - count, () => this.open(made[count], above, first + count, hidden - count, skew)));
      gap.replaceWith(...made);
    });
    if (had_focus) this.changes.get(this.cursor)?.[0].focus({ preventScroll: true });
  }

  // ---- colour

  /** Request the syntax marks of sections in view. @param {IntersectionObserverEntry[]} entries */
  coloured(entries) {
    for (const { target, isIntersecting } of entries) {
      const section = this.sections.get(target);
      if (!isIntersecting || !section || !this.acts) continue;
      this.visible.unobserve(target);
      this.acts.syntax(section.start, section.end - section.start).then(
        (marks) => target.isConnected && this.colour(section, marks),
        () => undefined, // the text is readable without colour
      );
    }
  }

  /** @param {Section} section @param {Mark[][]} marks */
  colour({ start }, marks) {
    marks.forEach((own, at) => {
      const row = this.data.get(start + at);
      if (!row || !own.length) return;
      for (const text of this.texts.get(start + at) ?? []) paint(text, row, own, this.look(row, start + at));
    });
  }

  // ---- the current change, and the scroll position

  /** Make a change the current one, and scroll to it. @param {number} index @param {{ focus?: boolean }} [how] */
  select(index, { focus = true } = {}) {
    const before = this.cursor;
    this.cursor = index;
    if (before !== index) this.again(before);
    if (!this.file?.all[index]) return;
    if (!this.changes.has(index)) this.reach(this.file.all[index].row, index);
    this.again(index);
    const made = this.changes.get(index)?.[0];
    if (!made) return;
    this.reveal(index);
    this.in_view.watch(made);
    if (focus) made.focus({ preventScroll: true });
  }

  /** Scroll to a change that is drawn, if it isn't wholly on the screen. @param {number} index */
  reveal(index) {
    const pane = this.pane.getBoundingClientRect();
    const top = (this.changes.get(index)?.[0].getBoundingClientRect().top ?? pane.top) - pane.top;
    if (!this.isWhole(index) || top > pane.height * 0.8) this.pane.scrollTop += top - Math.min(pane.height * 0.15, 120);
  }

  /** Scroll to the section of a row, and draw it. @param {number} row @param {number} index of its change */
  reach(row, index) {
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
    const head = this.changes.get(index)?.[0].firstElementChild?.getBoundingClientRect();
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
    const head = this.changes.get(this.cursor)?.[0].firstElementChild?.getBoundingClientRect();
    if (head && head.bottom > pane.top && head.top < pane.bottom) {
      return { top: head.top, index: this.cursor, is_head: true, row: 0, text: "" };
    }
    for (const made of this.body.children) {
      const box = made.getBoundingClientRect();
      if (box.bottom <= pane.top || box.top >= pane.bottom) continue;
      for (const row of made.querySelectorAll(".r[data-row]")) {
        const { top } = row.getBoundingClientRect();
        if (top < pane.top) continue;
        const at = Number(/** @type {HTMLElement} */ (row).dataset.row);
        const index = this.file?.all.findLastIndex((change) => change.rows && change.row <= at) ?? -1;
        return { top, index, is_head: false, row: at - (this.file?.all[index]?.row ?? 0), text: this.data.get(at)?.t ?? "" };
      }
    }
    return null;
  }

  /** Return the rows of a newer file that are where the reader looks: a redraw needs them at once. @param {ShownFile} file */
  rowsSeen(file) {
    const place = this.place();
    const index = place && !place.is_head ? sameChange(this.file?.all[place.index], file.all) : -1;
    const row = (file.all[index]?.row ?? 0) + (place?.row ?? 0);
    return index >= 0 ? [row - WHOLE, row, row + WHOLE] : []; // the section may reach into the next chunk
  }

  /** Scroll so that a line is where it was before the redraw. @param {Place} place @param {number} index of its change now */
  put(place, index) {
    const head = this.changes.get(index)?.[0].firstElementChild;
    const found = place.is_head ? head : this.rowNear((this.file?.all[index]?.row ?? 0) + place.row, place.text);
    if (found) this.pane.scrollTop += found.getBoundingClientRect().top - place.top;
  }

  /** Return the row with this text that is nearest to a place, else the row at the place. @param {number} at @param {string} text */
  rowNear(at, text) {
    for (let off = 0; off < AROUND; off += 1) {
      for (const place of [at + off, at - off]) if (this.data.get(place)?.t === text) return this.drawn.get(place);
    }
    return this.drawn.get(at);
  }

  /** Change what is drawn, and keep the place of the line which the reader looks at. @param {() => void} change */
  keeping(change) {
    const pane = this.pane.getBoundingClientRect();
    const current = this.changes.get(this.cursor)?.[0];
    const box = current?.firstElementChild?.getBoundingClientRect();
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
