// A conversation of the list: its menu, another title, and Undo after archiving and deleting.

import { code, comeBack, find, main, make, onEscape, post, showError, unloaded } from "./page.js";
import { DELETED, address, placeUndo, refresh } from "./list.js";
import { show } from "./menu.js";

const UNDO_FOR = 12000; // milliseconds
const entry = find("#entry");
const undo = find("#undo");
let chosen = {}; // The conversation whose menu is open: {which, title, pinned}.
let undoTimer = 0;

function open(button) {
  const item = button.closest("[data-code]");
  chosen = { which: item.dataset.code, title: find("a > span", item).textContent, pinned: "pinned" in item.dataset, project: item.dataset.in };
  find("[data-action=entry-pin] span", entry).textContent = chosen.pinned ? "Unpin" : "Pin";
  show(entry, button);
}

const rowOf = (which) => find(`#links [data-code="${which}"]`);

/** Write another title in the row itself. The list is not replaced meanwhile. */
function rename() {
  entry.hidePopover();
  const { which, title } = chosen;
  const row = rowOf(which);
  const input = make("input", { value: title, maxLength: 200, autocomplete: "off", "aria-label": "Title" });
  const form = make("form", { className: "renaming" }, input);
  let gone = false; // Removing the form takes the focus from it, which would remove it again.
  const leave = async () => {
    const focused = form.contains(document.activeElement);
    if (!gone) {
      gone = true;
      form.remove();
    }
    await refresh();
    if (focused) comeBack(find(".more", rowOf(which) ?? row));
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await done("settings", { title: input.value })) await leave();
  });
  form.addEventListener("focusout", () => gone || leave());
  onEscape(form, leave);
  row.append(form);
  input.focus();
  input.select();
}

async function done(command, fields = {}) {
  entry.hidePopover();
  const answer = await post(address(chosen.which, command), fields).catch(() => ({ ok: false, json: {} }));
  if (!answer.ok) showError(answer.json.error?.message || "That did not work. Try again in a moment.");
  return answer.ok;
}

async function changed(command, fields) {
  if (await done(command, fields)) await refresh();
}

/** Offer Undo for a while after archiving or deleting. `wasRead`: Undo opens the conversation again. */
export function offer({ which, title, back, words, fields = {} }, wasRead) {
  const button = make("button", { type: "button", className: "link" }, "Undo");
  button.addEventListener("click", async () => {
    undo.hidden = true;
    const answer = await post(address(which, back), fields).catch(() => ({ ok: false }));
    if (!answer.ok) return showError("Undo did not work. Reload the page and try again.");
    if (wasRead) return location.assign(`/c/${which}/`);
    await refresh();
    return comeBack(find(`#links [data-code="${which}"] a`));
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

/** Delete a conversation, whose page may be this one. */
export function remove(item) {
  chosen = item;
  return away("delete", "undelete", "Deleted");
}

export const actions = {
  entry: open,
  "entry-rename": rename,
  "entry-pin": () => changed(chosen.pinned ? "unpin" : "pin"),
  "entry-move": () => import("./moving.js").then(({ choose }) => choose(chosen, find(".more", rowOf(chosen.which))), unloaded),
  "entry-to": (button) => import("./moving.js").then(({ move }) => move(chosen, button.value), unloaded),
  "entry-archive": () => away("archive", "unarchive", "Archived"),
  "entry-delete": () => remove(chosen),
};

// The list may have been replaced since, and with it the button that had the focus.
entry.addEventListener("toggle", (event) => {
  if (event.newState === "closed" && document.activeElement === document.body) find(".more", rowOf(chosen.which) ?? entry)?.focus();
});
