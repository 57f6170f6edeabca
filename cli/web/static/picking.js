// The choice of lines by their numbers: click, drag, or click with Shift.

/** @import {Picked} from "./state.js" */

/** Let the person choose rows by the line numbers in an element; return a function that ends it. @param {HTMLElement} body @param {(picked: Picked | null) => void} tell */
export function pickLines(body, tell) {
  let anchor = -1;
  let is_down = false;
  /** @type {Picked | null} */
  let picked = null;
  const choose = (/** @type {number} */ at) => {
    picked = { first: Math.min(anchor, at), last: Math.max(anchor, at) };
    tell(picked);
  };
  const down = (/** @type {PointerEvent} */ event) => {
    const is_number = event.target instanceof Element && event.target.closest(".n");
    const at = is_number ? rowAt(event.target) : -1;
    if (at < 0 || event.button !== 0) return;
    event.preventDefault();
    if (!event.shiftKey || anchor < 0) {
      const is_same = picked?.first === at && picked.last === at;
      anchor = at;
      if (is_same) {
        anchor = -1;
        picked = null;
        tell(null);
        return;
      }
    }
    is_down = true;
    choose(at);
  };
  const over = (/** @type {PointerEvent} */ event) => {
    if (!is_down) return;
    const at = rowAt(document.elementFromPoint(event.clientX, event.clientY));
    if (at >= 0) choose(at);
  };
  const up = () => {
    is_down = false;
  };
  body.addEventListener("pointerdown", down);
  body.addEventListener("pointermove", over);
  addEventListener("pointerup", up);
  return () => {
    body.removeEventListener("pointerdown", down);
    body.removeEventListener("pointermove", over);
    removeEventListener("pointerup", up);
  };
}

/** Return the row below the pointer; -1: there is none. @param {EventTarget | null} target */
function rowAt(target) {
  if (!(target instanceof Element)) return -1;
  const number = target.closest(".n") ?? target.closest(".r");
  if (!(number instanceof HTMLElement)) return -1;
  const row = number.dataset.pick ?? number.closest(".r")?.querySelector(".n[data-pick]")?.getAttribute("data-pick");
  return row ? Number(row) : -1;
}
