// The page of `cas web`: its layout and its start.

import { BlameScreen } from "./blame.js";
import { FileScreen } from "./file_screen.js";
import { listenToKeys } from "./keys.js";
import { follow, retry } from "./live.js";
import { QueueList } from "./queue.js";
import { openFile, refresh, undo } from "./review.js";
import { parsed } from "./routes.js";
import { SearchScreen } from "./search.js";
import { Sheets } from "./sheets.js";
import { set, state, useChanges } from "./state.js";
import { StoreScreen } from "./store_screen.js";
import { TimelineScreen } from "./timeline.js";
import { html, render } from "./vendor/preact-htm.js";
import { counted } from "./words.js";

/** The whole page. */
function Page() {
  useChanges();
  const { queue, route } = state;
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the changes</a>
    <${Top} />
    <${Banner} />
    <div class=${`columns on-${route.screen}`}>
      <nav class="queue" aria-label="Queue" tabindex="-1">
        ${queue ? html`<${QueueList} queue=${queue} open=${route.screen === "file" ? route : null} />` : html`<p role="status">Loading …</p>`}
      </nav>
      <main id="main" tabindex="-1">
        <${Screen} />
        <${StatusLine} />
      </main>
    </div>
    <${Sheets} />`;
}

/** @param {Event} event */
function skip(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/** The header: name, counts, links to other screens. */
function Top() {
  const { queue, route } = state;
  const link = (/** @type {string} */ screen, /** @type {string} */ address, /** @type {string} */ words) => html`<a href=${address}
    aria-current=${route.screen === screen ? "page" : null}>${words}</a>`;
  return html`<header>
    <h1><a href="#/">editledger</a></h1>
    <p class="counts">${queue && html`<span class="root">${queue.root}</span> · ${counted(queue.changes, "change")}${queue.unseen > 0 && `, ${queue.unseen.toLocaleString("en")} not seen`}`}</p>
    <nav aria-label="Screens">
      ${link("queue", "#/", "Queue")}${link("timeline", "#/timeline", "Timeline")}${link("search", "#/search", "Search")}${link("store", "#/store", "Store")}
      <button type="button" onClick=${() => set({ sheet: { kind: "keys" } })} aria-label="Keys" aria-keyshortcuts="?">?</button>
    </nav>
  </header>`;
}

/** The banner for a lost connection. */
function Banner() {
  const { connection } = state;
  return html`<div role="alert" class="banner" hidden=${connection === "live"}>
    ${connection === "lost" && "The server is gone. This page keeps trying to reach it; nothing that you typed is lost."}
    ${connection === "unknown" && html`The server was started again. Open the new address that <code>cas web</code> printed.`}
    ${connection !== "live" && html` <button type="button" onClick=${retry}>Try now</button>`}
  </div>`;
}

/** The screen that the address names. */
function Screen() {
  const { route } = state;
  switch (route.screen) {
    case "file":
      return html`<${FileScreen} />`;
    case "blame":
      return html`<${BlameScreen} key=${route.path} path=${route.path} line=${route.line} />`;
    case "timeline":
      return html`<${TimelineScreen} key=${route.path} path=${route.path} />`;
    case "store":
      return html`<${StoreScreen} />`;
    case "search":
      return html`<${SearchScreen} text=${route.text} where=${route.where} />`;
    default:
      return html`<${Overview} />`;
  }
}

/** The overview: how much awaits review, and where to begin. */
function Overview() {
  const { queue } = state;
  if (!queue) return null;
  const begin = () => {
    const turn = queue.turns.find(({ files }) => files.length);
    if (turn) openFile(turn.files[0].document, turn.number || null);
    else openFile(queue.files[0].document, null);
  };
  return html`<div class="overview">
    <h2>${queue.files.length ? `${counted(queue.changes, "change")} in ${counted(queue.files.length, "file")}` : "Nothing awaits review"}</h2>
    ${queue.files.length > 0 && html`<p><button type="button" class="main" onClick=${begin}>Begin the review</button></p>`}
    <p class="meta">${counted(queue.accepted, "edit")} accepted, ${queue.rejected.toLocaleString("en")} rejected, ${queue.pending.toLocaleString("en")} pending</p>
    <p class="meta">Press <kbd>j</kbd> and <kbd>k</kbd> to go through the queue, <kbd>Enter</kbd> to open a file, <kbd>?</kbd> for all keys.</p>
  </div>`;
}

/** The result of the last action; a failure is announced at once. */
function StatusLine() {
  const { text, is_failure, can_undo } = state.said;
  return html`<div class="statusline">
    <p role="status" class="said">${is_failure ? "" : text}</p>
    <p role="alert" class="said failure">${is_failure ? text : ""}</p>
    ${can_undo && (state.queue?.undo ?? 0) > 0 && html`<button type="button" onClick=${undo} aria-keyshortcuts="u">Undo <kbd aria-hidden="true">u</kbd></button>`}
  </div>`;
}

addEventListener("hashchange", () => {
  const route = parsed(location.hash);
  const is_same = route.screen === "file" && state.file?.document === route.document && state.route.screen === "file" && state.route.turn === route.turn;
  set({ route, sheet: null, tab: "changes", ...(is_same ? {} : { file: null, cursor: -1, file_error: "" }) });
  refresh();
});

const page = document.getElementById("page");
if (page) {
  page.replaceChildren();
  render(html`<${Page} />`, page);
  listenToKeys();
  follow();
  refresh();
}
