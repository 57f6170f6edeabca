// The screens and their addresses: the part after "#".

/**
 * @typedef {{ screen: "queue" }
 *   | { screen: "file", document: number, turn: number | null }
 *   | { screen: "blame", path: string, line: number }
 *   | { screen: "timeline", path: string }
 *   | { screen: "done" }
 *   | { screen: "store" }
 *   | { screen: "search", text: string, where: "text" | "path" | "prompt" }} Route
 */

/** Return the screen that an address names; an unknown address gives the queue. @param {string} hash @returns {Route} */
export function parsed(hash) {
  const [place, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [screen, ...rest] = place.split("/");
  const path = rest.join("/");
  const words = new URLSearchParams(query);
  if (screen === "file" && /^\d+$/.test(path)) return { screen, document: Number(path), turn: null };
  if (screen === "turn" && /^\d+\/\d+$/.test(path)) {
    return { screen: "file", document: Number(rest[1]), turn: Number(rest[0]) };
  }
  if (screen === "blame" && path) return { screen, path, line: Number(words.get("line") ?? 1) };
  if (screen === "timeline") return { screen, path };
  if (screen === "store" || screen === "done") return { screen };
  if (screen === "search") {
    const where = words.get("in");
    return { screen, text: words.get("q") ?? "", where: where === "path" || where === "prompt" ? where : "text" };
  }
  return { screen: "queue" };
}

/** Return the address of a file's changes. @param {number} document @param {number | null} turn */
export function fileAddress(document, turn) {
  return turn === null ? `#/file/${document}` : `#/turn/${turn}/${document}`;
}

/** Return the address of a file's blame. The path is percent-encoded already. @param {string} path @param {number} [line] */
export function blameAddress(path, line) {
  return `#/blame/${path}${line ? `?line=${line}` : ""}`;
}

/** Return the address of a file's history, or of the workspace's (""). @param {string} path */
export function timelineAddress(path) {
  return path ? `#/timeline/${path}` : "#/timeline";
}

/** Return the address of a search. @param {string} text @param {string} where */
export function searchAddress(text, where) {
  return `#/search?q=${encodeURIComponent(text)}&in=${where}`;
}
