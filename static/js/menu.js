// Menus: opened beside a button, moved through by the arrow keys. Loaded with the first.

import { all, find } from "./page.js";

const items = (menu) => all("a, button", menu).filter((one) => one.checkVisibility());
let left = null; // The button of the menu that this press of a pointer has closed.
let pressing = false; // False while keys are pressed.

/** Open `menu` beside its button. */
export function show(menu, button) {
  menu.showPopover();
  button.setAttribute("aria-expanded", "true");
  const at = button.getBoundingClientRect();
  const below = at.bottom + menu.offsetHeight < innerHeight;
  menu.style.left = `${Math.max(8, Math.min(at.left, innerWidth - menu.offsetWidth - 8))}px`;
  menu.style.top = `${below ? at.bottom : Math.max(8, at.top - menu.offsetHeight)}px`;
  items(menu)[0].focus();
  const closed = (event) => {
    if (event.newState !== "closed") return;
    menu.removeEventListener("beforetoggle", closed);
    button.setAttribute("aria-expanded", "false");
    left = pressing && button;
  };
  menu.addEventListener("beforetoggle", closed);
}

const began = (event) => {
  left = null;
  pressing = event.type === "pointerdown";
};
for (const name of ["pointerdown", "keydown"]) document.addEventListener(name, began, { capture: true });
// A second press of the button has closed its menu already, and does not open it again.
document.addEventListener("click", (event) => {
  if (left && left.contains(event.target)) event.stopPropagation();
  left = null;
}, { capture: true });
document.addEventListener("keydown", (event) => {
  const menu = find(":popover-open");
  if (!menu || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Tab") menu.hidePopover(); // The focus goes on from the menu's button.
  const list = items(menu);
  const at = list.indexOf(document.activeElement);
  const before = at < 0 ? list.length - 1 : at - 1 + list.length;
  const next = { ArrowDown: at + 1, ArrowUp: before, Home: 0, End: list.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  list[next % list.length].focus();
});
