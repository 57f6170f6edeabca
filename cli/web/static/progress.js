// What there is to review and what was decided, turn by turn and file by file.

/** @import {Queue, QueuedFile, Turn} from "./types.d.ts" */

/** A file of a turn as the queue shows it. @typedef {Pick<QueuedFile, "document" | "lines_added" | "lines_removed" | "changes" | "unseen" | "accepted" | "rejected" | "name" | "path" | "operation">} Stop */
/** @typedef {Omit<Turn, "files"> & { files: Stop[], left: number, is_unread: boolean, total: number }} TurnStops */

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
  for (const { turn, files } of queue.turns) {
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
  const known = new Map(fileStops(queue).map((file) => [file.document, file]));
  return queue.turns.map((turn) => {
    const own = turn.files.flatMap((file) => {
      const all = known.get(file.document);
      return all ? [{ ...all, ...file }] : [];
    });
    const files = inOrder(queue, turn.turn, own);
    const left = files.reduce((n, { changes }) => n + changes, 0);
    const is_unread = queue.reading > 0 && files.some((file) => !totalOf(file));
    return { ...turn, files, left, is_unread, total: files.reduce((n, file) => n + totalOf(file), 0) };
  });
}

/** Return every file, those that are decided included, by path. @param {Queue} queue @returns {Stop[]} */
export function fileStops(queue) {
  return [...queue.files, ...queue.done].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Return how many changes a file has, those that are decided included. @param {Stop} stop */
export function totalOf({ changes, accepted, rejected }) {
  return changes + accepted + rejected;
}

/** Return how many changes were decided since the review began, and how many there are in all. @param {Queue | null} queue */
export function progressOf(queue) {
  const sum = (/** @type {"accepted" | "rejected"} */ verdict) => (queue ? fileStops(queue) : []).reduce((n, file) => n + file[verdict], 0);
  return { accepted: sum("accepted"), rejected: sum("rejected"), decided: queue?.decided ?? 0, total: queue?.total ?? 0 };
}
