// What is decided, what is left, and what comes next.

import { undo } from "./decisions.js";
import { progressOf, turnStops } from "./progress.js";
import { state } from "./state.js";
import { html } from "./vendor/preact-htm.js";
import { clockOrDay, counted, short } from "./words.js";
import { sessionName } from "./queue.js";

/** The screen that ends a review, or interrupts it. */
export function DoneScreen() {
  const { queue, messages } = state;
  if (!queue) return html`<main class="page" id="file" tabindex="-1"><p role="status">Loading …</p></main>`;
  const { accepted, rejected, decided, total } = progressOf(queue);
  const left = queue.changes;
  const is_new = queue.accepted + queue.rejected + decided === 0 && !left;
  const last = messages.find(({ can_undo }) => can_undo);
  return html`<main class="page done-page" id="file" tabindex="-1"><div class="in">
    <div><h1>${title(left, total, is_new)}</h1>
      <p class="dim">${is_new ? html`Connect an agent with <code>cas setup</code>. What it changes appears here by itself.`
        : `${accepted.toLocaleString("en")} accepted, ${rejected.toLocaleString("en")} rejected here. What agents change next appears here by itself.`}</p></div>
    ${left > 0 && html`<p><a class="b main" href="#/">Go on: ${counted(left, "change")} left</a></p>`}
    <${ByTurn} />
    ${last && queue.undo > 0 && html`<p class="dim">The last thing you did, ${clockOrDay(last.time)}: ${last.text} <button type="button" class="b" onClick=${undo}>Undo <kbd aria-hidden="true">u</kbd></button></p>`}
    ${!is_new && html`<p class="dim">Everything that you decided is recorded. You can close this page.</p>`}
  </div></main>`;
}

/** @param {number} left @param {number} total @param {boolean} is_new */
function title(left, total, is_new) {
  if (left) return `${counted(left, "change")} left to decide`;
  if (is_new || !total) return "Nothing awaits review";
  return total === 1 ? "The change is decided" : `All ${total.toLocaleString("en")} changes are decided`;
}

/** What is left of each turn. */
function ByTurn() {
  const turns = state.queue ? turnStops(state.queue).filter(({ total }) => total) : [];
  return turns.length > 0 && html`<section aria-label="By turn"><h2>By turn</h2><table class="table">
    <thead><tr><th scope="col" class="num">Turn</th><th scope="col">Prompt</th><th scope="col" class="opt">Session</th><th scope="col" class="num">Files</th><th scope="col" class="num">Left</th></tr></thead>
    <tbody>${turns.map((turn) => html`<tr key=${`${turn.session}:${turn.turn}`}><td class="num">${turn.turn || ""}</td><td>${short(turn.prompt, 200) || "Without a prompt"}</td>
      <td class="opt dim">${turn.session ? sessionName(state.queue, turn.session, turn.client) : ""}</td><td class="num">${turn.files.length}</td><td class=${`num ${turn.left || turn.is_unread ? "" : "yes"}`}>${turn.left || (turn.is_unread ? "…" : "done")}</td></tr>`)}</tbody></table></section>`;
}
