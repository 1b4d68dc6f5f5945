// Files put into the message as text, and one sentence for those that cannot be.

import { box, main, showError } from "./page.js";
import { isLocked, write } from "./composer.js";

const KINDS = [
  [/^image\/(?!svg)/, "an image"],
  [/^audio\//, "a recording"],
  [/^video\//, "a video"],
  [/^application\/pdf$/, "a PDF"],
];
const MOST_NAMED = 5;
const ADVICE = "Only text can be sent; you can copy its words and paste them.";

const longest = () => Number(main.dataset.maxLength);
const isText = (text) => !/[\0\uFFFD]/.test(text);

/** The reason why a file cannot be taken; or its text. */
async function read(file) {
  const kind = KINDS.find(([pattern]) => pattern.test(file.type));
  if (kind) return { reason: kind[1] };
  // Without reading it: no character takes more than four bytes.
  if (file.size > 4 * longest()) return { reason: "too long" };
  // Folders cannot be read.
  const text = await file.text().catch(() => null);
  if (text === null) return { reason: "a folder, or it cannot be read" };
  if (!isText(text)) return { reason: "not a text file" };
  return [...text].length > longest() ? { reason: "too long" } : { text };
}

function add(name, text) {
  const fences = [...text.matchAll(/`+/g)].map((run) => run[0].length);
  const fence = "`".repeat(fences.reduce((most, one) => Math.max(most, one), 2) + 1);
  const whole = (lines) => lines.replace(/\n?$/, "\n");
  const block = [fence, " ", name.replace(/[`\n]/g, ""), "\n", whole(text), fence, "\n"].join("");
  write(box.value ? whole(box.value) + block : block);
}

function sentence(refused) {
  const many = refused.some(({ reason }) => reason === "too long");
  const limit = many ? ` A message has at most ${longest().toLocaleString()} characters.` : "";
  const advice = refused.every(({ reason }) => reason === "too long") ? "" : ` ${ADVICE}`;
  if (refused.length === 1) return `${refused[0].name} is ${refused[0].reason}.${advice}${limit}`;
  const named = refused.slice(0, MOST_NAMED).map(({ name, reason }) => `${name} (${reason})`);
  const rest = refused.length - named.length;
  const more = rest ? ` and ${rest} more` : "";
  return `Not added: ${named.join(", ")}${more}.${advice}${limit}`;
}

/** Add each text file to the message as a fenced block with its name; refuse any other file. */
export async function take(files) {
  const refused = [];
  for (const file of files) {
    const { text, reason } = await read(file);
    if (isLocked()) return showError("The conversation is being compressed. Add the file when that is done.");
    if (reason) refused.push({ name: file.name, reason });
    else add(file.name, text);
  }
  return refused.length ? showError(sentence(refused)) : undefined;
}
