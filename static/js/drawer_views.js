// The views of the drawer: their tabs, their address, and reading one again without replacing it.

import { all, find, showError } from "./page.js";
import { enhance } from "./feed.js";

const drawer = find("#drawer");
const body = find("#drawer-body");
const list = find("[role=tablist]", drawer);
const tabs = list ? all("[role=tab]", list) : [];
const OURS = "#sees=";
let chosen = false; // A person has chosen a tab, so the address is to name it.
let left = false; // The way back from a view was taken, and its link with the focus is about to go.
const KEYS = { ArrowRight: 1, ArrowLeft: -1, Home: "first", End: "last" };

/** Put the view into the address, so that a reload and a copied address come back to it. */
function setAddress(hash) {
  if (location.hash === hash) return;
  history.replaceState(history.state, "", location.pathname + location.search + hash);
}

const hasAddress = () => location.hash.startsWith(OURS);

/** Mark the tab of what is shown, or of what it belongs to: a preview is below the summary. */
export function shown() {
  const view = find("[data-tab]", body);
  const now = tabs.find((tab) => tab.id === `sees-${view?.dataset.tab}`);
  for (const tab of tabs) {
    tab.setAttribute("aria-selected", tab === now);
    tab.tabIndex = tab === (now ?? tabs[0]) ? 0 : -1;
  }
  body.setAttribute("aria-labelledby", now?.id ?? "drawer-title");
  if (left) body.focus({ preventScroll: true });
  left = false;
  if (!now) return;
  if (now.id === "sees-reply") follow(now, view.dataset.refresh);
  if (chosen || hasAddress()) setAddress(new URL(now.href).hash);
  chosen = false;
}

/** The tab of replies leads to the one that was asked for last. */
function follow(tab, address) {
  const turn = /turns\/(\d+)\/$/.exec(address)?.[1];
  tab.hash = `${OURS}reply${turn ? `-${turn}` : ""}`;
  if (tab.getAttribute("hx-get") === address) return;
  tab.setAttribute("hx-get", address);
  htmx.process(tab);
}

/** Return to the unsaved `text` of a summary instead of what was `wanted`. */
export function goOnWriting(text, wanted) {
  const folded = text.closest("details");
  if (folded) folded.open = true;
  text.focus();
  if (!wanted.endsWith("edit=1")) showError("Your changes to the summary are not saved. Save or cancel them first.");
}

/** The drawer was closed: a reload should not open it. */
export const closed = () => hasAddress() && setAddress("");

/** Show the view that the address names. */
export function open() {
  const [, name, turn] = /^#sees=(next|summary|versions|reply)(?:-(\d{1,15}))?$/.exec(location.hash) ?? [];
  const tab = find(`#sees-${name ?? "next"}`);
  const path = name === "reply" && turn ? `turns/${turn}/` : tab.getAttribute("hx-get");
  htmx.ajax("GET", path, { source: tab, target: "#drawer-body", swap: "innerHTML" });
}

/** The tab `step` further on, in the order of the screen, beginning again at the ends. */
function at(tab, step) {
  if (step === "first") return tabs[0];
  if (step === "last") return tabs.at(-1);
  const forward = getComputedStyle(list).direction === "rtl" ? -step : step;
  return tabs[(tabs.indexOf(tab) + forward + tabs.length) % tabs.length];
}

list?.addEventListener("keydown", (event) => {
  const tab = event.target.closest("[role=tab]");
  const step = KEYS[event.key];
  if (!tab || event.ctrlKey || event.altKey || event.metaKey || (!step && event.key !== " ")) return;
  event.preventDefault();
  const next = step ? at(tab, step) : tab;
  next.focus();
  next.click();
});
body.addEventListener("click", (event) => {
  left ||= Boolean(event.target.closest(".back a"));
});
list?.addEventListener("click", (event) => {
  chosen ||= Boolean(event.target.closest("[role=tab]"));
});

/** Show `html`, the present view read again, by changing only what differs. False if it is another view. */
export function renew(html) {
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  const [before, now] = [body, fresh.content].map((one) => find("[data-refresh]", one)?.dataset.refresh);
  if (!before || before !== now) return false;
  const focused = document.activeElement;
  const inside = body.contains(focused);
  matchChildren(body, fresh.content);
  htmx.process(body);
  enhance(body);
  if (inside && document.activeElement !== focused) (focused.isConnected ? focused : body).focus({ preventScroll: true });
  return true;
}

/** Make `old` equal to `fresh`. Whether a part is unfolded, and what is selected, is the reader's. */
function match(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  // Times stay in the reader's zone.
  if (old.matches("time[data-local]") && old.dateTime === fresh.dateTime) return;
  for (const { name } of [...old.attributes]) if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  if (!old.matches("textarea")) matchChildren(old, fresh);
  else if (old.defaultValue !== fresh.defaultValue) {
    old.defaultValue = fresh.defaultValue;
    old.value = fresh.defaultValue;
  }
}

/** Elements are the same if their ids are, or if neither has one and they stand at the same place. */
function matchChildren(old, fresh) {
  const known = new Map([...old.children].filter((one) => one.id).map((one) => [one.id, one]));
  const wanted = new Set([...fresh.children].map((one) => one.id));
  const gone = (node) => node?.id && !wanted.has(node.id);
  let here = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    while (gone(here)) {
      const removed = here;
      here = here.nextSibling;
      removed.remove();
    }
    const alike = here && !next.id && !here.id && here.nodeName === next.nodeName;
    const same = next.id ? known.get(next.id) : alike && here;
    if (same?.nodeName !== next.nodeName) {
      old.insertBefore(next, here);
      continue;
    }
    if (same === here) here = here.nextSibling;
    else old.insertBefore(same, here);
    match(same, next);
  }
  while (here) {
    const removed = here;
    here = here.nextSibling;
    removed.remove();
  }
}
