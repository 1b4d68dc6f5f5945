// The drawer "What the model sees": shown, hidden, and kept true.

import { all, find, showError } from "./page.js";

const drawer = find("#drawer");
const button = find("#drawer-button");
const body = find("#drawer-body");
let opener = null;
let coming = null; // The latest request for a text that has not come yet.
let outdated = false; // Something has changed since that was asked for.

/** Show it, for the keyboard too; whoever leaves it is back at `from`. */
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

/** What opened it, or what an event has put in its place meanwhile. */
function here(one) {
  if (!one || one.isConnected) return one;
  const asks = one.getAttribute("hx-get");
  return asks && find(`[hx-get="${CSS.escape(asks)}"]:not(#drawer *)`);
}

function reread(shown) {
  htmx.ajax("GET", shown.dataset.refresh, { target: "#drawer-body", swap: "innerHTML" });
}

/** The drawer shows what is true now, unless someone writes in it. */
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

/** The texts that are asked for: only the last one counts, in whatever order they come. */
function follow() {
  document.body.addEventListener("htmx:beforeRequest", ({ detail }) => {
    if (detail.target !== body) return;
    const asked = detail.requestConfig;
    coming = asked;
    outdated = false;
    // htmx tells its end to the button that asked, which a state may have replaced meanwhile.
    detail.xhr.addEventListener("loadend", () => {
      if (asked !== coming) return;
      coming = null;
      if (outdated) refresh();
    });
  });
}

/** Of what is about to be replaced: which view it is, what is unfolded, where the focus is. */
function state() {
  return {
    view: view(),
    unfolded: all("details[open][id]", drawer).map((one) => one.id),
    focused: document.activeElement?.closest("#drawer details[id]")?.id,
  };
}

/** What a button brought may begin with writing; what was reread stays as it was. */
function swapped(wanted, before) {
  if (wanted) find(".edit[open] textarea", drawer)?.focus();
  else if (view() === before.view) {
    for (const id of before.unfolded) document.getElementById(id)?.setAttribute("open", "");
    const focused = before.focused && document.getElementById(before.focused);
    // A text that is written has its focus back already.
    if (focused && !focused.contains(document.activeElement)) find("summary", focused).focus();
  }
}

/** Words that were written and not saved come before anything else, however they were left. */
function goOnWriting(wanted) {
  find(".edit", drawer).open = true;
  find("textarea", drawer).focus();
  if (!wanted.endsWith("edit=1")) showError("Your changes to the summary are not saved. Save or cancel them first.");
}

/** Nobody writes any more: the text itself is shown again, as it is now. */
function read() {
  find(".edit", drawer).open = false;
  find(".edit summary", drawer).focus();
  refresh();
}

export function start() {
  // Before htmx hears of it: pressed again, it closes what it opened.
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
    // What was just saved is no longer being written.
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
    if (event.target !== body) return; // A card for an error, which a form in it has met.
    // Since it was asked for it may have been closed, or something else asked for.
    const wanted = !drawer.hidden && event.detail.requestConfig === coming;
    if (!wanted || written()) event.detail.shouldSwap = false;
    if (wanted && asked(event) && written()) goOnWriting(event.detail.requestConfig.path);
    before = state();
  });
  body.addEventListener("htmx:afterSwap", (event) => swapped(asked(event), before));
}
