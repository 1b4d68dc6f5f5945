// The moment in which a summary takes over: a line where the reader is, once.

import { all, find } from "./page.js";

const version = () => Number(find("#divider [data-version]")?.dataset.version || 0);
let shown = version(); // The newest version of the summary that this page knows.
let drawn = find("#divider")?.innerHTML; // The divider as the server last wrote it.
let settling = null;
let before = []; // The parts of the chip's bar before the present message, perhaps still moving.

/** Where each part of the bar is now. */
const bar = () =>
  all("#chip rect").map((one) => {
    const { x, width } = getComputedStyle(one);
    return { x, width };
  });

/** Do this with the module of what moves; at once, if it is loaded: nothing is to flash. */
const settle = (work) => (settling ? work(settling) : import("./settling.js").then((one) => work((settling = one))));

/** Note the bar before a message that may change it. */
export function look(message) {
  before = bar();
  if (message.includes('data-event="compression-')) settle(Boolean); // Soon it is needed.
}

/** Show the line of a compression that is new to this page. Returns what is to be said of it, if any. */
export function arrived() {
  const line = find("#moment > *");
  const now = version();
  const fresh = line?.dataset.version > shown;
  if (fresh) find("#alerts").replaceChildren(line);
  else {
    line?.remove();
    // Its Undo would take back something else. A pressed button stays until its answer comes.
    if (now > shown) find("#alerts .moment:not(:focus-within)")?.remove();
  }
  shown = Math.max(shown, now);
  const [from, to] = [before, bar()];
  if (fresh || JSON.stringify(from) !== JSON.stringify(to)) settle((one) => one.move(from, to, fresh && line));
  return fresh ? [line.dataset.spoken] : [];
}

/** Leave what is equal as it is, unsaid too; of what is replaced, keep what is unfolded and the focus. */
function replaces({ detail }) {
  const { target, fragment } = detail;
  const html = fragment.innerHTML;
  if (target.id === "divider") {
    detail.shouldSwap = html !== drawn;
    drawn = html;
  } else if (target.matches("#chip, #compression-lines, [aria-live=polite]")) detail.shouldSwap = html !== target.innerHTML;
  else if (target.id !== "alerts") return;
  const open = find("details[open]", target);
  const focused = target.contains(document.activeElement) && document.activeElement.textContent.trim();
  if (detail.shouldSwap && (open || focused)) queueMicrotask(() => settle((one) => one.restore(target, open, focused)));
}

export function start() {
  document.body.addEventListener("htmx:oobBeforeSwap", replaces);
}
