// Text files, dropped on the page or chosen.

import { box, find, showError } from "./page.js";
import { isLocked, write } from "./composer.js";

/** Add each text file to the message as a fenced block with its name; refuse any other file. */
async function take(files) {
  for (const file of files) {
    const text = await file.text();
    if (/[\0\uFFFD]/.test(text)) {
      showError(`${file.name} is not a text file. Only text can be sent.`);
      continue;
    }
    const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((run) => run[0].length));
    const fence = "`".repeat(longest + 1);
    const block = `${fence} ${file.name.replace(/[`\n]/g, "")}\n${text.replace(/\n?$/, "\n")}${fence}\n`;
    write(box.value ? `${box.value.replace(/\n?$/, "\n")}${block}` : block);
  }
}

function takeDropped(event) {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  if (event.type === "drop" && !isLocked()) take(event.dataTransfer.files);
}

export const choose = () => find("#files").click();

export function start() {
  find("#files").addEventListener("change", async ({ target }) => {
    if (!isLocked()) await take(target.files);
    target.value = ""; // So that the same file can be chosen again.
  });
  for (const name of ["dragover", "drop"]) document.addEventListener(name, takeDropped);
}
