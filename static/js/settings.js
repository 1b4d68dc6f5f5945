// The settings of the conversation: read anew each time, and only what was changed is sent.

import { all, find, main } from "./page.js";

const dialog = find("#settings");

/** Show them as they are now, in another tab or by a command too; the focus goes to `wanted`. */
export async function open(_button, _event, wanted = "#settings-title") {
  await htmx.ajax("GET", main.dataset.urlPage, { target: "#settings-form", select: "#settings-form", swap: "outerHTML" });
  dialog.showModal();
  find(wanted, dialog)?.focus();
}

const isChanged = (field) =>
  field.options ? all("option", field).some((one) => one.selected !== one.defaultSelected) : field.value !== field.defaultValue;

export function start() {
  dialog?.addEventListener("htmx:configRequest", (event) => {
    for (const field of all("#settings-form [name]:not([type=hidden])")) {
      if (!isChanged(field)) delete event.detail.parameters[field.name];
    }
  });
  dialog?.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful) dialog.close();
    // The page, where an error is shown, lies behind the dialog.
    else find("#settings-said").replaceChildren(...find("#alerts").children);
  });
}
