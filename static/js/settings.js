// The settings of the conversation: read anew each time, and only what was changed is sent.

import { all, find, main } from "./page.js";

const dialog = find("#settings");

/** Show them as they are now, in another tab or by a command too; the focus goes to `wanted`. */
export function open(wanted) {
  const show = () => {
    dialog.showModal();
    find(wanted, dialog)?.focus();
  };
  const form = { target: "#settings-form", select: "#settings-form", swap: "outerHTML" };
  // That there is no connection is said by the page.
  return htmx.ajax("GET", main.dataset.urlPage, form).then(show, () => undefined);
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
