// Swipes on touch screens: from near the left edge for the navigation, and to put away what is open.

import { find, main } from "./page.js";

// Browsers take the first pixels of the edge for “back”.
const FROM = 24;
const TO = 112;
const DECIDED = 12; // pixels until it is clear where a finger goes
const FAR = 56; // pixels that count as a swipe
const FAST = 700; // milliseconds: slower is reading, not swiping
const HEAD = 72; // A sheet is pulled down by its head: the rest of it scrolls.

let swipe = null; // The finger that may be swiping: {x, y, at, sheet, axis}.

/** True if the finger is on something that takes sideways moves: wide code, a table, a text box. */
function movesSideways(element) {
  for (let one = element; one && one !== main; one = one.parentElement) {
    if (one.matches("input, textarea, select")) return true;
    if (one.scrollWidth > one.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(one).overflowX)) return true;
  }
  return false;
}

function began(event) {
  swipe = null;
  if (event.touches.length > 1 || (window.visualViewport?.scale ?? 1) > 1.05) return;
  const { clientX: x, clientY: y } = event.touches[0];
  const { target, timeStamp: at } = event;
  const sheet = target.closest("[data-swipe]");
  if (sheet) {
    const narrow = getComputedStyle(sheet).position === "fixed";
    const grip = sheet.dataset.swipe === "left" || y - sheet.getBoundingClientRect().top < HEAD;
    if (narrow && grip && !target.closest("input, textarea")) swipe = { x, y, at, sheet, down: sheet.dataset.swipe === "down" };
  } else if (x >= FROM && x <= TO && !find("#nav").checkVisibility() && !find("dialog[open], :popover-open")) {
    if (getSelection().isCollapsed && !movesSideways(target)) swipe = { x, y, at };
  }
}

/** How far the finger has gone the way that counts, and how far across it. */
function way({ x, y, sheet, down }, touch) {
  const [right, below] = [touch.clientX - x, touch.clientY - y];
  if (down) return [below, Math.abs(right)];
  return [sheet ? -right : right, Math.abs(below)];
}

function moved(event) {
  if (!swipe) return;
  const [along, across] = way(swipe, event.touches[0]);
  if (event.touches.length > 1 || (Math.max(Math.abs(along), across) > DECIDED && along < 2 * across && !swipe.goes)) return given();
  if (along > DECIDED) swipe.goes = true;
  if (swipe.sheet && swipe.goes) {
    const by = `${Math.max(0, along)}px`;
    swipe.sheet.style.translate = swipe.down ? `0 ${by}` : `-${by}`;
  }
}

/** Put the sheet back where it was, and forget the finger. */
function given() {
  swipe?.sheet?.style.removeProperty("translate");
  swipe = null;
}

function ended(event) {
  if (!swipe) return;
  const { sheet, at, goes, down } = swipe;
  const [along, across] = way(swipe, event.changedTouches[0]);
  given();
  const { width, height } = sheet?.getBoundingClientRect() ?? {};
  const size = sheet ? (down ? height : width) / 3 : Infinity;
  if (!goes || along < FAR || along < 2 * across || (event.timeStamp - at > FAST && along < size)) return;
  if (sheet) find("[data-action^=close], .close", sheet).click();
  else find("[data-action=nav]").click();
}

document.addEventListener("touchstart", began, { passive: true });
document.addEventListener("touchmove", moved, { passive: true });
document.addEventListener("touchend", ended, { passive: true });
document.addEventListener("touchcancel", given, { passive: true });
