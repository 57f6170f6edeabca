// Single-key shortcuts and their actions.

/** @import {Sheet} from "./state.js" */
import { whereOf } from "./change_head.js";
import { decideOn, move, moveFile, order, openFile, redo, seeCurrent, together, undo } from "./review.js";
import { blameAddress, searchAddress, timelineAddress } from "./routes.js";
import { set, state } from "./state.js";

/** @typedef {{ key: string, words: string, act: () => void }} Key */

/** @type {Key[]} */
export const KEYS = [
  { key: "j", words: "next change; in the queue, next file", act: () => go(1) },
  { key: "k", words: "previous change; in the queue, previous file", act: () => go(-1) },
  { key: "J", words: "next file", act: () => moveFile(1) || go(1) },
  { key: "K", words: "previous file", act: () => moveFile(-1) || go(-1) },
  { key: "Enter", words: "open the file that has the focus; in a dialog, press the button", act: enter },
  { key: "a", words: "accept this change", act: () => onChange(() => decideOn("accept", state.cursor)) },
  { key: "x", words: "reject this change", act: () => onChange(() => decideOn("reject", state.cursor)) },
  { key: "X", words: "reject it, with a reason for the agent", act: () => onChange(() => ask("reject")) },
  { key: "c", words: "comment on this change", act: () => onChange(() => ask("comment")) },
  { key: "e", words: "show the single edits that make it", act: () => onChange(() => edits(false)) },
  { key: "s", words: "split it: take out a part", act: () => onChange(() => edits(true)) },
  { key: ".", words: "mark it seen; it stays pending", act: seeCurrent },
  { key: "u", words: "undo the newest decision", act: undo },
  { key: "U", words: "redo what was undone", act: redo },
  { key: "b", words: "blame: the prompt of each line of this file", act: blame },
  { key: "t", words: "timeline of this file, or of the workspace", act: timeline },
  { key: "/", words: "search through the history", act: () => { location.hash = searchAddress("", "text"); } },
  { key: "Escape", words: "close a dialog; back to the queue", act: back },
  { key: "?", words: "show all keys", act: () => set({ sheet: { kind: "keys" } }) },
];

/** Handle keys, unless the focus is in a field or a dialog is open. */
export function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || state.sheet) return;
    if (event.target instanceof HTMLElement && event.target.closest("input, textarea, select")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (!state.has_keys && event.key !== "Escape") return;
    const found = KEYS.find(({ key }) => key === event.key);
    if (!found || event.key === "Enter") return; // links and buttons handle Enter themselves
    event.preventDefault();
    found.act();
  });
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
  const links = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".queue a, main .items a")]).filter((link) => link.checkVisibility());
  const at = links.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  links[at < 0 && step < 0 ? links.length - 1 : at + step]?.focus();
}

function enter() {
  const first = order(state.queue, null)[0];
  if (first !== undefined) openFile(first, null);
}

/** @param {() => void} act */
function onChange(act) {
  if (state.route.screen === "file" && state.file?.all[state.cursor]) act();
}

/** @param {"reject" | "comment"} kind */
function ask(kind) {
  const { file, cursor } = state;
  if (!file || state.queue?.read_only) return;
  const keys = together(cursor).map((index) => file.all[index].key);
  set({ sheet: { kind, keys, where: `${file.name}, ${whereOf(file.all[cursor])}` } });
}

/** @param {boolean} splitting */
function edits(splitting) {
  set({ sheet: { kind: "edits", units: state.file?.all[state.cursor]?.units ?? [], splitting } });
}

function blame() {
  if (state.route.screen === "file" && state.file) {
    location.hash = blameAddress(state.file.path, state.file.all[state.cursor]?.line_after);
  }
}

function timeline() {
  location.hash = timelineAddress(state.route.screen === "file" && state.file ? state.file.path : "");
}

function back() {
  location.hash = "#/";
}
