// The outline's list: pages of entries put together, days, hits, and the reader's place in it.

import { all, find, make } from "./page.js";
import { hits } from "./hits.js";

const MOST = 300; // entries in the document
const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 1000; // of the rail
const LEAST = 16; // of it, so that the reader's place is seen in a long conversation

const at = (item) => Number(item.dataset.at);
const listOf = (body) => find(".entries", body);
const entries = (body) => all(".entry", body);

export const links = (body) => all(".entry a, .stratum a", body);

/** Whether a place of the conversation is in the list, and not before or after it. */
export function holds(body, place) {
  const [earlier, later] = [find(".earlier", body), find(".later", body)];
  return !(earlier && place <= at(earlier)) && !(later && place > at(later));
}

/** Put an item where it belongs, in place of the one that was there. */
function put(list, item) {
  const items = [...list.children];
  const same = items.find((one) => at(one) === at(item));
  const focused = same?.contains(document.activeElement);
  if (same) same.replaceWith(item);
  else list.insertBefore(item, items.find((one) => at(one) > at(item)) ?? null);
  if (focused) find("a", item)?.focus({ preventScroll: true });
}

/** What has changed, and the strata as they are now. */
export function merge(body, part) {
  const list = listOf(body);
  const news = find(".entries", part);
  all(".day, .hint", list).forEach((one) => one.remove());
  for (const gone of all(".gone", news)) all(`[data-at="${gone.dataset.at}"]`, list).forEach((one) => one.remove());
  const strata = all(".stratum", news);
  const stay = new Set(strata.map((one) => one.dataset.at));
  all(".stratum", list).forEach((one) => stay.has(one.dataset.at) || one.remove());
  for (const item of [...all(".entry", news), ...strata]) if (holds(body, at(item))) put(list, item);
  list.dataset.lastSeq = news.dataset.lastSeq;
  replaceRail(body, part);
  trim(list, false);
  dress(body);
}

/** A page before or after those shown, in place of the item `link` that stands for it. */
export function join(body, part, link) {
  const list = listOf(body);
  const older = link.matches(".earlier");
  const focused = link.contains(document.activeElement);
  const first = find(".entry", list);
  const top = first?.offsetTop ?? 0;
  const scroll = list.scrollTop;
  all(".day", list).forEach((one) => one.remove());
  link.remove();
  const news = find(".entries", part);
  const ends = older ? ".later" : ".earlier";
  const items = [...news.children].filter((one) => !one.matches(ends));
  items.forEach((item) => put(list, item));
  trim(list, older);
  dress(body);
  // What was read stays where it was.
  list.scrollTop = scroll + (first?.isConnected ? first.offsetTop - top : 0);
  if (focused) focus(body, older ? entries(body).findLast((one) => at(one) < at(first)) : items[0]);
}

/** Remove entries from the far end beyond the limit; a link loads them again. */
function trim(list, newest) {
  const shown = all(".entry", list);
  const surplus = shown.length - MOST;
  if (surplus <= 0) return;
  const out = newest ? shown.slice(-surplus) : shown.slice(0, surplus);
  const edge = newest ? shown.at(-surplus - 1) : out.at(-1);
  const query = newest ? `?after=${edge.dataset.at}` : `?before=${shown[surplus].dataset.at}`;
  const beyond = newest ? (one) => at(one) > at(edge) : (one) => at(one) <= at(edge);
  [...list.children].filter(beyond).forEach((one) => one.remove());
  const link = make("a", { href: query }, newest ? "Later" : "Earlier");
  const place = newest ? at(edge) + 0.25 : at(edge);
  const item = make("li", { className: newest ? "more later" : "more earlier", "data-at": String(place) }, link);
  if (newest) list.append(item);
  else list.prepend(item);
}

function replaceRail(body, part) {
  const rail = find(".rail", part);
  const focused = document.activeElement?.matches("#outline .rail input");
  // While it is held it stays; the next change brings what this one would have.
  if (rail && !focused) find(".rail", body).replaceWith(rail);
}

/** The date beside the first entry of each day, in the reader's zone; and what a fresh list has of hits. */
export function dress(body) {
  let last = "";
  const year = new Date().getFullYear();
  all(".day", body).forEach((one) => one.remove());
  for (const entry of entries(body)) {
    const date = new Date(find("time", entry).dateTime);
    const day = date.toDateString();
    const words = { day: "numeric", month: "short" };
    if (date.getFullYear() !== year) words.year = "numeric";
    if (day !== last) entry.append(make("span", { className: "day" }, date.toLocaleDateString([], words)));
    last = day;
    find("a", entry).title = date.toLocaleString();
  }
  links(body).forEach((link) => (link.tabIndex = -1));
  showHits(body, hits.seqs);
}

/** Focus an entry or a link; it alone is reached by Tab. */
export function focus(body, item) {
  const link = item?.matches?.("li") ? find("a", item) : item;
  if (!link) return;
  if (link.matches(".entries a")) only(body, link);
  link.focus();
}

function only(body, link) {
  for (const one of links(body)) one.tabIndex = one === link ? 0 : -1;
}

/** Mark the messages in view on the rail, and the entry of the one that the reader `reads`.
 *  The list is scrolled to what is `wanted`, or if it is `free`, to that entry. */
export function place(body, [first, last], { wanted, free, reads }) {
  const list = listOf(body);
  const total = Math.max(1, Number(list.dataset.lastSeq));
  const here = find(".rail .here", body);
  const height = Math.max(LEAST, (HEIGHT * (last - first + 1)) / total);
  here?.setAttribute("height", String(height));
  here?.setAttribute("y", String(Math.min(HEIGHT - height, (HEIGHT * (first - 1)) / total)));
  const slider = find(".rail input", body);
  if (slider && slider !== document.activeElement) {
    slider.value = first;
    slider.setAttribute("aria-valuetext", `Message ${first} of ${total}`);
  }
  const near = (seq) => entries(body).findLast((one) => at(one) <= seq) ?? find(".entry", body);
  const now = holds(body, reads) ? find("a", near(reads) ?? body) : null;
  const before = find("[aria-current]", list);
  if (before !== now) {
    before?.removeAttribute("aria-current");
    now?.setAttribute("aria-current", "location");
  }
  if (!list.contains(document.activeElement)) only(body, now ?? links(body)[0]);
  const shown = wanted === undefined ? now?.parentElement : near(wanted);
  if (shown && (wanted !== undefined || (free && before !== now))) reveal(list, shown);
}

/** Scroll the list, and nothing around it. */
function reveal(list, item) {
  const [box, edge] = [item.getBoundingClientRect(), list.getBoundingClientRect()];
  if (box.top >= edge.top && box.bottom <= edge.bottom) return;
  list.scrollTop += box.top - edge.top - (edge.height - box.height) / 2;
}

/** How many hits stand in each question and its answers, and where they are on the rail. */
export function showHits(body, seqs) {
  all(".entries .count", body).forEach((one) => one.remove());
  const group = find(".rail .found", body);
  group?.replaceChildren();
  if (!group || !seqs.length) return;
  const total = Number(listOf(body).dataset.lastSeq);
  const places = new Set(seqs.map((seq) => Math.round((HEIGHT / 2) * ((seq - 1) / total)) * 2));
  for (const y of places) {
    const tick = document.createElementNS(SVG, "rect");
    for (const [name, value] of Object.entries({ x: 0, y, width: 10, height: 2 })) tick.setAttribute(name, value);
    group.append(tick);
  }
  const shown = entries(body);
  const end = find(".later", body) ? at(shown.at(-1) ?? find(".later", body)) + 1 : Infinity;
  let next = 0;
  shown.forEach((entry, number) => {
    const until = shown[number + 1] ? at(shown[number + 1]) : end;
    while (next < seqs.length && seqs[next] < at(entry)) next += 1;
    const from = next;
    while (next < seqs.length && seqs[next] < until) next += 1;
    const count = next - from;
    if (!count) return;
    const words = make("span", { className: "vh" }, count === 1 ? " message found" : " messages found");
    find("a", entry).append(make("span", { className: count === 1 ? "count one" : "count" }, String(count), words));
  });
}
