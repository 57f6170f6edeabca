// The logic of the review: which file and change are shown, and how they are kept up to date.

/** @import {Change, File as ChangedFile, Queue, Row, Syntax} from "./types.d.ts" */
/** @import {DiffView, ViewActs} from "./diff_view.js" */
/** @import {Mark} from "./diff_rows.js" */
/** @import {Moved} from "./change_head.js" */
/** @import {ShownFile} from "./state.js" */
/** @import {Verdicts} from "./shown_file.js" */
import { get, post, Refused } from "./api.js";
import { whereOf } from "./change_head.js";
import { commentOn, decideOn, isDecided, reopen, speak } from "./decisions.js";
import { markMoves } from "./moves.js";
import { noteReplaced } from "./presses.js";
import { fileStops, inOrder } from "./progress.js";
import { fileAddress, parsed } from "./routes.js";
import { CHUNK, Rows } from "./sections.js";
import { onScreen } from "./shown.js";
import { keptOn, lineNow, sameChange } from "./shown_file.js";
import { say, set, state } from "./state.js";

const is_wide = matchMedia("(min-width: 1100px)");
/** From this width on, the queue and a file are both on the screen. */
export const has_columns = matchMedia("(min-width: 700px)");

/** A file as it is reviewed: all its changes, or those of one turn. @typedef {{ document: number, turn: number | null }} Stop */

/** @type {DiffView | null} */
let view = null;
/** @type {Rows | null} */
let rows = null;
/** @type {Map<number, Moved>} */
let moves = new Map();
/** Identifies what was drawn: rows are redrawn only if this changes. */
let drawn = "";
/** Whether the next file opens at its last change. */
let is_backwards = false;
/** Whether the person goes on by itself: a file in which nothing is left is then passed over. */
let is_flowing = false;
/** Whether a file was opened before: the first one leaves the focus at the beginning of the page. */
let was_opened = false;
/** What became of changes of the file since it was opened. @type {Verdicts} */
export const verdicts = new Map();

/** Set the view in which a file's changes are drawn. @param {DiffView | null} made */
export function drawIn(made) {
  view?.close();
  view = made;
  drawn = "";
  if (!view || !state.file) return;
  draw(state.file);
  view.select(state.cursor, { focus: was_opened && !isTyping() });
  was_opened = true;
}

/** Draw the file again, as after a change of the window or of the view. */
export function redraw() {
  drawn = "";
  if (state.file) draw(state.file);
}

is_wide.addEventListener("change", redraw);
has_columns.addEventListener("change", () => set({}));

// ---- refreshing

/** The request in progress, and the one that follows it. @type {Promise<void> | null} */
let current = null;
/** @type {Promise<void> | null} */
let upcoming = null;
/** The change to go to when the next answer arrives: its key, or hunks of it. @typedef {string | readonly string[] | undefined} Wanted */
/** @type {Wanted} */
let wanted;
/** Counts starts and ends of decisions: an answer to a request from before the newest of them is dropped. */
let epoch = 0;

/** Let answers to earlier requests be dropped, because a decision begins or ends. */
export function newEpoch() {
  epoch += 1;
}

/**
 * Request the queue and the shown file, and show them; return when that is done. Only one request runs at a time; all
 * that come meanwhile are served by one that follows.
 * @param {Wanted} [want] the change that is to be the current one
 * @returns {Promise<void>}
 */
export function refresh(want) {
  if (want !== undefined) wanted = want;
  upcoming ??= (current ?? Promise.resolve()).catch(() => undefined).then(ask);
  return upcoming;
}

/** Return when nothing is being loaded. */
export async function settled() {
  while (upcoming ?? current) await (upcoming ?? current)?.catch(() => undefined);
}

/** Show which checks run, and leave the rest as it is. */
export async function refreshChecks() {
  const began = epoch;
  try {
    /** @type {Queue} */
    const { checks } = await get("queue");
    if (began === epoch && state.queue) set({ queue: { ...state.queue, checks } });
  } catch (error) {
    if (!(error instanceof Refused)) throw error; // whatever is wrong, the decision's answer says
  }
}

async function ask() {
  const own = (current = upcoming);
  upcoming = null;
  const want = wanted;
  wanted = undefined;
  try {
    await refreshed(want);
  } finally {
    if (current === own) current = null;
  }
}

/** @param {Wanted} want */
async function refreshed(want) {
  const began = epoch;
  try {
    const { queue: before, route } = state;
    const file = asksFile() ? getFile() : null;
    file?.catch(() => undefined); // the error is reported where the file is awaited
    /** @type {Queue} */
    const queue = await get("queue");
    if (began !== epoch) return; // the decision refreshes again
    if (JSON.stringify(before) !== JSON.stringify(queue)) set({ queue });
    if (state.route.screen === "queue" && has_columns.matches) begin();
    await load(began, want, before, route === state.route ? file : null);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (error.status && error.status !== 401) say(error.message, { is_failure: true });
  }
}

/** Return whether to request the shown file together with the queue, because it is known to exist. */
function asksFile() {
  const { route, queue } = state;
  return route.screen === "file" && Boolean(queue?.files.some(({ document }) => document === route.document));
}

/** Request the file that the address names, with the rows next to the current change. @returns {Promise<ChangedFile>} */
function getFile() {
  const { route, file, cursor } = state;
  if (route.screen !== "file") throw new TypeError("no file is shown");
  const row = file?.document === route.document ? (file.all[cursor]?.row ?? 0) : 0;
  const first = Math.floor(row / CHUNK) * CHUNK;
  return get("file", { document: route.document, turn: route.turn ?? undefined, first, count: CHUNK });
}

/**
 * Request the file that the address names, and show it.
 * @param {number} began the epoch in which it was asked for
 * @param {Wanted} want @param {Promise<ChangedFile> | null} asked the file, if it was asked for already
 * @param {Queue | null} before the queue as it was, to find the next file
 */
async function load(began, want, before, asked) {
  const { route } = state;
  if (route.screen !== "file") return;
  const old = isShown() ? state.file : null;
  if (!state.queue?.files.some(({ document }) => document === route.document)) {
    leave(old !== null, before, "Nothing awaits review in this file.");
    return;
  }
  /** @type {ChangedFile} */
  let fresh;
  try {
    fresh = await (asked ?? getFile());
  } catch (error) {
    if (!(error instanceof Refused) || (error.status !== 404 && error.status !== 400)) throw error;
    if (route === state.route && began === epoch) leave(old !== null, before, error.message);
    return;
  }
  if (route !== state.route || began !== epoch) return;
  if (!fresh.all.length && !fresh.cancelled.length && !fresh.kept_on.length && !fresh.taken_out.length) {
    leave(old !== null, before, `Nothing awaits review in ${fresh.name}.`);
    return;
  }
  const kept = keptOn(old, fresh, verdicts);
  const file = kept ?? fresh;
  if (!kept) verdicts.clear();
  const cursor = placed(file, old, want);
  if (!kept) {
    const found = rowsOf(fresh);
    const needed = [file.all[cursor]?.row ?? 0, ...(old && view ? view.rowsSeen(file) : [])];
    const chunks = new Set(needed.map((row) => Math.floor(Math.min(Math.max(0, row), file.total - 1) / CHUNK)));
    if (file.total) await Promise.all([...chunks].map((chunk) => found.chunk(chunk).catch(() => [])));
    if (route !== state.route || began !== epoch) return;
    if (drawing(file) !== drawn) rows = found;
  }
  noteMeanwhile(old, file, cursor, want);
  is_backwards = is_flowing = false;
  const is_other = !old;
  if (drawing(file) !== drawn) moves = file.total <= CHUNK ? markMoves(file.rows) : new Map();
  set({ file, file_error: "", cursor, ...(is_other ? { picked: null } : {}) });
  draw(file);
  if (is_other || want !== undefined) view?.select(cursor, { focus: !state.sheet && !isTyping() });
}

/** Return whether the file that the address names is shown. */
function isShown() {
  const { route, file } = state;
  return route.screen === "file" && file?.document === route.document && shown_turn === route.turn;
}

/** The turn of which the shown file's changes are. @type {number | null} */
let shown_turn = null;

function isTyping() {
  return document.activeElement?.matches("input, textarea, select") ?? false;
}

/** @param {ChangedFile} file */
function rowsOf(file) {
  const { route } = state;
  const turn = route.screen === "file" ? (route.turn ?? undefined) : undefined;
  const found = new Rows(async (first, count) => {
    const more = await get("file", { document: file.document, turn, first, count });
    if (more.version === file.version || drawing(more) === drawing(file)) return more.rows;
    refresh(); // these are rows of other changes: drawn here, they would have the keys of the wrong ones
    throw new Refused(409, "The file has changed meanwhile.");
  });
  found.take(file.first, file.rows);
  return found;
}

/** Say what happened to the current change without the person's doing. @param {ShownFile | null} old @param {ShownFile} file @param {number} cursor @param {Wanted} want */
function noteMeanwhile(old, file, cursor, want) {
  const was = old?.all[state.cursor];
  const now = file.all[cursor];
  if (!was || was.verdict || !now || want !== undefined || was.key === now.key) return;
  noteReplaced();
  if (now.hunks.some((unit) => was.hunks.includes(unit))) {
    view?.altered.add(now.key);
    say(`The change at ${whereOf(now)} changed since you looked.`);
  } else say(`The change at ${whereOf(was)} was decided or taken back meanwhile.`);
}

/** Return the index of the change that is to be current. @param {ShownFile} file @param {ShownFile | null} old @param {Wanted} want */
function placed(file, old, want) {
  const there = want === undefined ? -1 : file.all.findIndex(({ key, hunks }) => (typeof want === "string" ? key === want : hunks.some((hunk) => want.includes(hunk))));
  if (there >= 0) return there;
  if (!old) return is_backwards ? file.all.length - 1 : Math.max(0, file.all.findIndex(({ seen }) => !seen));
  const same = sameChange(old.all[state.cursor], file.all);
  return same >= 0 ? same : Math.min(Math.max(0, state.cursor), file.all.length - 1);
}

/** Return what identifies the rows and headings of a file. @param {ShownFile} file */
function drawing(file) {
  const changes = file.all.map(({ key, row, rows: count, new_start: line }) => `${key} ${row} ${count} ${line}`);
  const { route } = state;
  return [file.document, route.screen === "file" && route.turn, file.blob_after, file.blob_before, file.total, isSplit(), ...changes].join("\n");
}

/** Return whether old and new are side by side. */
function isSplit() {
  return state.view === "split" && is_wide.matches;
}

/** Draw the file, or only the headings if its rows are the same. @param {ShownFile} file */
function draw(file) {
  if (!view || !rows) return;
  shown_turn = state.route.screen === "file" ? state.route.turn : null;
  if (drawing(file) === drawn && view.file) {
    view.file = file;
    view.acts = acts(file);
    view.cursor = state.cursor;
    file.all.forEach((_, index) => view?.again(index));
    return;
  }
  drawn = drawing(file);
  view.show(file, state.cursor, acts(file), isSplit());
}

/** Return the actions that the headings and rows of a file need. @param {ShownFile} file @returns {ViewActs} */
function acts(file) {
  const turn = state.route.screen === "file" ? (state.route.turn ?? undefined) : undefined;
  const { document } = file;
  return {
    rows: /** @type {Rows} */ (rows),
    moves,
    select,
    accept: (index) => decideOn("accept", index),
    reject: (index) => decideOn("reject", index),
    comment: commentOn,
    reopen,
    reach: (row) => select(state.file?.all.findIndex((change) => change.rows && change.row <= row && row < change.row + change.rows) ?? -1),
    pick,
    resolve: (comment) => speak("comment/resolve", { number: comment.comment, resolved: comment.state !== "resolved" }),
    answer: async (comment, text) => {
      sessionStorage.removeItem(`answer:${comment.comment}`);
      if (!(await speak("comment", { answers: comment.comment, text }))) sessionStorage.setItem(`answer:${comment.comment}`, text);
    },
    prompt: (number) => state.queue?.turns.find((one) => one.turn === number)?.prompt ?? "",
    read_only: state.queue?.read_only ?? "",
    is_elsewhere: !!state.queue?.elsewhere,
    syntax: (first, count) => syntax(file, turn, first, count),
    lines: async (first, count) => /** @type {Row[] | undefined} */ ((await get("lines", { document, turn, first: lineNow(state.file ?? file, first), count }).catch(refused))?.rows),
    rest: async (row, key, from) => {
      if (key || !verdicts.size) return get("line", { document, turn, row, key: key || undefined, first: from, count: 100_000 });
      verdicts.clear(); // the rows of context have other numbers now
      drawn = "";
      await refresh();
      return null;
    },
  };
}

/** The syntax of a small file, asked for once: its rows keep their marks when changes are decided. @type {{ of: string, marks: Promise<Mark[][]> } | null} */
let whole = null;

/** @param {ShownFile} file @param {number | undefined} turn @param {number} first @param {number} count @returns {Promise<Mark[][]>} */
async function syntax(file, turn, first, count) {
  const from = async (/** @type {number} */ start, /** @type {number} */ n) => {
    /** @type {Syntax} */
    const found = await get("syntax", { document: file.document, turn, first: start, count: n });
    return found.blob_before === file.blob_before && found.blob_after === file.blob_after ? found.rows : []; // else they are those of other rows
  };
  if (file.total > CHUNK) return from(first, count);
  const of = [file.document, turn, file.blob_before, file.blob_after, file.total].join();
  if (whole?.of !== of) whole = { of, marks: from(0, file.total) };
  return (await whole.marks).slice(first, first + count);
}

// ---- navigation

/** Return what there is to review, in order. @param {Queue | null} queue @returns {Stop[]} */
export function order(queue) {
  if (!queue) return [];
  const has = new Set(queue.files.map(({ document }) => document));
  if (state.arrangement === "tree") return fileStops(queue).filter(({ document }) => has.has(document)).map(({ document }) => ({ document, turn: null }));
  const names = new Map(queue.files.map(({ document, name }) => [document, name]));
  return queue.turns.flatMap(({ turn, files }) => inOrder(queue, turn, files.filter((file) => file.changes || !(file.accepted + file.rejected)).map(({ document }) => ({ document, name: names.get(document) ?? "", turn: turn || null }))));
}

/** @param {Stop} one @param {{ document: number, turn: number | null }} other */
export function isSameStop(one, other) {
  return one.document === other.document && one.turn === other.turn;
}

/** Show a file. @param {Stop} stop @param {{ replace?: boolean }} [how] */
export function show({ document, turn }, how) {
  goTo(fileAddress(document, turn), how);
}

/** Go to a screen by its address. @param {string} address @param {{ replace?: boolean }} [how] */
export function goTo(address, { replace = false } = {}) {
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  follow();
}

/** Show the screen that the address names. */
export function follow() {
  const route = parsed(location.hash);
  const { route: was } = state;
  if (JSON.stringify(route) === JSON.stringify(was)) return;
  set({ route, sheet: null, tab: "changes" });
  if (!isShown()) {
    verdicts.clear();
    set({ file: null, cursor: -1, file_error: "", picked: null });
  }
  if (route.screen === "queue" && has_columns.matches) begin();
}

/** Show the first change that is to be decided on; return whether there is one. */
function begin() {
  const all = order(state.queue);
  if (!all.length) return false;
  is_flowing = true;
  show(all[0], { replace: true });
  return true;
}

/**
 * Go to the next file with something to decide on, beyond the last to the first; return whether there is one.
 * @param {Queue | null} before the queue in which the shown file still is
 */
export function goOn(before) {
  const { route } = state;
  if (route.screen !== "file") return false;
  const left = order(state.queue).filter((stop) => !isSameStop(stop, route));
  const was = order(before);
  const at = was.findIndex((stop) => isSameStop(stop, route));
  const next = was.slice(at + 1).find((stop) => left.some((one) => isSameStop(one, stop))) ?? left[0];
  if (!next) return false;
  is_flowing = true;
  show(next);
  return true;
}

/** Go to the next file because nothing is left in this one. @param {boolean} was_shown @param {Queue | null} before @param {string} why */
function leave(was_shown, before, why) {
  if (!was_shown && !is_flowing) set({ file: null, cursor: -1, file_error: why });
  else if (goOn(before)) {
    if (was_shown) noteReplaced();
    refresh();
  } else goTo("#/done");
}

/** Make a change the current one. @param {number} index */
export function select(index) {
  if (!state.file?.all[index]) return;
  leaving();
  set({ cursor: index, picked: null });
  view?.pick(null);
  view?.select(index);
}

/** Choose rows; null: none. @param {import("./state.js").Picked | null} picked */
export function pick(picked) {
  view?.pick(picked);
  const change = picked ? view?.data.get(picked.first)?.c : undefined;
  if (change !== undefined && change !== state.cursor) {
    set({ cursor: change });
    view?.select(change, { focus: false });
  }
  set({ picked });
}

/** Choose one more row, or one less, from the first of the current change on. @param {1 | -1} step */
export function pickMore(step) {
  const { picked, file, cursor } = state;
  const change = file?.all[cursor];
  if (!change?.rows) return;
  if (!picked) pick({ first: change.row, last: change.row });
  else if (picked.last + step >= picked.first && picked.last + step < change.row + change.rows) pick({ first: picked.first, last: picked.last + step });
  else if (step < 0) pick(null);
}

/** Return the rows that the person chose. */
export function pickedRows() {
  const { picked } = state;
  /** @type {Row[]} */
  const found = [];
  for (let at = picked?.first ?? 0; picked && at <= picked.last; at += 1) {
    const row = view?.data.get(at);
    if (row) found.push(row);
  }
  return found;
}

/** Mark the current change as seen if all of it was on the screen; called before going on. */
function leaving() {
  const change = state.file?.all[state.cursor];
  if (change && !change.seen && !change.verdict && view?.isWhole(state.cursor)) markSeen(change);
}

/** Go to another change; beyond the last, to the next file. @param {1 | -1} step */
export function move(step) {
  const to = state.cursor + step;
  if (state.file?.all[to]) select(to);
  else if (moveFile(step)) is_backwards = step < 0;
  else say(step > 0 ? "That was the last change." : "That was the first change.");
}

/** Go to another file; return whether there is one. @param {1 | -1} step */
export function moveFile(step) {
  const { route } = state;
  refresh(); // of what is shown below
  if (route.screen !== "file") return begin();
  leaving();
  const all = order(state.queue);
  const at = all.findIndex((stop) => isSameStop(stop, route));
  const to = all[at < 0 && step < 0 ? -1 : at + step];
  if (!to) return false;
  show(to);
  return true;
}

/** Mark a change as seen, as it is shown. @param {Change} change */
async function markSeen(change) {
  if (state.queue?.read_only) return;
  const seen = await post("seen", { keys: [change.key], on_screen: onScreen([change.key]) }).catch(refused);
  if (!seen) return;
  if (seen.unshown.length) {
    say("Not all of its lines were on the screen yet.", { is_failure: true });
    return;
  }
  await refresh();
}

/** Say why a request was refused; throw any other error. @param {unknown} error */
function refused(error) {
  if (!(error instanceof Refused)) throw error;
  say(error.message, { is_failure: true });
}

/** Mark the current change as seen; it stays pending. */
export function seeCurrent() {
  const change = state.file?.all[state.cursor];
  if (change?.seen) say("It is marked as seen until it changes.");
  else if (change && !isDecided(change)) return markSeen(change);
  return undefined;
}
