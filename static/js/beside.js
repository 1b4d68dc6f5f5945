// The entry point of pages beside the list that show no conversation: those of the search.

import { all, find, main } from "./page.js";
import * as shell from "./shell.js";
import { ago } from "./ago.js";

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-action]");
  if (button) shell.actions[button.dataset.action]?.(button, event);
  else if (event.target.closest(".card .close")) find("#alerts").replaceChildren();
});
document.addEventListener("keydown", (event) => {
  if (!shell.isSearch(event) || !("shortcuts" in main.dataset)) return;
  event.preventDefault();
  shell.actions.palette();
});
for (const time of all("main time[datetime]")) {
  const date = new Date(time.dateTime);
  const exact = date.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  time.textContent = "ago" in time.dataset ? ago(date) : exact;
  if ("ago" in time.dataset) time.title = exact;
}
shell.start();
