// Single keys and what they do: the same as in the terminal's review.

import { answer, commentOn, decided, decideOn, decideOnFile, decideOnGroup, isActing, isAnswering, isDecided, redo, rejectWithReason, undo } from "./decisions.js";
import { isLate } from "./presses.js";
import { goTo, move, moveFile, pick, pickMore, refresh, seeCurrent, settled, show } from "./review.js";
import { blameAddress, searchAddress, timelineAddress } from "./routes.js";
import { say, set, state } from "./state.js";

/** Where a key is text. */
const FIELDS = "input:not([type=range], [type=checkbox], [type=radio]), textarea, select";

/**
 * A key. `repeats`: whether it acts again while it is held. `decides`: whether it decides on the current change, or marks
 * it. `on_file`: whether it does nothing where no file is shown. `leads_to_text`: what is typed after it is text, and no
 * key. `waits`: false if nothing needs to be loaded for it.
 * @typedef {{ key: string, words: string, act: () => unknown, repeats?: boolean, decides?: boolean, on_file?: boolean, leads_to_text?: boolean, waits?: boolean }} Key
 */

/** @type {Key[]} */
export const KEYS = [
  { key: "j", words: "next change", act: () => go(1), repeats: true },
  { key: "k", words: "previous change", act: () => go(-1), repeats: true },
  { key: "J", words: "next file", act: () => moveFile(1) || say("That was the last file."), repeats: true },
  { key: "K", words: "previous file", act: () => moveFile(-1) || say("That was the first file."), repeats: true },
  { key: "a", words: "accept this change", act: () => onChange(() => decideOn("accept", state.cursor)), decides: true, on_file: true },
  { key: "x", words: "reject this change", act: () => onChange(() => decideOn("reject", state.cursor)), decides: true, on_file: true },
  { key: "X", words: "reject it, and say why", act: () => onChange(() => rejectWithReason(state.cursor)), leads_to_text: true, on_file: true },
  { key: "c", words: "comment on this change, or on the lines that are chosen", act: () => onChange(() => commentOn(state.cursor)), leads_to_text: true, on_file: true },
  { key: "s", words: "split this change", act: () => onChange(splitCurrent), on_file: true },
  { key: "e", words: "show the single edits that make it", act: () => onChange(showEdits), on_file: true },
  { key: ".", words: "mark it seen; it stays to decide", act: () => onChange(seeCurrent), decides: true, on_file: true },
  { key: "u", words: "undo the newest decision", act: undo },
  { key: "U", words: "redo what was undone", act: redo },
  { key: "t", words: "the whole turn: then a accepts, x rejects", act: () => askWhole("turn"), on_file: true },
  { key: "f", words: "the whole file: then a accepts, x rejects", act: () => askWhole("file"), on_file: true },
  { key: "/", words: "search the queue: files and prompts", act: filterQueue, leads_to_text: true, waits: false },
  { key: "b", words: "blame: the prompt of each line of this file", act: blame, on_file: true },
  { key: "h", words: "history: the timeline of this file, or of all", act: timeline },
  { key: "H", words: "search the history: text, paths, prompts", act: () => goTo(searchAddress("", "text")), leads_to_text: true, waits: false },
  { key: "Shift ↓", words: "choose lines, from the first of the change on; Shift ↑: one less", act: () => pickMore(1), repeats: true, on_file: true },
  { key: "?", words: "show all keys", act: () => set({ sheet: { kind: "keys" } }) },
  { key: "q", words: "leave: what is decided is recorded already", act: () => goTo("#/done") },
  { key: "Escape", words: "close a dialog; on a phone, back to the queue", act: back },
];

/** Keys that were pressed while something was loading or being decided, each with its time. @type {(Key & { time: number })[]} */
const kept = [];
let is_pumping = false;
/** Milliseconds between two keys of a text, at most. */
const TYPING = 1000;
/** When a key of a text came last for which no dialog opened: the keys that follow it are no decisions. */
let typed = -Infinity;
/** The field into which the last key was typed. @type {Element | null} */
let field = null;

/** Handle keys, unless the focus is in a field or a dialog is open. */
export function listenToKeys() {
  document.addEventListener("pointerdown", () => {
    field = null;
    typed = -Infinity;
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || state.sheet) return;
    if (event.target instanceof HTMLElement && event.target.closest(FIELDS)) {
      if (event.key === "Escape") event.target.blur();
      field = event.key === "Escape" || event.key === "Enter" ? null : event.target;
      return;
    }
    if (field && !field.isConnected) typed = event.timeStamp; // the field went while the person typed
    field = null;
    if (!state.has_keys && event.key !== "Escape") return;
    if (event.timeStamp - typed < TYPING && event.key !== "Escape") {
      typed = event.timeStamp;
      return;
    }
    const found = keyOf(event);
    if (!found) return;
    event.preventDefault();
    if ((event.repeat && !found.repeats) || (found.decides && isAnswering())) return;
    if (found.act === filterQueue && filterField()?.checkVisibility()) filterQueue();
    else if (!kept.at(-1)?.leads_to_text) kept.push({ ...found, time: event.timeStamp });
    pump();
  });
}

/** Return the keys that do something on the screen. */
export function keysHere() {
  const is_file = state.route.screen === "file" && state.file !== null;
  return KEYS.filter(({ on_file }) => is_file || !on_file);
}

/** @param {KeyboardEvent} event @returns {Key | undefined} */
function keyOf(event) {
  if (event.shiftKey && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    return state.file ? { key: "", words: "", act: () => pickMore(event.key === "ArrowDown" ? 1 : -1), repeats: true } : undefined;
  }
  return KEYS.find(({ key }) => key === event.key);
}

/** Do what the keys say, one after the other: each when what the one before began is on the screen. */
async function pump() {
  if (is_pumping) return;
  is_pumping = true;
  try {
    for (let next = kept.shift(); next; next = kept.shift()) {
      if (next.waits !== false && (!state.queue || !state.file || isActing())) {
        await decided();
        await settled();
      }
      const { said, sheet } = state;
      if (sheet?.kind === "whole" && (next.key === "a" || next.key === "x")) {
        kept.splice(0, kept.length, ...kept.filter(({ decides }) => !decides));
        await decideOnWhole(next.key === "a" ? "accept" : "reject", sheet.what, sheet.number);
      } else if (!next.decides || !isLate(next.time)) await next.act();
      if (next.leads_to_text && next.on_file && !state.sheet) typed = performance.now();
      const is_failure = state.said !== said && state.said?.is_failure;
      if (is_failure || next.leads_to_text || (state.sheet && state.sheet.kind !== "whole")) kept.length = 0; // they were not meant for this
    }
  } finally {
    is_pumping = false;
  }
}

/** Switch single keys on or off: they can get in the way of speech input and other programs. @param {boolean} has_keys */
export function switchKeys(has_keys) {
  localStorage.setItem("keys", has_keys ? "on" : "off");
  set({ has_keys });
}

/** @param {1 | -1} step */
function go(step) {
  if (state.route.screen === "file" && state.file?.all.length) {
    move(step);
    return;
  }
  const links = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".queue a.row, main .items a")]).filter((link) => link.checkVisibility());
  const at = links.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  links[at < 0 && step < 0 ? links.length - 1 : at + step]?.focus();
}

/** @param {() => unknown} act */
function onChange(act) {
  if (state.route.screen === "file" && state.file?.all[state.cursor]) return act();
  return say(state.queue?.changes ? "No change is open. Review leads to the next one that is left." : "No change is open, and none is left to decide.");
}

/** Show the single edits behind the current change. */
export function showEdits() {
  set({ sheet: { kind: "edits", units: state.file?.all[state.cursor]?.hunks ?? [] } });
}

/** Open the dialog that splits the current change. */
export function splitCurrent() {
  const change = state.file?.all[state.cursor];
  if (change && !isDecided(change)) set({ sheet: { kind: "split", units: change.hunks, where: state.file?.name ?? "" } });
}

/**
 * Return the turn that the review is about: that of the address, else that of the current change's newest edit; without
 * one, the session of that edit; null: neither is known.
 * @returns {{ what: "turn" | "session", number: number } | null}
 */
export function ownTurn() {
  const { route, file, cursor } = state;
  if (route.screen !== "file") return null;
  const writers = file?.all[cursor]?.writers ?? [];
  const newest = Math.max(...writers.flatMap(({ edits }) => edits));
  const own = writers.find(({ edits }) => edits.includes(newest));
  const author = own && file?.authors[own.author];
  const turn = route.turn || author?.turn || 0;
  if (turn) return { what: "turn", number: turn };
  return author?.session ? { what: "session", number: author.session } : null;
}

/** What is said of a change that is of no turn and of no session. */
export const NO_TURN = "No turn or session is known that made this change.";

/** Ask what to do with a whole file, or a turn or else a session. @param {"file" | "turn"} what */
export function askWhole(what) {
  if (state.route.screen !== "file" || !state.file) return;
  const own = what === "file" ? { what, number: 0 } : ownTurn();
  if (own) set({ sheet: { kind: "whole", ...own } });
  else say(NO_TURN);
}

/** Decide on a whole file, turn or session. @param {"accept" | "reject"} action @param {"file" | "turn" | "session"} what @param {number} number */
export function decideOnWhole(action, what, number) {
  return answer(async () => (what === "file" ? decideOnFile(action) : decideOnGroup(action, what, number)));
}

/** @returns {HTMLElement | null} */
function filterField() {
  return document.querySelector(".queue input");
}

/** Go to the field that filters the queue, also where the queue is not on the screen. */
function filterQueue() {
  if (!filterField()?.checkVisibility()) {
    goTo("#/");
    refresh();
  }
  queueMicrotask(() => filterField()?.dispatchEvent(new Event("wanted")));
}

function blame() {
  if (state.route.screen === "file" && state.file) goTo(blameAddress(state.file.path, (state.file.all[state.cursor]?.new_start ?? 0) + 1));
}

function timeline() {
  goTo(timelineAddress(state.route.screen === "file" && state.file ? state.file.path : ""));
}

function back() {
  if (state.picked) pick(null);
  else if (state.filter) set({ filter: "" });
  else if (state.route.screen !== "file") goTo("#/");
  else if (innerWidth < 700) goTo("#/");
  refresh();
}
