// The find bar: words in this conversation, from one message to the next. Loaded when first opened.

import { all, code, feed, find, main, make, onEscape, scroller } from "./page.js";
import { topmost } from "./scroll.js";
import { setHits } from "./hits.js";
import { to } from "./jump.js";

const TYPED = 200; // milliseconds after a key until the words are looked for
const CHANGED = 400; // after a change of the messages, until they are marked again
const MOST_MARKS = 2000;
const NEWS = /data-event="(state|turn-started|turn-finished|message-added|message-changed)"/;

const input = make("input", {
  type: "search", maxLength: 500, "aria-label": "Find in this conversation", placeholder: "Find in this conversation",
  autocomplete: "off", enterKeyHint: "search",
});
const said = make("output", { className: "figures", role: "status" });
const key = (words, sign) => make("button", { type: "button", className: "quiet", "aria-label": words, title: words }, sign);
const cross = find("#drawer [data-action=close-drawer] .icon").cloneNode(true);
const [previous, next, close] = [key("Previous", "↑"), key("Next", "↓"), key("Close", cross)];
const bar = make(
  "form",
  { id: "find-bar", role: "search", "aria-label": "Find in this conversation", hidden: true },
  input, said, previous, next, close,
);
let seqs = []; // Of the messages found, in order.
let total = 0;
let pattern = null; // What is marked in them.
let words = ""; // What was looked for last.
let at = -1; // The place in `seqs` that was gone to.
let within = -1; // The mark in that message.
let request = null;
let timer = 0;
let painting = 0;
let back = null; // What had the focus before.

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
const highlights = globalThis.CSS?.highlights;
const bodies = (article) => all(".body, .result pre", article);

/** Beginnings of words, and strings anywhere: as the server marks them. */
function patternOf({ beginnings, runs }) {
  const letter = "[\\p{L}\\p{N}_]";
  const words = beginnings.map((one) => `(?<!${letter})${escaped(one)}${letter}*`);
  const parts = [...words, ...runs.map(escaped)];
  return parts.length ? new RegExp(parts.join("|"), "giu") : null;
}

/** The ranges of the words in a message. */
function rangesIn(article) {
  const ranges = [];
  for (const body of bodies(article)) {
    const walker = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      for (const match of walker.currentNode.data.matchAll(pattern)) {
        const range = new Range();
        range.setStart(walker.currentNode, match.index);
        range.setEnd(walker.currentNode, match.index + match[0].length);
        ranges.push(range);
        if (ranges.length >= MOST_MARKS) return ranges;
      }
    }
  }
  return ranges;
}

const articleOf = (seq) => document.getElementById(`m-${seq}`);

/** Mark the words in the messages that are loaded, without changing these. */
function paint() {
  highlights?.delete("found");
  if (!highlights || !pattern || bar.hidden) return;
  const known = new Set(seqs.map(String));
  const marks = [];
  for (const article of all("article[data-seq]", feed)) {
    if (known.has(article.dataset.seq) && marks.length < MOST_MARKS) marks.push(...rangesIn(article));
  }
  highlights.set("found", new Highlight(...marks));
}

function repaint() {
  clearTimeout(painting);
  painting = setTimeout(paint, CHANGED);
}

function say() {
  const count = total === 1 ? "1 message" : `${total.toLocaleString()} messages`;
  if (!input.value.trim()) said.textContent = "";
  else if (!total) said.textContent = "Not found";
  else if (at < 0) said.textContent = count;
  else said.textContent = `${(total - seqs.length + at + 1).toLocaleString()} of ${count}`;
  previous.disabled = next.disabled = !seqs.length;
}

/** Look for the words. `again`: the same ones, since messages have come. */
async function look(again) {
  request?.abort();
  const asked = new AbortController();
  request = asked;
  const here = seqs[at];
  words = input.value.trim();
  clearTimeout(timer);
  try {
    const address = `/c/${code}/find/?q=${encodeURIComponent(words)}`;
    const answer = await fetch(address, { headers: { Accept: "application/json" }, signal: asked.signal });
    const json = await answer.json();
    if (!answer.ok) {
      said.textContent = json.error.message;
      return;
    }
    ({ seqs, count: total } = json);
    pattern = patternOf(json);
    at = again ? seqs.indexOf(here) : -1;
    if (at < 0) within = -1;
    say();
    if (total && !json.every_word) said.textContent += ", some of the words";
    setHits(seqs);
    paint();
  } catch (error) {
    if (error.name !== "AbortError") said.textContent = "No connection";
  }
}

function later(again, wait) {
  clearTimeout(timer);
  timer = setTimeout(look, wait, again);
}

/** The first step goes to what is nearest: the reader's message, or the next one in that direction. */
function nearest(step) {
  const here = Number(topmost()?.dataset.seq || 0);
  const after = seqs.findIndex((seq) => seq >= here);
  if (step > 0) return after < 0 ? 0 : after;
  const before = seqs.findLastIndex((seq) => seq <= here);
  return before < 0 ? seqs.length - 1 : before;
}

/** Show one mark of the present message, unfolding what hides it. */
function showMark(ranges) {
  const range = ranges[within];
  highlights?.delete("found-now");
  if (!range) return;
  const around = range.startContainer.parentElement;
  for (let fold = around.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  highlights?.set("found-now", new Highlight(range));
  around.scrollIntoView({ block: "center", behavior: "instant" });
}

async function go(step) {
  if (words !== input.value.trim()) await look();
  if (!seqs.length) return;
  const present = at >= 0 && articleOf(seqs[at]);
  const inIt = present ? rangesIn(present) : [];
  if (inIt[within + step]) {
    within += step;
    showMark(inIt);
    return;
  }
  at = at < 0 ? nearest(step) : (at + step + seqs.length) % seqs.length;
  if (!(await to(seqs[at], { focus: false, step: true }))) return;
  const article = articleOf(seqs[at]);
  const ranges = article ? rangesIn(article) : [];
  within = step > 0 ? 0 : ranges.length - 1;
  paint();
  showMark(ranges);
  setHits(seqs, seqs[at]);
  say();
}

/** Show or hide the bar. What is being read stays where it is. */
function reveal(shown) {
  const before = scroller.clientHeight;
  bar.hidden = !shown;
  scroller.scrollTop += before - scroller.clientHeight;
}

function leave() {
  reveal(false);
  pattern = null;
  seqs = [];
  at = -1;
  highlights?.delete("found");
  highlights?.delete("found-now");
  setHits([]);
  (back?.checkVisibility() ? back : find("#text")).focus({ preventScroll: true });
}

/** Open the bar, with these words if there are any. */
export function open(text) {
  find("dialog[open]")?.close();
  if (bar.hidden) back = document.activeElement;
  reveal(true);
  if (text) input.value = text;
  input.focus();
  input.select();
  if (input.value.trim()) look();
  else say();
}

main.append(bar);
bar.addEventListener("submit", (event) => event.preventDefault());
input.addEventListener("input", () => later(false, TYPED));
input.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing) return;
  event.preventDefault();
  go(event.shiftKey ? -1 : 1);
});
previous.addEventListener("click", () => go(-1));
next.addEventListener("click", () => go(1));
close.addEventListener("click", leave);
onEscape(bar, leave);
new MutationObserver(() => bar.hidden || repaint()).observe(feed, { childList: true, subtree: true });
document.body.addEventListener("htmx:wsAfterMessage", ({ detail }) => {
  if (!bar.hidden && input.value.trim() && NEWS.test(detail.message)) later(true, CHANGED);
});
