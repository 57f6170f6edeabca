// The heading of a change above its rows: its lines, its turns, what became of it, and icons for the most common actions.

/** @import {Comment} from "./types.d.ts" */
/** @import {ShownChange, ShownFile} from "./state.js" */
import { button, element } from "./elements.js";
import { iconElement } from "./icons.js";
import { counted, listed, net, netInWords, upper } from "./words.js";

/**
 * The actions of a heading, each called with the index of the change.
 * @typedef {object} HeadActs
 * @property {(index: number) => void} select
 * @property {(index: number) => void} accept
 * @property {(index: number) => void} reject
 * @property {(index: number) => void} comment
 * @property {(index: number) => void} reopen make a decided change pending again
 * @property {(row: number) => void} reach show a row of the same file
 * @property {(comment: Comment) => void} resolve
 * @property {(comment: Comment, text: string) => void} answer
 * @property {(turn: number) => string} prompt the prompt of a turn; "": not known
 * @property {string} read_only why nothing can be decided
 * @property {boolean} is_elsewhere whether the files are in another store, which alone answers comments
 */

/** The other end of moved lines: its row, and its line. @typedef {{ row: number, line: number, is_away: boolean }} Moved */
/** @typedef {{ is_current: boolean, is_altered: boolean, moved: Moved | null }} HeadLook */

const VERDICTS = { accepted: ["yes", "check", "Accepted"], rejected: ["nay", "cross", "Rejected"] };

/** Return where a change is, in words. @param {ShownChange} change */
export function whereOf(change) {
  if (change.words) return change.words;
  const line = (/** @type {number} */ n) => n.toLocaleString("en");
  if (!change.new_count) return `after line ${line(change.new_start)}`;
  if (change.new_count === 1) return `line ${line(change.new_start + 1)}`;
  return `lines ${line(change.new_start + 1)}–${line(change.new_start + change.new_count)}`;
}

/** Return the name of a change for screen readers. @param {ShownFile} file @param {number} index */
export function titleOf(file, index) {
  const change = file.all[index];
  const lines = change.rows ? `: ${netInWords(change.new_count, change.old_count)}` : "";
  const state = change.verdict ?? (change.seen ? "seen" : "");
  return `Change ${index + 1} of ${file.all.length}, ${whereOf(change)}${lines}${state && `, ${state}`}`;
}

/** Return the turns of a change in words, such as "Turns 1 and 7". @param {ShownChange} change */
export function turnsOf(change) {
  return change.turns.length ? `${change.turns.length === 1 ? "Turn" : "Turns"} ${listed(change.turns.slice(0, 6).map(String))}` : "";
}

/** Return the heading of a change. @param {ShownFile} file @param {number} index @param {HeadLook} look @param {HeadActs} acts */
export function headElement(file, index, look, acts) {
  const change = file.all[index];
  const where = upper(whereOf(change));
  const made = element("div", { class: "change-head" }, button(where, () => acts.select(index), { class: "where" }));
  if (change.turns.length) {
    const prompts = change.turns.map((turn) => acts.prompt(turn)).filter(Boolean);
    made.append(element("span", { class: "turns", title: prompts.join("\n\n") || null }, turnsOf(change)));
  }
  if (change.verdict) return decidedHead(made, change, index, where, acts);
  if (change.rows && !look.is_current) made.append(counts(change.new_count, change.old_count));
  made.append(...tags(file, change, look, acts));
  if (!look.is_current && !acts.read_only) made.append(tools(index, where, acts));
  return made;
}

/** @param {HTMLElement} made @param {ShownChange} change @param {number} index @param {string} where @param {HeadActs} acts */
function decidedHead(made, change, index, where, acts) {
  const [kind, icon, word] = VERDICTS[change.verdict ?? "accepted"];
  made.append(tag(word, icon, kind));
  if (change.awaited) made.append(element("span", { class: "awaited" }, change.awaited));
  made.append(element("span", { class: "grow" }));
  made.append(button("Reopen", () => acts.reopen(index), { class: "b plain small", "aria-label": `Reopen ${where}` }));
  return made;
}

/** Return coloured counts of lines. @param {number} added @param {number} removed */
export function counts(added, removed) {
  const [plus, minus] = net(added, removed).split(" ");
  return element("span", { class: "count" }, element("span", { class: "plus" }, plus), " ", element("span", { class: "minus" }, minus));
}

/** @param {string} text @param {string} icon @param {string} [kind] */
function tag(text, icon, kind = "") {
  return element("span", { class: `tag ${kind}`.trim() }, ...(icon ? [iconElement(icon)] : []), text);
}

/** Return the remarks on a change. @param {ShownFile} file @param {ShownChange} change @param {HeadLook} look @param {HeadActs} acts */
function tags(file, change, look, acts) {
  const said = [];
  if (look.is_altered) said.push(tag("changed since you looked", "warn", "warn"));
  if (change.whitespace_only) said.push(tag("White space only", ""));
  if (look.moved) {
    const { row, line, is_away } = look.moved;
    const words = `${is_away ? "moved to" : "moved from"} ${line.toLocaleString("en")}`;
    const there = button("", () => acts.reach(row), { class: "tag" });
    there.append(iconElement("move"), words);
    said.push(there);
  }
  if (change.shares_with.length) {
    const places = change.shares_with.slice(0, 3).map((other) => whereOf(file.all[other]));
    const rest = change.shares_with.length - places.length;
    said.push(tag(`decided with ${places.join(", ")}${rest > 0 ? ` and ${counted(rest, "other")}` : ""}`, "link"));
  }
  if (change.seen) said.push(tag("seen", "seen"));
  return said;
}

/** Return the icons for the mouse. @param {number} index @param {string} where @param {HeadActs} acts */
function tools(index, where, acts) {
  const all = /** @type {const} */ ([["Accept", "check", acts.accept], ["Reject", "cross", acts.reject], ["Comment on", "say", acts.comment]]);
  const made = element("span", { class: "tools" });
  for (const [word, icon, act] of all) {
    const one = button("", () => act(index), { class: "b icon", "aria-label": `${word} ${where}`, title: word });
    one.append(iconElement(icon));
    made.append(one);
  }
  return made;
}
