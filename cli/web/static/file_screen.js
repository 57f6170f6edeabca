// The screen of a file: its head, the bar of the current change, and the diff.

/** @import {EditDetail, Queue, Session} from "./types.d.ts" */
/** @import {ShownChange, ShownFile} from "./state.js" */
import { address, get } from "./api.js";
import { whereOf } from "./change_head.js";
import { commentOn, decideOn, decideOnUnits, leftIn, perform, rejectWithReason } from "./decisions.js";
import { DiffView } from "./diff_view.js";
import { Icon } from "./icons.js";
import { askWhole, NO_TURN, ownTurn, showEdits, splitCurrent } from "./keys.js";
import { Menu } from "./menu.js";
import { Counts, Middle, runningChecks, sessionName } from "./queue.js";
import { drawIn, goTo, has_columns, move, pick, pickedRows, redraw, seeCurrent } from "./review.js";
import { blameAddress, timelineAddress } from "./routes.js";
import { secret } from "./secret.js";
import { undecided } from "./shown_file.js";
import { choose, say, set, state } from "./state.js";
import { Progress } from "./top.js";
import { html, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { WhyLine } from "./why.js";
import { counted, octal, short, size, upper } from "./words.js";

/** The screen of the file that the address names. */
export function FileScreen() {
  const { file, file_error, route, tab } = state;
  const pane = useRef(/** @type {HTMLElement | null} */ (null));
  const body = useRef(/** @type {HTMLElement | null} */ (null));
  const document = route.screen === "file" ? route.document : 0;
  const turn = route.screen === "file" ? route.turn : null;
  const is_here = file?.document === document;
  useLayoutEffect(() => {
    if (!pane.current || !body.current) return undefined;
    drawIn(new DiffView(pane.current, body.current));
    return () => drawIn(null);
  }, [document, turn]);
  const is_rendered = is_here && tab === "rendered" && isRenderable(file);
  return html`<main class="file" id="file" tabindex="-1">
    ${is_here && file ? html`<${FileHead} file=${file} /><${ChangeBar} file=${file} />${has_columns.matches && html`<${WhyLine} />`}`
      : html`<header class="file-head"><a class="b icon plain phone-only" href="#/" aria-label="Back to the queue"><${Icon} name="back" /></a><p class="dim" role="status">${file_error || "Loading …"}</p></header>`}
    <div class="scroll" ref=${pane} tabindex="0" role="region" aria-label="The file">
      ${is_here && file && html`${!has_columns.matches && html`<${WhyLine} />`}<${Notes} file=${file} />`}
      ${is_rendered && html`<iframe class="rendered" sandbox="" title=${`${file.name} rendered, before and after`}
        src=${address("/rendered", { document, turn, secret: secret() })}></iframe>`}
      <div key=${`${document}:${turn}`} class="code" data-far=${is_here && file && file.total > 9_999 ? "" : null} ref=${body} hidden=${is_rendered || (!is_here && !!file_error)}></div>
    </div>
    ${is_here && file && html`<${PhoneBar} file=${file} />`}
  </main>`;
}

/** @param {ShownFile} file */
function isRenderable(file) {
  return file.kind === "markdown" || file.kind === "notebook";
}

/** The path, the state and the few actions of a file. @param {{ file: ShownFile }} properties */
function FileHead({ file }) {
  const at = file.name.lastIndexOf("/") + 1;
  const why = readOnly();
  const left = undecided(file).length;
  const decided = file.all.length - left;
  const viewed = (/** @type {"unified" | "split"} */ value, /** @type {string} */ words) => html`<button type="button" class="b" aria-pressed=${state.view === value}
    onClick=${() => { choose("view", value); redraw(); }}>${words}</button>`;
  const switch_rendered = () => set({ tab: state.tab === "rendered" ? "changes" : "rendered" });
  const own = ownTurn();
  const items = [
    { words: "Decide on the rest of the file…", letter: "f", act: () => askWhole("file"), why: why || (leftIn(file) ? "" : "Nothing is left.") },
    { words: own ? `Decide on ${own.what} ${own.number}…` : "Decide on the turn…", letter: "t", act: () => askWhole("turn"), why: why || (own ? "" : NO_TURN) },
    { words: "Blame", letter: "b", act: () => goTo(blameAddress(file.path)) },
    { words: "Timeline", letter: "h", act: () => goTo(timelineAddress(file.path)) },
    ...(isRenderable(file) ? [{ words: state.tab === "rendered" ? "Show the changes" : "Show it rendered", act: switch_rendered }] : []),
    { words: "Copy the path", act: () => copy(file.name, "the path") },
  ];
  return html`<header class="file-head"><a class="b icon plain phone-only" href="#/" aria-label="Back to the queue"><${Icon} name="back" /></a>
    <h1 class="path mid" title=${file.name}><span>${file.name.slice(0, at)}</span><b><${Middle} text=${file.name.slice(at)} /></b></h1>
    ${file.lines_added + file.lines_removed > 0 && html`<span class="more"><${Counts} added=${file.lines_added} removed=${file.lines_removed} /></span>`}
    ${decided > 0 && html`<span class="pill more wide-only">${decided} of ${file.all.length} decided</span>`}
    <span class="grow"></span><span class="phone-only"><${Progress} /></span>
    ${isRenderable(file) && html`<button type="button" class="b plain desk more" aria-pressed=${state.tab === "rendered"} onClick=${switch_rendered}>Rendered</button>`}
    <a class="b plain desk more" href=${blameAddress(file.path)}>Blame</a><a class="b plain desk more" href=${timelineAddress(file.path)}>Timeline</a>
    <span class="switch split-choice desk" role="group" aria-label="How old and new are shown">${viewed("unified", "Unified")}${viewed("split", "Side by side")}</span>
    <${Menu} label="More to do with this file" icon="more" items=${items} /></header>`;
}

/** Return why nothing can be decided; "": it can. */
function readOnly() {
  return state.queue?.read_only ?? "";
}

/** The current change, and what one can do with it: the buttons never move. @param {{ file: ShownFile }} properties */
function ChangeBar({ file }) {
  const { cursor, picked } = state;
  const change = file.all[cursor];
  if (!change) return null;
  const why = readOnly() || (change.verdict ? `It is ${change.verdict}.` : "");
  const act = (/** @type {"accept" | "reject"} */ action) => () => decideOn(action, cursor);
  return html`<div class="change-bar" role="group" aria-label="The current change">
    <div class="what"><b class="of">Change ${(cursor + 1).toLocaleString("en")} of ${file.all.length.toLocaleString("en")}</b>
      ${picked ? html`<${PickedWords} />` : html`<span class="dim clip">${upper(whereOf(change))}</span><span class="more">${change.rows > 0 && html`<${Counts} added=${change.new_count} removed=${change.old_count} />`}</span>`}</div>
    <span class="grow"></span>
    <button class="b icon plain" type="button" aria-label="Previous change" data-repeats title="Previous change: k" aria-keyshortcuts="k" onClick=${() => move(-1)}><${Icon} name="up" /></button>
    <button class="b icon plain" type="button" aria-label="Next change" data-repeats title="Next change: j" aria-keyshortcuts="j" onClick=${() => move(1)}><${Icon} name="down" /></button>
    <${Act} letter="a" words="Accept" icon="check" kind="yes" why=${why} act=${act("accept")} />
    <${Act} letter="x" words="Reject" icon="cross" kind="nay" why=${why} act=${act("reject")} />
    <${Act} letter="c" words="Comment" icon="say" why=${readOnly()} act=${() => commentOn(cursor)} />
    <span class="desk"><${Menu} label="More to do with this change" icon="more" look="b icon" items=${changeItems(change, why)} /></span>
  </div>`;
}

/** @param {ShownChange} change @param {string} why */
function changeItems(change, why) {
  const { cursor } = state;
  const units = change.hunks.join(" ");
  return [
    { words: "Reject with a reason…", letter: "X", act: () => rejectWithReason(cursor), why },
    { words: "Split…", letter: "s", act: splitCurrent, why },
    { words: "Single edits…", letter: "e", act: showEdits },
    { words: "Mark as seen", letter: ".", act: seeCurrent, why },
    ...(has_columns.matches ? [] : [{ words: "Who and why", act: showWhy }]),
    { words: "The rest of the file…", letter: "f", act: () => askWhole("file"), why: readOnly() },
    { words: `The whole ${ownTurn()?.what ?? "turn"}…`, letter: "t", act: () => askWhole("turn"), why: readOnly() || (ownTurn() ? "" : NO_TURN) },
    { words: `Copy its name, ${units.length > 20 ? `${units.slice(0, 18)}…` : units}`, act: () => copy(units, "its name") },
  ];
}

/** Show on a phone who made the change and why, above the file's rows. */
function showWhy() {
  const line = /** @type {HTMLDetailsElement | null} */ (document.querySelector(".why-line"));
  if (!line) return;
  line.open = true;
  line.scrollIntoView({ block: "start" });
  line.querySelector("summary")?.focus({ preventScroll: true });
}

/** How many lines are chosen. */
function PickedWords() {
  const rows = pickedRows();
  return html`<span class="tag">${counted(rows.length, "line")} chosen</span><button type="button" class="b plain small" onClick=${() => pick(null)}>Clear</button>`;
}

/** A button of the bar, with its key. @param {{ letter: string, words: string, icon: string, act: () => unknown, kind?: string, why?: string }} properties */
function Act({ letter, words, icon, act, kind = "", why = "" }) {
  return html`<button type="button" class=${`b desk ${words.toLowerCase()}`} onClick=${act} disabled=${!!why} title=${why || words}
    aria-keyshortcuts=${letter}><span class=${kind || null}><${Icon} name=${icon} /></span><span class="word">${words}</span> <kbd aria-hidden="true">${letter}</kbd></button>`;
}

/** The decisions at the thumb. @param {{ file: ShownFile }} properties */
function PhoneBar({ file }) {
  const { cursor } = state;
  const change = file.all[cursor];
  if (!change) return null;
  const why = readOnly() || (change.verdict ? `It is ${change.verdict}.` : "");
  const checks = state.queue ? runningChecks(state.queue) : [];
  return html`${checks.length > 0 && html`<ul class="phone-checks" aria-label="Running checks">${checks}</ul>`}<div class="phone-bar" role="group" aria-label="Decide">
    <button type="button" class="b accept" disabled=${!!why} onClick=${() => decideOn("accept", cursor)}><span class="yes"><${Icon} name="check" /></span>Accept</button>
    <button type="button" class="b reject" disabled=${!!why} onClick=${() => decideOn("reject", cursor)}><span class="nay"><${Icon} name="cross" /></span>Reject</button>
    <button type="button" class="b icon" disabled=${!!readOnly()} onClick=${() => commentOn(cursor)} aria-label="Comment"><${Icon} name="say" /></button>
    <${Menu} label="More to do with this change" icon="more" look="b icon" items=${changeItems(change, why)} />
  </div>`;
}

/** Put a text into the clipboard. @param {string} text @param {string} what */
async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied ${what}: ${text}`);
  } catch {
    say(`This browser let nothing be copied. It is ${text}`, { is_failure: true });
  }
}

/** What no row of the file shows. @param {{ file: ShownFile }} properties */
function Notes({ file }) {
  const queue = /** @type {Queue} */ (state.queue);
  const why = readOnly();
  const said = facts(file);
  return html`<div class="notes">
    ${said.length > 0 && html`<p class="note">${upper(said.join(" · "))}</p>`}
    ${file.unrecorded && html`<p class="note warn">The file was changed on disk, and that isn’t recorded yet. This page shows the recorded text.</p>`}
    <${OtherUnits} units=${file.cancelled} words="cancel out: without them the text reads the same" why=${why} />
    <${OtherUnits} units=${file.taken_out} words="were taken out by later edits that are accepted" why=${why} />
    <${OtherUnits} units=${file.kept_on} words="are to be decided, but accepted edits can’t do without them" why=${why} />
    ${queue.unattributed.includes(file.document) && html`<${Whose} file=${file} queue=${queue} />`}
    ${file.kind === "image" && html`<${Images} file=${file} />`}
  </div>`;
}

/** Return the facts about a file as a whole. @param {ShownFile} file */
function facts(file) {
  const said = [];
  if (file.name_before) said.push(`was ${file.name_before}`);
  if (file.mode_before && file.mode_after && file.mode_after !== file.mode_before) said.push(`mode ${octal(file.mode_before)} → ${octal(file.mode_after)}`);
  if (file.kind === "binary" || file.kind === "image") said.push(file.kind);
  return said;
}

/** Hunks without a visible change, with buttons to decide on them. @param {{ units: string[], words: string, why: string }} properties */
function OtherUnits({ units, words, why }) {
  if (!units.length) return null;
  const decide = (/** @type {"accept" | "reject"} */ action) => () =>
    decideOnUnits(action, Object.fromEntries(units.map((unit) => [unit, /** @type {const} */ ("pending")])));
  const named = units.slice(0, 8).join(", ") + (units.length > 8 ? ` and ${units.length - 8} more` : "");
  return html`<p class="note" title=${named}>${counted(units.length, "hunk")} ${words}.
    <span class="acts"><button type="button" class="b" disabled=${!!why} onClick=${decide("accept")}>Accept</button>
    <button type="button" class="b" disabled=${!!why} onClick=${decide("reject")}>Reject</button></span></p>`;
}

/** A form to claim unattributed edits. @param {{ file: ShownFile, queue: Queue }} properties */
function Whose({ file, queue }) {
  const [whose, choose] = useState("");
  const claim = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const units = file.all.flatMap((change) => change.hunks);
    /** @type {{ edits: EditDetail[] }} */
    const { edits } = await get("edits", { units: units.join(",") });
    const unclaimed = edits.filter(({ owner }) => owner === "unattributed").map(({ seq }) => seq);
    await perform("claim", { edits: unclaimed, session: whose ? Number(whose) : null });
  };
  return html`<form class="note claim" onSubmit=${claim}>
    <label for="whose">No call of an agent is known to have changed this file. It is the work of</label>
      <select id="whose" value=${whose} onChange=${(/** @type {Event} */ event) => choose(/** @type {HTMLSelectElement} */ (event.target).value)}>
        <option value="">you</option>
        ${queue.sessions.map((/** @type {Session} */ one) => html`<option value=${one.session}>${sessionName(queue, one.session)}${one.prompt && ` · ${short(one.prompt, 60)}`}</option>`)}
      </select>
    <button type="submit" class="b" disabled=${!!queue.read_only}>Claim</button>
  </form>`;
}

/** An image before and after. @param {{ file: ShownFile }} properties */
function Images({ file }) {
  const sides = /** @type {const} */ ([["before", file.blob_before, file.size_before], ["after", file.blob_after, file.size_after]]);
  return html`<div class="images">${sides.map(([word, blob, bytes]) => html`<figure key=${word}>
    ${blob ? html`<img src=${address("/image", { blob, secret: secret() })} alt=${`${file.name} ${word}`} />` : html`<p>There was no file.</p>`}
    <figcaption>${word}${blob ? `, ${size(bytes ?? 0)}` : ""}</figcaption></figure>`)}</div>`;
}
