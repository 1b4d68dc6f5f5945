// Around the conversation, on each page with the list: navigation, menus, palette and theme.

import { all, find, main, post, unloaded } from "./page.js";
import * as list from "./list.js";

const THEMES = ["system", "light", "dark"];
const root = document.documentElement;
const dialog = find("#nav-dialog");
const palette = find("#palette");
const nav = find("#nav");
const home = nav.parentElement;

function setTheme(name) {
  if (name === "system") delete root.dataset.theme;
  else root.dataset.theme = name;
  find("#theme-name").textContent = name;
  // Stored for the person, on every device. Offline it changes this page only.
  post(main.dataset.urlSettings, { theme: name }).catch(() => undefined);
}

/** Open the palette at once, so that no letter is lost while its script is fetched. */
function search(_, event) {
  if (event?.ctrlKey || event?.metaKey) return; // A link like any other: a new tab.
  event?.preventDefault();
  if (palette.open) return palette.close();
  dialog.close();
  if (find("dialog[open]")) return undefined; // One question at a time.
  palette.showModal();
  return import("./palette.js").then(({ open }) => open(), () => {
    palette.close();
    unloaded();
  });
}

export const actions = {
  nav() {
    dialog.append(nav);
    dialog.showModal();
  },
  "close-nav": () => dialog.close(),
  "close-dialog": (button) => button.closest("dialog").close(),
  palette: search,
  help() {
    all(":popover-open").forEach((one) => one.hidePopover());
    dialog.close();
    find("#help").showModal();
  },
  theme: () => setTheme(THEMES[(THEMES.indexOf(root.dataset.theme || "system") + 1) % THEMES.length]),
  ...list.actions,
};

const APPLE = /Mac|iPhone|iPad/.test(navigator.platform);

/** True for Ctrl+K or ⌘K. */
export const isSearch = (event) => (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.code === "KeyK";

export function start() {
  list.start();
  if (APPLE) find("#search kbd").textContent = "⌘K";
  dialog.addEventListener("close", () => {
    if (dialog.open) return; // Reopened before this event arrived.
    home.prepend(nav);
    list.placeUndo();
  });
  for (const one of [dialog, palette]) one.addEventListener("click", (event) => event.target === one && one.close());
  // What moves through menus, and what follows a finger, is loaded with the first of them.
  const once = { capture: true, once: true, passive: true };
  document.addEventListener("beforetoggle", () => import("./menu.js").catch(() => undefined), once);
  document.addEventListener("touchstart", () => import("./swipe.js").catch(() => undefined), once);
}
