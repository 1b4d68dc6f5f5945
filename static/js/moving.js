// Moving a conversation to a project: from its menu, or by dragging it onto the project's name.

import { all, comeBack, find, post, showError } from "./page.js";
import { address, refresh } from "./list.js";
import { offer } from "./row.js";
import { show } from "./menu.js";

const menu = find("#move");
let dragged = null; // The conversation that is being dragged: {which, title, project}.

const nameOf = (slug) => find(`#move [value="${CSS.escape(slug)}"] span:last-child`)?.textContent.trim() ?? slug;

/** Open the menu of projects in the place of the conversation's own. */
export function choose(item, button) {
  find("#entry").hidePopover();
  for (const one of all("button", menu)) one.hidden = one.value === (item.project ?? "");
  show(menu, button);
}

/** Move a conversation; Undo is offered. An empty project: to none. */
export async function move({ which, title, project = "" }, to) {
  menu.hidePopover();
  if (to === project) return;
  const answer = await post(address(which, "settings"), { project: to }).catch(() => ({ ok: false, json: {} }));
  if (!answer.ok) return showError(answer.json.error?.message || "That did not work. Try again in a moment.");
  offer({ which, title, back: "settings", fields: { project }, words: to ? `Moved to ${nameOf(to)}:` : "Taken out of its project:" });
  await refresh();
  comeBack(find(`#links [data-code="${which}"] .more`));
}

const target = (event) => dragged && event.target.closest?.("#nav [data-project]");

function over(event) {
  const place = target(event);
  for (const one of all("#projects .over")) one.classList.toggle("over", one === place);
  if (!place) return;
  place.classList.add("over");
  event.preventDefault();
}

function dropped(event) {
  const place = target(event);
  if (!place) return;
  event.preventDefault();
  move(dragged, place.dataset.project);
}

function ended() {
  dragged = null;
  find("#projects .out").hidden = true;
  for (const one of all("#projects .over")) one.classList.remove("over");
}

document.addEventListener("dragover", over);
document.addEventListener("drop", dropped);
document.addEventListener("dragend", ended);

/** A drag has begun in the navigation. */
export function drag(element) {
  const item = element.closest?.("#links [data-code]");
  if (!item) return;
  dragged = { which: item.dataset.code, title: find("a > span", item).textContent, project: item.dataset.in };
  find("#projects .out").hidden = !dragged.project;
}
