// A comment with its answers, between the lines that it is about.

/** @import {Answer, Change, Comment, Waiting} from "./types.d.ts" */
/** @import {HeadActs} from "./change_head.js" */
import { button, element } from "./elements.js";
import { clockOrDay } from "./words.js";

/** Return the element of a comment, with its answers, a field and a button; none of these while it waits for another store. @param {Comment | Waiting} comment @param {HeadActs} acts @returns {HTMLElement} */
export function threadElement(comment, acts) {
  if (!("answers" in comment)) {
    const { who, text, state } = comment;
    return element("div", { class: "thread", role: "group", "aria-label": `Comment, ${state}` }, article(who, text, state));
  }
  const box = element("div", { class: "thread", role: "group", "aria-label": `Comment ${comment.comment}` });
  box.append(said(comment, comment.state), ...comment.answers.map((answer) => said(answer, "answer")));
  if (!acts.read_only && !acts.is_elsewhere) box.append(form(comment, acts));
  return box;
}

/** @param {string} who @param {string} text @param {string} state */
function article(who, text, state) {
  const by = element("header", {}, element("b", {}, who), element("span", {}, state));
  return element("article", {}, by, element("p", { class: "said" }, text));
}

/** Draw threads again; the answer that is being typed goes on in its new field. @param {HTMLElement} body @param {() => void} draw @returns {boolean} whether one is */
export function keepingAnswer(body, draw) {
  const { activeElement: old } = document;
  const is_typing = old instanceof HTMLInputElement && body.contains(old);
  const typed = is_typing ? { name: old.name, start: old.selectionStart, end: old.selectionEnd } : null;
  draw();
  const field = typed && body.querySelector(`input[name="${typed.name}"]`);
  if (!typed || !(field instanceof HTMLInputElement)) return false;
  if (field !== document.activeElement) {
    field.focus({ preventScroll: true });
    field.setSelectionRange(typed.start, typed.end);
  }
  return true;
}

/** Return the number of the last line that a comment on a change is on, from 1; 0: it is on none. @param {Comment | Waiting} comment @param {Change} change */
export function lastLine(comment, { new_start, new_count }) {
  return "line" in comment ? Math.min((comment.line ?? 0) + (comment.line_count ?? 0), new_start + new_count) : 0;
}

/** @param {Answer} comment @param {string} state */
function said({ who, text, timestamp }, state) {
  return article(who, text, `${clockOrDay(timestamp)} · ${state}`);
}

/** @param {Comment} comment @param {HeadActs} acts */
function form(comment, acts) {
  const draft = `answer:${comment.comment}`;
  const field = /** @type {HTMLInputElement} */ (element("input", { name: draft, "aria-label": `Answer to comment ${comment.comment}`, placeholder: "Answer…" }));
  field.value = sessionStorage.getItem(draft) ?? "";
  field.addEventListener("input", () => sessionStorage.setItem(draft, field.value));
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (field.value.trim()) acts.answer(comment, field.value);
  };
  const word = comment.state === "resolved" ? "Reopen" : "Resolve";
  return element("form", { onsubmit: send }, field, button(word, () => acts.resolve(comment), { class: "b" }));
}
