// The review of one summary: lines and their messages marked together, keys, and what happens meanwhile.

const screen = document.querySelector(".reviewing");
const lines = [...screen.querySelectorAll("[data-line]")];
const messages = [...screen.querySelectorAll("[data-seq]")];
const pane = screen.querySelector(".summary-sources");
const keys = screen.querySelector("dialog.keys");
const moved = screen.querySelector(".moved");

const seqsOf = (line) => line.dataset.seqs.split(" ").filter(Boolean);
const within = (list, element) => list.find((one) => one.contains(element));

// Both ways

function light(some, others) {
  for (const one of [...lines, ...messages]) one.classList.toggle("lit", some.includes(one) || others.includes(one));
}

function showMessage(message) {
  if (!message) return;
  const covered = pane.querySelector("h2").offsetHeight;
  pane.scrollTop += message.getBoundingClientRect().top - pane.getBoundingClientRect().top - covered;
}

function lightLine(line, follow) {
  const its = messages.filter((one) => seqsOf(line).includes(one.dataset.seq));
  light([line], its);
  if (follow) showMessage(its[0]);
}

function lightMessage(message, follow) {
  const its = lines.filter((one) => seqsOf(one).includes(message.dataset.seq));
  light([message], its);
  if (follow) its[0]?.scrollIntoView({ block: "nearest" });
}

function at(target, follow) {
  const line = within(lines, target);
  const message = within(messages, target);
  if (line) lightLine(line, follow);
  if (message) lightMessage(message, follow);
}

screen.addEventListener("pointerover", (event) => event.pointerType === "mouse" && at(event.target, false));
screen.addEventListener("focusin", (event) => at(event.target, true));
screen.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  at(event.target, !link);
  const to = link && document.querySelector(link.getAttribute("href"));
  if (!to) return;
  // Within the page the focus goes along, and the pane scrolls, not the page.
  event.preventDefault();
  to.focus({ preventScroll: messages.includes(to) });
});

// Keys

function step(by) {
  const here = lines.findIndex((one) => one.contains(document.activeElement));
  const next = lines[Math.min(lines.length - 1, Math.max(0, here + by))];
  next?.focus();
}

function change() {
  const line = within(lines, document.activeElement) ?? lines[0];
  const details = line?.querySelector("details");
  if (!details) return;
  details.open = true;
  details.querySelector("textarea").focus();
}

function press(key) {
  const element = screen.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (!element) return false;
  element.click();
  const details = element.closest("summary")?.parentElement;
  if (details?.open) details.querySelector("input:not([type=hidden]), select, textarea, a")?.focus();
  if (details) details.scrollIntoView({ block: "nearest" });
  return true;
}

const DONE = {
  j: () => step(1),
  k: () => step(-1),
  e: change,
  c: () => screen.querySelector(".chips button")?.focus(),
};

document.addEventListener("keydown", (event) => {
  // A dialog that was closed keeps the focus until the next frame.
  const typing = event.target.closest("input, textarea, select, dialog[open]");
  if (event.key === "Escape" && typing?.closest(".reviewing details")) {
    const details = typing.closest("details");
    details.open = false;
    (typing.closest("[data-line]") ?? details.querySelector("summary")).focus();
    return;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
  if (DONE[event.key]) DONE[event.key]();
  else if (!press(event.key)) return;
  event.preventDefault();
});

const button = screen.querySelector(".keys-button");
button.hidden = false;
button.addEventListener("click", () => keys.showModal());

// What was typed is not lost by a key

let sent = false;
screen.addEventListener("submit", () => {
  sent = true;
});
addEventListener("beforeunload", (event) => {
  const typed = [...screen.querySelectorAll("textarea")].some((one) => one.value !== one.defaultValue);
  if (typed && !sent) event.preventDefault();
});

// Meanwhile

const known = Number(screen.dataset.version);
let running = "running" in screen.dataset;

function tell(words, to) {
  moved.querySelector("span").textContent = words;
  moved.querySelector("a").href = to;
  moved.hidden = false;
}

async function look() {
  if (document.hidden) return true;
  const answer = await fetch(screen.dataset.now, { headers: { Accept: "application/json" } });
  if (!answer.ok) return false;
  const now = await answer.json();
  if (now.version !== known) {
    tell(`The summary has changed: version ${now.version} is there now.`, now.url + location.search);
    return false;
  }
  if (running && !now.running) tell("The compression has ended, and no new summary came of it.", location.href);
  running = now.running;
  return true;
}

async function keepLooking() {
  try {
    if (!(await look())) return;
  } catch {
    // No connection; it may come back.
  }
  setTimeout(keepLooking, running ? 1500 : 5000);
}

setTimeout(keepLooking, 1500);
