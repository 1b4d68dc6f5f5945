// The conversation's settings: reloaded when opened, unless some are unsaved; only changes are sent.

import { all, find, main } from "./page.js";

const dialog = find("#settings");

const isChanged = (field) =>
  field.options ? all("option", field).some((one) => one.selected !== one.defaultSelected) : field.value !== field.defaultValue;

/** Take the field's present value as the stored one. */
export function settle(field) {
  if (!field.options) field.defaultValue = field.value;
  else for (const one of all("option", field)) one.defaultSelected = one.selected;
}

const fields = () => all("#settings-form [name]:not([type=hidden])");

/** True if something was changed and neither saved nor cancelled. */
export const unsaved = () => fields().some(isChanged);

/** Open the dialog with the current settings, and focus `wanted`. */
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
  // If there is no connection, the page says so.
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
    } else find("#settings-said").replaceChildren(...find("#alerts").children); // Into the dialog, which covers the page.
  });
  dialog?.addEventListener("reset", () => dialog.close());
}
