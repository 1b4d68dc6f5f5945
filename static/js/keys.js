// Keyboard shortcuts. Ctrl+R, F, S, N and L are left to the browser.

import { all, box, code, composer, find, isComposing, main, sends } from "./page.js";
import { editLast } from "./edit.js";
import * as slash from "./slash.js";
import { isOpen, submit } from "./composer.js";
import { actions as shell, isSearch } from "./shell.js";

function send(event) {
  event.preventDefault();
  if (slash.isShown() && !slash.isWhole()) slash.complete();
  else if (!slash.run(box.value)) submit();
}

function inBox(event) {
  if (slash.isShown()) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      slash.move(event.key === "ArrowDown" ? 1 : -1);
      return;
    }
    if (event.key === "Tab") {
      event.preventDefault();
      slash.complete();
      return;
    }
  }
  if (event.key === "ArrowUp" && !box.value && !event.altKey) {
    event.preventDefault();
    editLast();
  }
  if (sends(event)) send(event);
}

/** Close or stop one thing, the innermost first. The browser closes menus and dialogs itself. */
function escape(event) {
  if (event.defaultPrevented || find("dialog[open], :popover-open")) return;
  if (event.shiftKey) box.focus();
  else if (slash.isShown()) slash.hide();
  else if (!find("#drawer").hidden) find("[data-action=close-drawer]").click();
  else if (isOpen()) find(".stop", composer).click();
  else return;
  event.preventDefault();
}

function toMessage(step) {
  const articles = all("article[data-seq]");
  const at = articles.indexOf(document.activeElement?.closest("article[data-seq]"));
  const next = at < 0 ? articles.at(-1) : articles[at + step];
  next?.focus();
}

const OF_MESSAGE = { c: "[data-action=copy-message]", e: "[data-action=edit-message]", r: '[hx-post="regenerate/"]' };

/** Press the button of a focused message for this letter, if it has one. */
function ofMessage(event) {
  const button = all(OF_MESSAGE[event.key.toLowerCase()], event.target).find((one) => one.checkVisibility());
  if (!button) return;
  event.preventDefault();
  button.click();
  if (event.key === "r") box.focus(); // The reply makes room for the next one.
}

function anywhere(event) {
  const control = event.ctrlKey || event.metaKey;
  if (event.key === "Escape") escape(event);
  // Esc works with shortcuts turned off too: it leaves dialogs.
  else if (!("shortcuts" in main.dataset)) return;
  else if (event.altKey && !control && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
    event.preventDefault();
    toMessage(event.key === "ArrowUp" ? -1 : 1);
  } else if (control && event.shiftKey && event.code === "KeyO") {
    event.preventDefault();
    find("#new").click();
  } else if (control && event.shiftKey && event.code === "KeyE" && code) {
    event.preventDefault();
    find("#drawer-button").click();
  } else if (control && event.shiftKey && event.code === "KeyL" && code) {
    event.preventDefault();
    find("#outline-button").click();
  } else if (isSearch(event)) {
    event.preventDefault();
    shell.palette();
  } else if (control && event.key === "/") {
    event.preventDefault();
    find("#help").showModal();
  } else if (!control && !event.altKey && !event.shiftKey && event.key.toLowerCase() in OF_MESSAGE && event.target.matches("article[data-seq]")) {
    ofMessage(event);
  }
}

export function start() {
  const unlessComposing = (handler) => (event) => isComposing(event) || handler(event);
  box.addEventListener("keydown", unlessComposing(inBox));
  document.addEventListener("keydown", unlessComposing(anywhere));
  composer.addEventListener("submit", (event) => {
    if (event.submitter && !event.submitter.matches(".send")) return;
    send(event);
  });
}
