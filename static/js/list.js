// The list of conversations: its days, and its refreshing. Its menus are in row.js.

import { all, code, find, main, make, post, unloaded } from "./page.js";
import { enhance } from "./feed.js";
import { eventNo } from "./socket.js";

const LOOKS_AGAIN = 15000; // milliseconds, while another conversation is answering
export const DELETED = "deleted";
const undo = find("#undo");
let refreshing = false;
let stale = false;

export const address = (which, command) => `/c/${which}/${command}/`;

/** The heading for a conversation's day, in the reader's zone. */
function groupOf(item) {
  if ("pinned" in item.dataset) return "Pinned";
  const date = new Date(find("time", item).dateTime);
  const midnight = new Date().setHours(0, 0, 0, 0);
  const days = Math.ceil((midnight - date) / 86400000);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days <= 7) return "Previous 7 days";
  if (days <= 30) return "Previous 30 days";
  return date.toLocaleString([], { month: "long", year: "numeric" });
}

/** Insert the headings between the days. */
function group() {
  all("#links > .group").forEach((one) => one.remove());
  let last = "";
  for (const item of all("#links > [data-code]")) {
    const name = groupOf(item);
    if (name !== last) item.before(make("li", { className: "group" }, name));
    last = name;
  }
  enhance(find("#links"));
}

/** Load the list again, keeping the scroll position and the focus. */
export async function refresh() {
  // The running request may have been answered before the change: load once more after it.
  stale = refreshing;
  if (refreshing || find("#links .renaming")) return;
  refreshing = true;
  const top = find("#links").scrollTop;
  try {
    const answer = await fetch(`${main.dataset.urlList}?current=${code}`, { headers: { "HX-Request": "true" } });
    if (!answer.ok) return;
    const holder = document.createElement("template");
    holder.innerHTML = await answer.text();
    const list = find("#links", holder.content);
    if (!list || find("#links .renaming")) return;
    const at = document.activeElement;
    const focused = at?.closest?.("#links [data-code]")?.dataset.code;
    const inMenu = at?.matches?.("#links .more");
    find("#links").replaceWith(list);
    group();
    list.scrollTop = top;
    if (focused) find(`[data-code="${focused}"] ${inMenu ? ".more" : "a"}`, list)?.focus();
    if (find("#inside")) import("./inside.js").then(({ renew }) => renew(), () => undefined);
  } catch {
    // Offline: the banner says so, and the list is loaded again on return.
    return;
  } finally {
    refreshing = false;
    if (stale) refresh();
  }
}

/** Put Undo above the account, or above the composer on narrow screens, so that it covers nothing. */
export function placeUndo() {
  find(find("#nav").checkVisibility() ? ".account" : "#composer, #content > *").before(undo);
}

/** Tell the server that everything so far was seen, so that no list marks it as unread. */
export function seen() {
  if (!code || document.hidden) return;
  post(address(code, "seen"), { event_no: eventNo() }).catch(() => undefined);
}

/** Show the browser's notification when a reply ended while the page was in the background. */
export function notify(spoken) {
  if (!("notify" in main.dataset) || !document.hidden) return;
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  const note = new Notification(spoken, { body: find("#title").textContent, tag: code });
  note.addEventListener("click", () => window.focus());
}

/** Load what the menus of the list do, and do it. */
const row = (act) => import("./row.js").then(act, unloaded);

export const actions = Object.fromEntries(
  ["entry", "entry-rename", "entry-pin", "entry-move", "entry-to", "entry-archive", "entry-delete"].map((name) => [name, (button) => row(({ actions: of }) => of[name](button))]),
);

export function start() {
  group();
  const waiting = sessionStorage.getItem(DELETED);
  sessionStorage.removeItem(DELETED);
  if (waiting) row(({ offer }) => offer(JSON.parse(waiting), true));
  find("#settings [action$='/delete/']")?.addEventListener("submit", (event) => {
    event.preventDefault();
    find("#settings").close();
    row(({ remove }) => remove({ which: code, title: find("#title").textContent }));
  });
  find("#nav").addEventListener("dragstart", (event) => import("./moving.js").then(({ drag }) => drag(event.target), () => undefined));
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    seen();
    refresh();
  });
  setInterval(() => {
    const others = all("#links .answering:not([hidden])").some((one) => !one.closest('[aria-current="page"]'));
    if (others && !document.hidden) refresh();
  }, LOOKS_AGAIN);
  seen();
}
