// Formatting of numbers, times, counts and sizes; edits in words.

/** @import {EditSummary} from "./types.d.ts" */

/** Return a number with its noun, such as "1 change" or "3 changes". @param {number} n @param {string} noun */
export function counted(n, noun) {
  const many = /(s|sh|ch)$/.test(noun) ? `${noun}es` : noun.replace(/y$/, "ie") + "s";
  return `${n.toLocaleString("en")} ${n === 1 ? noun : many}`;
}

/** Return line counts with their signs. @param {number} added @param {number} removed */
export function net(added, removed) {
  return `+${added.toLocaleString("en")} −${removed.toLocaleString("en")}`;
}

/** Return line counts in words, for screen readers. @param {number} added @param {number} removed */
export function netInWords(added, removed) {
  return `${added.toLocaleString("en")} added, ${removed.toLocaleString("en")} removed`;
}

/** Return a number of bytes with a unit. @param {number} bytes */
export function size(bytes) {
  if (bytes < 1000) return counted(bytes, "byte");
  const units = ["kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = -1;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value.toPrecision(3)} ${units[unit]}`;
}

/** Return how long ago a moment was. @param {string} time */
export function ago(time) {
  const passed = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  if (passed < 60) return "just now";
  if (passed < 3600) return `${Math.floor(passed / 60)} min ago`;
  if (passed < 86400) return `${Math.floor(passed / 3600)} h ago`;
  return clock(time);
}

/** Return a moment as date and time. @param {string | number} time */
export function clock(time) {
  const date = new Date(time);
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** Return the beginning of a text in one line. @param {string} text @param {number} most characters */
export function short(text, most) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}

/** Return permission bits as `ls` and git show them. @param {number} mode */
export function octal(mode) {
  return mode.toString(8).padStart(4, "0");
}

/** Return a text with its first letter in upper case. @param {string} text */
export function upper(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Return words as a list, such as "1, 2 and 3". @param {readonly string[]} words */
export function listed(words) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;
}

/** Return the time of day of a moment of today, else its day. @param {string} time */
export function clockOrDay(time) {
  const [day, minute] = clock(time).split(" ");
  return day === clock(Date.now()).split(" ")[0] ? minute : day;
}

/** What became of an edit or hunk, in a person's words. */
export const STATUSES = { pending: "to decide", accepted: "accepted", rejected: "rejected", away: "away" };

/** Return who made an edit, in which turn, and what became of it. @param {EditSummary} edit */
export function editWords({ turn, who, tool_name, status }) {
  return [turn ? `Turn ${turn}` : "", who || tool_name, STATUSES[status]].filter(Boolean).join(" · ");
}
