// The websocket: resuming after the last event, and the banner when it is gone.

import { code, find, main } from "./page.js";

const OFFLINE_AFTER = 2000; // milliseconds

let lastEvent = Number(main.dataset.eventNo || 0);
let lastState = lastEvent; // Of what came by events since, any single one may have been lost.
let offline = 0;
const banner = find("#banner");

/** The number of the last event shown. */
export const eventNo = () => lastEvent;

export function say(text, link) {
  banner.replaceChildren(text);
  if (link) {
    const anchor = document.createElement("a");
    anchor.href = link.href;
    anchor.textContent = link.text;
    banner.append(" ", anchor);
  }
  banner.hidden = false;
}

export const signedOut = () =>
  say("You have been signed out. Your draft stays in this browser.", {
    href: `${main.dataset.urlLogin}?next=${encodeURIComponent(location.pathname + location.search)}`,
    text: "Sign in",
  });

function quiet() {
  clearTimeout(offline);
  offline = 0;
  banner.hidden = true;
  banner.replaceChildren();
}

/** The number of the event in an HTML fragment. */
function numberOf(fragment) {
  const found = /data-event-no="(\d+)"/.exec(fragment);
  return found ? Number(found[1]) : 0;
}

const parser = document.createElement("template");

const IS_TEXT = /^<div [^>]*data-event="delta"/;
const IS_STATE = /^\s*<[^>]*data-event="state"/;

/** Apply streamed text, up to twenty times a second: htmx's swaps, with a cheaper event. */
function stream(fragment) {
  parser.innerHTML = fragment;
  for (const part of parser.content.children) {
    const target = document.getElementById(part.id);
    // The reply has ended, or the text is in its place.
    if (!target?.dispatchEvent(new CustomEvent("delta", { bubbles: true, cancelable: true, detail: part }))) continue;
    if (part.getAttribute("hx-swap-oob") === "innerHTML") target.replaceChildren(...part.childNodes);
    else target.append(...part.childNodes);
  }
}

function closed(event) {
  clearTimeout(offline);
  if (event.code === 4401) return signedOut();
  if (event.code === 4404) return say("This conversation no longer exists.", { href: "/", text: "To the conversations" });
  offline = setTimeout(
    () => say("No connection. Your text is kept; the page reconnects by itself."),
    OFFLINE_AFTER,
  );
  return undefined;
}

export function start({ onOpen, onMessage }) {
  if (!code) return;
  const arrived = (message) => {
    lastEvent = Math.max(lastEvent, numberOf(message));
    if (IS_STATE.test(message)) lastState = numberOf(message);
    onMessage(message);
  };
  htmx.config.wsReconnectDelay = (tries) => Math.min(8000, 250 * 2 ** tries) * (0.5 + Math.random() / 2);
  htmx.createWebSocket = (url) => {
    const address = new URL(url);
    address.searchParams.set("after", String(lastEvent));
    address.searchParams.set("state", String(lastState));
    const socket = new WebSocket(address);
    // Registered before htmx's listener, which therefore never sees the text.
    socket.addEventListener("message", (event) => {
      if (!IS_TEXT.test(event.data)) return;
      event.stopImmediatePropagation();
      stream(event.data);
      arrived(event.data);
    });
    return socket;
  };
  document.body.addEventListener("htmx:wsOpen", () => {
    quiet();
    onOpen();
  });
  document.body.addEventListener("htmx:wsClose", (event) => closed(event.detail.event));
  document.body.addEventListener("htmx:wsAfterMessage", (event) => arrived(event.detail.message));
}
