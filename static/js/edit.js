// Editing a message of one's own in its place: sending it makes the answer anew.

import { all, box, find, make, onEscape } from "./page.js";

export function edit(article) {
  if (find("form.editing", article)) return;
  const body = find(".body", article);
  const text = make("textarea", { name: "text", value: body.textContent, "aria-label": "Edit message" });
  const opener = document.activeElement;
  const close = (next) => {
    form.remove();
    body.hidden = false;
    next.focus();
  };
  const cancel = make("button", { type: "button" }, "Cancel");
  const form = make(
    "form",
    { className: "editing", "hx-post": `messages/${article.dataset.seq}/edit/`, "hx-swap": "none" },
    text,
    make("p", { className: "buttons" }, make("button", { className: "primary" }, "Send again"), cancel),
  );
  cancel.addEventListener("click", () => close(opener));
  onEscape(form, () => close(opener));
  form.addEventListener("htmx:afterRequest", (event) => event.detail.successful && close(box));
  body.hidden = true;
  body.after(form);
  htmx.process(form);
  text.focus();
}

/** The last message that can still be edited. */
export function editLast() {
  const last = all("article.user[data-seq]:not([data-beneath])").at(-1);
  if (last) edit(last);
}
