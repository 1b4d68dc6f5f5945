// The feed: articles in the order of their seq, and the divider.

import { all, feed, find, make } from "./page.js";
import { hold } from "./scroll.js";

export const MOST_ARTICLES = 400;

/** The text of a message without the buttons in it. */
function textOf(body) {
  const copy = body?.cloneNode(true);
  if (copy) all("button", copy).forEach((one) => one.remove());
  return copy?.textContent;
}

/** Keep the same text as it stands there, with the marks of a search, wrapped or unfolded: on connecting,
 *  the page gets its last messages once more. */
function keepBody(present, article) {
  article.classList.toggle("sought", present.matches(".sought"));
  const [before, now] = [present, article].map((one) => find(".body", one));
  if (present.ariaBusy || textOf(before) !== textOf(now) || before?.dataset.source !== now?.dataset.source) return;
  now?.replaceWith(before);
  find(".unfold", article)?.replaceWith(find(".unfold", present));
}

/** Move an open editor into the message's new element. Returns a function that keeps the focus in the message. */
function keepEditing(present, article) {
  const form = find("form.editing", present);
  const focused = document.activeElement;
  const inside = present.contains(focused) && article;
  if (form) {
    const body = find(".body", article);
    body.hidden = true;
    body.after(form);
  }
  return () => (form?.contains(focused) ? focused : inside)?.focus?.({ preventScroll: true });
}

/** Insert an article by its seq, or replace the element of the same message. */
function place(article) {
  const present = document.getElementById(article.id);
  if ("superseded" in article.dataset) {
    // If it is being edited, it is removed when the editor closes, so that no text is lost.
    if (present && find("form.editing", present)) present.dataset.superseded = "";
    else present?.remove();
    return [];
  }
  const outcome = find(".outcome[data-keep]", article);
  if (outcome) {
    outcome.removeAttribute("data-keep");
    const kept = present && find(".outcome", present);
    if (kept) outcome.replaceChildren(...kept.childNodes);
  }
  for (const name of ["data-event", "data-event-no"]) article.removeAttribute(name);
  const sent = article.dataset.clientMsgId;
  if (sent) {
    all(`.pending[data-sending="${CSS.escape(sent)}"]`).forEach((one) => one.remove());
    // What is held waits on, whatever else is sent: "Continue" for instance.
    if (!present && !find("#queued [data-held]")) find("#queued").replaceChildren();
  }
  if (present) {
    for (const details of all("details[open]", present)) {
      const same = find(`details.${details.className}`, article);
      if (same) same.open = true;
    }
    keepBody(present, article);
    const focusAgain = keepEditing(present, article);
    present.replaceWith(article);
    focusAgain();
    return [article];
  }
  const seq = Number(article.dataset.seq);
  const articles = all("article[data-seq]", feed);
  if (articles.length && seq < Number(articles[0].dataset.seq) && find("#older")) {
    return []; // Older than what is loaded: “Older messages” will bring it.
  }
  if (find("#newer") && seq > Number(articles.at(-1)?.dataset.seq || 0)) {
    return []; // The page ends before it: “Newer messages” will bring it.
  }
  const next = articles.find((one) => Number(one.dataset.seq) > seq) || find(".pending", feed);
  feed.insertBefore(article, next || null);
  find("#empty")?.remove();
  return [article];
}

/** The divider stands after the last summarised message that is loaded. */
export function placeDivider() {
  const divider = find("#divider");
  if (!divider) return;
  const boundary = Number(find("[data-boundary]", divider)?.dataset.boundary || 0);
  let last = null;
  let first = null;
  for (const article of all("article[data-seq]", feed)) {
    const beneath = Number(article.dataset.seq) <= boundary;
    article.toggleAttribute("data-beneath", beneath);
    if (beneath) last = article;
    first ||= article;
  }
  const before = last ? last.nextSibling : first;
  if (divider !== before && divider.nextSibling !== before) feed.insertBefore(divider, before);
}

/** Whether the reader's language writes "05:07" or "5:07": with a date, browsers need to be told. */
const five = new Intl.DateTimeFormat([], { timeStyle: "short" }).formatToParts(new Date(2000, 0, 1, 5));
const wide = five.some((part) => part.type === "hour" && part.value.length === 2);
const clock = { hour: wide ? "2-digit" : "numeric", minute: "2-digit" };

/** Show times in the reader's zone, and add the buttons of code and tables. */
export function enhance(root) {
  const now = new Date();
  for (const time of all("time[datetime]:not([data-local])", root)) {
    const date = new Date(time.dateTime);
    const today = date.toDateString() === now.toDateString();
    const day = { day: "numeric", month: "short" };
    if (date.getFullYear() !== now.getFullYear()) day.year = "numeric";
    time.textContent = date.toLocaleString([], today ? clock : { ...day, ...clock });
    time.title = date.toLocaleString();
    time.dataset.local = "";
  }
  join(root);
}

/** Make one block of the parts in which a long block of code streams; give code and tables their buttons. */
export function join(root = document) {
  for (const part of all("#feed .closed > .code.continued")) {
    const code = find("code", part.previousElementSibling);
    if (!code) continue;
    code.append(...find("code", part).childNodes);
    part.remove();
  }
  if (find(".code pre, .table, span.formula", root)) import("./reading.js").then((one) => one.tools(root));
}

/** Remove the oldest articles above the limit; a link loads them again. */
export function trim() {
  const articles = all("article[data-seq]", feed);
  const surplus = articles.length - MOST_ARTICLES;
  if (surplus <= 0) return;
  const release = hold();
  articles.slice(0, surplus).forEach((one) => one.remove());
  find("#older")?.remove();
  const before = articles[surplus].dataset.seq;
  const address = `?before=${before}`;
  const link = make(
    "a",
    {
      id: "older", className: "more-messages", href: address, "hx-get": address,
      "hx-target": "this", "hx-swap": "outerHTML", "hx-trigger": "click, intersect once",
    },
    "Older messages",
  );
  feed.prepend(link);
  htmx.process(link);
  release();
}

export function start() {
  htmx.defineExtension("feed", {
    isInlineSwap: (style) => style === "message",
    handleSwap(style, target, fragment) {
      if (style !== "message") return false;
      return [...fragment.children].flatMap(place);
    },
  });
  enhance(document);
  document.body.addEventListener("htmx:afterSwap", () => {
    placeDivider();
    enhance(document);
  });
  let loads = "";
  document.body.addEventListener("htmx:beforeSwap", (event) => (loads = event.target.id));
  document.body.addEventListener("htmx:afterSettle", () => {
    if (loads === "older") import("./jump.js").then((one) => one.trimNewest(), () => undefined);
    else if (loads === "newer") trim();
    loads = "";
  });
}
