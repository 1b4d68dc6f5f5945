// The actions of the page's buttons, and its seconds counters.

import { all, box, copy, find, main, make, onEscape } from "./page.js";
import { toEnd } from "./scroll.js";
import { write } from "./composer.js";
import { edit } from "./edit.js";
import * as drawer from "./drawer.js";
import * as files from "./files.js";
import * as message from "./message.js";
import * as settings from "./settings.js";
import * as shell from "./shell.js";

const jump = (go) => import("./jump.js").then(go);

function rename() {
  const form = find("#rename");
  const input = find("input", form);
  form.hidden = false;
  find("#title").hidden = true;
  input.value = find("#title").textContent;
  input.focus();
  input.select();
}

function renamed() {
  find("#rename").hidden = true;
  find("#title").hidden = false;
}

/** The text of a message as shown, without the captions of code blocks. Read from a hidden copy. */
function shownText(article) {
  const body = find(".body", article).cloneNode(true);
  if (body.dataset.source) return body.dataset.source;
  all("figcaption, button", body).forEach((one) => one.remove());
  const shown = make("div", { className: "vh" }, body);
  document.body.append(shown);
  const text = body.innerText;
  shown.remove();
  return text;
}

/** The Markdown of a finished reply, fetched from the server; of any other message, its shown text. */
function sourceOf(article) {
  const shown = shownText(article);
  if (!article.matches(".assistant:not([aria-busy])")) return shown;
  const answer = fetch(`messages/${article.dataset.seq}/`, { headers: { Accept: "application/json" } });
  return answer.then((one) => one.json()).then(({ text }) => text || shown).catch(() => shown);
}

const reading = (name) => (button) => import("./reading.js").then((one) => one[name](button));

const ACTIONS = {
  wrap: reading("wrap"),
  view: reading("view"),
  unfold: reading("unfold"),
  "copy-message": (button) => copy(sourceOf(button.closest("article")), button),
  "copy-code": (button) => copy(reading("codeOf")(button), button),
  "to-end"(button, event) {
    event.preventDefault();
    if (find("#newer")) jump(({ toTail }) => toTail());
    else toEnd();
  },
  outline(link, event) {
    event.preventDefault();
    import("./outline.js").then(({ toggle }) => toggle(link, event.detail > 0));
  },
  find(link, event) {
    event.preventDefault();
    import("./find.js").then(({ open }) => open(""));
  },
  dismiss: (button) => button.closest(".card").remove(),
  starter: (button) => write(button.textContent.trim()),
  settings: () => settings.open("#settings-title"),
  drawer: drawer.show,
  attach: files.choose,
  reload: () => location.reload(),
  "close-drawer": drawer.hide,
  rename,
  ...shell.actions,
  ...message.actions,
  "to-box": () => box.focus(),
  // Puts the queued text into the box, before any text there. The server takes it off the queue.
  "edit-queued": (button) => write([find("q", button.closest(".queued")).textContent, find("#text").value].filter(Boolean).join("\n")),
  // Its module is loaded with the first press.
  lines(root, event) {
    const pressed = event.target.closest("button");
    if (!pressed) return;
    event.preventDefault();
    import("./lines.js").then(({ press }) => press(pressed));
  },
  "edit-message": (button) => edit(button.closest("article")),
};

function clicked(event) {
  const button = event.target.closest("[data-action]");
  if (button) ACTIONS[button.dataset.action](button, event);
  const source = event.target.closest('a[href^="#m-"]');
  if (source) {
    event.preventDefault();
    jump(({ to }) => to(source.hash.slice(3)));
  }
}

function tick() {
  const now = Date.now();
  for (const span of all("[data-since]")) {
    const seconds = Math.floor((now - Date.parse(span.dataset.since)) / 1000);
    if (seconds > 1) span.textContent = ` · ${seconds} s`;
  }
  for (const line of all("[data-retry-after]")) {
    line.dataset.from ||= new Date(now).toISOString();
    const left = Math.ceil(Number(line.dataset.retryAfter) - (now - Date.parse(line.dataset.from)) / 1000);
    if ("asked" in line.dataset) line.textContent = left > 0 ? ` · the model server is busy, asked again in ${left} s` : "";
    else line.textContent = left > 0 ? `Try again in ${left} s.` : "You can try again now.";
  }
}

export function start() {
  settings.start();
  document.addEventListener("click", clicked);
  const form = find("#rename");
  form?.addEventListener("htmx:afterRequest", renamed);
  form?.addEventListener("focusout", renamed);
  const leave = () => {
    renamed();
    find("[data-action=rename]").focus();
  };
  if (form) onEscape(form, leave);
  setInterval(tick, 1000);
}

let titled = find("#title")?.textContent;

/** Copy the conversation's title to the window's title. True if it has changed. */
export function retitle() {
  const title = find("#title")?.textContent;
  if (!main.dataset.code || title === titled) return false;
  titled = title;
  document.title = `${title} · Palimpsest`;
  return true;
}
