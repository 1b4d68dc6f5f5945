// The message box, and the answers to what is sent from it.

import { all, box, clearErrors, code, comeBack, composer, feed, find, fit, main, showError, uuid } from "./page.js";
import * as drafts from "./drafts.js";
import * as outbox from "./outbox.js";
import { question } from "./scroll.js";
import { refusal, sendAsBranch, sendElsewhere } from "./message.js";

const send = find(".send", composer);
const stop = find(".stop", composer);
const compact = find(".compact", composer);
const identifier = find("[name=client_msg_id]", composer);
let seen = 0;

export const isLocked = () => Boolean(find("#lock [data-locked]"));
export const isOpen = () => Boolean(find("#turn-state [data-open]"));

/** Set the lock and the buttons from the page's state. Called after each change from the server. */
export function applyState() {
  // Sent with each message, so that the server notices when another tab has gone on.
  seen = Math.max(seen, Number(all("article[data-seq]", feed).at(-1)?.dataset.seq || 0));
  const locked = isLocked();
  const open = isOpen();
  box.readOnly = locked;
  send.disabled = locked;
  if (stop) {
    const hadFocus = document.activeElement === stop || document.activeElement === send;
    stop.hidden = !open;
    send.hidden = open && !box.value.trim();
    if (hadFocus && (stop.hidden || send.hidden)) box.focus();
    if (locked && document.activeElement === compact) box.focus();
    compact.disabled = locked;
  }
  find("#scroller")?.toggleAttribute("data-answering", open);
  find('[aria-current="page"] .answering')?.toggleAttribute("hidden", !open);
}

export function write(text, focus = () => box.focus()) {
  box.value = text;
  fit(box);
  drafts.keep();
  applyState();
  focus(box);
}

function acknowledged(id, result) {
  if (!box.value.trim()) drafts.drop();
  if (result.reply_seq) seen = Math.max(seen, result.reply_seq);
  // The server shows a queued message above the box, where it can be changed.
  if (result.queued) outbox.pendingOf(id)?.remove();
}

/** The conversation has newer messages, from another tab perhaps: the writer chooses what to do. */
function movedOn(id, text, message) {
  const before = seen;
  const card = showError(message, 0, [
    { label: "Show", "data-action": "reload" },
    { label: "Send as branch" },
  ]);
  const [, branch] = all(".buttons button", card);
  card.classList.add("amber");
  branch.addEventListener("click", async () => {
    // The text may have been changed since; a changed text needs a new identifier.
    const words = box.value;
    if (!words.trim()) return;
    branch.disabled = true;
    drafts.hold();
    if (await sendAsBranch(words, before, words === text ? id : uuid(), { clears_draft: true })) write("");
    else drafts.keep();
    branch.disabled = false;
  });
}

function refused(id, text, answer) {
  // Put it before any text written meanwhile. After a reload it may be there already.
  if (!box.value.includes(text)) write(box.value.trim() ? `${text}\n${box.value}` : text, comeBack);
  const { error } = answer.json;
  if (error?.code === "moved_on") movedOn(id, text, error.message);
  else refusal(answer);
}

/** Create the conversation with its first message. If that is refused, the form stays as it was. */
async function begin() {
  clearErrors();
  const before = drafts.begun();
  // The answer may have been lost: the same text keeps its identifier, another text gets a new one.
  if (before.text) identifier.value = before.text === box.value ? before.client_msg_id : uuid();
  const fields = Object.fromEntries(new FormData(composer));
  delete fields.csrfmiddlewaretoken;
  drafts.begin(fields);
  box.readOnly = send.disabled = true;
  const begun = await sendElsewhere(main.dataset.urlCreate, fields);
  applyState();
  if (!begun) comeBack(box);
}

export function submit() {
  const text = box.value;
  if (!text.trim() || box.readOnly) return; // Locked, or already on its way.
  if ([...text].length > Number(main.dataset.maxLength)) {
    showError(`This message has ${[...text].length.toLocaleString()} characters; at most ${Number(main.dataset.maxLength).toLocaleString()} are allowed. Nothing was sent.`);
    return;
  }
  if (!code) {
    begin();
    return;
  }
  // What is sent is shown at the end, so the end must be here.
  if (find("#newer")) {
    import("./jump.js").then(({ toTail }) => toTail()).then((there) => there && submit());
    return;
  }
  const id = identifier.value;
  identifier.value = uuid();
  clearErrors();
  box.value = "";
  fit(box);
  outbox.put(id, text);
  // While a reply is written the message is queued: do not scroll away from that reply.
  if (!isOpen()) question();
  applyState();
}

export function start() {
  drafts.start();
  outbox.start({ acknowledged, refused, seen: () => seen });
  const kept = drafts.kept();
  const waiting = find("#queued q")?.textContent.trim();
  if (kept && !box.value && !outbox.holds(kept) && kept.trim() !== waiting) box.value = kept;
  box.addEventListener("input", () => {
    fit(box);
    drafts.keep();
    applyState();
  });
  fit(box);
  applyState();
  // Not on touch screens, where a keyboard would open, nor when the address names a message.
  if (!location.hash && matchMedia("(hover: hover)").matches) {
    box.selectionStart = box.value.length;
    box.focus({ preventScroll: true });
  }
}
