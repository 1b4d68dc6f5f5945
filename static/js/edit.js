// Editing one's own message in place. Sending it starts a new reply.

import { all, box, comeBack, feed, find, fit, isComposing, make, onEscape, sends, uuid } from "./page.js";
import { sendAsBranch } from "./message.js";

/** A warning that names how many of the loaded messages an edit of this one replaces. */
function replaces(article) {
  const articles = all("article[data-seq]", feed);
  const count = articles.length - 1 - articles.indexOf(article);
  if (find("#newer")) return "Replaces the messages below";
  if (count === 1) return "Replaces the message below";
  return count ? `Replaces the ${count} messages below` : "";
}

/** The warning beside the buttons, with a way to keep those messages: a branch. */
function warning(article, text) {
  const words = make("span", {}, replaces(article));
  const branch = make("button", { type: "button", className: "link" }, "Branch instead");
  const note = make("span", { className: "hint", hidden: !words.textContent }, words, " · ", branch);
  branch.addEventListener("click", async () => {
    if (!text.value.trim()) return;
    branch.disabled = true; // Until the branch exists or has failed.
    const before = text.defaultValue;
    text.defaultValue = text.value; // The branch takes the text, so leaving the page loses nothing.
    branch.disabled = await sendAsBranch(text.value, Number(article.dataset.seq) - 1, uuid());
    if (!branch.disabled) text.defaultValue = before;
  });
  // Look the article up each time: an update of the message moves the editor into another element.
  text.addEventListener("input", () => {
    words.textContent = replaces(text.closest("article"));
    note.hidden = !words.textContent;
  });
  return note;
}

export function edit(article) {
  if (find("form.editing", article)) return;
  const body = find(".body", article);
  const text = make("textarea", { name: "text", rows: 1, defaultValue: body.dataset.source ?? body.textContent, "aria-label": "Edit message" });
  const opener = document.activeElement;
  const close = (next) => {
    const shown = form.closest("article");
    form.remove();
    find(".body", shown).hidden = false;
    if ("superseded" in shown.dataset) shown.remove();
    const target = next.isConnected ? next : find("[data-action=edit-message]", shown);
    comeBack(target?.isConnected ? target : box);
  };
  const cancel = make("button", { type: "button" }, "Cancel");
  const again = make("button", { className: "primary" }, "Send again");
  const form = make(
    "form",
    { className: "editing", "hx-post": `messages/${article.dataset.seq}/edit/`, "hx-swap": "none" },
    text,
    make("p", { className: "buttons" }, again, cancel, warning(article, text)),
  );
  cancel.addEventListener("click", () => close(opener));
  onEscape(form, () => close(opener));
  text.addEventListener("input", () => fit(text));
  text.addEventListener("keydown", (event) => {
    const sent = event.key === "Enter" && (event.ctrlKey || event.metaKey) && !isComposing(event);
    if (!sent && !sends(event)) return;
    event.preventDefault();
    if (text.value.trim()) form.requestSubmit();
  });
  form.addEventListener("htmx:afterRequest", (event) => event.detail.successful && close(box));
  body.hidden = true;
  body.after(form);
  htmx.process(form);
  fit(text);
  text.focus();
  text.setSelectionRange(text.value.length, text.value.length);
}

/** The last message that can still be edited. */
export function editLast() {
  const last = all("article.user[data-seq]:not([data-beneath])").at(-1);
  if (last) edit(last);
}
