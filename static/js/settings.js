// The conversation's settings: reloaded when opened, unless some are unsaved; only changes are sent.

import { all, find, main } from "./page.js";

const dialog = find("#settings");

const isChanged = (field) =>
  field.type === "radio" ? field.checked !== field.defaultChecked :
  field.options ? all("option", field).some((one) => one.selected !== one.defaultSelected) : field.value !== field.defaultValue;

/** Take the field's present value as the stored one. */
export function settle(field) {
  if (field.type === "radio") field.defaultChecked = field.checked;
  else if (!field.options) field.defaultValue = field.value;
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
  const form = { target: "#settings-form", swap: "outerHTML" };
  // If there is no connection, the page says so.
  return htmx.ajax("GET", `${main.dataset.urlPage}?settings`, form).then(show, () => undefined);
}

export function start() {
  dialog?.addEventListener("htmx:configRequest", (event) => {
    const changed = new Set(fields().filter(isChanged).map((field) => field.name));
    const kept = find("[value=own]", dialog).checked ? [] : ["threshold_percent", "keep_turns"]; // A preset has its own.
    for (const { name } of fields()) {
      if (!changed.has(name) || kept.includes(name)) delete event.detail.parameters[name];
    }
  });
  dialog?.addEventListener("input", ({ target }) => {
    if (target.closest(".figures-behind")) find("[value=own]", dialog).checked = true;
    else if (target.type === "radio") for (const name in target.dataset) find(`#settings-${name}`).value = target.dataset[name];
  });
  dialog?.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful) {
      fields().forEach(settle);
      dialog.close();
    } else find("#settings-said").replaceChildren(...find("#alerts").children); // Into the dialog, which covers the page.
  });
  dialog?.addEventListener("reset", () => dialog.close());
}
