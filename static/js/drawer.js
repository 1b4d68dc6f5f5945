// The drawer "What the model sees": shown, hidden, and kept up to date.

import { all, comeBack, find } from "./page.js";

const drawer = find("#drawer");
const button = find("#drawer-button");
const body = find("#drawer-body");
let opener = null;
let coming = null; // The latest request whose answer has not come yet.
let outdated = false; // Something has changed since that request.
let views = null; // The module that the open drawer needs, loaded when it is first shown.
let late = false; // Something was read again before that module was there.

/** Make the drawer visible. `then` is called with the module of its views. */
function reveal(then) {
  drawer.hidden = false;
  button.setAttribute("aria-expanded", "true");
  import("./drawer_views.js").then((module) => {
    views = module;
    views.shown();
    then?.(views);
    if (late) refresh();
    late = false;
  }).catch(() => undefined); // Without it the drawer still shows what is asked for.
}

/** Show the drawer and move the focus into it; closing it returns the focus to `from`. */
export function show(from) {
  if (from) opener = from;
  reveal();
  body.focus({ preventScroll: true });
}

export function hide() {
  drawer.hidden = true;
  button.setAttribute("aria-expanded", "false");
  views?.closed();
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

/** The first field with something unsaved. */
const changed = () =>
  all("textarea, input:not([type=hidden])", drawer).find((one) => one.value !== one.defaultValue || one.checked !== one.defaultChecked);

/** Whether something in the drawer is unsaved, or a line is being edited. */
const written = () => Boolean(changed() ?? find(".editing", drawer));

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

/** After a swap: focus an editor that a person asked for, and name the view. */
function swapped(wanted) {
  if (wanted) {
    drawer.scrollTop = 0;
    comeBack(find(".edit[open] textarea", drawer));
  }
  views?.shown();
}

/** Close the editor and show the summary as it is now. */
function read() {
  find(".edit", drawer).open = false;
  comeBack(find(".edit summary", drawer));
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
  if (button && location.hash.startsWith("#sees=")) reveal((module) => module.open());
  const asked = (event) => event.detail.requestConfig.elt !== document.body;
  body.addEventListener("htmx:beforeSwap", (event) => {
    if (event.target !== body) return; // The error card of a form in the drawer.
    // Meanwhile the drawer may have been closed, or other content asked for.
    const wanted = !drawer.hidden && event.detail.requestConfig === coming;
    if (!wanted || written()) event.detail.shouldSwap = false;
    if (wanted && asked(event) && written()) views?.goOnWriting(changed() ?? find(".editing textarea", drawer), event.detail.requestConfig.path);
    // What is read again is brought up to date in place: focus, selection, folds and scroll stay.
    else if (wanted && !asked(event) && !written()) {
      late = !views && event.detail.requestConfig.path === view();
      if (late || views?.renew(event.detail.serverResponse)) event.detail.shouldSwap = false;
    }
  });
  body.addEventListener("htmx:afterSwap", (event) => swapped(asked(event)));
}
