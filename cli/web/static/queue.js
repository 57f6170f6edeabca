// The queue: pending changes by turn and by file, notices, comments and sessions.

/** @import {Comment, FileSummary, Outcome, Queue, Session, Turn} from "./types.d.ts" */
/** @import {Child} from "./vendor/preact-htm.js" */
import { perform } from "./review.js";
import { blameAddress, fileAddress } from "./routes.js";
import { html, useMemo } from "./vendor/preact-htm.js";
import { ago, clock, counted, net, netInWords, short } from "./words.js";

/** Files in one layout group, so that the browser skips groups far from the screen. */
const GROUP = 100;

/** @typedef {{ document: number, turn: number | null }} Place */
/** @typedef {{ document: number, added: number, removed: number, unseen: number }} Counts */

/** The queue as a column. @param {{ queue: Queue, open: Place | null }} properties */
export function QueueList({ queue, open }) {
  return useMemo(() => html`
    <h2>Awaiting review</h2>
    <${Notices} queue=${queue} />
    ${!queue.changes && !queue.files.length && html`<${Empty} queue=${queue} />`}
    ${queue.turns.map((turn) => html`<${TurnFiles} key=${`${turn.session}:${turn.number}`} turn=${turn} queue=${queue} open=${open} />`)}
    ${queue.files.length > 0 && html`<${AllFiles} queue=${queue} open=${open} />`}
    <${Unattributed} queue=${queue} open=${open} />
    <${Comments} queue=${queue} />
    <${Sessions} queue=${queue} />
  `, [queue, open?.document, open?.turn]);
}

/** Advice for when nothing is pending. @param {{ queue: Queue }} properties */
function Empty({ queue }) {
  const is_new = queue.accepted + queue.rejected === 0;
  return html`<div class="empty">
    <p>Nothing awaits review.</p>
    <p>${is_new
      ? html`Connect an agent with <code>cas setup</code>. What it changes appears here by itself.`
      : "What an agent changes next appears here by itself."}</p>
  </div>`;
}

/** Notices: running calls, obstacles, waiting rejections, changes outside. @param {{ queue: Queue }} properties */
function Notices({ queue }) {
  /** @type {Child[]} */
  const notices = [];
  if (queue.read_only) notices.push(html`<li class="warn"><b>Nothing can be decided here.</b> ${queue.read_only}</li>`);
  if (queue.reading) notices.push(html`<li>Reading ${counted(queue.reading, "more file")}. This takes long only the first time.</li>`);
  for (const sentence of queue.unreadable) notices.push(html`<li class="warn">${sentence}</li>`);
  for (const { client, tool, names, began } of queue.running) {
    const where = names.length ? ` on ${names.slice(0, 3).join(", ")}` : "";
    notices.push(html`<li class="running"><b>${client || "An agent"}</b> runs ${tool || "a tool"}${where}, since ${ago(began)}.</li>`);
  }
  for (const { id, names } of queue.waiting) {
    const send = (/** @type {"now" | "cancel"} */ what) => () => perform("waiting", { id, do: what });
    notices.push(html`<li>A rejection in ${names.join(", ")} waits for the end of the turn.
      <div class="acts"><button type="button" onClick=${send("now")}>Do it now</button>
      <button type="button" onClick=${send("cancel")}>Cancel it</button></div></li>`);
  }
  for (const { name, sessions } of queue.collisions) {
    notices.push(html`<li>Sessions ${sessions.join(" and ")} have both changed <span class="name">${name}</span>.</li>`);
  }
  for (const { name, lines } of queue.markers) {
    notices.push(html`<li class="warn">Conflict markers are in <span class="name">${name}</span>, ${counted(lines.length, "line").replace(/^.* /, "")} ${lines.slice(0, 5).join(", ")}. Resolve them in the file.</li>`);
  }
  for (const { path, name, what } of queue.outside.slice(0, 20)) {
    const words = { changed: "was changed", gone: "was deleted", new: "was created" }[what];
    notices.push(html`<li key=${path}><span class="name">${name}</span> ${words} outside, and isn't recorded yet.</li>`);
  }
  if (queue.outside.length > 20) notices.push(html`<li>${counted(queue.outside.length - 20, "more file")} changed outside.</li>`);
  return notices.length > 0 && html`<ul class="notices" aria-label="Notices">${notices}</ul>`;
}

/** One turn with its prompt and files. @param {{ turn: Turn, queue: Queue, open: Place | null }} properties */
function TurnFiles({ turn, queue, open }) {
  const number = turn.number || null;
  const prompt = turn.prompt || (number === null ? "Without a turn" : `Turn ${number}`);
  const facts = [number && `turn ${number}`, turn.client, turn.model, ago(turn.time)].filter(Boolean).join(" · ");
  return html`<section class="turn">
    <h3 title=${short(turn.prompt, 2000)}>${short(prompt, 140)}</h3>
    <p class="meta"><time datetime=${iso(turn.time)} title=${clock(turn.time)}>${facts}</time>
      ${turn.running && html` · <span class="live">running</span>`}</p>
    <${Files} files=${turn.files} queue=${queue} turn=${number} open=${open} />
  </section>`;
}

/** Every pending file. @param {{ queue: Queue, open: Place | null }} properties */
function AllFiles({ queue, open }) {
  return html`<details class="all" open=${!queue.turns.length || (open !== null && open.turn === null)}>
    <summary>${queue.files.length === 1 ? "The only file" : `All ${counted(queue.files.length, "file")}`}</summary>
    <${Files} files=${queue.files} queue=${queue} turn=${null} open=${open} />
  </details>`;
}

/** A list of files. @param {{ files: Counts[], queue: Queue, turn: number | null, open: Place | null }} properties */
function Files({ files, queue, turn, open }) {
  const known = useMemo(() => new Map(queue.files.map((file) => [file.document, file])), [queue]);
  const groups = [];
  for (let at = 0; at < files.length; at += GROUP) groups.push(files.slice(at, at + GROUP));
  return groups.map((group, at) => html`<ul class="files" key=${at}>
    ${group.map((counts) => {
      const file = known.get(counts.document);
      if (!file) return null;
      const is_open = open?.document === counts.document && open.turn === turn;
      return html`<li key=${counts.document}><a href=${fileAddress(counts.document, turn)} aria-current=${is_open ? "page" : null}>
        <${FileName} name=${file.name} />
        ${file.operation !== "edit" && html`<span class="op">${file.operation}</span>`}
        ${counts.added + counts.removed > 0 && html`<span class="net" aria-label=${netInWords(counts.added, counts.removed)} role="img">${net(counts.added, counts.removed)}</span>`}
        ${counts.unseen > 0 && html`<span class="unseen" role="img" aria-label=${`${counts.unseen} not seen`} title="not seen">${counts.unseen}</span>`}
      </a></li>`;
    })}
  </ul>`);
}

/** A path with its last part in bold. @param {{ name: string }} properties */
export function FileName({ name }) {
  const at = name.lastIndexOf("/") + 1;
  return html`<span class="name"><span class="folder">${name.slice(0, at)}</span><b>${name.slice(at)}</b></span>`;
}

/** Files with unattributed edits. @param {{ queue: Queue, open: Place | null }} properties */
function Unattributed({ queue, open }) {
  const files = queue.files.filter(({ document }) => queue.unattributed.includes(document));
  return files.length > 0 && html`<section>
    <h3>Whose are these?</h3>
    <p class="meta">No call of an agent is known to have changed them. Open one to claim its edits.</p>
    <${Files} files=${files} queue=${queue} turn=${null} open=${open} />
  </section>`;
}

/** Comments that are not resolved. @param {{ queue: Queue }} properties */
function Comments({ queue }) {
  /** @param {Comment} comment */
  const address = ({ path, lines }) => {
    const file = queue.files.find((/** @type {FileSummary} */ one) => one.path === path);
    return file ? fileAddress(file.document, null) : blameAddress(path, lines[0]);
  };
  return queue.comments.length > 0 && html`<section>
    <h3>Comments</h3>
    <ul class="said">${queue.comments.map((comment) => html`<li key=${comment.number}>
      <a href=${address(comment)}><span class="name">${comment.name}:${comment.lines[0]}</span> <span class="op">${comment.state}</span>
      <br />${short(comment.text, 160)}</a></li>`)}</ul>
  </section>`;
}

/** Sessions that have worked here. @param {{ queue: Queue }} properties */
function Sessions({ queue }) {
  return queue.sessions.length > 0 && html`<details>
    <summary>${counted(queue.sessions.length, "session")}</summary>
    <ul class="said">${queue.sessions.map((/** @type {Session} */ one) => html`<li key=${one.number}>
      <b>Session ${one.number}</b> · ${one.client} · ${counted(one.edits, "edit")} · ${ago(one.began)}
      ${one.prompt && html`<br />${short(one.prompt, 160)}`}</li>`)}</ul>
  </details>`;
}

/** Return a time in ISO 8601. @param {number} time */
export function iso(time) {
  return new Date(time * 1000).toISOString();
}
