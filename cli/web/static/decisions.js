// Decisions and comments: what is sent, and what the outcome is in a person's words.

/** @import {Decide, Outcome, Status} from "./types.d.ts" */
/** @import {CommentTarget, Message, ShownChange, ShownFile} from "./state.js" */
import { decide, post, Refused } from "./api.js";
import { whereOf } from "./change_head.js";
import { goOn, newEpoch, pickedRows, refresh, refreshChecks, show, verdicts } from "./review.js";
import { onScreen } from "./shown.js";
import { undecided } from "./shown_file.js";
import { note, say, set, state } from "./state.js";

/** What a request decides on, for the change that comes next. @typedef {{ action: "accept" | "reject" | "reset", keys: string[] }} About */
/** @typedef {"accept" | "reject"} Verdict */

/** The decision in progress: until its result is shown, no other begins. @type {Promise<Outcome> | null} */
let acting = null;
/** The request of the decision in progress. */
let request = "";
/** The message that another request, which came while that decision was in progress, did nothing. @type {Message | null} */
let lost = null;

/** Whether the decision in progress is what was chosen in a dialog. */
let is_answer = false;

/** Milliseconds after which the page shows which checks run, if a decision is still in progress. */
const PROMPT = 500;
/** Whether a decision began a moment ago, and so refreshes by itself soon. */
let is_prompt = false;

/** Return whether a decision is in progress. */
export function isActing() {
  return acting !== null;
}

/** Return whether what was chosen in a dialog is in progress: a key that decides was meant for the dialog then. */
export function isAnswering() {
  return is_answer;
}

/** Close the open dialog, and do what was chosen in it. @template T @param {() => Promise<T>} act @returns {Promise<T>} */
export async function answer(act) {
  set({ sheet: null });
  is_answer = true;
  try {
    return await act();
  } finally {
    is_answer = false;
  }
}

/** Wait until no decision is in progress, whoever began it: a key or a button. */
export async function decided() {
  while (acting) await acting.catch(() => undefined);
}

/** Show what has changed; while a decision is in progress, only which checks run: its answer brings the rest. */
export function refreshMeanwhile() {
  if (!acting) refresh();
  else if (!is_prompt) refreshChecks();
}

/** Return the indices of a change and of those that are decided with it. @param {number} index */
export function together(index) {
  const change = state.file?.all[index];
  return change ? [index, ...change.shares_with] : [];
}

/** Accept or reject a change, and go on to the next that is undecided. @param {Verdict} action @param {number} index @param {string} [reason] */
export async function decideOn(action, index, reason) {
  const { file } = state;
  const change = file?.all[index];
  if (!file || !change || isReadOnly()) return null;
  if (isDecided(change)) return null;
  const keys = together(index).map((at) => file.all[at].key);
  return perform("decide", { action, keys, ...(reason ? { reason } : {}) }, { action, keys });
}

/** Return whether a change is decided, and say so. @param {ShownChange} change */
export function isDecided({ verdict }) {
  if (verdict) say(`It is ${verdict} already. Reopen it to decide again.`);
  return Boolean(verdict);
}

/** Accept or reject what is left of the shown file, of whatever turn. @param {Verdict} action */
export async function decideOnFile(action) {
  const { file } = state;
  if (!file || isReadOnly()) return null;
  const keys = undecided(file).map(({ key }) => key);
  return perform("decide", { action, path: file.path }, { action, keys });
}

/** Return how many changes are left in a file, those of other turns included. @param {ShownFile} file */
export function leftIn({ document, all }) {
  return state.queue?.files.find((one) => one.document === document)?.changes ?? all.length;
}

/** Accept or reject every change of a turn or session. @param {Verdict} action @param {"turn" | "session"} what @param {number} number */
export async function decideOnGroup(action, what, number) {
  if (!state.queue?.turns.some((one) => one[what] === number) || isReadOnly()) return null;
  return perform("decide", { action, [what]: number }, { action, keys: [] });
}

/** Decide on single hunks. @param {"accept" | "reject" | "reset"} action @param {Record<string, Status>} units each with its status as shown */
export function decideOnUnits(action, units) {
  return perform("decide", { action, units });
}

/** Make a decided change pending again. @param {number} index */
export async function reopen(index) {
  const change = state.file?.all[index];
  const was = change?.verdict;
  if (!change || !was || isReadOnly()) return;
  const { key } = change;
  const units = Object.fromEntries(change.hunks.map((unit) => [unit, was]));
  await perform("decide", { action: "reset", units }, { action: "reset", keys: [key] });
}

/** Undo the newest decision that the page shows, after a decision in progress has ended. */
export async function undo() {
  await decided();
  const number = state.queue?.undo ?? 0;
  if (number) await perform("undo", { number });
  else say(state.queue?.elsewhere ? `In a terminal, cas undo takes back what was decided on ${state.queue.elsewhere}.` : "There is no decision to undo.");
}

/** Redo the decision that was undone last. */
export async function redo() {
  await decided();
  await perform("redo", {});
}

function isReadOnly() {
  const why = state.queue?.read_only ?? "";
  if (why) say(why, { is_failure: true });
  return Boolean(why);
}

/** Return the last part of a path. @param {string} name */
function base(name) {
  return name.slice(name.lastIndexOf("/") + 1);
}

/**
 * Send a request that has an outcome, and show the outcome; null: nothing is sent, because another is in progress, which
 * is said unless it is the same request right after it. A question is answered by the same request with more fields.
 * @param {string} name @param {object} body @param {About} [about]
 * @returns {Promise<Outcome | null>}
 */
export async function perform(name, body, about) {
  const own = JSON.stringify([name, body]);
  if (acting) {
    if (is_prompt && own === request) return null;
    say("Nothing was done: the decision before is still being made.", { is_failure: true });
    if (own !== request) lost = state.said;
    return null;
  }
  const made = performed(name, body, about);
  acting = made;
  request = own;
  is_prompt = true;
  const timer = setTimeout(() => {
    is_prompt = false;
    refreshChecks();
  }, PROMPT);
  try {
    return await made;
  } finally {
    clearTimeout(timer);
    if (acting === made) {
      acting = null;
      is_prompt = false;
      repeatLost();
    }
  }
}

/** Say once more that a press did nothing, if the message of the decision has taken the place of the one that said so. */
function repeatLost() {
  const { said } = state;
  if (lost && said && said !== lost) set({ said: { ...said, text: `${said.text} What you pressed meanwhile did nothing.`, is_failure: true } });
  lost = null;
}

/** @param {string} name @param {object} body @param {About} [about] @returns {Promise<Outcome>} */
async function performed(name, body, about) {
  newEpoch();
  const outcome = await decide(name, name === "decide" ? { ...body, on_screen: shownOf(body, about) } : body).finally(newEpoch);
  const again = (/** @type {object} */ extra) => answer(() => perform(name, { ...body, ...extra }, about));
  switch (outcome.outcome) {
    case "conflict":
      set({ sheet: { kind: "conflict", outcome, again, what: outcome.subject || "it" } });
      break;
    case "external-changes":
      set({ sheet: { kind: "external-changes", outcome, again } });
      break;
    case "confirm":
      set({ sheet: { kind: "confirm", outcome, again } });
      break;
    case "unchecked":
      note(`${outcome.title}, so nothing was decided.`, { is_failure: true, detail: outcome.message });
      set({ sheet: { kind: "unchecked", outcome } });
      break;
    case "unshown":
      set({ sheet: { kind: "unshown", outcome, action: /** @type {Decide} */ (body).action, again } });
      break;
    case "running":
      set({ sheet: { kind: "running", outcome, again } });
      break;
    case "decided":
      await wasDecided(name, outcome, about);
      break;
    case "waiting":
    case "nothing-to-do":
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

/** Return what was on the screen of what a decision is on. @param {Partial<Decide>} body @param {About | undefined} about */
function shownOf({ keys, units }, about) {
  return onScreen(keys ?? (units ? [...Object.keys(units), ...(about?.keys ?? [])] : null));
}

/** Show what was decided, and go on. @param {string} name @param {Extract<Outcome, { outcome: "decided" }>} outcome @param {About | undefined} about */
async function wasDecided(name, outcome, about) {
  const { file } = state;
  if (name === "undo" || name === "redo") {
    await steppedBack(outcome);
    return;
  }
  if (about && about.action !== "reset") {
    const covered = new Set(outcome.changed.map(({ name: hunk }) => hunk));
    const keys = file?.all.filter(({ key, hunks, verdict }) => about.keys.includes(key) || (!verdict && hunks.length && hunks.every((hunk) => covered.has(hunk)))) ?? [];
    const word = about.action === "accept" ? "accepted" : "rejected";
    for (const { key } of keys) verdicts.set(key, word);
    await next(keys);
  } else {
    for (const key of about?.keys ?? []) verdicts.delete(key);
    await refresh(about?.keys[0]);
  }
  sayDone(outcome);
}

/** Say what was done, with Undo if it can be undone here. @param {Extract<Outcome, { outcome: "decided" }>} outcome */
function sayDone({ action, message, notes, detail, decision }) {
  say([message, ...notes].join(" "), { can_undo: decision !== null && action !== "undo", detail });
}

/** Go to the change after those that were just decided: in this file, else in the next one. @param {ShownChange[]} decided */
async function next(decided) {
  const { file, queue, cursor, route } = state;
  if (route.screen !== "file" || !file) return refresh();
  const left = undecided(file).filter((change) => !decided.includes(change));
  const after = left.find((change) => file.all.indexOf(change) > cursor);
  if (after) return refresh(after.key);
  if (goOn(queue)) return refresh();
  return refresh(left[0]?.key);
}

/** Show what undo or redo did, in the file that it is on, whoever had decided. @param {Extract<Outcome, { outcome: "decided" }>} outcome */
async function steppedBack(outcome) {
  const { route, queue, file } = state;
  const now = new Map(outcome.changed.map(({ name, status }) => [name, status]));
  for (const { key, hunks } of file?.all ?? []) {
    const statuses = new Set(hunks.map((hunk) => now.get(hunk)));
    const [status] = statuses;
    if (statuses.has("pending")) verdicts.delete(key);
    else if (statuses.size === 1 && (status === "accepted" || status === "rejected")) verdicts.set(key, status);
  }
  const { document } = outcome;
  if (document !== null && !(route.screen === "file" && route.document === document)) {
    const turn = state.arrangement === "turns" && queue?.turns.find(({ files }) => files.some((one) => one.document === document && one.accepted + one.rejected));
    show({ document, turn: (turn && turn.turn) || null });
  }
  await refresh([...now.keys()]);
  sayDone(outcome);
}

// ---- comments

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

/** Ask for a comment on a change, or on the lines that were chosen. @param {number} index */
export function commentOn(index) {
  const { file } = state;
  if (!file?.all[index] || isReadOnly()) return;
  const lines = pickedRows().flatMap(({ n }) => (n === undefined ? [] : [n]));
  const on_lines = lines.length && !undecidedMoved(file) && !state.queue?.elsewhere;
  /** @type {CommentTarget} */
  const target = on_lines ? { path: file.path, lines: [lines[0], lines[lines.length - 1]], seen: file.blob_after }
    : file.all[index].verdict ? { units: file.all[index].hunks } : { keys: together(index).map((at) => file.all[at].key) };
  const where = on_lines ? `${base(file.name)}, ${lines.length === 1 ? `line ${lines[0]}` : `lines ${lines[0]}–${lines[lines.length - 1]}`}` : `${base(file.name)}, ${whereOf(file.all[index])}`;
  set({ sheet: { kind: "comment", target, where } });
}

/** Return whether a rejection has moved lines, so that their numbers are other ones in the file. @param {ShownFile} file */
function undecidedMoved(file) {
  return file.all.some(({ verdict }) => verdict === "rejected");
}

/** Ask for the reason of a rejection. @param {number} index */
export function rejectWithReason(index) {
  const { file } = state;
  if (!file?.all[index] || isDecided(file.all[index]) || isReadOnly()) return;
  const keys = together(index).map((at) => file.all[at].key);
  set({ sheet: { kind: "reject", keys, where: `${base(file.name)}, ${whereOf(file.all[index])}`, name: base(file.name) } });
}
