// The actions on one message: pin, branch, compress up to it, and show what its reply saw.

import { GIVES_UP, code, find, main, post, showError, unloaded } from "./page.js";
import * as drawer from "./drawer.js";
import * as settings from "./settings.js";
import { signedOut } from "./socket.js";

const menu = find("#acts");
let chosen = null;
let opener = null;

/** POST a command by htmx, after those before it. Its answer, an error card for instance, goes where the server says. */
export const command = (path, values = {}) => htmx.ajax("POST", path, { values, swap: "none", source: "#sink", target: "#sink" });

const item = (name) => find(`[data-action="${name}"]`, menu);

function open(button) {
  chosen = button.closest("article");
  opener = button;
  item("pin").textContent = "pinned" in chosen.dataset ? "Unpin" : "Pin";
  item("range").hidden = item("compress-here").hidden = "beneath" in chosen.dataset;
  item("manifest").hidden = !chosen.dataset.turn;
  import("./menu.js").then(({ show }) => show(menu, button), unloaded);
}

function close() {
  menu.hidePopover();
  opener?.focus();
}

/** The seq of a button's message: the one it names, the menu's, or the one it stands in. */
const seqOf = (button) => button.dataset.seq || (menu.contains(button) ? chosen : button.closest("article")).dataset.seq;

export const actions = {
  "message-menu": open,
  pin() {
    close();
    command(`messages/${chosen.dataset.seq}/${"pinned" in chosen.dataset ? "unpin" : "pin"}/`);
  },
  branch(button) {
    command("branch/", { seq: seqOf(button) });
  },
  "compress-here"() {
    close();
    command("compact/", { through_seq: chosen.dataset.seq });
  },
  range() {
    close();
    drawer.show(opener);
    htmx.ajax("GET", `preview/?from=${chosen.dataset.seq}`, { target: "#drawer-body", swap: "innerHTML" });
  },
  manifest() {
    close();
    drawer.show(opener);
    htmx.ajax("GET", `turns/${chosen.dataset.turn}/`, { target: "#drawer-body", swap: "innerHTML" });
  },
  "continue-in-new": () => command("continue-in-new/"),
  model() {
    const select = find("#model");
    if (!select) return showError("There is only one model here. Whoever runs this server can add others.");
    if (!select.checkVisibility()) return settings.open("#settings-model");
    select.focus();
    // Not every browser opens a select by script; there the focus must do.
    if (navigator.userActivation?.isActive) select.showPicker?.();
    return undefined;
  },
};

/** Show why the server refused a message, and what can be done. */
export function refusal({ status, json: { error } }) {
  if (status === 401) return signedOut();
  const buttons = [];
  if (error?.code === "too_large" || error?.code === "blocked") {
    if (code) buttons.push({ label: "Continue in a new conversation", "data-action": "continue-in-new" });
    buttons.push({ label: "Change model", "data-action": "model" });
  }
  return showError(error?.message || "The server could not take this message. Your text is kept.", error?.retry_after, buttons);
}

/** Create a conversation with a message and open it. False if that failed; a card says why. */
export async function sendElsewhere(url, fields) {
  const answer = await post(url, fields, AbortSignal.timeout(GIVES_UP)).catch(() => null);
  if (answer?.ok) location.assign(`${main.dataset.urlCreate}${answer.json.code}/`);
  else if (answer) refusal(answer);
  else showError("No connection. Your text is kept; send it again in a moment.");
  return Boolean(answer?.ok);
}

/** Send a text in a branch that continues after message `seq`. */
export const sendAsBranch = (text, seq, id, more = {}) =>
  sendElsewhere(`${main.dataset.urlPage}branch/`, { text, seq, client_msg_id: id, ...more });
