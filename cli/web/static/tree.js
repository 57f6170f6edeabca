// The queue as a tree of folders.

/** @import {Stop} from "./progress.js" */
import { Icon } from "./icons.js";
import { FileRow, Middle } from "./queue.js";
import { html } from "./vendor/preact-htm.js";

/** @typedef {{ name: string, folders: Map<string, Folder>, files: Stop[], left: number }} Folder */

const DEEPEST = 5;

/** The files in their folders. @param {{ stops: readonly Stop[], here: number, filter: string }} properties */
export function Tree({ stops, here, filter }) {
  if (!stops.length && filter.trim()) return html`<p class="session">Nothing has “${filter.trim()}” in its path.</p>`;
  const left = stops.reduce((n, { changes }) => n + changes, 0);
  const files = stops.filter(({ changes }) => changes).length;
  const text = filter.trim().toLowerCase();
  return html`<p class="session"><b>${text ? `“${filter.trim()}”` : "All sessions"}</b><span class="clip">${left.toLocaleString("en")} left in ${files === 1 ? "1 file" : `${files.toLocaleString("en")} files`}</span></p>
    <${Level} folder=${folderOf(stops)} depth=${0} here=${here} filter=${text} />`;
}

/** @param {{ folder: Folder, depth: number, here: number, filter: string }} properties */
function Level({ folder, depth, here, filter }) {
  return html`<ul class=${depth ? null : "tree"}>
    ${[...folder.folders.values()].map((each) => html`<li key=${each.name}><details open>
      <summary class=${`row d${Math.min(depth, DEEPEST)}`} title=${each.name}><${Icon} name="down" kind="mark" /><${Middle} text=${each.name} kind="name" />
        <span class="left">${each.left > 0 ? each.left.toLocaleString("en") : ""}<span class="sr"> ${each.left ? "to decide" : "decided"}</span></span></summary>
      <${Level} folder=${each} depth=${depth + 1} here=${here} filter=${filter} /></details></li>`)}
    ${folder.files.map((stop) => html`<li key=${stop.document} class=${`d${Math.min(depth, DEEPEST)}`}><${FileRow} stop=${stop} turn=${null} here=${here} filter=${filter} is_nested=${true} /></li>`)}
  </ul>`;
}

/** Return the tree of some files; a folder that holds only one folder is one row with it. @param {readonly Stop[]} stops */
function folderOf(stops) {
  /** @type {Folder} */
  const root = { name: "", folders: new Map(), files: [], left: 0 };
  for (const stop of stops) {
    const parts = stop.name.split("/").slice(0, -1);
    let at = root;
    at.left += stop.changes;
    for (const part of parts) {
      const next = at.folders.get(part) ?? { name: part, folders: new Map(), files: [], left: 0 };
      at.folders.set(part, next);
      at = next;
      at.left += stop.changes;
    }
    at.files.push(stop);
  }
  return joined(root);
}

/** @param {Folder} folder @returns {Folder} */
function joined(folder) {
  /** @type {Map<string, Folder>} */
  const folders = new Map();
  for (let each of folder.folders.values()) {
    let name = each.name;
    while (!each.files.length && each.folders.size === 1) {
      [each] = each.folders.values();
      name += `/${each.name}`;
    }
    folders.set(name, joined({ ...each, name }));
  }
  return { ...folder, folders };
}
