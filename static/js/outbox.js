// Messages being sent: shown at once, kept in this browser, delivered one by one.

import { GIVES_UP, all, code, copy, feed, find, main, make, post, showError, store } from "./page.js";
import * as drafts from "./drafts.js";
import { placeDivider } from "./feed.js";

const NOT_CONFIRMED = 5000; // milliseconds until a message is marked “Not sent”
const SENDING = `sending:${code}`;
const list = []; // Of this page, oldest first: {id, text}.
let line = Promise.resolve(); // One delivery at a time.
let flight = null; // Aborts the delivery of the first.
let writer = null; // The composer's callbacks: acknowledged, refused, seen.

const stored = () => [].concat(JSON.parse(store.get(SENDING) || "[]"));
const keep = (messages) => store.set(SENDING, messages.length ? JSON.stringify(messages) : "");

export const pendingOf = (id) => find(`.pending[data-sending="${CSS.escape(id)}"]`);

function articleFor({ id, text }) {
  const article = make(
    "article",
    { className: "message user pending", "data-sending": id, "aria-label": "You" },
    make("header", {}, make("h2", {}, "You")),
    make("div", { className: "body verbatim" }, text),
    make("p", { className: "unsent", hidden: true }, "Not sent "),
  );
  const retry = make("button", { type: "button", className: "link" }, "Retry");
  const take = make("button", { type: "button", className: "link" }, "Copy");
  retry.addEventListener("click", resend);
  take.addEventListener("click", () => copy(text, take));
  find(".unsent", article).append(retry, " ", take);
  return article;
}

/** Show or hide “Not sent” on all messages here: the others wait for one that is late. */
function say(unsent) {
  for (const { id } of list) {
    const article = pendingOf(id);
    if (article) find(".unsent", article).hidden = !unsent;
  }
}

function forget(message) {
  list.splice(list.indexOf(message), 1);
  keep(stored().filter((one) => one.id !== message.id));
}

/** Deliver one message; true if the server has it. Repeating is safe: its identifier is stored once. */
async function deliver(message) {
  const { id, text } = message;
  say(false);
  const late = setTimeout(say, NOT_CONFIRMED, true);
  flight = new AbortController();
  const signal = AbortSignal.any([flight.signal, AbortSignal.timeout(GIVES_UP)]);
  try {
    const answer = await post(main.dataset.urlSend, { text, client_msg_id: id, last_seen_seq: writer.seen() }, signal);
    const error = answer.json.error;
    if (answer.ok) {
      say(false);
      forget(message);
      writer.acknowledged(id, answer.json);
      return true;
    }
    if (answer.status < 500 || (error && !error.retryable)) {
      forget(message);
      pendingOf(id)?.remove();
      writer.refused(id, text, answer);
    } else if (error) showError(error.message); // Keep it: it is sent again, and stored once.
  } catch {
    // No connection: it is sent again when there is one.
  } finally {
    clearTimeout(late);
  }
  say(true);
  return false;
}

/** Deliver in the order of writing; stop at the first that fails. */
const run = async () => {
  while (list.length && (await deliver(list[0])));
};

function show(message) {
  list.push(message);
  feed.append(articleFor(message));
  find("#empty")?.remove();
  placeDivider();
}

export function put(id, text) {
  keep([...stored(), { id, text }]);
  show({ id, text });
  line = line.then(run);
}

/** Send again what is marked “Not sent”: after a reconnection, or by Retry. */
export function resend() {
  if (!all(".pending .unsent:not([hidden])").length) return;
  flight?.abort(); // Its connection is gone.
  line = line.then(run);
}

/** True if this text is being sent. */
export const holds = (text) => list.some((one) => one.text === text);

export function start(callbacks) {
  writer = callbacks;
  if (!code) return;
  const missing = stored().filter(({ id }) => !drafts.articleOf(id));
  keep(missing);
  missing.forEach(show);
  line = line.then(run);
  addEventListener("online", resend);
}
