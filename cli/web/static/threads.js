// A comment with its answers, between the lines that it is about.

/** @import {Answer, Comment} from "./types.d.ts" */
/** @import {HeadActs} from "./change_head.js" */
import { button, element } from "./elements.js";
import { clockOrDay } from "./words.js";

/** Return the element of a comment, with its answers, a field and a button. @param {Comment} comment @param {HeadActs} acts @returns {HTMLElement} */
export function threadElement(comment, acts) {
  const box = element("div", { class: "thread", role: "group", "aria-label": `Comment ${comment.comment}` });
  box.append(article(comment, comment.state), ...comment.answers.map((answer) => article(answer, "answer")));
  if (!acts.read_only) box.append(form(comment, acts));
  return box;
}

/** @param {Answer} comment @param {string} state */
function article({ who, text, timestamp }, state) {
  const by = element("header", {}, element("b", {}, who), element("span", {}, `${clockOrDay(timestamp)} · ${state}`));
  return element("article", {}, by, element("p", { class: "said" }, text));
}

/** @param {Comment} comment @param {HeadActs} acts */
function form(comment, acts) {
  const draft = `answer:${comment.comment}`;
  const field = /** @type {HTMLInputElement} */ (element("input", { "aria-label": `Answer to comment ${comment.comment}`, placeholder: "Answer…" }));
  field.value = sessionStorage.getItem(draft) ?? "";
  field.addEventListener("input", () => sessionStorage.setItem(draft, field.value));
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (field.value.trim()) acts.answer(comment, field.value);
  };
  const word = comment.state === "resolved" ? "Reopen" : "Resolve";
  return element("form", { onsubmit: send }, field, button(word, () => acts.resolve(comment), { class: "b" }));
}
