// What is written and not sent yet: kept in this browser and, in a conversation, on the server.

import { all, box, code, find, main, post, store } from "./page.js";

const PAUSE = 800; // milliseconds
const OF_NEW = "draft:new";
const DRAFT = code ? `draft:${code}` : OF_NEW;
const BEGUN = "begun"; // The fields that a conversation was last to begin with.
let timer = 0;

/** The message that was sent with this identifier, once the server has it. */
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

/** What is on its way is not kept behind it. */
export const hold = () => clearTimeout(timer);

/** It was sent, and nothing else has been written since. */
export function drop() {
  hold();
  store.set(DRAFT, "");
}

/** What is written goes to the server as the first message of a conversation, in these fields. */
export const begin = (fields) => store.set(BEGUN, JSON.stringify(fields));

/** These fields, until the message is seen in its conversation. */
export const begun = () => JSON.parse(store.get(BEGUN) || "{}");

export function start() {
  const fields = begun();
  if (articleOf(fields.client_msg_id)) {
    store.set(BEGUN, "");
    store.set(OF_NEW, "");
  } else if (!code && kept()) {
    // It was refused, or its answer was lost, and the page was loaded again.
    for (const field of all("#model, #begin-prompt")) {
      if (!fields[field.name]) continue;
      field.value = fields[field.name];
      if (field.selectedIndex < 0) field.value = ""; // No such model is there any more.
      const around = field.closest("details");
      if (around) around.open = true;
    }
  }
}
