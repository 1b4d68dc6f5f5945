// Following the text: only while the reader is at its end.

import { all, feed, find, scroller } from "./page.js";

const AT_END = 24; // pixels from the end that still count as the end
const LETS_GO = 3; // pixels of upward scroll that end the following
const PILL_BEYOND = 200;

const pill = find("#new-text");
let following = true;
let fresh = false; // There is text below that the reader has not been shown.
let seen = {}; // The scroller when it was last looked at: where it is, its height, the text's.
let scheduled = false;
let end = {}; // The last message as the reader knows it: which it is, and how high.

const distance = () => scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop;

/** Whether there is more at the end than the reader was told of; a mark or the divider is no text. */
function hasMore() {
  const { id, offsetHeight } = feed.lastElementChild || {};
  const more = id !== end.id || offsetHeight > end.offsetHeight;
  end = { id, offsetHeight };
  return more;
}

function look() {
  const { scrollTop: top, clientHeight: view, scrollHeight: text } = scroller;
  seen = { top, view, text };
}

function scrolled() {
  const before = seen;
  look();
  // Where the view grew or the text shrank, the browser moved it; WebKit says so as of the reader.
  const itself = seen.view > before.view || seen.text < before.text;
  if (!itself && before.top - seen.top >= LETS_GO && distance() > LETS_GO) following = false;
  else if (distance() <= AT_END) following = true;
  offer();
}

/** A way to the end: soon where there is new text, otherwise for who has gone far from it. */
function offer() {
  fresh &&= !following;
  const hidden = following || distance() <= (fresh ? PILL_BEYOND : 2 * scroller.clientHeight);
  if (hidden !== pill.hidden) pill.hidden = hidden;
  if (!hidden) pill.firstElementChild.textContent = fresh ? "New text" : "To the end";
}

export function toEnd() {
  following = true;
  offer();
  scroller.scrollTop = scroller.scrollHeight;
  look();
}

/** Keeps what is read in its place while the feed changes above it: call the result after that.
 *  Where the browser has done so by itself, nothing is left to move; WebKit never does. */
export function hold() {
  const edge = scroller.getBoundingClientRect().top;
  const topOf = (article) => article.getBoundingClientRect().top;
  const read = all("article[data-seq]", feed).find((one) => one.getBoundingClientRect().bottom > edge);
  const before = read && topOf(read);
  return () => {
    const now = read && document.getElementById(read.id);
    const moved = now ? Math.round(topOf(now) - before) : 0;
    if (moved) scroller.scrollTop += moved;
    look();
  };
}

/** The feed has changed: follow, or say that there is more below. At most once a frame. */
export function changed() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    const more = hasMore();
    if (following) toEnd();
    else if (more) {
      fresh = true;
      offer();
    }
  });
}

/** A message of this reader's own: the question goes near the top, the reply grows below it. */
export function question() {
  scroller.dataset.live = "";
  toEnd();
}

/** The browser's own way there takes its time, and ends where the end was when it set out. */
function endKey(event) {
  const { key, target, shiftKey, altKey } = event;
  if (key !== "End" || shiftKey || altKey) return;
  if (target !== document.body && !scroller.contains(target)) return;
  const inside = target.closest("input, textarea, select, pre");
  if (inside && (inside.localName !== "pre" || inside.scrollHeight > inside.clientHeight)) return;
  event.preventDefault();
  toEnd();
}

export function start() {
  scroller.addEventListener("scroll", scrolled, { passive: true });
  document.addEventListener("keydown", endKey);
  new ResizeObserver(() => {
    scroller.style.setProperty("--view", `${scroller.clientHeight}px`);
    hasMore(); // Lines that are broken anew are no text either.
    if (following) toEnd();
  }).observe(scroller);
  // Not every browser makes the page shorter for its keyboard; none says it for a zoom.
  window.visualViewport?.addEventListener("resize", () => {
    const height = visualViewport.scale === 1 ? `${visualViewport.height}px` : "";
    document.documentElement.style.setProperty("--screen", height);
  });
  // What is put in above or below for a reader: what is being read stays where it is.
  let release = null;
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    if (!["older", "newer"].includes(event.target.id)) return;
    following = false;
    release = hold();
  });
  document.body.addEventListener("htmx:afterSwap", () => {
    release?.();
    release = null;
  });
  const sought = /^#m-\d+$/.test(location.hash) && find(location.hash);
  if (!sought) toEnd();
  else {
    // Opened at a message that was searched for.
    following = false;
    const show = () => (find(`${location.hash} mark`) || find(location.hash)).scrollIntoView({ block: "center" });
    show();
    // As long as it loads the page, the browser goes to the message's beginning again.
    addEventListener("load", () => requestAnimationFrame(show));
    sought.focus({ preventScroll: true });
    sought.classList.add("sought");
    look();
  }
}
