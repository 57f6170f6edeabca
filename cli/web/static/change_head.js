// The heading of a change above its rows: its place, its turn, its comments, and buttons for the most common actions.

/** @import {Change, Comment, File as ChangedFile} from "./types.d.ts" */
import { button, element } from "./elements.js";
import { ago, counted, net, netInWords } from "./words.js";

/**
 * The actions of a heading, each called with the index of the change.
 * @typedef {object} HeadActs
 * @property {(index: number) => void} select
 * @property {(index: number) => void} accept
 * @property {(index: number) => void} reject
 * @property {(comment: Comment) => void} resolve
 * @property {(comment: Comment, text: string) => void} answer
 * @property {(turn: number) => string} prompt the prompt of a turn; "": not known
 * @property {string} read_only why nothing can be decided
 */

/** @typedef {{ is_current: boolean, is_altered: boolean }} HeadLook */

/** Return where a change is, in words. @param {Change} change */
export function whereOf(change) {
  if (change.words) return change.words;
  if (!change.inserted) return `after line ${Math.max(0, change.line_after - 1).toLocaleString("en")}`;
  return `line ${change.line_after.toLocaleString("en")}`;
}

/** Return the name of a change for screen readers. @param {ChangedFile} file @param {number} index */
export function titleOf(file, index) {
  const change = file.all[index];
  const lines = change.rows ? `: ${netInWords(change.inserted, change.removed)}` : "";
  return `Change ${index + 1} of ${file.all.length}, ${whereOf(change)}${lines}${change.seen ? ", seen" : ""}`;
}

/** Return the heading of a change. @param {ChangedFile} file @param {number} index @param {HeadLook} look @param {HeadActs} acts */
export function headElement(file, index, look, acts) {
  const change = file.all[index];
  const line = element(
    "div",
    { class: "line" },
    element("h3", {}, button(upper(whereOf(change)), () => acts.select(index), { class: "where" })),
    ...(change.rows ? [element("span", { class: "net" }, net(change.inserted, change.removed))] : []),
    ...tags(file, change, look),
    ...change.turns.map((turn) => turnTag(turn, acts.prompt(turn))),
    element("span", { class: "units" }, change.units.slice(0, 4).join(" ") + (change.units.length > 4 ? " …" : "")),
    element("span", { class: "space" }),
  );
  const verdicts = /** @type {const} */ ([["Accept", acts.accept], ["Reject", acts.reject]]).map(([word, act]) => {
    const label = `${word} change ${index + 1}, ${whereOf(change)}`;
    return button(word, () => act(index), { class: word.toLowerCase(), "aria-label": label, disabled: acts.read_only ? "" : null });
  });
  line.append(element("span", { class: "verdicts" }, ...verdicts));
  const classes = ["head", look.is_current && "current", change.seen && "seen", look.is_altered && "altered"];
  return element(
    "div",
    { class: classes.filter(Boolean).join(" "), role: "group", tabindex: -1, "aria-label": titleOf(file, index), "aria-current": look.is_current ? "true" : null, "data-change": index },
    line,
    ...change.comments.map((comment) => commentElement(comment, acts)),
  );
}

/** Return the remarks on a change. @param {ChangedFile} file @param {Change} change @param {HeadLook} look */
function tags(file, change, look) {
  const said = [];
  if (look.is_altered) said.push("changed since you looked");
  if (change.whitespace_only) said.push("white space only");
  if (change.seen) said.push("seen");
  if (change.shares_with.length) {
    const places = change.shares_with.slice(0, 3).map((other) => whereOf(file.all[other]));
    const rest = change.shares_with.length - places.length;
    said.push(`decided with ${places.join(", ")}${rest > 0 ? ` and ${counted(rest, "other")}` : ""}`);
  }
  return said.map((text) => element("span", { class: "tag" }, text));
}

/** Return the number of a turn, with its prompt. @param {number} turn @param {string} prompt */
function turnTag(turn, prompt) {
  return element("span", { class: "tag turn", title: prompt || null }, `turn ${turn}`);
}

/** Return the element of a comment, with its answers and buttons. @param {Comment} comment @param {HeadActs} acts @returns {HTMLElement} */
function commentElement(comment, acts) {
  const is_resolved = comment.state === "resolved";
  const box = element(
    "div",
    { class: "comment", role: "group", "aria-label": `Comment ${comment.number}` },
    element("p", { class: "by" }, `${comment.who} · ${ago(comment.time)} · ${comment.state}`),
    element("p", { class: "text" }, comment.text),
    ...comment.answers.map((answer) =>
      element("div", { class: "answer" }, element("p", { class: "by" }, `${answer.who} · ${ago(answer.time)}`), element("p", { class: "text" }, answer.text)),
    ),
  );
  if (!acts.read_only) {
    box.append(element("div", { class: "acts" }, button(is_resolved ? "Reopen" : "Resolve", () => acts.resolve(comment)), button("Answer", () => answering(box, comment, acts))));
  }
  return box;
}

/** Open a field for an answer below a comment. @param {HTMLElement} box @param {Comment} comment @param {HeadActs} acts */
function answering(box, comment, acts) {
  if (box.querySelector("form")) return;
  const draft = `answer:${comment.number}`;
  const field = /** @type {HTMLTextAreaElement} */ (element("textarea", { rows: 3, required: "", "aria-label": `Answer to comment ${comment.number}` }));
  field.value = sessionStorage.getItem(draft) ?? "";
  field.addEventListener("input", () => sessionStorage.setItem(draft, field.value));
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    acts.answer(comment, field.value);
  };
  box.append(element("form", { onsubmit: send }, field, element("button", { type: "submit" }, "Send")));
  field.focus();
}

/** Return a text with its first letter in upper case. @param {string} text */
function upper(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
