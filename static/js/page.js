// The page's fixed parts, and helpers for all modules.

export const find = (selector, root = document) => root.querySelector(selector);
export const all = (selector, root = document) => [...root.querySelectorAll(selector)];
export const main = find("main");
export const feed = find("#feed");
export const scroller = find("#scroller");
export const composer = find("#composer");
export const box = find("#text");
export const code = main.dataset.code || "";
export const GIVES_UP = 30000; // milliseconds until a request for a message is given up

const token = find("input[name=csrfmiddlewaretoken]")?.value || "";

/** POST a command as a form. Returns `ok`, `status` and the answer's JSON. */
export async function post(url, fields, signal) {
  const response = await fetch(url, {
    method: "POST",
    body: new URLSearchParams(fields),
    headers: { "X-CSRFToken": token, Accept: "application/json" },
    signal,
  });
  const json = await response.json().catch(() => ({}));
  return { ok: response.ok, status: response.status, json };
}

/** An element with properties, attributes (those with a dash) and children; text is never HTML. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

/** Show an error where the server would show it. */
export function showError(message, retryAfter, buttons = []) {
  const card = make("div", { className: "card", role: "alert" }, make("p", {}, message));
  if (retryAfter) card.append(make("p", { className: "countdown", "data-retry-after": retryAfter }));
  if (buttons.length) {
    const row = buttons.map(({ label, ...properties }) => make("button", { type: "button", ...properties }, label));
    card.append(make("p", { className: "buttons" }, ...row));
  }
  card.append(
    make("button", { type: "button", className: "quiet close", "data-action": "dismiss", "aria-label": "Dismiss" }, "×"),
  );
  find("#alerts").replaceChildren(card);
  return card;
}

/** Have a screen reader say this, unless it is what was said last. */
export function tell(words) {
  const spoken = find("#spoken");
  if (spoken.textContent !== words) spoken.textContent = words;
}

/** Say that a part of the page could not be loaded. */
export const unloaded = () => showError("No connection. Nothing was done; try again in a moment.");

export const clearErrors = () => find("#alerts").replaceChildren();

/** localStorage, or nothing where the browser refuses it: then there are no drafts here. */
export const store = {
  get(key) {
    try {
      return localStorage.getItem(key);
    } catch {
      return null;
    }
  },
  set(key, value) {
    try {
      if (value) localStorage.setItem(key, value);
      else localStorage.removeItem(key);
    } catch {
      // Full or forbidden: the server keeps the draft as well.
      return;
    }
  },
};

/** Copy by the old command: without TLS, scripts have no access to the clipboard. */
function copyBySelection(text) {
  const selected = make("textarea", { value: text, className: "vh" });
  document.body.append(selected);
  selected.select();
  const done = document.execCommand("copy");
  selected.remove();
  return done;
}

/** Copy a text, or the promise of one: Safari wants the promise while the click is handled. */
export async function copy(given, button) {
  const label = button.lastChild;
  const before = label.textContent;
  const text = Promise.resolve(given);
  const item = () => new ClipboardItem({ "text/plain": text.then((plain) => new Blob([plain], { type: "text/plain" })) });
  const written = navigator.clipboard?.write && window.ClipboardItem
    ? navigator.clipboard.write([item()])
    : text.then((plain) => navigator.clipboard.writeText(plain));
  const done = await written.then(() => true, () => false);
  label.textContent = done || copyBySelection(await text) ? "Copied" : "Not copied";
  setTimeout(() => (label.textContent = before), 1500);
}

/** True while an input method composes: Enter and Esc are then its own. */
export const isComposing = (event) => event.isComposing || event.keyCode === 229;

/** True for the key that sends: Enter, or Ctrl+Enter, as the person has chosen. */
export function sends(event) {
  if (event.key !== "Enter" || event.altKey || isComposing(event)) return false;
  const control = event.ctrlKey || event.metaKey;
  return main.dataset.sendKey === "modifier-enter" ? control : !event.shiftKey && !control;
}

const FITS_ITSELF = CSS.supports("field-sizing", "content");

/** Fit the height of a text box to its text, up to the style sheet's limit. */
export function fit(text) {
  if (FITS_ITSELF) return;
  // Keep the form's height while measuring, or the feed would lose its place.
  const around = text.form.style;
  around.minHeight = `${text.form.offsetHeight}px`;
  text.style.height = "auto";
  text.style.height = `${text.scrollHeight + text.offsetHeight - text.clientHeight}px`;
  around.minHeight = "";
}

/** When an answer has come, focus `element`, unless the person is somewhere else by now. */
export function comeBack(element) {
  const at = document.activeElement;
  if (!at?.checkVisibility() || at.contains(element) || (at.form && at.form === element?.form)) element?.focus();
}

/** Make Esc in this element call `leave`, and nothing else. */
export function onEscape(element, leave) {
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.shiftKey || isComposing(event)) return;
    event.preventDefault();
    leave();
  });
}

// randomUUID exists only with TLS or on localhost, so not on a local network's plain http.
export function uuid() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
