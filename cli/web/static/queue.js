// The queue: what there is to review, by turn or as folders, with a filter, and the notices above it.

/** @import {Comment, FileSummary, Queue} from "./types.d.ts" */
/** @import {Stop, TurnStops} from "./progress.js" */
/** @import {Child} from "./vendor/preact-htm.js" */
import { post } from "./api.js";
import { perform } from "./decisions.js";
import { Icon } from "./icons.js";
import { fileStops, totalOf, turnStops } from "./progress.js";
import { blameAddress, fileAddress } from "./routes.js";
import { choose, set, state } from "./state.js";
import { Tree } from "./tree.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef } from "./vendor/preact-htm.js";
import { clock, clockOrDay, counted, listed, net, netInWords, short } from "./words.js";

/** Files in one layout group, so that the browser skips groups far from the screen. */
const GROUP = 100;
/** Characters of a name that stay when its middle is left out. */
const TAIL = 12;

/** The queue as a column. */
export function QueueColumn() {
  const { queue, route, arrangement, filter } = state;
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const here = route.screen === "file" ? route.document : 0;
  const turn = route.screen === "file" ? route.turn : null;
  const is_unattributed = arrangement === "turns" && turn === null && Boolean(queue?.unattributed.includes(here));
  useLayoutEffect(() => {
    list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [here, turn, queue, arrangement]);
  const shown = useMemo(() => queue && html`
    <${Faults} queue=${queue} />
    ${arrangement === "turns" ? html`<${Turns} queue=${queue} filter=${filter} here=${is_unattributed ? 0 : here} turn=${turn} />` : html`<${Tree} stops=${matching(fileStops(queue), filter)} here=${is_unattributed ? 0 : here} filter=${filter} />`}
    ${queue.reading > 0 && html`<p class="session">Reading ${counted(queue.reading, "more file")}. This takes long only the first time.</p>`}
    <${Unattributed} queue=${queue} here=${is_unattributed ? here : 0} />
    <${Comments} queue=${queue} />`, [queue, arrangement, filter, here, turn, is_unattributed]);
  return html`<aside class="queue" aria-label="Queue" tabindex="-1"><h2 class="sr">Queue</h2>
    <${Head} />
    <div class="queue-list" ref=${list}>${shown ?? html`<p class="session" role="status">Loading …</p>`}</div>
    ${queue && html`<${Notices} queue=${queue} />`}
  </aside>`;
}

/** The filter, and the switch between turns and folders. */
function Head() {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => {
    const focus = () => {
      field.current?.focus();
      field.current?.select();
    };
    field.current?.addEventListener("wanted", focus);
    return () => field.current?.removeEventListener("wanted", focus);
  }, []);
  const typed = (/** @type {Event} */ event) => set({ filter: /** @type {HTMLInputElement} */ (event.target).value });
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter") /** @type {HTMLElement | null} */ (document.querySelector(".queue a.row"))?.click();
    if (event.key === "Escape") set({ filter: "" });
    if (event.key === "Enter" || event.key === "Escape") field.current?.blur();
  };
  const arranged = (/** @type {"turns" | "tree"} */ value, /** @type {string} */ words) => html`<button type="button" class="b icon" title=${words} aria-label=${words}
    aria-pressed=${state.arrangement === value} onClick=${() => choose("arrangement", value)}><${Icon} name=${value} /></button>`;
  return html`<div class="queue-head"><span class="field"><${Icon} name="find" />
    <input type="search" ref=${field} value=${state.filter} onInput=${typed} onKeyDown=${pressed} aria-label="Filter the queue" aria-keyshortcuts="/" placeholder="Filter" /></span>
    <span class="switch" role="group" aria-label="Arrange the queue">${arranged("turns", "By turn")}${arranged("tree", "As folders")}</span></div>`;
}

/** Return the files whose path has a text. @param {readonly Stop[]} stops @param {string} filter */
function matching(stops, filter) {
  const text = filter.trim().toLowerCase();
  return text ? stops.filter(({ name }) => name.toLowerCase().includes(text)) : [...stops];
}

/** The turns, below their sessions. The open file `here` is marked once: in `turn`, else in the first that has it. @param {{ queue: Queue, filter: string, here: number, turn: number | null }} properties */
function Turns({ queue, filter, here, turn: asked }) {
  const text = filter.trim().toLowerCase();
  const unattributed = new Set(queue.unattributed);
  const all = turnStops(queue).map((turn) => (turn.session ? turn : withoutFiles(turn, unattributed))).map((turn) => {
    const is_asked = text && turn.prompt.toLowerCase().includes(text);
    return { ...turn, files: is_asked ? turn.files : matching(turn.files, filter) };
  });
  const shown = all.filter(({ files, session }) => files.length || (session && !text));
  if (text && !shown.length) return html`<p class="session">Nothing has “${filter.trim()}” in its path or prompt.</p>`;
  const marked = shown.findIndex(({ turn, files }) => (asked === null || turn === asked) && files.some(({ document }) => document === here));
  return shown.map((turn, at) => html`
    ${turn.session !== shown[at - 1]?.session && html`<${SessionLine} queue=${queue} number=${turn.session} turn=${turn} />`}
    <${TurnFiles} key=${`${turn.session}:${turn.turn}`} turn=${turn} here=${at === marked ? here : 0} filter=${text} />`);
}

/** Leave out files of a turn, which another section has. @param {TurnStops} turn @param {ReadonlySet<number>} others @returns {TurnStops} */
function withoutFiles(turn, others) {
  const files = turn.files.filter(({ document, changes }) => !changes || !others.has(document));
  const gone = turn.files.reduce((n, { changes }) => n + changes, 0) - files.reduce((n, { changes }) => n + changes, 0);
  return { ...turn, files, left: turn.left - gone, total: turn.total - gone };
}

/** Return what a session is called, so that a person can tell it from others. @param {Queue | null} queue @param {number} number @param {string} [client] */
export function sessionName(queue, number, client) {
  const session = queue?.sessions.find((one) => one.session === number);
  return `${session?.client || client || "agent"} ${number}`;
}

/** @param {{ queue: Queue, number: number, turn: TurnStops }} properties */
function SessionLine({ queue, number, turn }) {
  if (!number) return html`<p class="session"><b>No session</b></p>`;
  const session = queue.sessions.find((one) => one.session === number);
  const about = session && session.prompt !== turn.prompt ? session.prompt : "";
  return html`<p class="session" title=${short(session?.prompt ?? "", 400)}><b class="clip">${sessionName(queue, number, turn.client)}</b><span class="clip">${short(about, 60)}</span></p>`;
}

/** One turn with its prompt and files; one in which all is decided is a line. @param {{ turn: TurnStops, here: number, filter: string }} properties */
function TurnFiles({ turn, here, filter }) {
  const number = turn.turn || null;
  const prompt = turn.prompt || (number === null ? "Without a prompt" : `Turn ${number}`);
  const is_done = turn.left === 0 && !turn.is_unread;
  const title = short(turn.prompt, 2000);
  const rows = html`<${Rows} stops=${turn.files} turn=${number} here=${here} filter=${filter} />`;
  if (is_done) {
    return html`<details class="turn done"><summary title=${title}><${Icon} name="check" kind="yes" /><h3 class="clip">${short(prompt, 140)}</h3>
      <span class="small dim">${turn.total.toLocaleString("en")}<span class="sr"> changes, all decided</span></span></summary>${rows}</details>`;
  }
  const decided = turn.total - turn.left;
  const progress = decided ? `${decided.toLocaleString("en")} of ${turn.total.toLocaleString("en")}` : turn.left ? counted(turn.left, "change") : "reading …";
  return html`<section class="turn" aria-label=${number === null ? prompt : `Turn ${number}`}>
    <div class="turn-head"><h3 title=${title}>${short(prompt, 280)}</h3>
    <span class="meta"><span>${number !== null && html`Turn ${number} · <time title=${clock(turn.timestamp)}>${clockOrDay(turn.timestamp)}</time>`}${turn.running && html` · <span class="running">running</span>`}</span><span>${progress}</span></span></div>
    ${rows}</section>`;
}

/** A list of files. @param {{ stops: readonly Stop[], turn: number | null, here: number, filter?: string }} properties */
export function Rows({ stops, turn, here, filter = "" }) {
  const groups = [];
  for (let at = 0; at < stops.length; at += GROUP) groups.push(stops.slice(at, at + GROUP));
  return groups.map((group, at) => html`<ul class="files" key=${at}>
    ${group.map((stop) => html`<li key=${stop.document}><${FileRow} stop=${stop} turn=${turn} here=${here} filter=${filter} /></li>`)}
  </ul>`);
}

/** A file: state, name, folder, counts, and what is left. @param {{ stop: Stop, turn: number | null, here: number, filter?: string, is_nested?: boolean }} properties */
export function FileRow({ stop, turn, here, filter = "", is_nested = false }) {
  const { name, changes, lines_added: added, lines_removed: removed, operation, unseen } = stop;
  const at = name.lastIndexOf("/");
  const [icon, kind, word] = stateOf(stop);
  return html`<a class=${`row ${changes ? "" : "done"}`} href=${fileAddress(stop.document, turn)} title=${name} aria-current=${here === stop.document ? "page" : null}>
    <${Icon} name=${icon} kind=${`mark ${kind}`} /><${Middle} text=${name.slice(at + 1)} kind="name" filter=${filter} />
    ${!is_nested && html`<span class="where"><${Middle} text=${name.slice(0, Math.max(0, at))} /></span>`}
    ${chipsOf(stop).map(([chip, title]) => html`<span class="chip" key=${chip} title=${title}>${chip}</span>`)}
    ${operation !== "edit" && html`<span class="kind">${OPERATIONS[operation] ?? operation}</span>`}
    ${added + removed > 0 && html`<${Counts} added=${added} removed=${removed} />`}
    <span class="left">${changes > 0 ? changes.toLocaleString("en") : ""}<span class="sr"> ${changes ? `to decide${unseen < changes ? `, ${changes - unseen} seen` : ""}` : word}</span></span>
    ${is_nested && html`<span class="sr">, ${name.slice(0, Math.max(0, at))}</span>`}</a>`;
}

/** Coloured counts of lines. @param {{ added: number, removed: number }} properties */
export function Counts({ added, removed }) {
  const [plus, minus] = net(added, removed).split(" ");
  return html`<span class="count"><span aria-hidden="true"><span class="plus">${plus}</span> <span class="minus">${minus}</span></span><span class="sr"> ${netInWords(added, removed)}</span></span>`;
}

/** What a reviewer should know of files, by path: a word for the row, and a sentence. @typedef {Map<string, [word: string, sentence: string][]>} Chips */

/** @type {WeakMap<Queue, Chips>} */
const chips = new WeakMap();

/** @param {Stop} stop */
function chipsOf({ path }) {
  const { queue } = state;
  if (!queue) return [];
  let known = chips.get(queue);
  if (!known) chips.set(queue, (known = allChips(queue)));
  return known.get(path) ?? [];
}

/** @param {Queue} queue */
function allChips(queue) {
  /** @type {Chips} */
  const found = new Map();
  const add = (/** @type {string} */ path, /** @type {string} */ word, /** @type {string} */ sentence) => found.set(path, [...(found.get(path) ?? []), [word, sentence]]);
  const unattributed = new Set(queue.unattributed);
  for (const { document, path } of queue.files) if (unattributed.has(document)) add(path, "unattributed", "An agent may have made some of it, or you. Say whose it is.");
  for (const { path, sessions } of queue.collisions) add(path, "shared", `${listed(sessions.map(({ session }) => sessionName(queue, session)))} have ${sessions.length === 2 ? "both" : "all"} changed it.`);
  for (const { path } of queue.markers) add(path, "conflict", "It has conflict markers. Put them right in the file.");
  for (const { path } of queue.external_changes) add(path, "outside", "It was changed outside, and that isn’t recorded yet.");
  return found;
}

/** @type {Record<string, string>} */
const OPERATIONS = { create: "new", delete: "deleted", move: "moved", mode: "mode" };

/** @param {Stop} stop @returns {[icon: string, kind: string, word: string]} */
function stateOf(stop) {
  if (stop.changes) return [stop.changes < totalOf(stop) ? "half" : "open", "", ""];
  if (stop.rejected && !stop.accepted) return ["cross", "nay", "rejected"];
  return ["check", "yes", "decided"];
}

/** A text that gives up its middle where it is too long. @param {{ text: string, kind?: string, filter?: string }} properties */
export function Middle({ text, kind = "", filter = "" }) {
  const cut = Math.max(0, text.length - TAIL);
  const at = filter ? text.toLowerCase().indexOf(filter) : -1;
  if (at >= 0) return html`<span class=${`${kind} clip`}>${text.slice(0, at)}<mark>${text.slice(at, at + filter.length)}</mark>${text.slice(at + filter.length)}</span>`;
  return html`<span class=${`${kind} mid`}><span>${text.slice(0, cut)}</span><span>${text.slice(cut)}</span></span>`;
}

/** A path with its last part in bold. @param {{ name: string }} properties */
export function FileName({ name }) {
  const at = name.lastIndexOf("/") + 1;
  return html`<span class="mono path-text"><span class="dim">${name.slice(0, at)}</span><b>${name.slice(at)}</b></span>`;
}

// ---- notices

/** A notice of what needs care. @param {Child} words @param {string} [key] */
function warning(words, key = "") {
  return html`<li class="notice" key=${key}><${Icon} name="warn" /><span>${words}</span></li>`;
}

/** Whose changes these are, and what is wrong with the store or a file, above the queue. @param {{ queue: Queue }} properties */
function Faults({ queue }) {
  const faults = queue.unreadable.map((sentence) => warning(sentence));
  if (queue.elsewhere) faults.unshift(html`<li class="notice calm" key="elsewhere"><span>These are changes in <b>${queue.elsewhere}</b>. What you decide is carried out there.</span></li>`);
  if (queue.read_only) faults.unshift(warning(queue.read_only));
  return faults.length > 0 && html`<ul class="notices" aria-label="Faults">${faults}</ul>`;
}

/** What happens meanwhile, below the queue: as it comes and goes, no row moves. @param {{ queue: Queue }} properties */
function Notices({ queue }) {
  /** @type {Child[]} */
  const notices = [];
  const warn = (/** @type {Child} */ words, key = "") => notices.push(warning(words, key));
  const note = (/** @type {Child} */ words) => notices.push(html`<li class="notice calm"><span>${words}</span></li>`);
  for (const { client, tool, names } of queue.running_calls) {
    note(html`<b>${client || "An agent"}</b> runs ${tool || "a tool"}${names.length ? ` on ${names.slice(0, 3).join(", ")}` : ""}.`);
  }
  notices.push(...runningChecks(queue));
  for (const { id, names } of queue.waiting) {
    const send = (/** @type {"now" | "cancel"} */ what) => () => perform("waiting", { id, do: what });
    note(html`A rejection in ${names.join(", ")} waits for the end of the turn.
      <span class="acts"><button type="button" class="b" onClick=${send("now")}>Do it now</button> <button type="button" class="b" onClick=${send("cancel")}>Cancel it</button></span>`);
  }
  if (queue.collisions.length) warn(collided(queue));
  for (const { name, lines } of queue.markers) {
    warn(html`Conflict markers are in <b>${name}</b>, ${lines.length === 1 ? "line" : "lines"} ${lines.slice(0, 5).map((line) => line + 1).join(", ")}. Put them right in the file.`);
  }
  for (const { path, name, change, taken_by } of queue.external_changes.slice(0, 20)) {
    const there = taken_by ? ` A ${taken_by} is there now.` : "";
    warn(html`<b>${name}</b> was ${/^(created|deleted)$/.test(change) ? change : "changed"} outside, and that isn’t recorded yet.${there}`, path);
  }
  if (queue.away) note(html`${counted(queue.away, "edit")} ${queue.away === 1 ? "is" : "are"} away: git put other content there. ${queue.away === 1 ? "It comes" : "They come"} back with it.`);
  if (queue.external_changes.length > 20) warn(`${counted(queue.external_changes.length - 20, "more file")} changed outside.`);
  return notices.length > 0 && html`<ul class="notices meanwhile" aria-label="Notices">${notices}</ul>`;
}

/** The checks that run before a decision, each with a button that stops them. @param {Queue} queue */
export function runningChecks(queue) {
  return queue.checks.map((command) => html`<li class="notice calm" key=${command}><span>Checking with <code>${command}</code> before it is decided …
    <span class="acts"><button type="button" class="b" onClick=${() => post("stop_checks", {})}>Stop it</button></span></span></li>`);
}

/** Files that several sessions have changed, in one sentence. @param {Queue} queue */
function collided(queue) {
  const [first, ...rest] = queue.collisions;
  const file = queue.files.find((/** @type {FileSummary} */ one) => one.path === first.path);
  const link = file ? html`<a href=${fileAddress(file.document, null)}>${first.name}</a>` : html`<b>${first.name}</b>`;
  return html`${listed(first.sessions.map(({ session }) => sessionName(queue, session)))} have ${first.sessions.length === 2 ? "both" : "all"} changed ${link}${rest.length > 0 && html` <span title=${rest.map(({ name }) => name).join("\n")}>and ${counted(rest.length, "more file")}</span>`}.`;
}

/** Files with unattributed edits. @param {{ queue: Queue, here: number }} properties */
function Unattributed({ queue, here }) {
  const stops = fileStops(queue).filter(({ document }) => queue.unattributed.includes(document));
  return stops.length > 0 && html`<section class="turn unattributed" aria-label="Unattributed">
    <div class="turn-head"><h3>Whose are these?</h3><span class="meta"><span>No call of an agent is known to have made them.</span></span></div>
    <${Rows} stops=${stops} turn=${null} here=${here} />
  </section>`;
}

/** Comments that are not resolved. @param {{ queue: Queue }} properties */
function Comments({ queue }) {
  /** @param {Comment} comment */
  const address = ({ path, line }) => {
    const file = queue.files.find((/** @type {FileSummary} */ one) => one.path === path);
    return file ? fileAddress(file.document, null) : blameAddress(path, (line ?? 0) + 1);
  };
  return queue.comments.length > 0 && html`<section class="turn comments" aria-label="Comments">
    <div class="turn-head"><h3>Comments</h3></div>
    <ul>${queue.comments.map((comment) => html`<li key=${comment.comment}>
      <a class="row" href=${address(comment)} title=${comment.text}><${Icon} name="say" kind="mark" /><span class="clip name">${short(comment.text, 80)}</span><span class="grow"></span><span class="kind">${comment.state}</span></a></li>`)}</ul>
  </section>`;
}
