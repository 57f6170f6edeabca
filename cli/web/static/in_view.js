// A change that is in view stays in view when the pane's width changes, and with it the height of every line.

export class InView {
  /** @param {HTMLElement} pane the scrolling element @param {() => void} reveal scrolls to what is watched */
  constructor(pane, reveal) {
    let is_in_view = false;
    let width = pane.clientWidth;
    // When a new size is observed, this still has what was in view before.
    this.watched = new IntersectionObserver((entries) => (is_in_view = entries[entries.length - 1].isIntersecting), { root: pane });
    this.sized = new ResizeObserver(() => {
      if (pane.clientWidth === width) return;
      width = pane.clientWidth;
      if (is_in_view) reveal();
    });
    this.sized.observe(pane);
  }

  /** Watch another element. @param {Element | undefined} made */
  watch(made) {
    this.watched.disconnect();
    if (made) this.watched.observe(made);
  }

  close() {
    this.watched.disconnect();
    this.sized.disconnect();
  }
}
