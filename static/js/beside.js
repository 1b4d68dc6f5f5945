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
  const year = date.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  const brief = () => date.toLocaleString([], { year, month: "short", day: "numeric", hour: "numeric", minute: "2-digit" });
  const shorter = "ago" in time.dataset ? ago(date) : "brief" in time.dataset && brief();
  time.textContent = shorter || exact;
  if (shorter) time.title = exact;
}
shell.start();
