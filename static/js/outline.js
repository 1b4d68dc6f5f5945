// The outline: a map of the whole conversation beside the messages. Loaded when it is first opened.

import { all, code, find, main, make, onEscape, scroller, store } from "./page.js";
import { topmost } from "./scroll.js";
import { hits } from "./hits.js";
import * as list from "./outline_list.js";
import { to } from "./jump.js";

const EDGE = 24; // pixels: a message that was jumped to stands a little below the edge
const SETTLES = 250; // milliseconds after an event, since several come together
const AGAIN = 3000; // milliseconds after a request that failed
const CHANGES = /data-event="(state|turn-started|message-added|message-changed|summary-changed|compression-completed)"/;
const button = find("#outline-button");
const layout = find(".layout");
const narrow = matchMedia("(max-width: 63.99rem)");

const body = make("div", { id: "outline-body", className: "outline" });
const cross = find("#drawer [data-action=close-drawer] .icon").cloneNode(true);
const close = make("button", { type: "button", className: "quiet close", "aria-label": "Close" }, cross);
const seek = make("button", { type: "button", className: "quiet", "data-action": "find" }, "Find…");
const said = make("p", { className: "hint", role: "status" });
const panel = make(
  "aside",
  { id: "outline", "data-swipe": "down", "aria-label": "Outline", hidden: true },
  make("header", {}, make("h2", {}, "Outline"), seek, close),
  said,
  body,
);
let opener = null;
let eventNo = 0; // Of the last change that the list shows.
let asked = 0; // Requests so far: only the last one counts.
let loading = false;
let waits = 0; // The timer of the next look for changes.
let frame = 0;
let looksAround = false; // The person has scrolled the list, which then stays where it is.

const inside = () => panel.contains(document.activeElement);
const seqOf = (article) => Number(article?.dataset.seq || 0);

/** The messages in view, as far as they are loaded: the first and the last. */
function inView() {
  const first = topmost(EDGE);
  if (!first) return null;
  const bottom = scroller.getBoundingClientRect().bottom;
  let last = first;
  for (let next = first; next; next = next.nextElementSibling) {
    if (next.getBoundingClientRect().top >= bottom) break;
    if (next.dataset.seq) last = next;
  }
  return [seqOf(first), seqOf(last)];
}

/** Ask for a part of the outline. Null if it did not come, or something else was asked for since. */
async function ask(query) {
  asked += 1;
  const mine = asked;
  loading = true;
  try {
    const answer = await fetch(`/c/${code}/outline/?${query}`, { headers: { "HX-Request": "true" } });
    if (!answer.ok) throw new Error(answer.status);
    const holder = make("template");
    holder.innerHTML = await answer.text();
    if (mine !== asked) {
      // It may have held changes that the other answer does not.
      changed();
      return null;
    }
    said.textContent = "";
    return holder.content;
  } catch {
    said.textContent = "The outline could not be loaded. It is tried again in a moment.";
    changed(AGAIN);
    return null;
  } finally {
    if (mine === asked) loading = false;
  }
}

/** Show the outline around a message. */
async function load(seq) {
  const part = await ask(`around=${seq}`);
  if (!part) return;
  const slides = document.activeElement?.matches("#outline .rail input");
  const focused = !slides && body.contains(document.activeElement);
  // The slider stays while it is held.
  if (slides) find(".entries", body).replaceWith(find(".entries", part));
  else body.replaceChildren(part);
  eventNo = Number(find(".entries", body).dataset.eventNo);
  list.dress(body);
  mark(seq);
  if (focused) focusHere();
}

/** Load the entries before or after those shown, by the link that stands there. */
async function more(link) {
  const part = await ask(link.getAttribute("href").slice(1));
  if (!part) return;
  list.join(body, part, link.parentElement);
  mark();
}

/** Bring what has changed since the last look, and nothing else. */
async function refresh() {
  if (panel.hidden) return;
  if (loading) {
    changed();
    return;
  }
  if (!find(".entries", body)) {
    await load(inView()?.[0] ?? 1);
    return;
  }
  const part = await ask(`since=${eventNo}`);
  if (!part) return;
  const news = find(".entries", part);
  if ("incomplete" in news.dataset) {
    await load(inView()?.[0] ?? 1);
    return;
  }
  eventNo = Number(news.dataset.eventNo);
  list.merge(body, part);
  mark();
}

function changed(wait = SETTLES) {
  clearTimeout(waits);
  waits = setTimeout(refresh, wait);
}

/** The message that is read: what was found, as long as it is in view, or else the first in view. */
const reads = ([first, last]) => (hits.present >= first && hits.present <= last ? hits.present : first);

/** Mark where the reader is. `wanted` was asked for and stays in view. */
function mark(wanted) {
  const view = inView();
  if (panel.hidden || !view || !find(".entries", body)) return;
  const free = !inside() && !looksAround;
  list.place(body, view, { wanted, free, reads: reads(view) });
  // The reader has gone on to what the list does not hold.
  if (free && wanted === undefined && !loading && !list.holds(body, view[0])) load(view[0]);
}

function scrolled() {
  if (panel.hidden) return;
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(() => mark());
}

async function go(seq) {
  if (narrow.matches) hide({ focus: false });
  await to(seq);
  mark();
}

function clicked(event) {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (link.parentElement.matches(".more")) more(link);
  else go(link.dataset.seq);
}

/** Move by keys from entry to entry; the ends are those of the conversation. */
async function keyed(event) {
  if (!event.target.matches(".entries a") || event.altKey || event.ctrlKey || event.metaKey) return;
  const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10, Home: 0, End: 0 };
  if (!(event.key in steps)) return;
  event.preventDefault();
  const [earlier, later] = [find(".earlier a", body), find(".later a", body)];
  // Unless the person has left the outline while it was loaded.
  const focus = (link) => (inside() || document.activeElement === document.body) && list.focus(body, link);
  if (event.key === "Home") {
    if (earlier) await load(1);
    focus(list.links(body)[0]);
    return;
  }
  if (event.key === "End") {
    if (later) await load(find(".entries", body).dataset.lastSeq);
    focus(list.links(body).at(-1));
    return;
  }
  const step = steps[event.key];
  const from = event.target;
  const beyond = step < 0 ? earlier : later;
  const wanted = list.links(body).indexOf(from) + step;
  if (beyond && !list.links(body)[wanted]) await more(beyond);
  const links = list.links(body);
  const place = links.indexOf(from) + step;
  focus(links[Math.min(links.length - 1, Math.max(0, place))]);
}

function slid(event) {
  if (!event.target.matches(".rail input")) return;
  const { value, max } = event.target;
  event.target.setAttribute("aria-valuetext", `Message ${value} of ${max}`);
  if (event.type === "change") load(Number(value));
}

/** Open the outline, and focus where the reader is if `from` was pressed. */
export async function show(from) {
  if (from) opener = from;
  const drawer = find("#drawer");
  if (!drawer.hidden) find("[data-action=close-drawer]", drawer).click();
  find("#settings[open], #help[open]")?.close();
  panel.hidden = false;
  button.setAttribute("aria-expanded", "true");
  store.set("outline", "open");
  const before = document.activeElement;
  await load(inView()?.[0] ?? 1);
  if (from && [before, document.body].includes(document.activeElement)) focusHere();
}

function hide({ focus = true } = {}) {
  panel.hidden = true;
  button.setAttribute("aria-expanded", "false");
  store.set("outline", "");
  if (focus) (opener?.checkVisibility() ? opener : button).focus();
}

const focusHere = () => list.focus(body, find("[aria-current]", body) ?? list.links(body)[0] ?? close);

/** Open it, or close it; by a key it is closed only if the focus is in it, and else gets the focus. */
export function toggle(from = button, byPointer = false) {
  if (panel.hidden) show(from);
  else if (byPointer || inside()) hide();
  else focusHere();
}

layout.append(panel);
body.addEventListener("click", clicked);
body.addEventListener("keydown", keyed);
body.addEventListener("input", slid);
body.addEventListener("change", slid);
close.addEventListener("click", () => hide());
onEscape(panel, () => hide());
for (const name of ["wheel", "touchmove", "change"]) body.addEventListener(name, () => (looksAround = true), { passive: true });
panel.addEventListener("pointerleave", () => (looksAround = false));
scroller.addEventListener("jump", () => (looksAround = false));
panel.addEventListener("hits", () => {
  list.showHits(body, hits.seqs);
  mark();
});
// The list became a sheet, or the panel at the side: the same entry is to be in view.
narrow.addEventListener("change", () => mark(inView()?.[0]));
scroller.addEventListener("scroll", scrolled, { passive: true });
new MutationObserver(() => find("#drawer").hidden || panel.hidden || hide({ focus: false })).observe(find("#drawer"), {
  attributeFilter: ["hidden"],
});
document.body.addEventListener("htmx:wsAfterMessage", ({ detail }) => CHANGES.test(detail.message) && changed());
document.body.addEventListener("htmx:afterSettle", scrolled);
