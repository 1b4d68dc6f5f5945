// What a reader can do with code, tables and long messages. Loaded when a page first has any.

import { all, find, make } from "./page.js";

const tool = (action, label) => make("button", { type: "button", className: `quiet ${action}`, "data-action": action }, label);

/** Marks what is wider than its box: only that can be wrapped, or be seen in full. */
const widths = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    (target.closest("figure") || target).toggleAttribute("data-wide", target.scrollWidth > target.clientWidth);
  }
});

/** Add the buttons of code and tables, and let the keyboard scroll them. */
export function tools(root) {
  for (const wide of all(":is(.code pre, .table, span.formula):not([tabindex])", root)) {
    // Of what is being written, each update replaces all but a block of code.
    if (wide.localName !== "pre" && wide.closest(".open")) continue;
    wide.tabIndex = 0;
    widths.observe(wide);
    const view = tool("view", "Full view");
    if (wide.localName === "div") wide.after(view);
    if (wide.localName !== "pre") continue;
    const wrap = tool("wrap", "Wrap");
    wrap.setAttribute("aria-pressed", wide.parentElement.matches(".wrapped"));
    wide.previousElementSibling.append(wrap, view, tool("copy-code", "Copy"));
  }
}

/** The block of code that this begins with, as its kind and language; undefined for anything else. */
function begun(root) {
  const first = root.firstElementChild;
  if (!first?.matches(".code")) return undefined;
  return `${first.matches(".continued")} ${find("figcaption", first).firstChild?.data}`;
}

/** While a block of code is written, replace its text only: a press on its header is not lost. */
function goesOn(event) {
  const { target, detail: part } = event;
  const open = target.matches(".closed") ? target.nextElementSibling : target;
  if (!open.matches(".open") || !begun(open) || begun(open) !== begun(part)) return;
  const [before, now] = [open, part].map((one) => one.firstElementChild);
  const focused = before.contains(document.activeElement) ? document.activeElement : null;
  find("code", before).replaceChildren(...find("code", now).childNodes);
  if (open === target) event.preventDefault();
  else now.replaceWith(before); // Finished, the block itself moves.
  queueMicrotask(() => focused?.focus({ preventScroll: true }));
}

/** In a reply that is written anew, as at its end, the blocks stay wrapped that were. */
function wrappedStill({ detail: { target, fragment } }) {
  if (!target.matches(".feed")) return;
  for (const article of all("article", fragment)) {
    const blocks = all(".code", article);
    all(`#${article.id} .code`, target).forEach((one, at) => blocks[at]?.classList.toggle("wrapped", one.matches(".wrapped")));
  }
}

document.body.addEventListener("delta", goesOn);
document.body.addEventListener("htmx:oobBeforeSwap", wrappedStill);

/** The text of a block of code; while it is written, with its open end. */
export function codeOf(button) {
  const figure = button.closest("figure");
  const end = figure.matches(".closed > :last-child") && find(".open > .continued code", figure.closest(".body"));
  return find("code", figure).textContent + (end ? end.textContent : "");
}

/** Wrap the long lines of a block of code, or let it scroll again. */
export function wrap(button) {
  const wrapped = button.closest("figure").classList.toggle("wrapped");
  button.setAttribute("aria-pressed", wrapped);
}

/** Show a block of code or a table alone, as wide as the screen. */
export function view(button) {
  const figure = button.closest("figure");
  const shown = (figure ? find("pre", figure) : button.previousElementSibling).cloneNode(true);
  const name = figure ? find("figcaption", figure).firstChild?.textContent || "Code" : "Table";
  const body = make("div", { className: "body", tabIndex: 0, role: "region", "aria-label": name }, shown);
  const close = make("button", { type: "button", className: "quiet", "data-action": "close-dialog" }, "Close");
  const dialog = make("dialog", { className: "full", "aria-label": `${name} in full` }, make("header", {}, make("h2", {}, name), close), body);
  shown.removeAttribute("tabindex");
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  body.focus();
}

/** Show all of a long message, or fold it again. */
export function unfold(button) {
  const body = find(".body", button.closest("article"));
  const folded = body.classList.toggle("folded");
  button.setAttribute("aria-expanded", !folded);
  button.textContent = folded ? "Show all" : "Show less";
  if (folded) body.closest("article").scrollIntoView({ block: "nearest" });
}
