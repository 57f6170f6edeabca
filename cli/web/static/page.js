// The page of `cas web`: its layout and its start.

import { BlameScreen } from "./blame.js";
import { DoneScreen } from "./done.js";
import { FileScreen } from "./file_screen.js";
import { listenToKeys } from "./keys.js";
import { follow as followServer } from "./live.js";
import { Message } from "./messages.js";
import { listenToPresses } from "./presses.js";
import { QueueColumn } from "./queue.js";
import { follow, refresh } from "./review.js";
import { SearchScreen } from "./search.js";
import { Sheets } from "./sheets.js";
import { state, useChanges } from "./state.js";
import { StoreScreen } from "./store_screen.js";
import { applyTheme } from "./theme.js";
import { TimelineScreen } from "./timeline.js";
import { Banner, Top } from "./top.js";
import { html, render } from "./vendor/preact-htm.js";
import { WhyColumn } from "./why.js";

/** The whole page. */
function Page() {
  useChanges();
  const { queue, route, view } = state;
  const is_file = route.screen === "file" || route.screen === "queue";
  const is_empty = route.screen === "queue" && queue !== null && !queue.files.length;
  const kinds = ["app", is_file && !is_empty ? "with-why" : "wide", is_file && view === "split" && "side", route.screen === "queue" && !is_empty ? "at-queue" : "at-change"];
  return html`
    <a class="skip" href="#file" onClick=${skip}>Skip to the file</a>
    <div class=${kinds.filter(Boolean).join(" ")}>
      <${Top} />
      <${Banner} />
      <${QueueColumn} />
      <${Screen} is_empty=${is_empty} />
      ${is_file && !is_empty && html`<${WhyColumn} />`}
    </div>
    <${Message} />
    <${Sheets} />`;
}

/** @param {Event} event */
function skip(event) {
  event.preventDefault();
  document.getElementById("file")?.focus();
}

/** The screen that the address names. @param {{ is_empty: boolean }} properties */
function Screen({ is_empty }) {
  const { route } = state;
  switch (route.screen) {
    case "blame":
      return html`<${BlameScreen} key=${route.path} path=${route.path} line=${route.line} />`;
    case "timeline":
      return html`<${TimelineScreen} key=${route.path} path=${route.path} />`;
    case "store":
      return html`<${StoreScreen} />`;
    case "search":
      return html`<${SearchScreen} text=${route.text} where=${route.where} />`;
    case "done":
      return html`<${DoneScreen} />`;
    default:
      return is_empty ? html`<${DoneScreen} />` : html`<${FileScreen} />`;
  }
}

// A link's click changes the address at once; "hashchange" comes later, when the next key may already have opened a dialog.
addEventListener("popstate", () => {
  follow();
  refresh();
});

applyTheme();
const page = document.getElementById("page");
if (page) {
  page.replaceChildren();
  render(html`<${Page} />`, page);
  listenToPresses();
  listenToKeys();
  followServer();
  refresh();
}
