// The drawer "What the model sees": shown, hidden, and kept true.

import { all, find } from "./page.js";

const drawer = find("#drawer");
let opener = null;

/** Show it; whoever leaves it is back at `button`. */
export function show(button) {
  if (button) opener = button;
  drawer.hidden = false;
  find("#drawer-button").setAttribute("aria-expanded", "true");
}

export function hide() {
  drawer.hidden = true;
  find("#drawer-button").setAttribute("aria-expanded", "false");
  if (opener?.isConnected) opener.focus();
}

/** Read it anew; what was unfolded stays so, and the focus where it was. */
async function reread(shown) {
  const unfolded = all("details[open][id]", shown).map((one) => one.id);
  const focused = document.activeElement?.closest("#drawer details[id]")?.id;
  await htmx.ajax("GET", shown.dataset.refresh, { target: "#drawer-body", swap: "innerHTML" });
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  if (focused) find(`#${focused} > summary`)?.focus();
}

/** The drawer shows what is true now, unless someone reads or writes in it. */
export function refresh() {
  const shown = find("[data-refresh]", drawer);
  const written = find("textarea", drawer);
  if (drawer.hidden || !shown || find("details[open]:not(.edit)", shown)) return;
  if (written && written.value !== written.defaultValue) return;
  reread(shown);
}

export function start() {
  drawer.addEventListener("htmx:afterRequest", (event) => {
    if (!event.detail.successful) return;
    if (event.target.matches("form.act")) reread(find("[data-refresh]", drawer));
    if (event.target.id !== "summary-form") return;
    // What was just saved is no longer being written.
    const text = find("textarea", event.target);
    text.defaultValue = text.value;
    refresh();
  });
}
