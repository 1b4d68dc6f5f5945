// Choosing another model: first, a look at the size of its next request.

import { all, find } from "./page.js";
import { settle } from "./settings.js";

let current = find("#model")?.value;

async function usageWith(name) {
  const address = `context/?model=${encodeURIComponent(name)}`;
  const answer = await fetch(address, { headers: { Accept: "application/json" } }).catch(() => null);
  return answer?.ok ? (await answer.json()).context : null;
}

/** True if the model may be chosen. Asks the person only if the conversation would be compressed. */
export async function agreed(name) {
  const next = await usageWith(name);
  if (!next || next.usage < next.threshold) return true;
  const share = Math.round(next.share * 100);
  const taken = `${next.total.toLocaleString("en")} of ${next.window.toLocaleString("en")} tokens (${share} %)`;
  return asked(
    `With ${name} the next request would take ${taken}, so older messages would be compressed before the next reply, or left out of what the model sees. Nothing is deleted.`,
  );
}

/** The person's answer; Esc means no. */
function asked(words) {
  const dialog = find("#switch");
  find("#switch-words").textContent = words;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((answer) => {
    dialog.addEventListener("close", () => answer(dialog.returnValue === "switch"), { once: true });
  });
}

function show(name) {
  current = name;
  for (const one of all("#model, #settings-model")) {
    if (!all("option", one).some((option) => option.value === name)) one.append(new Option(name));
    one.value = name;
    settle(one);
  }
}

/** Show the current model in all pickers, also after a change in another tab or by a command. */
export function follow() {
  const name = find("#chip [data-model]")?.dataset.model;
  if (name && find("#model") && name !== current) show(name);
}

const pickerOf = (event) => event.target.matches("form") && find("select[name=model]", event.target);

export function start() {
  document.body.addEventListener("htmx:confirm", async (event) => {
    const select = pickerOf(event);
    if (!select || select.value === current) return;
    event.preventDefault();
    if (await agreed(select.value)) event.detail.issueRequest(true);
    else select.value = current;
  });
  document.body.addEventListener("htmx:afterRequest", (event) => {
    const select = pickerOf(event);
    if (select) show(event.detail.successful ? select.value : current);
  });
}
