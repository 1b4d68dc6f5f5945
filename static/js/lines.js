// Changes of single lines of the summary, and of a preview, in the drawer and in its notice. Loaded with the first press.

import { all, comeBack, find, fit, make, onEscape, post, showError, tell } from "./page.js";
import { refresh } from "./drawer.js";
import { signedOut } from "./socket.js";

const SAID = {
  strike: "Line struck", forget: "Line forgotten", pin: "Line pinned", unpin: "Line unpinned", rewrite: "Line saved", add: "Line added",
};
let asking = false; // One change at a time: a second press of a button is not a second change.

const more = (item) => item && find("summary", item);

/** The line after this one, or the one before it. */
function neighbour(item) {
  const items = all("[data-line]", item.closest("[data-lines]"));
  const place = items.indexOf(item);
  return items[place + 1] ?? items[place - 1];
}

/** POST the fields. The answer, or null after telling why there is none. */
async function ask(url, fields) {
  if (asking) return null;
  asking = true;
  const answer = await post(url, fields).catch(() => null);
  asking = false;
  if (answer?.ok) return answer;
  if (answer?.status === 401) signedOut();
  else {
    const { code = "", message } = answer?.json.error ?? {};
    showError(message || "No connection. Nothing was changed; try again in a moment.").dataset.code = code;
  }
  return answer;
}

/** Show the lines as they are now. Not by htmx, which drops requests that meet the drawer's own. */
async function reread(root) {
  const answer = await fetch(root.dataset.lines, { headers: { "HX-Request": "true" } }).catch(() => null);
  const shown = document.getElementById(root.id);
  if (answer?.ok && shown) shown.outerHTML = await answer.text();
}

/** The line with this text, in what now stands in the place of `root`. */
const saying = (root, text) => all(`#${root.id} [data-line]`).find((one) => one.dataset.text === text);

/** Change a line, show the summary as it is then, and focus the element with the id `next`, or the changed line. */
async function change(root, fields, next) {
  const answer = await ask(find("form", root).action, fields);
  const stale = answer?.json.error?.code === "stale_version";
  if (!answer || (!answer.ok && !stale)) return;
  for (const item of all(".editing", root)) shut(item);
  await reread(root);
  const changed = fields.line && more(saying(root, fields.text.trim()));
  comeBack(changed || document.getElementById(next) || find(`#${root.id} summary`));
  // While the editor was open, the rest of the drawer was left as it was.
  refresh();
  const [act] = fields.act.split(" ");
  if (answer.ok) tell(`${SAID[act]}. Undo takes it back.`);
  else if (fields.text) offer(document.getElementById(root.id), fields);
}

/** After a refusal, the person's text again: at the same line, or as a new one. */
function offer(root, { was, text }) {
  const item = saying(root, was);
  if (item) return edit(item, text);
  const form = find(".add", root);
  form.open = true;
  const box = find("textarea", form);
  box.value = text;
  return box.focus();
}

/** Close the editor of a line. */
function shut(item) {
  find(".editor", item)?.remove();
  item.classList.remove("editing");
}

/** Open an editor in place of a line's text. */
function edit(item, text = item.dataset.text) {
  const root = item.closest("[data-lines]");
  if (item.matches(".editing")) return find("textarea", item).focus();
  const box = make("textarea", { defaultValue: item.dataset.text, rows: 2, id: `text-${item.id}`, "aria-label": "Line" });
  const save = () =>
    change(
      root,
      { version: find("[name=version]", root).value, act: "rewrite", line: item.dataset.line, text: box.value, was: item.dataset.text },
      more(item).id,
    );
  const leave = () => {
    shut(item);
    more(item).focus();
  };
  const buttons = make("p", { className: "buttons" });
  const button = (words, run) => {
    const made = make("button", { type: "button" }, words);
    made.addEventListener("click", (event) => {
      event.stopPropagation();
      run();
    });
    buttons.append(made);
    return made;
  };
  button("Save", save).classList.add("primary");
  button("Cancel", leave);
  const editor = make("div", { className: "editor" }, box, buttons);
  onEscape(editor, leave);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
  });
  box.value = text;
  find("details", item).open = false;
  item.classList.add("editing");
  find(".said", item).after(editor);
  fit(box);
  return box.focus();
}

/** Send a form of a preview, then show what comes next in the drawer. */
async function go(button) {
  const form = button.form;
  const fields = Object.fromEntries(new FormData(form, button));
  const answer = await ask(button.getAttribute("formaction") || form.action, fields);
  if (!answer?.ok && answer?.json.error?.code !== "stale_version") return;
  // What was ticked and written there is sent: nothing of it is unsaved.
  form.remove();
  await htmx.ajax("GET", answer.ok ? button.dataset.then : find(".preview").dataset.refresh, { target: "#drawer-body", swap: "innerHTML" });
  comeBack(find("#drawer-body"));
}

/** Apply or discard the preview that waits: in the drawer, if it is there, so that what was ticked and written counts. */
function decide({ dataset: { preview, url } }) {
  const form = find(`#preview-form:has([name=preview][value="${preview}"])`);
  const same = form && all("button", form).find((one) => (one.getAttribute("formaction") || form.action).endsWith(url));
  return same ? go(same) : ask(url, { preview });
}

/** Keep a line for the conversation's project. The button says so, and keeps the focus. */
async function keep(button) {
  const answer = await ask(button.getAttribute("formaction"), Object.fromEntries(new FormData(button.form, button)));
  if (answer?.json.error?.code === "stale_version") return reread(button.closest("[data-lines]"));
  if (!answer?.ok) return undefined;
  button.textContent = "Kept for the project";
  return tell("Kept for the project. Its page has Undo.");
}

/** A button in the lines or in a preview was pressed, before this module came perhaps: it may be replaced. */
export function press(pressed) {
  const button = pressed.isConnected ? pressed : document.getElementById(pressed.id);
  if (!button) return undefined;
  const item = button.closest("[data-line]");
  if ("keep" in button.dataset) return keep(button);
  if ("preview" in button.dataset) return decide(button);
  if ("then" in button.dataset) return button.form.reportValidity() && go(button);
  if ("edit" in button.dataset) return edit(item);
  if (!button.form.reportValidity()) return undefined;
  const root = button.closest("[data-lines]");
  const fields = Object.fromEntries(new FormData(button.form, button));
  if (!item) return change(root, fields, find(".add summary", root).id);
  const stays = /pin/.test(button.value);
  return change(root, fields, (more(stays ? item : neighbour(item)) ?? find(".add summary", root)).id);
}
