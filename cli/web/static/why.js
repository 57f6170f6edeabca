// Who made the current change, and why: the prompts behind its lines, what a rejection takes along, and earlier edits.

/** @import {Author, Comment, EditSummary, Rejection, Writer} from "./types.d.ts" */
/** @import {ShownChange, ShownFile} from "./state.js" */
import { get, Refused } from "./api.js";
import { Icon } from "./icons.js";
import { state } from "./state.js";
import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { clock, clockOrDay, counted, listed, short } from "./words.js";

/** Milliseconds for which a change is current before its rejection is tried out: who goes on at once needs none. */
const PATIENCE = 150;
const MOST_STEPS = 12;
/** Characters of a prompt that are shown at once: what is below stays on the screen. */
const MOST_OF_PROMPT = 600;

/** At the right, from 1,280 pixels on. */
export function WhyColumn() {
  return html`<aside class="why" aria-label="Who and why"><${Why} />
    <p class="keys small" aria-hidden="true"><span><kbd>j</kbd> <kbd>k</kbd> change</span><span><kbd>a</kbd> accept</span><span><kbd>x</kbd> reject</span><span><kbd>u</kbd> undo</span><span><kbd>?</kbd> all keys</span></p></aside>`;
}

/** One line below the file's head, which opens. */
export function WhyLine() {
  const { file, cursor } = state;
  const change = file?.all[cursor];
  if (!file || !change) return null;
  const [first, ...rest] = authorsOf(file, change);
  return html`<details class="why-line"><summary><${Icon} name="down" />
    <span class="clip">${first ? html`<b>${first.turn ? `Turn ${first.turn}` : first.origin === "unattributed" ? WROTE.unattributed : first.who}</b>${first.prompt && ` · ${short(first.prompt, 400)}`}` : html`<b>${change.verdict ?? "Unattributed"}</b>`}</span>
    <span class="grow"></span>${rest.length > 0 && html`<span class="tag">and ${listed(rest.map(({ turn, who }) => (turn ? `turn ${turn}` : who)))}</span>`}</summary><${Why} /></details>`;
}

/** @param {ShownFile} file @param {ShownChange} change */
function authorsOf(file, change) {
  return [...new Set(change.writers.map(({ author }) => author))].flatMap((at) => (file.authors[at] ? [file.authors[at]] : []));
}

function Why() {
  const { file, cursor } = state;
  const change = file?.all[cursor];
  const rejection = useRejection(file, change);
  if (!file || !change) return html`<div class="why-body"></div>`;
  const own = change.writers.flatMap(({ edits }) => edits);
  const steps = own.length === 1 && change.before.every((seq) => seq === own[0]) ? [] : change.before.flatMap((seq) => (file.edits[seq] ? [file.edits[seq]] : []));
  return html`<div class="why-body">
    ${change.writers.map((writer, at) => html`<${Asked} key=${`${change.key} ${at}`} file=${file} change=${change} writer=${writer} is_first=${at === 0} />`)}
    ${change.verdict && html`<section><h2>Decided</h2><p>${state.queue?.elsewhere ? `It is ${change.verdict}. ${state.queue.elsewhere} carries that out.` : html`You ${change.verdict} it. <kbd>u</kbd> undoes the newest decision; Reopen is in its heading.`}</p></section>`}
    ${!change.verdict && html`<section class="rejecting"><h2>If you reject it</h2>${rejection ? html`<${Along} rejection=${rejection} />` : html`<p>${rejectionWords(change)}</p>`}</section>`}
    ${steps.length > 0 && html`<section><h2>These lines before</h2><ol class="steps">${steps.slice(0, MOST_STEPS).map((edit) => html`<li key=${edit.seq}><${Step} edit=${edit} /></li>`)}</ol></section>`}
    ${change.comments.length > 0 && html`<section><h2>Comments</h2><p>${counted(change.comments.length, "comment")}, ${listed([...new Set(change.comments.map((/** @type {Comment} */ one) => one.state))])}.</p></section>`}
  </div>`;
}

/** @type {Record<Author["origin"], string>} */
const WROTE = { agent: "An agent wrote it", person: "A person wrote it", formatter: "A formatter wrote it", git: "git brought it", external: "Changed outside", unattributed: "Unattributed" };

/** The prompt, or the person, behind some lines. @param {{ file: ShownFile, change: ShownChange, writer: Writer, is_first: boolean }} properties */
function Asked({ file, change, writer, is_first }) {
  const author = file.authors[writer.author];
  const [is_whole, show] = useState(false);
  if (!author) return null;
  const prompt = is_whole || author.prompt.length <= MOST_OF_PROMPT ? author.prompt : `${author.prompt.slice(0, MOST_OF_PROMPT).trimEnd()}…`;
  const title = author.turn ? `Turn ${author.turn} asked` : WROTE[author.origin];
  const lines = change.writers.length > 1 ? linesOf(file, change, writer) : "";
  return html`<section><h2>${title} ${lines && html`<span class="dim">for ${lines}</span>`}</h2>
    ${author.prompt ? html`<blockquote class=${is_first ? null : "second"}>${prompt}</blockquote>${prompt !== author.prompt && html`<button type="button" class="b plain" onClick=${() => show(true)}>Show all of the prompt</button>`}` : !author.turn && author.origin === "unattributed" && html`<p class="dim">No call of an agent is known to have made it.</p>`}
    <dl class="facts">${author.origin !== "unattributed" && html`<dt>${author.session ? "Session" : "By"}</dt><dd>${author.who}${author.model && ` · ${author.model}`}</dd>`}
      <dt>Written</dt><dd><time title=${clock(author.timestamp)}>${clockOrDay(author.timestamp)}</time>, ${writer.edits.length === 1 ? "edit" : "edits"} ${listed(writer.edits.slice(0, 6).map(String))}${writer.edits.length > 6 && " …"}</dd></dl></section>`;
}

/** Return the lines of a writer in words, such as "lines 158–169"; "": they are not loaded. @param {ShownFile} file @param {ShownChange} change @param {Writer} writer */
function linesOf(file, change, { rows }) {
  const numbers = [];
  for (const [start, end] of rows) {
    for (let at = start; at < end; at += 1) {
      const row = file.rows[change.row + at - file.first];
      if (row?.n) numbers.push(row.n);
    }
  }
  if (!numbers.length) return "what went";
  const [first, last] = [numbers[0], numbers[numbers.length - 1]];
  return first === last ? `line ${first}` : `lines ${first}–${last}`;
}

/** What goes along with a rejection, or has to go first. @param {{ rejection: Rejection }} properties */
function Along({ rejection: { words, goes_along, needed_by, edits } }) {
  if (!goes_along.length && !needed_by.length) return html`<p>${words}</p>`;
  const turns = [...new Set(edits.map(({ turn }) => turn).filter(Boolean))];
  const of = turns.length ? ` ${turns.length === 1 ? "Turn" : "Turns"} ${listed(turns.map(String))} made ${edits.length === 1 ? "it" : "them"}.` : "";
  return html`<p class="along"><${Icon} name=${needed_by.length ? "warn" : "link"} /><span>${words}${of}${needed_by.length > 0 && " You are asked first."}</span></p>`;
}

/** One earlier edit of the lines. @param {{ edit: EditSummary }} properties */
function Step({ edit }) {
  return html`<time title=${clock(edit.timestamp)}>${clockOrDay(edit.timestamp)}</time> · ${edit.turn ? `turn ${edit.turn}` : edit.who}, edit ${edit.seq}${edit.status === "pending" ? "" : `, ${edit.status}`}`;
}

/** Return what a rejection does to the lines, until the server has tried it out. @param {ShownChange} change */
function rejectionWords({ old_count: removed, new_count: inserted, words, kind }) {
  if (kind === "create") return "The file is deleted.";
  if (kind === "delete") return "The file comes back.";
  if (words) return "That is taken back.";
  const gone = inserted ? `${counted(inserted, "line")} ${inserted === 1 ? "goes" : "go"}` : "";
  const back = removed ? `${counted(removed, "line")} ${removed === 1 ? "comes" : "come"} back` : "";
  return `${[gone, back].filter(Boolean).join(", and ")}.`;
}

/** The newest request: the column and the line below the head ask for the same. @type {{ name: string, answer: Promise<Rejection> } | null} */
let asked = null;

/** Return what a rejection of a change would do, once it has been current for a moment. @param {ShownFile | null} file @param {ShownChange | undefined} change @returns {Rejection | null} */
function useRejection(file, change) {
  const [found, show] = useState(/** @type {{ name: string, rejection: Rejection } | null} */ (null));
  const { route } = state;
  const turn = route.screen === "file" ? (route.turn ?? undefined) : undefined;
  const name = file && change && !change.verdict ? `${file.document} ${turn} ${change.key} ${state.queue?.version}` : "";
  useEffect(() => {
    if (!name) return undefined;
    let is_current = true;
    const timer = setTimeout(async () => {
      if (asked?.name !== name) asked = { name, answer: get("rejection", { document: file?.document, turn, key: change?.key }) };
      try {
        const rejection = await asked.answer;
        if (is_current) show({ name, rejection });
      } catch (refusal) {
        if (!(refusal instanceof Refused)) throw refusal; // it was decided meanwhile, or the server is gone: both are said elsewhere
      }
    }, PATIENCE);
    return () => {
      is_current = false;
      clearTimeout(timer);
    };
  }, [name]);
  return found?.name === name ? found.rejection : null;
}
