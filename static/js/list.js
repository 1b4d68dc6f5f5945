// The list of conversations: rename, pin, archive, delete with Undo; and its refreshing.

import { all, code, find, main, make, post, showError } from "./page.js";
import { enhance } from "./feed.js";
import { eventNo } from "./socket.js";

const LOOKS_AGAIN = 15000; // milliseconds, while another conversation is answering
const UNDO_FOR = 12000;
const DELETED = "deleted";
const entry = find("#entry");
const undo = find("#undo");
let chosen = {}; // The conversation whose menu is open: {which, title, pinned}.
let refreshing = false;
let stale = false;
let undoTimer = 0;

const address = (which, command) => `/c/${which}/${command}/`;

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
  if (refreshing) return;
  refreshing = true;
  const focused = document.activeElement?.closest?.("#links [data-code]")?.dataset.code;
  const inMenu = document.activeElement?.matches?.("#links .more");
  const top = find("#links").scrollTop;
  try {
    const answer = await fetch(`${main.dataset.urlList}?current=${code}`, { headers: { "HX-Request": "true" } });
    if (!answer.ok) return;
    const holder = document.createElement("template");
    holder.innerHTML = await answer.text();
    const list = find("#links", holder.content);
    if (!list) return;
    find("#links").replaceWith(list);
    group();
    list.scrollTop = top;
    if (focused) find(`[data-code="${focused}"] ${inMenu ? ".more" : "a"}`, list)?.focus();
  } catch {
    // Offline: the banner says so, and the list is loaded again on return.
    return;
  } finally {
    refreshing = false;
    if (stale) refresh();
  }
}

export function open(button) {
  const item = button.closest("[data-code]");
  chosen = { which: item.dataset.code, title: find("a > span", item).textContent, pinned: "pinned" in item.dataset };
  find("#entry-title").value = chosen.title;
  find("[data-action=entry-pin]", entry).textContent = chosen.pinned ? "Unpin" : "Pin";
  entry.showModal();
  find("#entry-title").select();
}

async function done(command, fields = {}) {
  entry.close();
  const answer = await post(address(chosen.which, command), fields).catch(() => ({ ok: false, json: {} }));
  if (!answer.ok) showError(answer.json.error?.message || "That did not work. Try again in a moment.");
  return answer.ok;
}

async function changed(command, fields) {
  if (await done(command, fields)) await refresh();
}

/** Put Undo above the account, or above the composer on narrow screens, so that it covers nothing. */
export function placeUndo() {
  find(find("#nav").checkVisibility() ? ".account" : "#composer").before(undo);
}

/** Offer Undo for a while after archiving or deleting. `wasRead`: Undo opens the conversation again. */
function offer({ which, title, back, words }, wasRead) {
  const button = make("button", { type: "button", className: "link" }, "Undo");
  button.addEventListener("click", async () => {
    undo.hidden = true;
    const answer = await post(address(which, back), {}).catch(() => ({ ok: false }));
    if (!answer.ok) return showError("Undo did not work. Reload the page and try again.");
    if (wasRead) return location.assign(`/c/${which}/`);
    await refresh();
    return find(`#links [data-code="${which}"] a`)?.focus();
  });
  undo.replaceChildren(`${words} “${title}”. `, button);
  placeUndo();
  undo.hidden = false;
  clearTimeout(undoTimer);
  undoTimer = setTimeout(() => (undo.hidden = true), UNDO_FOR);
}

async function away(command, back, words) {
  const item = { ...chosen, back, words };
  if (!(await done(command))) return;
  if (item.which === code) {
    sessionStorage.setItem(DELETED, JSON.stringify(item));
    location.assign(main.dataset.urlList);
    return;
  }
  offer(item);
  await refresh();
}

const remove = () => away("delete", "undelete", "Deleted");

export const actions = {
  entry: open,
  "entry-pin": () => changed(chosen.pinned ? "unpin" : "pin"),
  "entry-archive": () => away("archive", "unarchive", "Archived"),
  "entry-delete": remove,
};

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

export function start() {
  group();
  const waiting = sessionStorage.getItem(DELETED);
  sessionStorage.removeItem(DELETED);
  if (waiting) offer(JSON.parse(waiting), true);
  find("#entry-rename").addEventListener("submit", (event) => {
    event.preventDefault();
    changed("settings", { title: find("#entry-title").value });
  });
  find("#settings [action$='/delete/']")?.addEventListener("submit", (event) => {
    event.preventDefault();
    find("#settings").close();
    chosen = { which: code, title: find("#title").textContent };
    remove();
  });
  entry.addEventListener("close", () => find(`#links [data-code="${chosen.which}"] .more`)?.focus());
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
