// Messages that are not loaded: going to any of them, and back by the browser's Back. Loaded at the first need.

import { all, feed, find, main, make, scroller, showError } from "./page.js";
import { MOST_ARTICLES, enhance, placeDivider } from "./feed.js";
import * as scroll from "./scroll.js";
import { eventNo } from "./socket.js";

const TRIES = 3; // loads, if messages arrive meanwhile

const articles = () => all("article[data-seq]", feed);
const seqOf = (article) => Number(article?.dataset.seq || 0);

/** The article of a message, or if it has been replaced, the one that stands in its place. */
const articleAt = (seq) => articles().find((one) => seqOf(one) >= seq) ?? articles().at(-1);

const isLoaded = (seq) => {
  const shown = articles();
  if (!shown.length || (find("#newer") && seq > seqOf(shown.at(-1)))) return false;
  return !find("#older") || seq >= seqOf(shown[0]);
};

const addressOf = (seq) => `${main.dataset.urlPage}?around=${seq}#m-${seq}`;

function saysNo(words) {
  showError(words);
  return false;
}

/** Have the browser load a page of the conversation, even if only the fragment differs. */
function open(address) {
  const url = new URL(address, location.href);
  const same = url.search === location.search;
  location.assign(url);
  if (same) location.reload();
  return false;
}

/** Show the messages at an address in place of those here. False if that was not possible. */
async function load(address) {
  const texts = all("form.editing textarea", feed);
  if (texts.some((text) => text.value !== text.defaultValue)) {
    return saysNo("Your changes to a message are not saved. Save or cancel them first.");
  }
  const holder = make("template");
  let told = -1;
  for (let tries = 0; tries < TRIES && told !== eventNo(); tries += 1) {
    told = eventNo();
    const answer = await fetch(address.split("#")[0], { headers: { "HX-Request": "true" } }).catch(() => null);
    if (!answer) return saysNo("No connection. These messages cannot be loaded now.");
    if (!answer.ok) return saysNo("These messages cannot be loaded. Reload the page.");
    holder.innerHTML = await answer.text();
  }
  // A reply that is being written goes on only where it began: a page load joins it.
  if (told !== eventNo() || find("[aria-busy]", holder.content)) {
    return open(address);
  }
  scroll.letGo();
  feed.replaceChildren(holder.content, ...all(".pending", feed));
  htmx.process(feed);
  placeDivider();
  enhance(feed);
  return true;
}

/** Scroll to an element, again in the next frame if what is above it has got another height. */
function land(element, block) {
  const scrolled = () => element.scrollIntoView({ block, behavior: "instant" });
  scrolled();
  requestAnimationFrame(() => element.isConnected && scrolled());
}

/** Show a message: at the top, or where its top was, `top` pixels below the edge of the view. */
async function show({ seq, top, end, focus = true }) {
  scroller.dispatchEvent(new Event("jump"));
  if (end) {
    if (find("#newer") && !(await load(main.dataset.urlPage))) return false;
    scroll.toEnd();
    return true;
  }
  if (!isLoaded(seq) && !(await load(addressOf(seq)))) return false;
  const article = articleAt(seq);
  if (!article) return false;
  scroll.letGo();
  all(".sought", feed).forEach((one) => one.classList.remove("sought"));
  article.classList.add("sought");
  if (top === undefined) land(article, "start");
  else scroller.scrollTop += article.getBoundingClientRect().top - scroller.getBoundingClientRect().top - top;
  if (focus) article.focus({ preventScroll: true });
  return true;
}

/** The reader's place: the message at the top of the view, and where its top is. */
function here() {
  if (scroll.isFollowing()) return { end: true };
  const article = scroll.topmost();
  const edge = scroller.getBoundingClientRect().top;
  return { seq: seqOf(article), top: (article?.getBoundingClientRect().top ?? edge) - edge };
}

/** Go to a message; Back returns. With `step`, it takes the place of the jump before. */
export async function to(seq, { focus = true, step = false } = {}) {
  const left = here();
  if (!(await show({ seq, focus }))) return false;
  if (step && history.state?.step) history.replaceState({ place: { seq }, step }, "", addressOf(seq));
  else remember(left, { place: { seq }, step }, addressOf(seq));
  return true;
}

/** Go to the end of the conversation, loading it if another part is shown; then Back returns. */
export async function toTail() {
  const [left, loads] = [here(), find("#newer")];
  if (!(await show({ end: true }))) return false;
  if (loads) remember(left, { place: { end: true } }, main.dataset.urlPage);
  return true;
}

/** After older messages were loaded, remove the newest above the limit; a link loads them again. */
export function trimNewest() {
  const articles = all("article[data-seq]", feed);
  if (articles.length <= MOST_ARTICLES || find("[aria-busy], .pending", feed)) return;
  articles.slice(MOST_ARTICLES).forEach((one) => one.remove());
  find("#newer")?.remove();
  const address = `?after=${articles[MOST_ARTICLES - 1].dataset.seq}`;
  const link = make(
    "a",
    {
      className: "more-messages", href: address, "hx-get": address,
      "hx-target": "#newer", "hx-swap": "outerHTML", "hx-trigger": "click",
    },
    "Newer messages",
  );
  const newer = make("p", { id: "newer", className: "newer" }, link, make("a", { href: main.dataset.urlPage, "data-action": "to-end" }, "To the end"));
  feed.append(newer);
  htmx.process(newer);
}

function remember(left, state, address) {
  history.scrollRestoration = "manual";
  history.replaceState({ ...history.state, place: left }, "");
  history.pushState(state, "", address);
}

addEventListener("popstate", ({ state }) => state?.place && show(state.place));
