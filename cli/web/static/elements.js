// Elements made without preact, for diffs that are too large for a virtual tree. Every text is set as text, not as HTML.

/**
 * Make an element. A property that begins with "on" is a listener, "class" and others are attributes; false and null
 * leave an attribute out.
 * @param {string} name @param {Record<string, unknown>} properties @param {(Node | string)[]} children
 * @returns {HTMLElement}
 */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (typeof value === "function") made.addEventListener(key.slice(2), /** @type {EventListener} */ (value));
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, String(value));
  }
  made.append(...children);
  return made;
}

/** Make a button. @param {string} text @param {() => void} act @param {Record<string, unknown>} [properties] */
export function button(text, act, properties = {}) {
  return element("button", { type: "button", onclick: act, ...properties }, text);
}
