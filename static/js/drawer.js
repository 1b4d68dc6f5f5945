// The drawer "What the model sees": shown, hidden, and kept up to date.

import { all, find, showError } from "./page.js";

const drawer = find("#drawer");
const button = find("#drawer-button");
const body = find("#drawer-body");
let opener = null;
let coming = null; // The latest request whose answer has not come yet.
let outdated = false; // Something has changed since that request.

/** Show the drawer and move the focus into it; closing it returns the focus to `from`. */
export function show(from) {
  if (from) opener = from;
  drawer.hidden = false;
  button.setAttribute("aria-expanded", "true");
  body.focus({ preventScroll: true });
}

export function hide() {
  drawer.hidden = true;
  button.setAttribute("aria-expanded", "false");
  (here(opener) ?? button).focus();
}

/** The button that opened the drawer, or the one that has replaced it since. */
function here(one) {
  if (!one || one.isConnected) return one;
  const asks = one.getAttribute("hx-get");
  return asks && find(`[hx-get="${CSS.escape(asks)}"]:not(#drawer *)`);
}

function reread(shown) {
  htmx.ajax("GET", shown.dataset.refresh, { target: "#drawer-body", swap: "innerHTML" });
}

/** Load the drawer's content again, unless the summary is being edited there. */
export function refresh() {
  const shown = find("[data-refresh]", drawer);
  if (coming) outdated = true;
  else if (!drawer.hidden && shown && !written()) reread(shown);
}

function written() {
  const text = find("textarea", drawer);
  return text !== null && text.value !== text.defaultValue;
}

const view = () => find("[data-refresh]", drawer)?.dataset.refresh;

/** Note each request for the drawer's content: only the last one counts, whatever order they end in. */
function follow() {
  document.body.addEventListener("htmx:beforeRequest", ({ detail }) => {
    if (detail.target !== body) return;
    const asked = detail.requestConfig;
    coming = asked;
    outdated = false;
    // htmx reports the end to the button, which a `state` may have replaced: listen to the request.
    detail.xhr.addEventListener("loadend", () => {
      if (asked !== coming) return;
      coming = null;
      if (outdated) refresh();
    });
  });
}

/** The drawer before a swap: which view, which parts are unfolded, which of them has the focus. */
function state() {
  return {
    view: view(),
    unfolded: all("details[open][id]", drawer).map((one) => one.id),
    focused: document.activeElement?.closest("#drawer details[id]")?.id,
    selected: selected(document.activeElement),
  };
}

/** Begin and end of the selection if `text` is an editor of the drawer that has the focus. */
function selected(text) {
  return text?.matches("#drawer textarea") ? [text.selectionStart, text.selectionEnd] : null;
}

/** Focus an open editor if a person asked for this content; after a refresh, restore folds and focus. */
function swapped(wanted, before) {
  if (wanted) find(".edit[open] textarea", drawer)?.focus();
  else if (view() === before.view) {
    for (const id of before.unfolded) document.getElementById(id)?.setAttribute("open", "");
    const focused = before.focused && document.getElementById(before.focused);
    const text = before.selected && find("textarea", drawer);
    // htmx could not focus it while its part was folded.
    if (text) {
      text.focus();
      text.setSelectionRange(...before.selected);
    } else if (focused && !focused.contains(document.activeElement)) find("summary", focused).focus();
  }
}

/** Return to an unsaved edit of the summary instead of what was asked for. */
function goOnWriting(wanted) {
  find(".edit", drawer).open = true;
  find("textarea", drawer).focus();
  if (!wanted.endsWith("edit=1")) showError("Your changes to the summary are not saved. Save or cancel them first.");
}

/** Close the editor and show the summary as it is now. */
function read() {
  find(".edit", drawer).open = false;
  find(".edit summary", drawer).focus();
  refresh();
}

export function start() {
  // A second press of the button closes the drawer. It is caught before htmx sees it.
  const again = (event) => {
    if (drawer.hidden || (coming?.path ?? view()) !== button.getAttribute("hx-get")) return;
    event.stopImmediatePropagation();
    hide();
  };
  button?.addEventListener("click", again, { capture: true });
  drawer.addEventListener("htmx:afterRequest", (event) => {
    if (!event.detail.successful) return;
    if (event.target.matches("form.act")) reread(find("[data-refresh]", drawer));
    if (event.target.id !== "summary-form") return;
    // It is saved, so no longer counts as an unsaved edit.
    const text = find("textarea", event.target);
    text.defaultValue = text.value;
    read();
  });
  drawer.addEventListener("reset", (event) => {
    const text = find("textarea", event.target);
    text.value = text.defaultValue;
    read();
  });
  follow();
  let before = {};
  const asked = (event) => event.detail.requestConfig.elt !== document.body;
  body.addEventListener("htmx:beforeSwap", (event) => {
    if (event.target !== body) return; // The error card of a form in the drawer.
    // Meanwhile the drawer may have been closed, or other content asked for.
    const wanted = !drawer.hidden && event.detail.requestConfig === coming;
    if (!wanted || written()) event.detail.shouldSwap = false;
    if (wanted && asked(event) && written()) goOnWriting(event.detail.requestConfig.path);
    before = state();
  });
  body.addEventListener("htmx:afterSwap", (event) => swapped(asked(event), before));
}
