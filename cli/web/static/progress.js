// What there is to review and what was decided, turn by turn and file by file.

/** @import {DoneFile, Queue, Turn} from "./types.d.ts" */

/** A file of a turn as the queue shows it. @typedef {{ document: number, added: number, removed: number, changes: number, unseen: number, total: number, name: string, path: string, operation: string, verdict: "" | "accepted" | "rejected" }} Stop */
/** @typedef {Omit<Turn, "files"> & { files: Stop[], left: number, is_unread: boolean, total: number }} TurnStops */

/** The counts of lines of files, which the queue has only while something is pending. @type {Map<string, { added: number, removed: number }>} */
const counts = new Map();

/** With which queue a file came into a turn: what comes while one reads goes behind the others, so that no row moves. @type {Map<string, number>} */
const arrived = new Map();
let queues = 0;
/** @type {Queue | null} */
let newest = null;

/** Note which files a queue has that were not there before; all are taken as one as long as files are still being read. @param {Queue} queue */
function noteArrivals(queue) {
  if (queue === newest) return;
  if (newest && !newest.reading) queues += 1;
  newest = queue;
  for (const { turn, files } of [...queue.turns, ...queue.done.files.map(({ turn, document }) => ({ turn, files: [{ document }] }))]) {
    for (const { document } of files) {
      const own = `${turn} ${document}`;
      if (!arrived.has(own)) arrived.set(own, queues);
    }
  }
}

/** Return the files of a turn in the order in which they are reviewed. @template {{ document: number, name: string }} T @param {Queue} queue @param {number} turn @param {T[]} files @returns {T[]} */
export function inOrder(queue, turn, files) {
  noteArrivals(queue);
  const place = (/** @type {T} */ { document }) => arrived.get(`${turn} ${document}`) ?? 0;
  return files.sort((a, b) => place(a) - place(b) || (a.name < b.name ? -1 : 1));
}

/** Return the turns with their files, those that are decided included. @param {Queue} queue @returns {TurnStops[]} */
export function turnStops(queue) {
  const known = new Map(queue.files.map((file) => [file.document, file]));
  /** @type {Map<string, { turn: Omit<Turn, "files">, stops: Map<number, Stop> }>} */
  const found = new Map();
  const nameOf = (/** @type {{ session: number, turn: number }} */ { session, turn }) => `${session}:${turn}`;
  for (const turn of queue.turns) {
    const stops = new Map();
    for (const { document, lines_added: added, lines_removed: removed, changes, unseen } of turn.files) {
      const file = known.get(document);
      if (!file) continue;
      const { name, path, operation } = file;
      counts.set(`${turn.turn} ${document}`, { added, removed });
      stops.set(document, { document, added, removed, changes, unseen, total: changes, name, path, operation, verdict: "" });
    }
    found.set(nameOf(turn), { turn, stops });
  }
  for (const turn of queue.done.turns) if (!found.has(nameOf(turn))) found.set(nameOf(turn), { turn: { ...turn, running: false }, stops: new Map() });
  for (const file of queue.done.files) {
    const own = found.get(`${file.session}:${file.turn}`);
    if (own) addDone(own.stops, file);
  }
  const all = [...found.values()].map(({ turn, stops }) => {
    const files = inOrder(queue, turn.turn, [...stops.values()]);
    const left = files.reduce((n, { changes }) => n + changes, 0);
    const is_unread = queue.reading > 0 && files.some(({ total }) => !total);
    return { ...turn, files, left, is_unread, total: files.reduce((n, { total }) => n + total, 0) };
  });
  return all.sort((a, b) => Number(!a.turn) - Number(!b.turn) || a.turn - b.turn || a.session - b.session);
}

/** Return every file, those that are decided included, by path. @param {Queue} queue @returns {Stop[]} */
export function fileStops(queue) {
  /** @type {Map<number, Stop>} */
  const stops = new Map();
  for (const { document, lines_added: added, lines_removed: removed, changes, unseen, name, path, operation } of queue.files) {
    stops.set(document, { document, added, removed, changes, unseen, total: changes, name, path, operation, verdict: "" });
  }
  for (const file of queue.done.files) addDone(stops, file);
  return [...stops.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Add what was decided of a file. @param {Map<number, Stop>} stops @param {DoneFile} file */
function addDone(stops, { turn, document, path, name, accepted, rejected }) {
  const { added, removed } = counts.get(`${turn} ${document}`) ?? { added: 0, removed: 0 };
  const stop = stops.get(document) ?? { document, added, removed, changes: 0, unseen: 0, total: 0, name, path, operation: "edit", verdict: /** @type {const} */ ("") };
  const verdict = accepted || stop.verdict === "accepted" ? "accepted" : "rejected";
  stops.set(document, { ...stop, total: stop.total + accepted + rejected, verdict });
}

/** Return how many changes were decided since the review began, and how many there are in all. @param {Queue | null} queue */
export function progressOf(queue) {
  const sum = (/** @type {"accepted" | "rejected"} */ verdict) => queue?.done.files.reduce((n, file) => n + file[verdict], 0) ?? 0;
  return { accepted: sum("accepted"), rejected: sum("rejected"), decided: queue?.decided ?? 0, total: queue?.total ?? 0 };
}
