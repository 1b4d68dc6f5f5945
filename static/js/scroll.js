// Scrolling: follow new text only while the reader is at the end.

import { all, feed, find, main, scroller } from "./page.js";

const AT_END = 24; // pixels from the end that count as the end
const LETS_GO = 3; // pixels of upward scroll that stop the following
const PILL_BEYOND = 200;

const pill = find("#new-text");
let following = !find("#empty"); // What a conversation begins with is read from its top.
let fresh = false; // There is new text below, not yet shown to the reader.
let seen = {}; // The scroller at the last look: its position, its height, the height of its content.
let scheduled = false;
let end = {}; // The last message at the last look: its id and height.

const distance = () => scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop;

/** True if the last message is new or has grown. A new mark or divider elsewhere does not count. */
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
  // Where the view grew or the text shrank, the browser scrolls up by as much; the rest is the reader's.
  const itself = Math.max(0, seen.view - before.view) + Math.max(0, before.text - seen.text);
  if (before.top - seen.top - itself >= LETS_GO && distance() > LETS_GO) following = false;
  else if (distance() <= AT_END) following = true;
  offer();
}

/** Show the button to the end: early if there is new text, else two screens from the end. */
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

function follow() {
  scrolled(); // The reader may have scrolled since the last frame.
  if (following) toEnd();
}

export const isFollowing = () => following;

/** Stop following: the reader goes to another place. */
export function letGo() {
  following = false;
  offer();
}

/** The message at the top of the view, or so many pixels below it. */
export function topmost(below = 0) {
  const edge = scroller.getBoundingClientRect().top + below;
  return all("article[data-seq]", feed).find((one) => one.getBoundingClientRect().bottom > edge);
}

/** Keep the visible message in place while the feed changes above it: call the result afterwards.
 *  Needed for WebKit; where the browser anchors the scroll itself, it moves nothing. */
export function hold() {
  scrolled(); // The reader may have scrolled since the last frame.
  const topOf = (article) => article.getBoundingClientRect().top;
  const read = topmost();
  const before = read && topOf(read);
  return () => {
    const now = read && document.getElementById(read.id);
    const moved = now ? Math.round(topOf(now) - before) : 0;
    if (moved) scroller.scrollTop += moved;
    look();
  };
}

/** After a change of the feed: follow it, or show that there is new text. At most once a frame. */
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

/** After sending: scroll the question near the top, with room below for the reply. */
export function question() {
  scroller.dataset.live = "";
  toEnd();
}

/** Replace the browser's End key: its smooth scroll stops where the end was when it began. */
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
    main.style.setProperty("--gutter", `${scroller.offsetWidth - scroller.clientWidth}px`);
    hasMore(); // A new width changes heights: that is no new text.
    follow();
  }).observe(scroller);
  // Some browsers do not shrink the page for the on-screen keyboard. A zoomed page is left alone.
  window.visualViewport?.addEventListener("resize", () => {
    const height = visualViewport.scale === 1 ? `${visualViewport.height}px` : "";
    document.documentElement.style.setProperty("--screen", height);
  });
  // When older or newer messages are loaded, what is being read stays in place.
  let release = null;
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    if (!["older", "newer"].includes(event.target.id)) return;
    release = hold();
    following = false;
  });
  document.body.addEventListener("htmx:afterSwap", () => {
    release?.();
    release = null;
  });
  document.fonts?.ready.then(follow);
  const sought = /^#m-\d+$/.test(location.hash) && find(location.hash);
  if (!sought && following) toEnd();
  else if (sought) {
    // Opened at a search hit.
    following = false;
    const show = () => (find(`${location.hash} mark`) || find(location.hash)).scrollIntoView({ block: "center" });
    show();
    // Until the page has loaded, the browser scrolls to the top of the message again.
    addEventListener("load", () => requestAnimationFrame(show));
    sought.focus({ preventScroll: true });
    sought.classList.add("sought");
    look();
  }
}
