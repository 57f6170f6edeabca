// The bar at the top: the pages, how much is decided, and whether the server is there.

import { Icon } from "./icons.js";
import { retry } from "./live.js";
import { Menu } from "./menu.js";
import { progressOf } from "./progress.js";
import { set, state } from "./state.js";
import { switchTheme } from "./theme.js";
import { html } from "./vendor/preact-htm.js";
import { counted } from "./words.js";

const PAGES = /** @type {const} */ ([["Review", "#/", ["queue", "file", "done"]], ["Timeline", "#/timeline", ["timeline"]], ["Search", "#/search", ["search"]], ["Store", "#/store", ["store"]]]);

/** The bar. */
export function Top() {
  const { queue, route, connection, messages } = state;
  const current = (/** @type {readonly string[]} */ screens) => (screens.includes(route.screen) ? "page" : null);
  const show_keys = () => set({ sheet: { kind: "keys" } });
  const show_messages = () => set({ sheet: { kind: "messages" } });
  return html`<header class="top">
    <a class="brand" href="#/"><${Icon} name="logo" />editledger <span class="dim small path-now clip">${queue?.root ?? ""}</span></a>
    <nav aria-label="Pages" class="desk">${PAGES.map(([word, address, screens]) => html`<a key=${word} href=${address} aria-current=${current(screens)}>${word}</a>`)}</nav>
    <span class="grow desk"></span>
    <span class=${`live ${connection === "live" ? "" : "dead"}`} title="What an agent changes shows here at once">${connection === "live" ? "Live" : "Not live"}</span>
    <${Progress} />
    <button class="b icon plain desk" type="button" onClick=${show_messages} title="What you did" aria-label=${`What you did: ${counted(messages.length, "message")}`}><${Icon} name="list" /></button>
    <button class="b icon plain desk" type="button" onClick=${switchTheme} title="Light or dark" aria-label="Light or dark"><${Icon} name="theme" /></button>
    <${Menu} kind="phone-only" label="Pages" icon="more" items=${[
      ...PAGES.map(([words, address]) => ({ words, act: () => { location.hash = address; } })),
      { words: "What you did", act: show_messages },
      { words: "Light or dark", act: switchTheme },
    ]} />
    <button class="b icon plain desk" type="button" onClick=${show_keys} aria-label="All keys" title="All keys" aria-keyshortcuts="?">?</button>
  </header>`;
}

/** How many changes are decided. */
export function Progress() {
  const { accepted, rejected, decided, total } = progressOf(state.queue);
  if (!total) return null;
  return html`<span class="progress">
    <svg class="meter" viewBox=${`0 0 ${Math.max(1, total)} 6`} preserveAspectRatio="none" aria-hidden="true"><rect class="a" width=${accepted} height="6" /><rect class="r" x=${accepted} width=${rejected} height="6" /></svg>
    <span class="of"><b>${decided.toLocaleString("en")}</b> of ${total.toLocaleString("en")}<span class="sr"> changes decided</span></span></span>`;
}

/** What is wrong with the connection. */
export function Banner() {
  const { connection } = state;
  return html`<div role="alert" class="banner" hidden=${connection === "live"}>
    ${connection === "lost" && "The server is gone, so this page is not live. It keeps trying; nothing that you typed is lost."}
    ${connection === "unknown" && html`<span>The server was started again. Open the new address that <code>cas web</code> printed.</span>`}
    ${connection !== "live" && html` <button type="button" class="b" onClick=${retry}>Try now</button>`}
  </div>`;
}
