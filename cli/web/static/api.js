// Requests to the server of `cas web`: JSON in both directions.

import { own } from "./secret.js";
import { state } from "./state.js";
import { useEffect, useState } from "./vendor/preact-htm.js";

/** @import {Outcome, Refusal} from "./types.d.ts" */

/** An error for a request that the server refused, or that didn't reach it (status 0). */
export class Refused extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Called when the server didn't answer (0) or doesn't accept our cookie (401). @type {(status: number) => void} */
let whenLost = () => {};

/** Set what is called when the server is gone (status 0) or was started again (401). @param {(status: number) => void} tell */
export function onLost(tell) {
  whenLost = tell;
}

/** Send a request; return the answer's JSON. @param {string} address @param {RequestInit} [options] @returns {Promise<any>} */
async function request(address, options) {
  let answer;
  try {
    answer = await fetch(address, { credentials: "same-origin", ...options, headers: { ...options?.headers, ...own() } });
  } catch {
    whenLost(0);
    throw new Refused(0, "No answer from the server. Once it is back, the page shows whether this was done.");
  }
  if (answer.status === 401) whenLost(401);
  let body;
  try {
    body = await answer.json();
  } catch {
    body = { error: `The server answered with status ${answer.status}.` };
  }
  if (!answer.ok) throw new Refused(answer.status, /** @type {Refusal} */ (body).error);
  return body;
}

/**
 * Send a GET request; return the answer. Undefined values are left out of the query.
 * @param {string} name such as "queue" @param {Record<string, string | number | undefined | null>} [query]
 */
export function get(name, query = {}) {
  return request(address(`/api/${name}`, query));
}

/** Return an address with its query. @param {string} path @param {Record<string, string | number | undefined | null>} query */
export function address(path, query) {
  const words = [];
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) words.push(`${key}=${encodeURIComponent(value)}`);
  }
  return words.length ? `${path}?${words.join("&")}` : path;
}

/**
 * Return what a component asks for, and why it can't be had; it is asked for again when the store or the query changes.
 * @template T @param {string} path such as "/api/store" @param {Record<string, string | number | undefined>} [query] @returns {[T | null, string]}
 */
export function useAnswer(path, query = {}) {
  const [found, show] = useState(/** @type {T | null} */ (null));
  const [error, fail] = useState("");
  const asked = address(path, query);
  useEffect(() => {
    let is_current = true;
    request(asked).then(
      (answer) => is_current && (show(answer), fail("")),
      (refusal) => is_current && fail(refusal instanceof Refused ? refusal.message : String(refusal)),
    );
    return () => {
      is_current = false;
    };
  }, [asked, state.queue?.version]);
  return [found, error];
}

/** Send a POST request with a JSON body; return the answer. @param {string} name @param {object} body */
export function post(name, body) {
  const headers = { "Content-Type": "application/json" };
  return request(`/api/${name}`, { method: "POST", headers, body: JSON.stringify(body) });
}

/** Send a POST request that is answered with an outcome; a refused one has the outcome "failed". @param {string} name @param {object} body @returns {Promise<Outcome>} */
export async function decide(name, body) {
  try {
    return await post(name, body);
  } catch (error) {
    if (error instanceof Refused) return { outcome: "failed", message: error.message };
    throw error;
  }
}
