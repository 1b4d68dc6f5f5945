// Before another model is taken: what the next request would be for it.

import { all, find } from "./page.js";

let current = find("#model")?.value;

async function usageWith(name) {
  const address = `context/?model=${encodeURIComponent(name)}`;
  const answer = await fetch(address, { headers: { Accept: "application/json" } }).catch(() => null);
  return answer?.ok ? (await answer.json()).context : null;
}

/** Whether to take it: asked only if the conversation would be compressed for it. */
export async function agreed(name) {
  const next = await usageWith(name);
  if (!next || next.usage < next.threshold) return true;
  const share = Math.round(next.usage * 100);
  const taken = `${next.total.toLocaleString("en")} of ${next.budget.toLocaleString("en")} tokens (${share} %)`;
  return asked(
    `With ${name} the next request would take ${taken}, so older messages are compressed before the next reply, or left out of what the model sees. Nothing is deleted.`,
  );
}

/** The answer to the question; left by Esc, it is no. */
function asked(words) {
  const dialog = find("#switch");
  find("#switch-words").textContent = words;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((answer) => {
    dialog.addEventListener("close", () => answer(dialog.returnValue === "switch"), { once: true });
  });
}

export function start() {
  for (const select of all("#model, #settings-model")) {
    const form = select.form;
    form.addEventListener("htmx:confirm", async (event) => {
      if (select.value === current) return;
      event.preventDefault();
      if (await agreed(select.value)) event.detail.issueRequest(true);
      else select.value = current;
    });
    form.addEventListener("htmx:afterRequest", (event) => {
      if (event.detail.successful) current = select.value;
      for (const one of all("#model, #settings-model")) one.value = current;
    });
  }
}
