// The page's entry point. Like htmx it waits for the document, and it runs first.

import * as actions from "./actions.js";
import * as composer from "./composer.js";
import * as drawer from "./drawer.js";
import * as feed from "./feed.js";
import * as files from "./files.js";
import * as keys from "./keys.js";
import * as list from "./list.js";
import * as models from "./models.js";
import * as moment from "./moment.js";
import * as outbox from "./outbox.js";
import * as scroll from "./scroll.js";
import * as settings from "./settings.js";
import * as shell from "./shell.js";
import * as slash from "./slash.js";
import * as socket from "./socket.js";
import { all, box, code, find, store, tell } from "./page.js";

let release = null; // Restores the reader's place after an update of the feed.

/** False for a `delta`, which only adds text to the end of a reply. */
const changesMore = (message) => !message.includes('data-event="delta"');

const turn = () => ({ turn: 0, ...find("#turn-state [data-turn]")?.dataset });
let lastTurn = turn(); // What the page last knew of the latest turn: its number, and how it ended.

/** Whether this message told that a turn began or ended. After lost events, only a `state` tells, and
 *  perhaps of a compression too: its sentence follows. */
function turned(message, compressed) {
  const now = turn();
  if (Number(now.turn) < lastTurn.turn || (now.turn === lastTurn.turn && now.ended === lastTurn.ended)) return false;
  lastTurn = now;
  if (message.includes('data-event="state"')) tell([now.ended ?? "Answering", ...compressed].join(". "));
  return true;
}

const version = () => find("#divider [data-version]")?.dataset.version;
let before = version(); // The version of the summary when the input was last unlocked.

function arrived(message) {
  if (changesMore(message)) {
    const compressed = moment.arrived();
    feed.placeDivider();
    feed.enhance(document);
    feed.trim();
    release();
    const free = !box.readOnly;
    composer.applyState();
    // After lost events, only a `state` tells that a compression began or ended: tell screen readers.
    if (free && box.readOnly) tell("Compressing conversation");
    else if (!free && !box.readOnly && message.includes('data-event="state"')) {
      tell(version() === before ? "Conversation not compressed" : "Conversation compressed");
    }
    if (!box.readOnly) before = version();
    // A new title, too, may come in a `state` only.
    const retitled = actions.retitle();
    models.follow();
    if (/data-event="(state|context|summary-changed|compression-completed)"/.test(message)) {
      drawer.refresh();
    }
    const news = turned(message, compressed);
    if (!news) compressed.forEach(tell);
    if (retitled || news) list.refresh();
    if (news && lastTurn.ended) {
      list.seen();
      list.notify(find("#spoken").textContent);
    }
  } else if (message.includes('="code')) feed.join();
  scroll.changed();
}

feed.start();
composer.start();
files.start();
slash.start();
keys.start();
actions.start();
drawer.start();
scroll.start();
shell.start();
models.start();
moment.start();
// Back leads to a place of before this page was loaded again.
if (history.state?.place) import("./jump.js");
if (code && store.get("outline") && matchMedia("(min-width: 80rem)").matches) {
  import("./outline.js").then(({ show }) => show());
}
socket.start({ onOpen: outbox.resend, onMessage: arrived });

document.body.addEventListener("htmx:wsBeforeMessage", ({ detail }) => {
  if (!changesMore(detail.message)) return;
  release = scroll.hold();
  moment.look(detail.message);
});
// htmx looks for the places of an answer around the button that asked, which an event may have replaced.
document.body.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.target.id !== "sink" || detail.requestConfig.elt.isConnected) return;
  detail.shouldSwap = false;
  htmx.swap(detail.target, detail.serverResponse, { swapStyle: "none" });
});
document.body.addEventListener("htmx:responseError", (event) => {
  if (event.detail.xhr.status === 401) socket.signedOut();
});
document.body.addEventListener("htmx:sendError", () => socket.say("No connection. Nothing was done; try again in a moment."));

// Drafts are kept for the message box only: warn before unsaved edits are lost.
addEventListener("beforeunload", (event) => {
  const texts = all(".edit textarea, .editing textarea");
  if (settings.unsaved() || texts.some((text) => text.value !== text.defaultValue)) event.preventDefault();
});
