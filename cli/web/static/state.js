// The state of the page, in one place, and the listeners for its changes.

import "./secret.js"; // first: it takes the secret out of the address

/** @import {Change, File as ChangedFile, Queue, Outcome} from "./types.d.ts" */
/** @import {Route} from "./routes.js" */
import { useEffect, useState } from "./vendor/preact-htm.js";
import { parsed } from "./routes.js";

/** What a comment is about: changes, hunks of one that is decided, or lines of the state of a file that was shown, `seen`. @typedef {{ keys: string[] } | { units: string[] } | { path: string, lines: [number, number], seen: string }} CommentTarget */

/**
 * An open dialog. `again` repeats the request with the answer that the person chose; `what` says in words what was asked for.
 * @typedef {(extra: object) => void} Again
 * @typedef {{ kind: "conflict", outcome: Extract<Outcome, { outcome: "conflict" }>, again: Again, what: string }
 *   | { kind: "external-changes", outcome: Extract<Outcome, { outcome: "external-changes" }>, again: Again }
 *   | { kind: "unchecked", outcome: Extract<Outcome, { outcome: "unchecked" }> }
 *   | { kind: "confirm", outcome: Extract<Outcome, { outcome: "confirm" }>, again: Again }
 *   | { kind: "running", outcome: Extract<Outcome, { outcome: "running" }>, again: Again }
 *   | { kind: "unshown", outcome: Extract<Outcome, { outcome: "unshown" }>, action: "accept" | "reject" | "reset", again: Again }
 *   | { kind: "restore", message: string, effects: { name: string, words: string }[], again: Again }
 *   | { kind: "edits", units: string[] }
 *   | { kind: "split", units: string[], where: string }
 *   | { kind: "comment", where: string, target: CommentTarget }
 *   | { kind: "reject", keys: string[], where: string, name: string }
 *   | { kind: "whole", what: "file" | "turn" | "session", number: number }
 *   | { kind: "messages" }
 *   | { kind: "keys" }} Sheet
 */

/** What an action came to. `detail` names hunks. @typedef {{ text: string, detail: string, is_failure: boolean, can_undo: boolean, time: string }} Message */
/** A change as it is shown; one that was decided stays until the file is left. @typedef {Change & { verdict?: "accepted" | "rejected" }} ShownChange */
/** A file as it is shown. @typedef {Omit<ChangedFile, "all"> & { all: ShownChange[] }} ShownFile */
/** Rows of a diff that the person chose by their line numbers. @typedef {{ first: number, last: number }} Picked */

/**
 * @typedef {object} State
 * @property {Queue | null} queue
 * @property {Route} route
 * @property {"live" | "lost" | "unknown"} connection "unknown": the server was started again, with another token
 * @property {ShownFile | null} file the file that is shown, with its changes
 * @property {string} file_error why no file is shown
 * @property {number} cursor index of the current change; -1: none
 * @property {Picked | null} picked
 * @property {"changes" | "rendered"} tab
 * @property {"unified" | "split"} view
 * @property {"turns" | "tree"} arrangement of the queue
 * @property {string} filter of the queue
 * @property {Sheet | null} sheet
 * @property {Message | null} said the message that is on the screen
 * @property {Message[]} messages all of them, the newest first
 * @property {boolean} has_keys whether single keys are on
 */

const KEPT_MESSAGES = 200;

/** @type {State} */
export const state = {
  queue: null,
  route: parsed(location.hash),
  connection: "live",
  file: null,
  file_error: "",
  cursor: -1,
  picked: null,
  tab: "changes",
  view: localStorage.getItem("view") === "split" ? "split" : "unified",
  arrangement: localStorage.getItem("arrangement") === "tree" ? "tree" : "turns",
  filter: "",
  sheet: null,
  said: null,
  messages: [],
  has_keys: localStorage.getItem("keys") !== "off",
};

/** @type {Set<() => void>} */
const listeners = new Set();

/** Change the state and notify the listeners. @param {Partial<State>} patch */
export function set(patch) {
  Object.assign(state, patch);
  for (const tell of listeners) tell();
}

/** Keep a choice of the person for later visits, and apply it. @template {"view" | "arrangement"} K @param {K} name @param {State[K]} value */
export function choose(name, value) {
  localStorage.setItem(name, value);
  set({ [name]: value });
}

/** @typedef {{ is_failure?: boolean, can_undo?: boolean, detail?: string }} How */

/** Keep a message in the list of them; return it. @param {string} text @param {How} [how] */
export function note(text, { is_failure = false, can_undo = false, detail = "" } = {}) {
  const said = { text, detail, is_failure, can_undo, time: new Date().toISOString() };
  set({ messages: [said, ...state.messages].slice(0, KEPT_MESSAGES) });
  return said;
}

/** Show a message, and keep it in the list. @param {string} text @param {How} [how] */
export function say(text, how) {
  set({ said: note(text, how) });
}

/** Redraw a component whenever the state changes. */
export function useChanges() {
  const [, count] = useState(0);
  useEffect(() => {
    const tell = () => count((/** @type {number} */ n) => n + 1);
    listeners.add(tell);
    return () => {
      listeners.delete(tell);
    };
  }, []);
}
