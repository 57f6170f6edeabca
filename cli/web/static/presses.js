// Which presses count: one press acts once, and only on what was on the screen when it began.
//
// The second click of a double click, and a key that repeats because it is held, would act on the change that comes next.
// A button on which that is wanted, because it only moves, has `data-repeats`.

/** When the current change last became another one without the person's doing; Infinity: that is not on the screen yet. */
let replaced = -1;
/** When the pointer, or the key that clicks a button, went down; null: the click came from neither. @type {number | null} */
let began = null;
let is_held = false;

/** Note that the current change has become another one, though the person did nothing. */
export function noteReplaced() {
  replaced = Infinity;
  requestAnimationFrame(() => setTimeout(() => {
    replaced = performance.now();
  }));
}

/** Return whether a press began before what is on the screen now was there. @param {number} time of its event */
export function isLate(time) {
  return time <= replaced;
}

/** Let no click of a button count that acts twice, or that was meant for what is gone. */
export function listenToPresses() {
  const capture = { capture: true };
  addEventListener("pointerdown", (event) => note(event.timeStamp, false), capture);
  addEventListener("keydown", (event) => note(event.timeStamp, event.repeat), capture);
  addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button") : null;
    const is_again = event.detail > 1 || (event.detail === 0 && is_held);
    const is_late = began !== null && isLate(began);
    began = null;
    if (!button || "repeats" in button.dataset || !(is_again || is_late)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, capture);
}

/** @param {number} time @param {boolean} is_repeated */
function note(time, is_repeated) {
  began = time;
  is_held = is_repeated;
}
