// Dialogs for writing a comment or the reason of a rejection. The text is kept when the page is reloaded.

/** @import {Sheet} from "./state.js" */
import { perform, speak } from "./review.js";
import { set } from "./state.js";
import { html, useState } from "./vendor/preact-htm.js";

/** The dialog for a comment on changes. @param {{ sheet: Extract<Sheet, { kind: "comment" }>, close: () => void }} properties */
export function CommentSheet({ sheet, close }) {
  const send = async (/** @type {string} */ text) => {
    if (!(await speak("comment", { keys: sheet.keys, text }))) return false;
    close();
    return true;
  };
  return html`<${Writing} draft=${`comment:${sheet.where}`} label="For the agent that made the change" word="Comment" send=${send} />`;
}

/** The dialog for the reason of a rejection. @param {{ sheet: Extract<Sheet, { kind: "reject" }>, close: () => void }} properties */
export function RejectSheet({ sheet, close }) {
  const send = async (/** @type {string} */ reason) => {
    close();
    const { outcome } = await perform("decide", { action: "reject", keys: sheet.keys, reason });
    if (outcome === "overtaken" || outcome === "failed") set({ sheet });
    return outcome === "decided";
  };
  return html`<${Writing} draft=${`reject:${sheet.where}`} label="Why? The agent reads this with its next prompt" word="Reject" send=${send} />`;
}

/**
 * A text field with a button. The text is kept until it is sent.
 * @param {{ draft: string, label: string, word: string, send: (text: string) => Promise<boolean> }} properties
 */
function Writing({ draft, label, word, send }) {
  const [text, write] = useState(sessionStorage.getItem(draft) ?? "");
  const [is_sending, wait] = useState(false);
  const typed = (/** @type {Event} */ event) => {
    const { value } = /** @type {HTMLTextAreaElement} */ (event.target);
    sessionStorage.setItem(draft, value);
    write(value);
  };
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    wait(true);
    if (await send(text)) sessionStorage.removeItem(draft);
    wait(false);
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
  };
  return html`<form onSubmit=${submit}>
    <label>${label}<textarea rows="5" required autofocus value=${text} onInput=${typed} onKeyDown=${pressed}></textarea></label>
    <div class="acts"><button type="submit" disabled=${is_sending || !text.trim()}>${word}</button></div>
  </form>`;
}
