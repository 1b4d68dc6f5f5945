// Slash commands, with completion. An unknown one says so and sends nothing.

import { all, box, clearErrors, code, find, make, showError } from "./page.js";
import { write } from "./composer.js";
import { actions, command } from "./message.js";
import { agreed } from "./models.js";
import { toEnd } from "./scroll.js";
import * as settings from "./settings.js";

const list = find("#commands");
const around = find("#slash");
const listed = all("#help [data-command]");
let chosen = -1;

async function chooseModel(words) {
  if (!words) return actions.model();
  const names = all("#model option").map((option) => option.textContent);
  if (names.includes(words) && !code) return (find("#model").selectedIndex = names.indexOf(words));
  if (names.includes(words)) return (await agreed(words)) && command("settings/", { model: words });
  return showError(`There is no model ${words}. Choose from: ${names.join(", ") || find(".top .model")?.textContent || "the one here"}.`);
}

function instruct(words) {
  if (code) return words ? command("settings/", { system_prompt: words }) : settings.open("#settings-prompt");
  const prompt = find("#begin-prompt");
  prompt.closest("details").open = true;
  if (words) prompt.value = words;
  return words || prompt.focus();
}

/** Clear, and scroll to the end, where the divider appears. */
function clear() {
  toEnd();
  command("clear/");
}

function branch() {
  const last = all("article[data-seq]").at(-1);
  if (last) command("branch/", { seq: last.dataset.seq });
}

// The words for each are in partials/help.html.
const COMMANDS = {
  compact: { run: (words) => command("compact/", words ? { focus: words } : {}) },
  preview: { run: () => find("#preview-button").click() },
  clear: { run: clear },
  undo: { run: () => command("summary/undo/") },
  title: {
    run: (words) => (words ? command("settings/", { title: words }) : showError("Write the title after the command: /title A name")),
  },
  context: { run: () => find("#drawer-button").click() },
  outline: { run: () => import("./outline.js").then(({ toggle }) => toggle()) },
  find: { run: (words) => import("./find.js").then(({ open }) => open(words)) },
  log: { anywhere: true, run: () => location.assign(`/log/${code ? `?conversation=${code}` : ""}`) },
  stats: { run: () => location.assign("activity/") },
  model: { anywhere: true, run: chooseModel },
  system: { anywhere: true, run: instruct },
  export: { run: (words) => location.assign(`export/?format=${words === "json" ? "json" : "markdown"}`) },
  branch: { run: branch },
  new: { anywhere: true, run: () => find("#new").click() },
  help: { anywhere: true, run: () => find("#help").showModal() },
};

/** The names of the commands that can be given on this page. */
export const offered = () => Object.keys(COMMANDS).filter((name) => code || COMMANDS[name].anywhere);

/** Run a command that is offered. */
export function perform(name, words = "") {
  clearErrors();
  COMMANDS[name].run(words);
}

/** Run the command in `text`. False if `text` is not a command but a message. */
export function run(text) {
  const found = /^\/([a-z-]+)(?:\s+([\s\S]*))?$/i.exec(text.trim());
  if (!found) return false;
  const [, name, words = ""] = found;
  const known = COMMANDS[name.toLowerCase()];
  hide();
  if (!known) showError(`There is no command /${name}. Nothing was sent; /help lists the commands.`);
  else if (!code && !known.anywhere) showError(`/${name} works only after the first message.`);
  else {
    write("");
    perform(name.toLowerCase(), words.trim());
  }
  return true;
}

export const isShown = () => !list.hidden;

/** True if the text is a whole command, not just the beginning of one. */
export const isWhole = () => box.value.slice(1).toLowerCase() in COMMANDS;

export function hide() {
  list.hidden = true;
  chosen = -1;
  for (const name of ["role", "aria-label", "aria-expanded", "aria-controls"]) around.removeAttribute(name);
  for (const name of ["aria-controls", "aria-activedescendant", "aria-autocomplete"]) box.removeAttribute(name);
}

function mark() {
  [...list.children].forEach((option, index) => option.setAttribute("aria-selected", String(index === chosen)));
  const active = list.children[chosen];
  if (active) box.setAttribute("aria-activedescendant", active.id);
}

export function move(step) {
  chosen = (chosen + step + list.children.length) % list.children.length;
  mark();
}

export function complete() {
  const option = list.children[Math.max(0, chosen)];
  hide();
  write(`/${option.dataset.name} `);
}

function suggest() {
  const typed = /^\/([a-z-]*)$/i.exec(box.value);
  const offered = typed ? listed.filter((term) => term.dataset.command.startsWith(typed[1].toLowerCase())) : [];
  if (!offered.length) return hide();
  list.replaceChildren(
    ...offered.map((term) => {
      const name = term.dataset.command;
      return make(
        "li",
        { role: "option", id: `command-${name}`, "data-name": name, "aria-selected": "false" },
        make("code", {}, term.textContent),
        " ",
        make("span", {}, term.nextElementSibling.textContent),
      );
    }),
  );
  list.hidden = false;
  chosen = 0;
  // The box stays a text box; the element around it becomes the combobox.
  const combobox = { role: "combobox", "aria-label": "Commands", "aria-expanded": "true", "aria-controls": "commands" };
  for (const [name, value] of Object.entries(combobox)) around.setAttribute(name, value);
  box.setAttribute("aria-controls", "commands");
  box.setAttribute("aria-autocomplete", "list");
  return mark();
}

export function start() {
  box.addEventListener("input", suggest);
  // Unless the focus is back by then.
  box.addEventListener("blur", () => setTimeout(() => document.activeElement === box || hide(), 150));
  list.addEventListener("mousedown", (event) => {
    const option = event.target.closest("[data-name]");
    if (!option) return;
    event.preventDefault();
    chosen = [...list.children].indexOf(option);
    complete();
  });
}
