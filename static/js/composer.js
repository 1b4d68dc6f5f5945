// The box in which messages are written, and what becomes of what is sent.

import { all, box, clearErrors, code, composer, feed, find, fit, main, showError, uuid } from "./page.js";
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

/** Lock and buttons as the page says; called after each change from the server. */
export function applyState() {
  // Whoever writes in one tab is told when the conversation went on in another.
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
  send.title = open ? "It will be sent when the reply ends" : "";
  find('[aria-current="page"] .answering')?.toggleAttribute("hidden", !open);
}

export function write(text) {
  box.value = text;
  fit(box);
  drafts.keep();
  applyState();
  box.focus();
}

function acknowledged(id, result) {
  if (!box.value.trim()) drafts.drop();
  if (result.reply_seq) seen = Math.max(seen, result.reply_seq);
  // The waiting message is shown by the server, at the place where it can be changed.
  if (result.queued) outbox.pendingOf(id)?.remove();
}

/** Someone wrote meanwhile, in another tab perhaps: the writer chooses where the text goes. */
function movedOn(id, text, message) {
  const before = seen;
  const card = showError(message, 0, [
    { label: "Show", "data-action": "reload" },
    { label: "Send as branch" },
  ]);
  const [, branch] = all(".buttons button", card);
  branch.addEventListener("click", async () => {
    // As it is in the box by now; another text is another message.
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
  // Before what was written meanwhile; after a reload it may be back already.
  if (!box.value.includes(text)) write(box.value.trim() ? `${text}\n${box.value}` : text);
  const { error } = answer.json;
  if (error?.code === "moved_on") movedOn(id, text, error.message);
  else refusal(answer);
}

/** The first message: if it is refused, what was written and chosen stays where it is. */
async function begin() {
  clearErrors();
  const before = drafts.begun();
  // The same once more, after an answer that was lost, is the same message; another text is another.
  if (before.text) identifier.value = before.text === box.value ? before.client_msg_id : uuid();
  const fields = Object.fromEntries(new FormData(composer));
  delete fields.csrfmiddlewaretoken;
  drafts.begin(fields);
  box.readOnly = send.disabled = true;
  const begun = await sendElsewhere(main.dataset.urlCreate, fields);
  applyState();
  if (!begun) box.focus();
}

export function submit() {
  const text = box.value;
  if (!text.trim() || box.readOnly) return; // Locked, or already on its way.
  if ([...text].length > Number(main.dataset.maxLength)) {
    showError(`This message has ${[...text].length.toLocaleString()} characters; ${Number(main.dataset.maxLength).toLocaleString()} are possible. Nothing was sent.`);
    return;
  }
  if (!code) {
    begin();
    return;
  }
  const id = identifier.value;
  identifier.value = uuid();
  clearErrors();
  box.value = "";
  fit(box);
  outbox.put(id, text);
  // What waits for the end of a reply is no question yet: the reader of that reply reads on.
  if (!isOpen()) question();
  applyState();
}

export function start() {
  drafts.start();
  outbox.start({ acknowledged, refused, seen: () => seen });
  const kept = drafts.kept();
  if (kept && !box.value && !outbox.holds(kept) && !find("#queued .queued")) box.value = kept;
  box.addEventListener("input", () => {
    fit(box);
    drafts.keep();
    applyState();
  });
  fit(box);
  applyState();
  // Where a keyboard does not come up for it, and nothing else was asked for.
  if (!location.hash && matchMedia("(hover: hover)").matches) {
    box.selectionStart = box.value.length;
    box.focus({ preventScroll: true });
  }
}
