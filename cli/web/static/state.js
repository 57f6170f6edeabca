// What the page knows, in one place, and who is told when it changes.

/** @import {File as ChangedFile, Queue, Outcome} from "./types.d.ts" */
/** @import {Route} from "./routes.js" */
import { useEffect, useState } from "./vendor/preact-htm.js";
import { parsed } from "./routes.js";

/**
 * A dialog that is open. `again` sends the request that was answered once more, with what a person chose.
 * @typedef {(extra: object) => void} Again
 * @typedef {{ kind: "conflicted", outcome: Extract<Outcome, { outcome: "conflicted" }>, again: Again }
 *   | { kind: "external", outcome: Extract<Outcome, { outcome: "external" }>, again: Again }
 *   | { kind: "running", outcome: Extract<Outcome, { outcome: "running" }>, again: Again }
 *   | { kind: "restore", message: string, effects: { name: string, words: string }[], again: Again }
 *   | { kind: "edits", units: string[], splitting: boolean }
 *   | { kind: "comment", keys: string[], where: string }
 *   | { kind: "reject", keys: string[], where: string }
 *   | { kind: "keys" }} Sheet
 */
/** What the status line says: how the last act ended. @typedef {{ text: string, is_failure: boolean, can_undo: boolean }} Said */

/**
 * @typedef {object} State
 * @property {Queue | null} queue
 * @property {Route} route
 * @property {"live" | "lost" | "unknown"} connection "unknown": the server was started again, and has another token
 * @property {ChangedFile | null} file the file that is shown, with its changes
 * @property {string} file_error why no file is shown
 * @property {number} cursor index of the current change; -1: none
 * @property {"changes" | "rendered"} tab
 * @property {Sheet | null} sheet
 * @property {Said} said
 * @property {boolean} has_keys whether single keys act
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

/** Change the state and tell everybody. @param {Partial<State>} patch */
export function set(patch) {
  Object.assign(state, patch);
  for (const tell of listeners) tell();
}

/** Say how an act ended. @param {string} text @param {{ is_failure?: boolean, can_undo?: boolean }} [how] */
export function say(text, { is_failure = false, can_undo = false } = {}) {
  set({ said: { text, is_failure, can_undo } });
}

/** Draw a component again whenever the state changes. */
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
