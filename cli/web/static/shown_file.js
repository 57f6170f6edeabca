// The file as it is shown: what the server sends, and the changes decided since it was opened, which stay in their places.

/** @import {File as ChangedFile} from "./types.d.ts" */
/** @import {ShownChange, ShownFile} from "./state.js" */
import { CHUNK } from "./sections.js";

/** What became of changes of the open file, by key. @typedef {Map<string, "accepted" | "rejected">} Verdicts */

/**
 * Return a file with its decided changes kept where they were; null: something else has changed too, so that it must be
 * drawn again.
 * @param {ShownFile | null} old as it is shown @param {ChangedFile} fresh as the server has it @param {Verdicts} verdicts
 * @returns {ShownFile | null}
 */
export function keptOn(old, fresh, verdicts) {
  if (!old || old.document !== fresh.document || old.total > CHUNK || !verdicts.size) return null;
  const now = new Map(fresh.all.map((change) => [change.key, change]));
  const places = new Map(old.all.map(({ key }, at) => [key, at]));
  if (places.size !== old.all.length || [...now.keys()].some((key) => !places.has(key))) return null;
  if (old.all.some(({ key }) => !now.has(key) && !verdicts.has(key))) return null;
  /** @type {ShownChange[]} */
  const all = [];
  const skew = { before: 0, after: 0 };
  for (const was of inOrder(old.all)) {
    const is = now.get(was.key);
    if (is) {
      if (is.old_start !== was.old_start + skew.before || is.new_start !== was.new_start + skew.after) return null;
      const shares_with = is.shares_with.map((at) => places.get(fresh.all[at].key) ?? -1);
      all[places.get(was.key) ?? 0] = { ...is, old_start: was.old_start, new_start: was.new_start, row: was.row, rows: was.rows, shares_with };
      continue;
    }
    const verdict = verdicts.get(was.key);
    if (verdict === "accepted") skew.before += was.new_count - was.old_count;
    else skew.after += was.old_count - was.new_count;
    all[places.get(was.key) ?? 0] = { ...was, verdict, shares_with: [], writers: [], before: [] }; // positions in lists of before
  }
  return { ...fresh, all, rows: old.rows, first: old.first, total: old.total, blob_after: old.blob_after, blob_before: old.blob_before };
}

/** Return changes by their lines. @param {readonly ShownChange[]} all */
function inOrder(all) {
  return [...all].sort((a, b) => a.new_start - b.new_start || a.old_start - b.old_start);
}

/** Return a line of the file as it is now for a line as it is shown. @param {ShownFile} file @param {number} line */
export function lineNow(file, line) {
  return file.all.reduce((n, change) => (change.verdict === "rejected" && change.new_start + 1 < line ? n + change.old_count - change.new_count : n), line);
}

/** Return the changes that are left to decide on. @param {ShownFile | null} file */
export function undecided(file) {
  return file?.all.filter(({ verdict }) => !verdict) ?? [];
}

/** Return the index of the change that continues an earlier one: of the same key, else with most hunks in common; -1: none. @param {ShownChange | undefined} change @param {readonly ShownChange[]} all */
export function sameChange(change, all) {
  if (!change) return -1;
  const same = all.findIndex(({ key }) => key === change.key);
  if (same >= 0) return same;
  let best = -1;
  let most = 0;
  all.forEach(({ hunks }, index) => {
    const common = hunks.filter((unit) => change.hunks.includes(unit)).length;
    if (common > most) [best, most] = [index, common];
  });
  return best;
}
