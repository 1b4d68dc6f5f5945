// The page's entry. Runs before htmx looks at the document, which both wait for.

import * as actions from "./actions.js";
import * as composer from "./composer.js";
import * as drawer from "./drawer.js";
import * as feed from "./feed.js";
import * as files from "./files.js";
import * as keys from "./keys.js";
import * as list from "./list.js";
import * as models from "./models.js";
import * as outbox from "./outbox.js";
import * as scroll from "./scroll.js";
import * as settings from "./settings.js";
import * as slash from "./slash.js";
import * as socket from "./socket.js";
import { all, box, find, tell } from "./page.js";

let release = null; // Called when the feed has taken in what came.

/** Whether it is more than a piece of a reply, which only adds to the end of the text. */
const changesMore = (message) => !message.includes('data-event="delta"');

const version = () => find("#divider [data-version]")?.dataset.version;
let before = version(); // That of the summary when the page was last unlocked.

function arrived(message) {
  if (changesMore(message)) {
    feed.placeDivider();
    feed.enhance(document);
    feed.trim();
    release();
    const free = !box.readOnly;
    composer.applyState();
    // Lock and end may come by a fresh state alone: whoever cannot see them is told all the same.
    if (free && box.readOnly) tell("Compressing conversation");
    else if (!free && !box.readOnly && message.includes('data-event="state"')) {
      tell(version() === before ? "Conversation not compressed" : "Conversation compressed");
    }
    if (!box.readOnly) before = version();
    // A title may come by a fresh state alone, too.
    const retitled = actions.retitle();
    models.follow();
    if (/data-event="(state|context|summary-changed|compression-completed)"/.test(message)) {
      drawer.refresh();
    }
    if (retitled || /data-event="(turn-started|turn-finished)"/.test(message)) list.refresh();
    if (message.includes('data-event="turn-finished"')) {
      list.seen();
      list.notify(find("#spoken").textContent);
    }
  }
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
list.start();
models.start();
socket.start({ onOpen: outbox.resend, onMessage: arrived });

document.body.addEventListener("htmx:wsBeforeMessage", ({ detail }) => {
  if (changesMore(detail.message)) release = scroll.hold();
});
document.body.addEventListener("htmx:responseError", (event) => {
  if (event.detail.xhr.status === 401) socket.signedOut();
});
document.body.addEventListener("htmx:sendError", () => socket.say("No connection. That was not done; try again in a moment."));

// What is written in the place of a text has no draft.
addEventListener("beforeunload", (event) => {
  const texts = all(".edit textarea, .editing textarea");
  if (settings.unsaved() || texts.some((text) => text.value !== text.defaultValue)) event.preventDefault();
});
