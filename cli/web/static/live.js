// The connection to the server: its events, and retries when it is gone.

import { address, onLost } from "./api.js";
import { refreshMeanwhile } from "./decisions.js";
import { refresh } from "./review.js";
import { own, secret } from "./secret.js";
import { set, state } from "./state.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 8000;
/** Milliseconds without an event after which the stream counts as dead; the server sends one at least every 15 s. */
const SILENCE = 40_000;
const CHECKED_EVERY = 5000;

/** @type {EventSource | null} */
let events = null;
let wait = FIRST_WAIT;
let timer = 0;
let heard = Date.now();

/** Listen to the server's events, and refresh after each. */
export function follow() {
  onLost(lost);
  listen();
  setInterval(check, CHECKED_EVERY);
}

function listen() {
  events?.close();
  heard = Date.now();
  events = new EventSource(address("/api/events", { secret: secret() }));
  events.addEventListener("alive", hear);
  events.addEventListener("changed", () => {
    hear();
    refreshMeanwhile();
  });
  events.addEventListener("end", () => lost(0));
  events.onerror = () => lost(0);
}

function hear() {
  heard = Date.now();
}

/** Connect again if the stream is dead: after a sleep of the machine, its connection may be gone without an error. */
function check() {
  if (state.connection === "live" && Date.now() - heard > SILENCE) retry();
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
    status = (await fetch("/api/queue", { credentials: "same-origin", headers: own() })).status;
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

document.addEventListener("visibilitychange", check);
addEventListener("online", () => {
  if (state.connection !== "live") retry();
});
