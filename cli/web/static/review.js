// The logic of the review: which file and change are shown, refreshing, and decisions.

/** @import {Change, Decide, File as ChangedFile, Outcome, Queue, Row, Status, Syntax} from "./types.d.ts" */
/** @import {DiffView} from "./diff_view.js" */
import { decide, get, post, Refused } from "./api.js";
import { whereOf } from "./change_head.js";
import { sameChange } from "./diff_view.js";
import { fileAddress } from "./routes.js";
import { CHUNK, Rows } from "./sections.js";
import { onScreen } from "./shown.js";
import { say, set, state } from "./state.js";

const side_by_side = matchMedia("(min-width: 1100px)");

/** @type {DiffView | null} */
let view = null;
/** @type {Rows | null} */
let rows = null;
/** Identifies what was drawn: rows are redrawn only if this changes. */
let drawn = "";
/** Whether the next file opens at its last change. */
let is_backwards = false;
/** Whether the server knows no syntax for this file. */
let is_plain = false;

/** Set the view in which a file's changes are drawn. @param {DiffView | null} made */
export function drawIn(made) {
  view?.close();
  view = made;
  drawn = "";
  if (view && state.file) draw(state.file);
}

side_by_side.addEventListener("change", () => {
  drawn = "";
  if (state.file) draw(state.file);
});

// ---- refreshing

/** The request in progress, and the one that follows it. @type {Promise<void> | null} */
let current = null;
/** @type {Promise<void> | null} */
let upcoming = null;
/** The change to go to when the next answer arrives. @type {string | null | undefined} */
let wanted;
/** Counts starts and ends of decisions: an answer to a request from before the newest of them is dropped. */
let epoch = 0;

/**
 * Request the queue and the shown file, and show them; return when that is done. Only one request runs at a time; all
 * that come meanwhile are served by one that follows.
 * @param {string | null} [want] key of the change that is to be the current one; null: the first that came back
 * @returns {Promise<void>}
 */
export function refresh(want) {
  if (want !== undefined) wanted = want;
  upcoming ??= (current ?? Promise.resolve()).catch(() => undefined).then(ask);
  return upcoming;
}

async function ask() {
  current = upcoming;
  upcoming = null;
  const want = wanted;
  wanted = undefined;
  await refreshed(want);
}

/** @param {string | null} [want] */
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
 * @param {string | null | undefined} want @param {Promise<ChangedFile> | null} asked the file, if it was asked for already
 * @param {Queue | null} before the queue as it was, to find the next file
 */
async function load(began, want, before, asked) {
  const { route } = state;
  if (route.screen !== "file") return;
  const old = state.file?.document === route.document ? state.file : null;
  const turn = route.turn ?? undefined;
  if (!state.queue?.files.some(({ document }) => document === route.document)) {
    leave(old !== null, before, "Nothing awaits review in this file.");
    return;
  }
  /** @type {ChangedFile} */
  let file;
  try {
    file = await (asked ?? getFile());
  } catch (error) {
    if (!(error instanceof Refused) || (error.status !== 404 && error.status !== 400)) throw error;
    if (route === state.route && began === epoch) leave(old !== null, before, error.message);
    return;
  }
  if (route !== state.route || began !== epoch) return;
  if (!file.all.length && !file.cancelled.length && !file.kept_on.length && !file.taken_out.length) {
    leave(old !== null, before, `Nothing awaits review in ${file.name}.`);
    return;
  }
  const cursor = placed(file, old, want);
  const found = new Rows(async (first, count) => {
    const more = await get("file", { document: route.document, turn, first, count });
    if (more.version === file.version || drawing(more) === drawing(file)) return more.rows;
    refresh(); // these are rows of other changes: drawn here, they would have the keys of the wrong ones
    throw new Refused(409, "The file has changed meanwhile.");
  });
  found.take(file.first, file.rows);
  const row = file.all[cursor]?.row ?? 0;
  if (file.total) await found.chunk(Math.floor(row / CHUNK)).catch(() => []);
  if (route !== state.route || began !== epoch) return;
  const was = old?.all[state.cursor];
  const now = file.all[cursor];
  if (was && now && want === undefined && was.key !== now.key) {
    if (now.units.some((unit) => was.units.includes(unit))) {
      view?.altered.add(now.key);
      say(`The change at ${whereOf(now)} changed since you looked.`);
    } else say(`The change at ${whereOf(was)} was decided or taken back meanwhile.`);
  }
  is_backwards = false;
  const is_other = !old || state.file?.document !== file.document;
  if (drawing(file) !== drawn) rows = found;
  if (is_other) is_plain = false;
  set({ file, file_error: "", cursor });
  draw(file);
  if (is_other || want !== undefined) view?.select(cursor, { focus: !state.sheet });
}

/** Return the index of the change that is to be current. @param {ChangedFile} file @param {ChangedFile | null} old @param {string | null} [want] */
function placed(file, old, want) {
  if (want === null && old) {
    const back = file.all.findIndex(({ key }) => !old.all.some((other) => other.key === key));
    if (back >= 0) return back;
  }
  const wanted = want === undefined ? -1 : file.all.findIndex(({ key }) => key === want);
  if (wanted >= 0) return wanted;
  if (!old) {
    const last = file.all.length - 1;
    const first = Math.max(0, file.all.findIndex(({ seen }) => !seen));
    return is_backwards ? last : first;
  }
  const same = sameChange(old.all[state.cursor], file.all);
  return same >= 0 ? same : Math.min(Math.max(0, state.cursor), file.all.length - 1);
}

/** Return what identifies the rows and headings of a file. @param {ChangedFile} file */
function drawing(file) {
  const changes = file.all.map(({ key, row, rows: count, line_after: line }) => `${key} ${row} ${count} ${line}`);
  return [file.document, file.blob, file.blob_before, file.total, side_by_side.matches, ...changes].join("\n");
}

/** Draw the file, or only the headings if its rows are the same. @param {ChangedFile} file */
function draw(file) {
  if (!view || !rows) return;
  if (drawing(file) === drawn && view.file) {
    view.file = file;
    view.acts = acts(file);
    file.all.forEach((_, index) => view?.headAgain(index));
    return;
  }
  drawn = drawing(file);
  view.show(file, state.cursor, acts(file), side_by_side.matches);
}

/** Return the actions that the headings and rows of a file need. @param {ChangedFile} file @returns {import("./diff_view.js").ViewActs} */
function acts(file) {
  const turn = state.route.screen === "file" ? (state.route.turn ?? undefined) : undefined;
  const { document } = file;
  return {
    rows: /** @type {Rows} */ (rows),
    select,
    accept: (index) => decideOn("accept", index),
    reject: (index) => decideOn("reject", index),
    resolve: (comment) => speak("comment/resolve", { number: comment.number, resolved: comment.state !== "resolved" }),
    answer: async (comment, text) => {
      if (await speak("comment", { answers: comment.number, text })) sessionStorage.removeItem(`answer:${comment.number}`);
    },
    prompt: (number) => state.queue?.turns.find((one) => one.number === number)?.prompt ?? "",
    read_only: state.queue?.read_only ?? "",
    syntax: async (first, count) => {
      if (is_plain) return [];
      /** @type {Syntax} */
      const found = await get("syntax", { document, turn, first, count });
      if (!found.rows.length) is_plain = true;
      return found.rows;
    },
    lines: async (first, count) => /** @type {Row[]} */ ((await get("lines", { document, turn, first, count })).rows),
    rest: (row, key, from) => get("line", { document, turn, row, key: key || undefined, first: from, count: 100_000 }),
  };
}

// ---- navigation

/** Return the documents in review order. @param {Queue | null} queue @param {number | null} turn */
export function order(queue, turn) {
  if (turn === null) return (queue?.files ?? []).map(({ document }) => document);
  return queue?.turns.find(({ number }) => number === turn)?.files.map(({ document }) => document) ?? [];
}

/** Show a file. @param {number} document @param {number | null} turn */
export function openFile(document, turn) {
  location.hash = fileAddress(document, turn);
}

/** Go to the next file, or back to the queue, because nothing is left in this one. @param {boolean} was_shown @param {Queue | null} before @param {string} why */
function leave(was_shown, before, why) {
  const { route } = state;
  if (route.screen !== "file") return;
  const left = order(state.queue, route.turn);
  const was = order(before, route.turn);
  const next = was.slice(was.indexOf(route.document) + 1).find((one) => left.includes(one)) ?? left.find((one) => one !== route.document);
  if (!was_shown) set({ file: null, cursor: -1, file_error: why });
  else if (next !== undefined) openFile(next, route.turn);
  else location.hash = "#/";
}

/** Make a change the current one. @param {number} index */
export function select(index) {
  leaving();
  set({ cursor: index });
  view?.select(index);
}

/** Mark the current change as seen if all of it was on the screen; called before going on. */
function leaving() {
  const change = state.file?.all[state.cursor];
  if (change && !change.seen && view?.isWhole(state.cursor)) markSeen(change);
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
  if (route.screen !== "file") return false;
  leaving();
  const all = order(state.queue, route.turn);
  const to = all[all.indexOf(route.document) + step];
  if (to === undefined) return false;
  openFile(to, route.turn);
  return true;
}

/** Mark a change as seen, as it is shown. @param {Change} change */
async function markSeen(change) {
  if (state.queue?.read_only) return;
  try {
    const { unshown } = await post("seen", { keys: [change.key], on_screen: onScreen([change.key]) });
    if (unshown.length) {
      say("Not all of its lines were on the screen yet.", { is_failure: true });
      return;
    }
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    say(error.message, { is_failure: true });
    return;
  }
  await refresh();
}

/** Mark the current change as seen; it stays pending. */
export function seeCurrent() {
  const change = state.file?.all[state.cursor];
  if (change?.seen) say("It is marked as seen until it changes.");
  else if (change) markSeen(change);
}

// ---- deciding

/** Return the indices of a change and of those that are decided with it. @param {number} index */
export function together(index) {
  const change = state.file?.all[index];
  return change ? [index, ...change.shares_with] : [];
}

/** Accept or reject a change, and go on to the next. @param {"accept" | "reject"} action @param {number} index @param {string} [reason] */
export async function decideOn(action, index, reason) {
  const { file } = state;
  if (!file?.all[index] || acting || state.queue?.read_only) return;
  const these = together(index);
  const next = file.all.find((_, at) => at > index && !these.includes(at)) ?? file.all.findLast((_, at) => !these.includes(at));
  await perform("decide", { action, keys: these.map((at) => file.all[at].key), ...(reason ? { reason } : {}) }, next?.key);
}

/** Accept or reject every change of the shown file. @param {"accept" | "reject"} action */
export async function decideOnFile(action) {
  const { file } = state;
  if (file?.all.length && !acting) await perform("decide", { action, keys: file.all.map(({ key }) => key) });
}

/** Accept or reject what is pending of a turn. @param {"accept" | "reject"} action @param {number} turn */
export async function decideOnTurn(action, turn) {
  if (!acting) await perform("decide", { action, turn });
}

/** Decide on single hunks. @param {"accept" | "reject" | "reset"} action @param {Record<string, Status>} units each with its status as shown */
export function decideOnUnits(action, units) {
  return perform("decide", { action, units });
}

/** Undo the newest decision that the page shows, after a decision in progress has ended. */
export async function undo() {
  await acting;
  const number = state.queue?.undo ?? 0;
  if (!number) say("There is no decision to undo.");
  else await perform("undo", { number }, null);
}

/** Redo the decision that was undone last. */
export async function redo() {
  await acting;
  await perform("redo", {}, null);
}

/** The decision in progress: until its result is shown, other decisions are ignored. @type {Promise<Outcome> | null} */
let acting = null;

/**
 * Send a request that has an outcome, and show the outcome. A question is answered by the same request with more fields.
 * @param {string} name @param {object} body
 * @param {string | null} [next] key of the change to go to when it is done; null: to a change that came back
 * @returns {Promise<Outcome>}
 */
export async function perform(name, body, next) {
  const made = performed(name, body, next);
  acting = made;
  try {
    return await made;
  } finally {
    if (acting === made) acting = null;
  }
}

/** @param {string} name @param {object} body @param {string | null} [next] @returns {Promise<Outcome>} */
async function performed(name, body, next) {
  epoch += 1;
  const sent = name === "decide" ? { ...body, on_screen: shownOf(body) } : body;
  const outcome = await decide(name, sent).finally(() => {
    epoch += 1;
  });
  const again = (/** @type {object} */ extra) => {
    set({ sheet: null });
    perform(name, { ...body, ...extra }, next);
  };
  switch (outcome.outcome) {
    case "conflicted":
      set({ sheet: { kind: "conflicted", outcome, again } });
      break;
    case "external":
      set({ sheet: { kind: "external", outcome, again } });
      break;
    case "confirm":
      set({ sheet: { kind: "confirm", outcome, again } });
      break;
    case "running":
      set({ sheet: { kind: "running", outcome, again } });
      break;
    case "unshown":
      set({ sheet: { kind: "unshown", outcome, action: /** @type {Decide} */ (body).action, again } });
      break;
    case "decided":
      await refresh(next);
      say([outcome.message, ...outcome.notes].join(" "), { can_undo: name !== "undo" });
      break;
    case "waiting":
      await refresh(next);
      say(outcome.message);
      break;
    case "nothing":
      await refresh();
      say(outcome.message);
      break;
    default:
      await refresh();
      say(outcome.message, { is_failure: true });
  }
  if (state.sheet) refresh();
  return outcome;
}

/** Return what was on the screen of what a decision is on. @param {Partial<Decide>} body */
function shownOf({ keys, units }) {
  return onScreen(keys ?? (units ? Object.keys(units) : null));
}

/** Send a comment, an answer, or the resolution of a comment; return whether that succeeded. @param {string} name @param {object} body */
export async function speak(name, body) {
  try {
    await post(name, body);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    say(error.message, { is_failure: true });
    return false;
  }
  await refresh();
  return true;
}
