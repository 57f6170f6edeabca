// What was decided since the page was opened: so that it is checked off in the queue, and counted, instead of gone.

/** @import {FileSummary, Queue, Turn} from "./types.d.ts" */

/** A file of a turn as the queue shows it. @typedef {{ document: number, added: number, removed: number, changes: number, unseen: number, total: number, name: string, path: string, operation: string, verdict: "" | "accepted" | "rejected" }} Stop */
/** @typedef {Omit<Turn, "files"> & { files: Stop[], left: number, total: number }} TurnStops */
/** A decision of this page. @typedef {{ number: number, action: string, document: number, turn: number | null, keys: string[], changes: number, where: string }} Entry */

/** @type {Map<string, { turn: Turn, files: Map<number, Stop> }>} */
const turns = new Map();
/** @type {Map<number, Stop>} */
const files = new Map();
/** @type {Entry[]} */
let entries = JSON.parse(sessionStorage.getItem("decided") ?? "[]");
/** Entries that were undone, the newest last. @type {Entry[]} */
const undone = [];

/** Remember what a queue lists. @param {Queue} queue */
export function noteQueue(queue) {
  const known = new Map(queue.files.map((file) => [file.document, file]));
  noteFiles(files, queue.files, known);
  for (const each of turns.values()) for (const file of each.files.values()) Object.assign(file, { changes: 0, unseen: 0 });
  for (const turn of queue.turns) {
    const name = `${turn.session}:${turn.number}`;
    const own = turns.get(name) ?? { turn, files: new Map() };
    own.turn = turn;
    noteFiles(own.files, turn.files, known);
    turns.set(name, own);
  }
}

/** @param {Map<number, Stop>} into @param {readonly { document: number, added: number, removed: number, changes: number, unseen: number }[]} listed @param {Map<number, FileSummary>} known */
function noteFiles(into, listed, known) {
  for (const stop of into.values()) Object.assign(stop, { changes: 0, unseen: 0 });
  for (const { document, added, removed, changes, unseen } of listed) {
    const file = known.get(document);
    if (!file) continue;
    const was = into.get(document);
    const { name, path, operation } = file;
    const total = Math.max(changes, (was?.total ?? 0));
    into.set(document, { document, added, removed, changes, unseen, total, name, path, operation, verdict: verdictOf(document) });
  }
}

/** @param {number} document @returns {"" | "accepted" | "rejected"} */
function verdictOf(document) {
  const own = entries.filter((entry) => entry.document === document);
  if (!own.length) return "";
  return own.every(({ action }) => action === "reject") ? "rejected" : "accepted";
}

/** Return the turns with their files, those that are decided included. @param {Queue} queue @returns {TurnStops[]} */
export function turnStops(queue) {
  const found = [...turns.values()].map(({ turn, files: own }) => {
    const all = stopsOf(own);
    const left = all.reduce((n, { changes }) => n + changes, 0);
    const is_unread = queue.reading > 0 && queue.turns.includes(turn);
    return { ...turn, files: all, left: left || Number(is_unread), total: Math.max(all.reduce((n, { total }) => n + total, 0), left) };
  });
  return found.sort((a, b) => Number(!a.number) - Number(!b.number) || a.number - b.number || a.session - b.session);
}

/** Return every file, those that are decided included, by path. @returns {Stop[]} */
export function fileStops() {
  return stopsOf(files).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** @param {Map<number, Stop>} own */
function stopsOf(own) {
  return [...own.values()].map((stop) => ({ ...stop, verdict: stop.changes ? /** @type {const} */ ("") : verdictOf(stop.document) }));
}

// ---- decisions

/** Note a decision of this page. @param {Entry} entry */
export function noteDecision(entry) {
  entries.push(entry);
  keep();
}

/** Note that the newest decision was undone; return it if it is one of this page. @param {number} number */
export function noteUndo(number) {
  const entry = entries.find((one) => one.number === number);
  if (!entry) return null;
  entries = entries.filter((one) => one !== entry);
  undone.push(entry);
  keep();
  return entry;
}

/** Note that the decision which was undone last was redone; return it if it is one of this page. @param {number} number of the decision that did it */
export function noteRedo(number) {
  const entry = undone.pop();
  if (!entry) return null;
  entries.push({ ...entry, number });
  keep();
  return entry;
}

function keep() {
  sessionStorage.setItem("decided", JSON.stringify(entries.slice(-5000)));
}

/** Return how many changes were accepted and rejected here. */
export function decidedCounts() {
  const of = (/** @type {string} */ action) => entries.reduce((n, entry) => n + (entry.action === action ? entry.changes : 0), 0);
  return { accepted: of("accept"), rejected: of("reject") };
}
