// Text files, dropped on the page, pasted or chosen; what takes them is loaded with the first.

import { box, find, unloaded } from "./page.js";

const zone = find("#drop");

function take(given) {
  const files = [...given]; // The event's own list is empty once the event is over.
  return import("./intake.js").then((intake) => intake.take(files), unloaded);
}

/** Import the file if it was dropped on the offer to do so, or is an export by its name. */
function bring(file, target) {
  const offer = find("#import-offer");
  if (!file || !offer || !(offer.contains(target) || /\.zip$|^conversations\.json$/i.test(file.name))) return false;
  import("./importing.js").then(({ send }) => send(offer, file), unloaded);
  return true;
}

function dragged(event) {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  // Leaving an element for another one of the page is not leaving the page.
  zone.hidden = event.type === "drop" || (event.type === "dragleave" && !event.relatedTarget);
  if (event.type !== "drop" || bring(event.dataTransfer.files[0], event.target)) return;
  take(event.dataTransfer.files);
}

/** Where text comes along, as from a word processor, the text is pasted and its picture is not. */
function pasted(event) {
  const { files, types } = event.clipboardData ?? {};
  if (!files?.length || types.includes("text/plain")) return;
  if (event.target !== box && event.target.closest("input, dialog")) return;
  event.preventDefault();
  take(files);
}

export const choose = () => find("#files").click();

export function start() {
  find("#files").addEventListener("change", async ({ target }) => {
    await take(target.files);
    target.value = ""; // So that the same file can be chosen again.
  });
  find("#import-file")?.addEventListener("change", ({ target }) => bring(target.files[0], target));
  for (const name of ["dragover", "dragleave", "drop"]) document.addEventListener(name, dragged);
  document.addEventListener("paste", pasted);
}
