// Dialogs for writing a comment or the reason of a rejection. The text is kept when the page is reloaded.

/** @import {Child} from "./vendor/preact-htm.js" */
/** @import {Sheet} from "./state.js" */
import { answer, decideOn, speak } from "./decisions.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icons.js";
import { sessionName } from "./queue.js";
import { pick } from "./review.js";
import { say, set, state } from "./state.js";
import { html, useState } from "./vendor/preact-htm.js";
import { counted, listed } from "./words.js";

const MOST_REASONS = 4;

/** The dialog for a comment on changes or lines. @param {{ sheet: Extract<Sheet, { kind: "comment" }>, close: () => void }} properties */
export function CommentSheet({ sheet, close }) {
  const send = async (/** @type {string} */ text) => {
    if (!(await speak("comment", { ...sheet.target, text }))) return false;
    pick(null);
    close();
    return true;
  };
  return html`<${Writing} title=${`Comment on ${sheet.where}`} draft=${`comment:${sheet.where}`} label="Comment" word="Comment" look="main" send=${send} close=${close}>
    <p class="dim">${state.queue?.elsewhere ? `It goes to ${state.queue.elsewhere}, whose next pull takes it over.` : html`It goes to ${writers()}, with your next answers. It stays at its lines when the file changes.`}</p><//>`;
}

/** The dialog for the reason of a rejection. @param {{ sheet: Extract<Sheet, { kind: "reject" }>, close: () => void }} properties */
export function RejectSheet({ sheet, close }) {
  const at = state.file?.all.findIndex(({ key }) => key === sheet.keys[0]) ?? -1;
  const change = state.file?.all[at];
  const send = async (/** @type {string} */ reason) => {
    keepReason(reason);
    const index = state.file?.all.findIndex(({ key }) => key === sheet.keys[0]) ?? -1;
    if (index < 0) {
      say("The change was decided or taken back meanwhile, so nothing was rejected.", { is_failure: true });
      return false;
    }
    const done = await answer(() => decideOn("reject", index, reason));
    if (done?.outcome === "overtaken" || done?.outcome === "failed") set({ sheet });
    return done?.outcome === "decided";
  };
  const along = sheet.keys.length - 1;
  return html`<${Writing} title="Reject with a reason" draft=${`reject:${sheet.where}`} label="Reason" word=${`Reject ${counted(sheet.keys.length, "change")}`} look="no" send=${send} close=${close} chips=${reasons()}>
    <p class="dim"><b class="mono">${sheet.where}</b>. ${change?.rows ? "The lines go back at once." : "It is taken back at once."} The reason goes to ${writers()}, with your next answers.</p>
    ${along > 0 && html`<h3>Goes along</h3><p class="along"><${Icon} name="link" /><span>${counted(along, "other change")} of this file ${along === 1 ? "is" : "are"} decided with it.</span></p>`}<//>`;
}

/** Return who wrote the current change. */
function writers() {
  const turns = state.file?.all[state.cursor]?.turns ?? [];
  const names = turns.map((number) => state.queue?.turns.find((turn) => turn.turn === number)).flatMap((turn) => (turn ? [sessionName(state.queue, turn.session, turn.client)] : []));
  return names.length ? `${listed([...new Set(names)])}, who wrote it` : "the agent that wrote it";
}

/** Return the reasons that were given before. @returns {string[]} */
function reasons() {
  return JSON.parse(localStorage.getItem("reasons") ?? "[]");
}

/** @param {string} reason */
function keepReason(reason) {
  if (reason.length > 60) return;
  localStorage.setItem("reasons", JSON.stringify([reason, ...reasons().filter((one) => one !== reason)].slice(0, MOST_REASONS)));
}

/**
 * A text field with a button. The text is kept until it is sent.
 * @param {{ title: string, draft: string, label: string, word: string, look: string, send: (text: string) => Promise<boolean>, close: () => void, children?: Child, chips?: string[] }} properties
 */
function Writing({ title, draft, label, word, look, send, close, children, chips = [] }) {
  const [text, write] = useState(sessionStorage.getItem(draft) ?? "");
  const [is_sending, wait] = useState(false);
  const typed = (/** @type {string} */ value) => {
    sessionStorage.setItem(draft, value);
    write(value);
  };
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (is_sending || !text.trim()) return;
    wait(true);
    if (await send(text)) sessionStorage.removeItem(draft);
    wait(false);
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
  };
  const foot = html`<span class="small dim grow keys desk"><kbd>Ctrl</kbd> <kbd>Enter</kbd> ${look === "no" ? "rejects" : "sends"}, <kbd>Esc</kbd> leaves</span>
    <button type="button" class="b" onClick=${close}>Cancel</button>
    <button type="submit" form="writing" class=${`b ${look}`} disabled=${is_sending || !text.trim()}>${look === "no" && html`<${Icon} name="cross" />`}${word}</button>`;
  return html`<${Dialog} title=${title} kind="narrow" close=${close} foot=${foot}>
    ${children}
    <form id="writing" onSubmit=${submit}><label><span class="sr">${label}</span><textarea rows="5" required autofocus value=${text}
      onInput=${(/** @type {Event} */ event) => typed(/** @type {HTMLTextAreaElement} */ (event.target).value)} onKeyDown=${pressed}></textarea></label></form>
    ${chips.length > 0 && html`<div class="chips" role="group" aria-label="Reasons that you used before">${chips.map((reason) => html`<button type="button" class="pill b" key=${reason} onClick=${() => typed(reason)}>${reason}</button>`)}</div>`}
  <//>`;
}
