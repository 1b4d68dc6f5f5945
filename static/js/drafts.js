// What is written and not sent yet: kept in this browser and, in a conversation, on the server.

import { box, code, find, main, post, store } from "./page.js";

const PAUSE = 800; // milliseconds
const OF_NEW = "draft:new";
const DRAFT = code ? `draft:${code}` : OF_NEW;
const BEGINS = "begins"; // The identifier of the message that a conversation is to begin with.
let timer = 0;

/** The message that was sent with this identifier, once the server has it. */
export const articleOf = (id) => find(`article[data-client-msg-id="${CSS.escape(id)}"]`);

export const kept = () => store.get(DRAFT);

export function keep() {
  store.set(DRAFT, box.value);
  if (!code) return;
  clearTimeout(timer);
  timer = setTimeout(
    // The browser keeps the draft too: a failure here loses nothing.
    () => post(main.dataset.urlDraft, { text: box.value }).catch(() => undefined),
    PAUSE,
  );
}

/** It was sent, and nothing else has been written since. */
export function drop() {
  clearTimeout(timer);
  store.set(DRAFT, "");
}

/** What is written goes to the server as the first message of a conversation, with this identifier. */
export const begin = (id) => store.set(BEGINS, id);

export function start() {
  if (!articleOf(store.get(BEGINS) || "")) return;
  store.set(BEGINS, "");
  store.set(OF_NEW, "");
}
