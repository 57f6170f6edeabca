// Who made the current change, and why: the prompts behind its lines, the edits, and what a rejection takes along.

/** @import {EditSummary, Edits, Turn} from "./types.d.ts" */
/** @import {ShownChange} from "./state.js" */
import { get, Refused } from "./api.js";
import { whereOf } from "./change_head.js";
import { Icon } from "./icons.js";
import { sessionName } from "./queue.js";
import { state } from "./state.js";
import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { clock, clockOrDay, counted, listed, short } from "./words.js";

/** Milliseconds for which a change is current before its edits are asked for: who goes on at once needs none. */
const PATIENCE = 120;
const MOST_EDITS = 100;

/** At the right, from 1,280 pixels on. */
export function WhyColumn() {
  return html`<aside class="why" aria-label="Who and why"><${Why} />
    <p class="keys small" aria-hidden="true"><span><kbd>j</kbd> <kbd>k</kbd> change</span><span><kbd>a</kbd> accept</span><span><kbd>x</kbd> reject</span><span><kbd>u</kbd> undo</span><span><kbd>?</kbd> all keys</span></p></aside>`;
}

/** One line below the file's head, which opens. */
export function WhyLine() {
  const change = state.file?.all[state.cursor];
  if (!change) return null;
  const [first, ...rest] = turnsBehind(change);
  return html`<details class="why-line"><summary><${Icon} name="down" />
    <span class="clip">${first ? html`<b>Turn ${first.number}</b> · ${short(first.prompt, 400)}` : html`<b>Unattributed</b> · no prompt is known`}</span>
    <span class="grow"></span>${rest.length > 0 && html`<span class="tag">and turn ${listed(rest.map(({ number }) => String(number)))}</span>`}</summary><${Why} /></details>`;
}

/** Return the turns that wrote lines of a change. @param {ShownChange} change */
function turnsBehind(change) {
  return change.turns.map((number) => state.queue?.turns.find((turn) => turn.number === number)).filter((turn) => turn !== undefined);
}

function Why() {
  const { file, cursor } = state;
  const change = file?.all[cursor];
  const [edits, error] = useEdits(change);
  if (!file || !change) return html`<div class="why-body"></div>`;
  const turns = turnsBehind(change);
  const unknown = edits?.filter(({ turn }) => !turn) ?? [];
  return html`<div class="why-body">
    ${turns.map((turn, at) => html`<${Asked} key=${turn.number} turn=${turn} edits=${edits?.filter((edit) => edit.turn === turn.number) ?? []} is_first=${at === 0} />`)}
    ${unknown.length > 0 && html`<section><h2>${unknown.length === edits?.length ? "No prompt is known" : "Besides"}</h2>
      <ol class="steps">${unknown.map((edit) => html`<li key=${edit.seq}>${edit.who || edit.tool}, <time title=${clock(edit.time)}>${clockOrDay(edit.time)}</time></li>`)}</ol></section>`}
    <section><h2>If you reject it</h2><p>${rejectionWords(change)}</p>
      ${change.shares_with.length > 0 && html`<p class="along"><${Icon} name="link" /><span>Goes along: ${change.shares_with.map((at) => whereOf(file.all[at])).join(", ")}. They are decided together.</span></p>`}</section>
    ${edits && edits.length > 0 && html`<section><h2>These lines before</h2><ol class="steps">
      ${[...edits].reverse().slice(0, 12).map((edit) => html`<li key=${edit.seq}><time title=${clock(edit.time)}>${clockOrDay(edit.time)}</time> · ${edit.turn ? `turn ${edit.turn}` : edit.who}, ${counted(edit.added, "line")} written${edit.status === "pending" ? "" : `, ${edit.status}`}</li>`)}
      <li>the text as it was accepted</li></ol></section>`}
    ${change.comments.length > 0 && html`<section><h2>Comments</h2><p>${counted(change.comments.length, "comment")}, ${listed([...new Set(change.comments.map((/** @type {{ state: string }} */ one) => one.state))])}.</p></section>`}
    ${error && html`<p role="alert" class="small">${error}</p>`}
  </div>`;
}

/** The prompt of a turn. @param {{ turn: Turn, edits: EditSummary[], is_first: boolean }} properties */
function Asked({ turn, edits, is_first }) {
  const numbers = edits.map(({ seq }) => String(seq));
  return html`<section><h2>Turn ${turn.number} asked</h2>
    <blockquote class=${is_first ? null : "second"}>${turn.prompt || "Its prompt is not known."}</blockquote>
    <dl class="facts"><dt>Session</dt><dd>${sessionName(state.queue, turn.session, turn.client)}${turn.model && ` · ${turn.model}`}</dd>
      <dt>Written</dt><dd>${clockOrDay(edits[0]?.time ?? turn.time)}${numbers.length > 0 && `, edit ${listed(numbers.slice(0, 6))}`}</dd></dl></section>`;
}

/** Return what a rejection does to the lines. @param {ShownChange} change */
function rejectionWords({ removed, inserted, words, kind }) {
  if (kind === "create") return "The file is deleted.";
  if (kind === "delete") return "The file comes back.";
  if (words) return "That is taken back.";
  const gone = inserted ? `${counted(inserted, "line")} ${inserted === 1 ? "goes" : "go"}` : "";
  const back = removed ? `${counted(removed, "line")} ${removed === 1 ? "comes" : "come"} back` : "";
  return `${[gone, back].filter(Boolean).join(", and ")}.`;
}

/** The newest request: the column and the line below the head ask for the same. @type {{ units: string, answer: Promise<Edits> } | null} */
let asked = null;

/** @param {string} units @returns {Promise<Edits>} */
function editsOf(units) {
  if (asked?.units !== units) asked = { units, answer: get("edits", { units }) };
  return asked.answer;
}

/** Return the edits that made a change, once it has been current for a moment. @param {ShownChange | undefined} change @returns {[EditSummary[] | null, string]} */
function useEdits(change) {
  const [found, show] = useState(/** @type {{ units: string, edits: EditSummary[] } | null} */ (null));
  const [error, fail] = useState("");
  const units = change?.units.slice(0, MOST_EDITS).join(",") ?? "";
  useEffect(() => {
    if (!units) return undefined;
    let is_current = true;
    const timer = setTimeout(async () => {
      try {
        const { edits } = await editsOf(units);
        if (is_current) show({ units, edits });
        fail("");
      } catch (refusal) {
        asked = null;
        if (!(refusal instanceof Refused)) throw refusal;
        if (is_current) fail(refusal.message);
      }
    }, PATIENCE);
    return () => {
      is_current = false;
      clearTimeout(timer);
    };
  }, [units]);
  return [found?.units === units ? found.edits : null, error];
}
