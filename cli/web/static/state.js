// The state of the page, in one place, and the listeners for its changes.

import "./secret.js"; // first: it takes the secret out of the address

/** @import {File as ChangedFile, Queue, Outcome} from "./types.d.ts" */
/** @import {Route} from "./routes.js" */
import { useEffect, useState } from "./vendor/preact-htm.js";
import { parsed } from "./routes.js";

/**
 * An open dialog. `again` repeats the request with the answer that the person chose.
 * @typedef {(extra: object) => void} Again
 * @typedef {{ kind: "conflicted", outcome: Extract<Outcome, { outcome: "conflicted" }>, again: Again }
 *   | { kind: "external", outcome: Extract<Outcome, { outcome: "external" }>, again: Again }
 *   | { kind: "confirm", outcome: Extract<Outcome, { outcome: "confirm" }>, again: Again }
 *   | { kind: "running", outcome: Extract<Outcome, { outcome: "running" }>, again: Again }
 *   | { kind: "unshown", outcome: Extract<Outcome, { outcome: "unshown" }>, action: "accept" | "reject" | "reset", again: Again }
 *   | { kind: "restore", message: string, effects: { name: string, words: string }[], again: Again }
 *   | { kind: "edits", units: string[], splitting: boolean }
 *   | { kind: "comment", keys: string[], where: string }
 *   | { kind: "reject", keys: string[], where: string }
 *   | { kind: "keys" }} Sheet
 */
/** The status line: the result of the last action. @typedef {{ text: string, is_failure: boolean, can_undo: boolean }} Said */

/**
 * @typedef {object} State
 * @property {Queue | null} queue
 * @property {Route} route
 * @property {"live" | "lost" | "unknown"} connection "unknown": the server was started again, with another token
 * @property {ChangedFile | null} file the file that is shown, with its changes
 * @property {string} file_error why no file is shown
 * @property {number} cursor index of the current change; -1: none
 * @property {"changes" | "rendered"} tab
 * @property {Sheet | null} sheet
 * @property {Said} said
 * @property {boolean} has_keys whether single keys are on
 */

/** @type {State} */
export const state = {
  queue: null,
  route: parsed(location.hash),
  connection: "live",
  file: null,
  file_error: "",
  cursor: -1,
  tab: "changes",
  sheet: null,
  said: { text: "", is_failure: false, can_undo: false },
  has_keys: localStorage.getItem("keys") !== "off",
};

/** @type {Set<() => void>} */
const listeners = new Set();

/** Change the state and notify the listeners. @param {Partial<State>} patch */
export function set(patch) {
  Object.assign(state, patch);
  for (const tell of listeners) tell();
}

/** Show the result of an action in the status line. @param {string} text @param {{ is_failure?: boolean, can_undo?: boolean }} [how] */
export function say(text, { is_failure = false, can_undo = false } = {}) {
  set({ said: { text, is_failure, can_undo } });
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
