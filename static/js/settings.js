// The settings of the conversation: read anew unless some are unsaved, and only what was changed is sent.

import { all, find, main } from "./page.js";

const dialog = find("#settings");

const isChanged = (field) =>
  field.options ? all("option", field).some((one) => one.selected !== one.defaultSelected) : field.value !== field.defaultValue;

/** What it shows now is what is stored. */
export function settle(field) {
  if (!field.options) field.defaultValue = field.value;
  else for (const one of all("option", field)) one.defaultSelected = one.selected;
}

const fields = () => all("#settings-form [name]:not([type=hidden])");

/** Whether something was changed and neither saved nor cancelled, however the dialog was left. */
export const unsaved = () => fields().some(isChanged);

/** Show them as they are now, in another tab or by a command too; the focus goes to `wanted`. */
export function open(wanted) {
  const show = () => {
    dialog.showModal();
    find(wanted, dialog)?.focus();
  };
  if (unsaved()) {
    find("#settings-said").textContent = "Your changes are not saved yet.";
    return Promise.resolve(show());
  }
  const form = { target: "#settings-form", select: "#settings-form", swap: "outerHTML" };
  // That there is no connection is said by the page.
  return htmx.ajax("GET", main.dataset.urlPage, form).then(show, () => undefined);
}

export function start() {
  dialog?.addEventListener("htmx:configRequest", (event) => {
    for (const field of fields()) {
      if (!isChanged(field)) delete event.detail.parameters[field.name];
    }
  });
  dialog?.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful) {
      fields().forEach(settle);
      dialog.close();
    } else find("#settings-said").replaceChildren(...find("#alerts").children); // The page lies behind the dialog.
  });
  dialog?.addEventListener("reset", () => dialog.close());
}
