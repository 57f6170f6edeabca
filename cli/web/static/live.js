// The connection to the server: its events, and retries when it is gone.

import { onLost } from "./api.js";
import { refresh } from "./review.js";
import { set, state } from "./state.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 8000;

/** @type {EventSource | null} */
let events = null;
let wait = FIRST_WAIT;
let timer = 0;

/** Listen to the server's events, and refresh after each. */
export function follow() {
  onLost(lost);
  listen();
}

function listen() {
  events?.close();
  events = new EventSource("/api/events");
  events.addEventListener("changed", () => refresh());
  events.addEventListener("end", () => lost(0));
  events.onerror = () => lost(0);
}

/** Show that the server is gone, and try again later. @param {number} status */
function lost(status) {
  events?.close();
  set({ connection: status === 401 ? "unknown" : "lost" });
  if (timer) return;
  timer = setTimeout(retry, wait);
  wait = Math.min(wait * 2, LONGEST_WAIT);
}

/** Try to reach the server again. */
export async function retry() {
  clearTimeout(timer);
  timer = 0;
  let status = 0;
  try {
    status = (await fetch("/api/queue", { credentials: "same-origin" })).status;
  } catch {
    status = 0;
  }
  if (status === 0 || status === 401) {
    lost(status);
    return;
  }
  wait = FIRST_WAIT;
  set({ connection: "live" });
  listen();
  await refresh();
}

addEventListener("online", () => {
  if (state.connection !== "live") retry();
});
