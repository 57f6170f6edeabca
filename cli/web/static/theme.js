// Light or dark: as the system has it, until a person chooses.

const root = document.documentElement;

/** Apply the theme that was chosen before. */
export function applyTheme() {
  const kept = localStorage.getItem("theme");
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
}

/** Switch between light and dark, and keep the choice. */
export function switchTheme() {
  const is_dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = is_dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
}
