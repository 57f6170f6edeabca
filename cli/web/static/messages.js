// The message of the last action, and the list of all of them.

/** @import {Message as Said} from "./state.js" */
import { undo } from "./decisions.js";
import { Icon } from "./icons.js";
import { set, state } from "./state.js";
import { html, useEffect, useRef } from "./vendor/preact-htm.js";
import { clockOrDay } from "./words.js";

/** Milliseconds for which a message is shown, unless it has the pointer or the focus; a failure stays longer. */
const SHOWN = 8000;
const FAILURE_SHOWN = 24_000;

/** The message of the last action; a failure is announced at once. */
export function Message() {
  const { said } = state;
  const own = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (!said) return undefined;
    let timer = 0;
    const later = () => {
      const is_held = own.current?.matches(":hover, :focus-within");
      if (is_held) timer = setTimeout(later, SHOWN / 4);
      else if (state.said === said) set({ said: null });
    };
    timer = setTimeout(later, said.is_failure ? FAILURE_SHOWN : SHOWN);
    return () => clearTimeout(timer);
  }, [said]);
  const can_undo = said?.can_undo && (state.queue?.undo ?? 0) > 0;
  return html`<div class="message" ref=${own} hidden=${!said}>
    <span role="status" class="said grow">${said && !said.is_failure ? said.text : ""}</span>
    <span role="alert" class="said failure grow">${said?.is_failure ? said.text : ""}</span>
    ${can_undo && html`<button type="button" class="b undo" onClick=${undo} aria-keyshortcuts="u">Undo <kbd class="desk" aria-hidden="true">u</kbd></button>`}
    ${said && html`<button type="button" class="b icon" aria-label="Close the message" onClick=${() => set({ said: null })}><${Icon} name="cross" /></button>`}
  </div>`;
}

/** Everything that was said, the newest first. */
export function MessagesSheet() {
  const { messages } = state;
  if (!messages.length) return html`<p class="dim">Nothing yet. What you decide on this page is listed here.</p>`;
  return html`<ol class="messages">${messages.map((/** @type {Said} */ said, at) => html`<li key=${messages.length - at}>
    <p class=${said.is_failure ? "nay" : null}>${said.text}</p>
    <p class="small dim">${clockOrDay(said.time)}${said.detail && said.detail !== said.text ? ` · ${said.detail}` : ""}</p></li>`)}</ol>`;
}
