// The palette: conversations, messages, commands and models by a few letters. Loaded on first use.

import { all, code, find, main, make } from "./page.js";
import { ago } from "./ago.js";

const PAUSE = 150; // milliseconds without a key until the server is asked
const MOST = { recent: 5, conversations: 6, messages: 9, together: 3, models: 8 };
const dialog = find("#palette");
const input = find("#palette-text");
const list = find("#palette-list");
const note = find("#palette-note");
// Pages without a message box have no commands; there this module is never loaded.
const slash = find("#text") ? await import("./slash.js") : null;

let shown = []; // What is listed, in order: {key, run, option}.
let chosen = "";
let picked = false; // By the arrow keys: then answers that come later do not change the choice.
let timer = 0;
let request = null; // The latest; every other one was aborted.
const NOTHING = { query: "", titles: [], messages: [], counts: {} };
let found = NOTHING;

const go = (address) => location.assign(address);
const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
const holds = (text, words) => words.every((word) => text.toLowerCase().includes(word));

/** The length of what is marked from `at` on: the whole word, as the server marks it. */
const reach = (text, at, length) => length + /^[\p{L}\p{N}]*/u.exec(text.slice(at + length))[0].length;

/** A text with its first occurrence of each word marked, as parts like the server's. */
function partsOf(text, words) {
  const lower = text.toLowerCase();
  // Where folding changes the length, positions are not those of the text.
  const spots = lower.length === text.length ? words.map((word) => [lower.indexOf(word), word.length]) : [];
  const parts = [];
  let end = 0;
  for (const [at, length] of spots.filter(([at]) => at >= 0).sort(([a], [b]) => a - b)) {
    if (at < end) continue;
    const last = at + reach(text, at, length);
    parts.push({ text: text.slice(end, at) }, { text: text.slice(at, last), marked: true });
    end = last;
  }
  return [...parts, { text: text.slice(end) }];
}

const label = (parts) =>
  make("span", { className: "label", dir: "auto" }, ...parts.map((one) => (one.marked ? make("mark", {}, one.text) : one.text)));

function conversations(words) {
  const listed = all("#links [data-code]").map((row) => ({ which: row.dataset.code, title: find("a > span", row).textContent.trim(), at: find("time", row)?.dateTime }));
  // Titles alike are told apart by their time.
  const local = listed.filter(({ title }) => holds(title, words)).map(({ which, title, at }) => ({ which, parts: partsOf(title, words), aside: at && ago(new Date(at)) }));
  const seen = new Set(local.map(({ which }) => which));
  const others = found.titles.filter((hit) => !seen.has(hit.code)).map((hit) => ({ which: hit.code, parts: hit.parts, aside: hit.archived ? "Archived" : "" }));
  const some = words.length ? [...local, ...others].slice(0, MOST.conversations) : local.filter(({ which }) => which !== code).slice(0, MOST.recent);
  return some.map(({ which, parts, aside }) => ({ key: which, parts, aside, run: () => go(`/c/${which}/`) }));
}

const AUTHORS = { user: "You", tool: "Tool" };

const messageOf = (hit) => ({
  key: `${hit.code}/${hit.seq}`,
  parts: hit.parts,
  below: true,
  aside: `${AUTHORS[hit.role] ?? "Assistant"} · ${ago(new Date(hit.created_at))}`,
  run: () => go(`/c/${hit.code}/?around=${hit.seq}&q=${encodeURIComponent(found.query)}#m-${hit.seq}`),
});

/** The messages found by conversation, as on the page of the search: its title, their number, and the first of them. */
function messages() {
  const groups = new Map();
  let room = MOST.messages;
  for (const hit of found.messages) {
    const hits = groups.get(hit.code) ?? [];
    if (!room || hits.length === MOST.together) continue;
    groups.set(hit.code, [...hits, hit]);
    room -= 1;
  }
  return [...groups.values()].map((hits) => {
    const [{ code: which, title }] = hits;
    const count = found.counts[which] ?? hits.length;
    const words = `${count} message${count === 1 ? "" : "s"}`;
    return [title || "New conversation", hits.map(messageOf), which === code ? `This conversation · ${words}` : words];
  });
}

const keysOf = (element) => (element.getAttribute("aria-keyshortcuts") ?? "").replace("Control", "Ctrl");

/** The page's own buttons and links that have `data-palette`: their words, or the command they stand for. */
function places(selector) {
  return all(selector).map((element) => {
    const { palette } = element.dataset;
    const slashed = palette.startsWith("/") ? palette.slice(1) : "";
    const text = (slashed || !palette) ? element.getAttribute("aria-label") || element.textContent : palette;
    return { name: slashed, text: text.trim().replace(/\s*Ctrl K$/, ""), keys: keysOf(element), run: () => element.click() };
  });
}

function commands(words) {
  const here = places("#new, main [data-palette]");
  const there = places(".projects [data-palette], #account-menu [data-palette]");
  const names = new Set([...here, ...there].map(({ name }) => name));
  const typed = (slash?.offered() ?? []).filter((name) => !names.has(name)).map((name) => {
    const term = find(`#help [data-command="${name}"]`);
    return { name, text: term.nextElementSibling.textContent.trim(), keys: "", run: () => slash.perform(name) };
  });
  return [...here, ...typed, ...there].filter(({ name, text }) => holds(`${text} /${name}`, words)).map(({ name, text, keys, run }) => ({
    key: `!${name || text}`,
    parts: partsOf(text, words),
    aside: name && slash ? `/${name}` : "",
    keys,
    begins: words.length && `${text.toLowerCase()} `.startsWith(words.join(" ")),
    run,
  }));
}

function models(words) {
  const select = find("#model");
  if (!select || !slash) return [];
  return all("option", select)
    .filter((one) => !one.selected && holds(`switch to model ${one.text}`, words))
    .slice(0, MOST.models)
    .map(({ text }) => ({ key: `@${text}`, parts: [{ text: "Switch to " }, ...partsOf(text, words)], aside: "Model", run: () => slash.perform("model", text) }));
}

/** A command that is written out, with its words: "/title Herons". */
function written(text) {
  const [, name, words] = /^\/([a-z-]+)\s+(\S.*)$/i.exec(text) ?? [];
  if (!name || !slash?.offered().includes(name.toLowerCase())) return [];
  return [{ key: "/", parts: [{ text }], aside: "Run", run: () => slash.perform(name.toLowerCase(), words.trim()) }];
}

function groups(text) {
  if (text.startsWith("/")) return [["Commands", [...written(text), ...commands(wordsOf(text).slice(0, 1))]]];
  const words = wordsOf(text);
  const actions = ["Commands", commands(words)];
  const switching = ["Models", models(words)];
  const titles = [words.length ? "Conversations" : "Recent", conversations(words)];
  if (!words.length) return [titles, actions, switching];
  const first = actions[1].some((one) => one.begins) ? [actions, titles] : [titles, actions];
  const more = { key: "more", parts: [{ text: `All results for “${text}”` }], run: () => go(`${dialog.dataset.urlSearch}?q=${encodeURIComponent(text)}`) };
  return [...first, switching, ...messages(), ["Search", [more]]];
}

function optionOf(item, index) {
  const option = make("div", { role: "option", className: item.below ? "below" : "", id: `palette-${index}`, "aria-selected": "false" }, label(item.parts));
  if (item.aside) option.append(make("span", { className: "aside", dir: "auto" }, item.aside));
  if (item.keys) option.append(make("kbd", {}, item.keys));
  option.addEventListener("click", () => act(item));
  return option;
}

/** Mark the chosen option; the text box stays focused. */
function mark(scroll) {
  if (!shown.some(({ key }) => key === chosen)) chosen = shown[0]?.key;
  input.removeAttribute("aria-activedescendant");
  for (const { key, option } of shown) {
    option.setAttribute("aria-selected", String(key === chosen));
    if (key !== chosen) continue;
    input.setAttribute("aria-activedescendant", option.id);
    if (scroll) option.scrollIntoView({ block: "nearest" });
  }
}

function render() {
  const text = input.value.trim();
  if (!picked) chosen = "";
  shown = [];
  const sections = groups(text).filter(([, items]) => items.length).map(([name, items, figures], number) => {
    const heading = make("div", { id: `palette-group-${number}`, className: figures ? "group title" : "group", role: "presentation" });
    heading.append(make("span", { className: "label", dir: "auto" }, name));
    if (figures) heading.append(" ", make("span", { className: "aside" }, figures));
    const group = make("div", { role: "group", "aria-labelledby": heading.id }, heading);
    for (const item of items) {
      const option = optionOf(item, shown.length);
      shown.push({ ...item, option });
      group.append(option);
    }
    return group;
  });
  list.replaceChildren(...sections);
  mark(picked);
  if (!picked) list.scrollTop = 0;
}

function say(words) {
  note.textContent = words;
  note.hidden = !words;
}

async function ask(query) {
  const mine = new AbortController();
  request = mine;
  try {
    const answer = await fetch(`${dialog.dataset.urlSearch}?q=${encodeURIComponent(query)}`, { headers: { Accept: "application/json" }, signal: mine.signal });
    const json = await answer.json();
    if (mine !== request) return;
    if (answer.ok) found = json;
    say(answer.ok ? "" : json.error?.message || "The search did not work. Try again in a moment.");
  } catch {
    if (mine !== request) return;
    say("No connection. Messages cannot be searched now.");
  }
  render();
  const count = shown.length - 1; // Without "All results".
  find("#palette-said").textContent = count === 1 ? "1 match" : `${count || "No"} matches`;
}

function typed() {
  const query = input.value.trim();
  clearTimeout(timer);
  request?.abort();
  request = null;
  picked = false;
  say("");
  // What was found for other words stays until the answer comes, if these words continue them.
  if (!query.startsWith(found.query) || !found.query) found = NOTHING;
  if (query && !query.startsWith("/")) timer = setTimeout(ask, PAUSE, query);
  render();
}

function act(item) {
  dialog.close();
  // What a menu or the drawer does with the focus comes after the dialog has given it back.
  item.run();
}

function pressed(event) {
  if (event.isComposing || event.keyCode === 229) return;
  const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
  if (step && shown.length) {
    event.preventDefault();
    const at = shown.findIndex(({ key }) => key === chosen) + step;
    const last = shown.length - 1;
    const next = Math.abs(step) > 1 ? Math.min(last, Math.max(0, at)) : (at + shown.length) % shown.length;
    chosen = shown[next].key;
    picked = true;
    mark(true);
  } else if (event.key === "Enter") {
    event.preventDefault();
    const item = shown.find(({ key }) => key === chosen);
    if (item) act(item);
  }
}

/** Begin, with what was written since the dialog was opened. */
export function open() {
  typed();
}

input.addEventListener("input", typed);
input.addEventListener("keydown", pressed);
list.addEventListener("mousedown", (event) => event.preventDefault()); // The text box stays focused.
dialog.addEventListener("close", () => {
  clearTimeout(timer);
  request?.abort();
  request = null;
  input.value = "";
  list.replaceChildren();
});
