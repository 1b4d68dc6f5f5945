// The list of conversations: rename, pin, archive, delete with undo; kept fresh.

import { all, code, find, main, make, post, showError } from "./page.js";
import { enhance } from "./feed.js";
import { eventNo } from "./socket.js";

const LOOKS_AGAIN = 15000; // milliseconds, while another conversation is answering
const UNDO_FOR = 12000;
const DELETED = "deleted";
const entry = find("#entry");
const undo = find("#undo");
let chosen = {}; // The conversation that something is done with: which, title, pinned.
let refreshing = false;
let stale = false;
let undoTimer = 0;

const address = (which, command) => `/c/${which}/${command}/`;

/** The heading that a day stands under, in the reader's zone. */
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

/** Headings between the days. */
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

/** Read the list anew; where the reader is in it stays. */
export async function refresh() {
  // What is on its way may have been read before the change.
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
    // Offline: the banner says so, and the list is read again when the page is back.
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
  if (!answer.ok) showError(answer.json.error?.message || "That was not done. Try again in a moment.");
  return answer.ok;
}

async function changed(command, fields) {
  if (await done(command, fields)) await refresh();
}

/** Above what is at the bottom where the reader is, so that it lies on nothing. */
export function placeUndo() {
  find(find("#nav").checkVisibility() ? ".account" : "#composer").before(undo);
}

/** What was put away can be had back for a while; whoever was reading it is led back to it. */
function offer({ which, title, back, words }, wasRead) {
  const button = make("button", { type: "button", className: "link" }, "Undo");
  button.addEventListener("click", async () => {
    undo.hidden = true;
    const answer = await post(address(which, back), {}).catch(() => ({ ok: false }));
    if (!answer.ok) return showError("That could not be undone. Reload the page and try again.");
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

/** The reader has seen this conversation as it is now; nobody is told of an unread reply. */
export function seen() {
  if (!code || document.hidden) return;
  post(address(code, "seen"), { event_no: eventNo() }).catch(() => undefined);
}

/** A word from the browser when a reply ended and nobody was looking. */
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
