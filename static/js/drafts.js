// Drafts: kept in this browser and, once there is a conversation, on the server too.

import { all, box, code, find, main, post, store } from "./page.js";

const PAUSE = 800; // milliseconds
const OF_NEW = "draft:new";
const DRAFT = code ? `draft:${code}` : OF_NEW;
const BEGUN = "begun"; // The fields of the last attempt to begin a conversation.
let timer = 0;

/** The stored message with this client_msg_id, if the page has it. */
export const articleOf = (id) => find(`article[data-client-msg-id="${CSS.escape(id)}"]`);

export const kept = () => store.get(DRAFT);

export function keep() {
  store.set(DRAFT, box.value);
  if (!code && !box.value) store.set(BEGUN, "");
  if (!code) return;
  clearTimeout(timer);
  timer = setTimeout(
    // The browser keeps the draft too: a failure here loses nothing.
    () => post(main.dataset.urlDraft, { text: box.value }).catch(() => undefined),
    PAUSE,
  );
}

/** Cancel the pending save to the server, as the text is being sent. */
export const hold = () => clearTimeout(timer);

/** Delete the draft: it was sent, and nothing has been written since. */
export function drop() {
  hold();
  store.set(DRAFT, "");
}

/** Keep the fields with which a conversation is being created. */
export const begin = (fields) => store.set(BEGUN, JSON.stringify(fields));

/** These fields, until the first message is seen in its conversation. */
export const begun = () => JSON.parse(store.get(BEGUN) || "{}");

export function start() {
  const fields = begun();
  if (articleOf(fields.client_msg_id)) {
    store.set(BEGUN, "");
    store.set(OF_NEW, "");
  } else if (!code && kept()) {
    // The first message was refused or its answer lost, and the page was reloaded: fill in the form.
    for (const field of all("#model, #begin-prompt")) {
      if (!fields[field.name]) continue;
      field.value = fields[field.name];
      if (field.selectedIndex < 0) field.value = ""; // This model is no longer offered.
      const around = field.closest("details");
      if (around) around.open = true;
    }
  }
}
