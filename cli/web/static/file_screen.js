// The screen of a file: its summary, the diff, and the bar with the actions on the current change.

/** @import {EditDetail, File as ChangedFile, Queue, Session} from "./types.d.ts" */
import { address, get } from "./api.js";
import { whereOf } from "./change_head.js";
import { DiffView } from "./diff_view.js";
import { FileName } from "./queue.js";
import { decideOn, decideOnFile, decideOnTurn, decideOnUnits, drawIn, move, moveFile, order, perform, seeCurrent, together } from "./review.js";
import { blameAddress, timelineAddress } from "./routes.js";
import { secret } from "./secret.js";
import { set, state } from "./state.js";
import { html, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { counted, net, octal, short, size } from "./words.js";

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
  return html`<div class="screen">
    <div class="pane" ref=${pane} tabindex="0" role="region" aria-label="Changes">
      ${is_here && file && html`<${FileHead} file=${file} turn=${turn} />`}
      ${!is_here && html`<div class="filehead"><p class="empty" role="status">${file_error || "Loading …"}</p></div>`}
      ${is_rendered && html`<iframe class="rendered" sandbox="" title=${`${file.name} rendered, before and after`}
        src=${address("/rendered", { document, turn, secret: secret() })}></iframe>`}
      <div key=${`${document}:${turn}`} class="diff" ref=${body} hidden=${!is_here || is_rendered}></div>
    </div>
    ${is_here && file && html`<${Bar} file=${file} />`}
  </div>`;
}

/** @param {ChangedFile} file */
function isRenderable(file) {
  return file.kind === "markdown" || file.kind === "notebook";
}

/** The summary of a file: its name, prompt, changes as a whole, and buttons for the file. @param {{ file: ChangedFile, turn: number | null }} properties */
function FileHead({ file, turn }) {
  const queue = /** @type {Queue} */ (state.queue);
  const all = order(queue, turn);
  const at = all.indexOf(file.document);
  const own = turn === null ? undefined : queue.turns.find(({ number }) => number === turn);
  const why = queue.read_only;
  return html`<div class="filehead">
    ${turn !== null && html`<p class="prompt"><b>Turn ${turn}</b> ${own?.prompt && short(own.prompt, 400)}</p>`}
    <h2><${FileName} name=${file.name} /></h2>
    <p class="facts">${facts(file).join(" · ")}</p>
    ${file.unrecorded && html`<p class="note warn">The file was changed on disk, and that isn't recorded yet. This page shows the recorded text.</p>`}
    <${OtherUnits} units=${file.cancelled} words="cancel out: without them the text reads the same" why=${why} />
    <${OtherUnits} units=${file.taken_out} words="were taken out by later edits that are accepted" why=${why} />
    <${OtherUnits} units=${file.kept_on} words="are pending, but accepted edits can't do without them" why=${why} />
    ${queue.unattributed.includes(file.document) && html`<${Whose} file=${file} queue=${queue} />`}
    <div class="acts">
      <button type="button" disabled=${!!why || !file.all.length} onClick=${() => decideOnFile("accept")}>Accept file</button>
      <button type="button" disabled=${!!why || !file.all.length} onClick=${() => decideOnFile("reject")}>Reject file</button>
      ${turn !== null && own && html`
        <button type="button" disabled=${!!why} onClick=${() => decideOnTurn("accept", turn)}>Accept turn</button>
        <button type="button" disabled=${!!why} onClick=${() => decideOnTurn("reject", turn)}>Reject turn</button>`}
      ${isRenderable(file) && html`<button type="button" aria-pressed=${state.tab === "rendered"}
        onClick=${() => set({ tab: state.tab === "rendered" ? "changes" : "rendered" })}>Rendered</button>`}
      <a class="button" href=${blameAddress(file.path)}>Blame</a>
      <a class="button" href=${timelineAddress(file.path)}>Timeline</a>
      <span class="space"></span>
      <button type="button" disabled=${at <= 0} onClick=${() => moveFile(-1)} aria-label="Previous file">‹ File</button>
      <span class="of">${at + 1} of ${all.length}</span>
      <button type="button" disabled=${at < 0 || at + 1 >= all.length} onClick=${() => moveFile(1)} aria-label="Next file">File ›</button>
    </div>
    ${file.kind === "image" && html`<${Images} file=${file} />`}
  </div>`;
}

/** Return the facts about a file as a whole. @param {ChangedFile} file */
function facts(file) {
  const changes = counted(file.all.length, "change");
  const said = [file.added + file.removed ? `${net(file.added, file.removed)} in ${changes}` : changes];
  if (file.name_before) said.push(`was ${file.name_before}`);
  if (file.operation !== "edit") said.push(file.operation);
  if (file.mode_before && file.mode && file.mode !== file.mode_before) said.push(`mode ${octal(file.mode_before)} → ${octal(file.mode)}`);
  if (file.kind === "binary" || file.kind === "image") said.push(`${file.kind}, ${size(file.size_before)} → ${size(file.size)}`);
  return said;
}

/** Hunks without a visible change, with buttons to decide on them. @param {{ units: string[], words: string, why: string }} properties */
function OtherUnits({ units, words, why }) {
  if (!units.length) return null;
  const decide = (/** @type {"accept" | "reject"} */ action) => () =>
    decideOnUnits(action, Object.fromEntries(units.map((unit) => [unit, /** @type {const} */ ("pending")])));
  const named = units.slice(0, 8).join(", ") + (units.length > 8 ? ` and ${units.length - 8} more` : "");
  return html`<p class="note">${counted(units.length, "hunk")} (${named}) ${words}.
    <span class="acts"><button type="button" disabled=${!!why} onClick=${decide("accept")}>Accept</button>
    <button type="button" disabled=${!!why} onClick=${decide("reject")}>Reject</button></span></p>`;
}

/** A form to claim unattributed edits. @param {{ file: ChangedFile, queue: Queue }} properties */
function Whose({ file, queue }) {
  const [whose, choose] = useState("");
  const claim = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const units = file.all.flatMap((change) => change.units);
    /** @type {{ edits: EditDetail[] }} */
    const { edits } = await get("edits", { units: units.join(",") });
    const unclaimed = edits.filter(({ tool }) => tool === "unattributed").map(({ seq }) => seq);
    await perform("claim", { edits: unclaimed, session: whose ? Number(whose) : null });
  };
  return html`<form class="note" onSubmit=${claim}>
    <label>No call of an agent is known to have changed this file. It is the work of
      <select value=${whose} onChange=${(/** @type {Event} */ event) => choose(/** @type {HTMLSelectElement} */ (event.target).value)}>
        <option value="">you</option>
        ${queue.sessions.map((/** @type {Session} */ one) => html`<option value=${one.number}>session ${one.number}, ${one.client}</option>`)}
      </select></label>
    <button type="submit" disabled=${!!queue.read_only}>Claim</button>
  </form>`;
}

/** An image before and after. @param {{ file: ChangedFile }} properties */
function Images({ file }) {
  const sides = /** @type {const} */ ([["before", file.blob_before, file.size_before], ["after", file.blob, file.size]]);
  return html`<div class="images">${sides.map(([word, blob, bytes]) => html`<figure key=${word}>
    ${blob ? html`<img src=${address("/image", { blob, secret: secret() })} alt=${`${file.name} ${word}`} />` : html`<p>There was no file.</p>`}
    <figcaption>${word}${blob ? `, ${size(bytes)}` : ""}</figcaption></figure>`)}</div>`;
}

/** The actions on the current change. @param {{ file: ChangedFile }} properties */
function Bar({ file }) {
  const { cursor } = state;
  const change = file.all[cursor];
  const why = state.queue?.read_only ?? "";
  if (!change) return null;
  const keys = together(cursor).map((at) => file.all[at].key);
  const where = `${file.name}, ${whereOf(change)}`;
  return html`<div class="bar" role="toolbar" aria-label="The current change">
    <span class="of" aria-hidden="true">${cursor + 1} of ${file.all.length}</span>
    <${Act} letter="k" words="Previous" act=${() => move(-1)} />
    <${Act} letter="j" words="Next" act=${() => move(1)} />
    <${Act} letter="a" words="Accept" kind="accept" why=${why} act=${() => decideOn("accept", cursor)} />
    <${Act} letter="x" words="Reject" kind="reject" why=${why} act=${() => decideOn("reject", cursor)} />
    <${Act} letter="X" words="Reject…" more="and say why" why=${why} act=${() => set({ sheet: { kind: "reject", keys, where } })} />
    <${Act} letter="c" words="Comment" why=${why} act=${() => set({ sheet: { kind: "comment", keys, where } })} />
    <${Act} letter="e" words="Edits" act=${() => set({ sheet: { kind: "edits", units: change.units, splitting: false } })} />
    <${Act} letter="s" words="Split" why=${why} act=${() => set({ sheet: { kind: "edits", units: change.units, splitting: true } })} />
    <${Act} letter="." words="Seen" act=${seeCurrent} />
  </div>`;
}

/**
 * A button of the bar, with its key. `more`: words for screen readers only.
 * @param {{ letter: string, words: string, act: () => void, kind?: string, why?: string, more?: string }} properties
 */
function Act({ letter, words, act, kind = "", why = "", more = "" }) {
  return html`<button type="button" class=${kind} onClick=${act} disabled=${!!why} title=${why || null}
    aria-keyshortcuts=${letter}>${words}${more && html`<span class="unshown"> ${more}</span>`} <kbd aria-hidden="true">${letter}</kbd></button>`;
}
