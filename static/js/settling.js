// After the summary has changed: the bar moves, the card arrives, folds and the focus come back.

import { all, find } from "./page.js";

const calm = matchMedia("(prefers-reduced-motion: reduce)");

function animate(element, frames, duration) {
  if (calm.matches) return;
  const moving = element.animate(frames, { duration, easing: "ease-in-out" });
  calm.addEventListener("change", () => moving.finish(), { once: true });
}

/** Let the divider arrive when the reader first sees it, which may be much later. */
function arrive() {
  const card = find("#divider .divider");
  if (!card) return;
  new IntersectionObserver(([{ isIntersecting }], observer) => {
    if (!isIntersecting) return;
    observer.disconnect();
    animate(card, [{ opacity: 0, transform: "translateY(-0.75rem)" }, { opacity: 1, transform: "none" }], 600);
  }).observe(card);
}

/** Have a screen reader say the line of a compression, in a form for the ear, after what the status says. */
function speak(line) {
  const words = [line.dataset.figures, ...all(".hint", line).map((one) => one.textContent.trim())];
  // In a task of its own: of two regions that change at once, either may be said first.
  setTimeout(() => (find("#spoken-figures").textContent = words.filter(Boolean).join(". ")));
}

/** Move the parts of the bar; for the `fresh` line of a compression, its card arrives and it is spoken. */
export function move(from, to, fresh) {
  all("#chip rect").forEach((one, at) => from[at] && to[at] && animate(one, [from[at], to[at]], 900));
  if (!fresh) return;
  speak(fresh);
  arrive();
}

/** After a swap: unfold again, and focus the button of the same words, or else the first. */
export function restore(target, open, focused) {
  if (open) find("details", target)?.setAttribute("open", "");
  if (!focused || target.contains(document.activeElement)) return;
  const buttons = all("button, summary", target);
  (buttons.find((one) => one.textContent.trim() === focused) ?? buttons[0])?.focus({ preventScroll: true });
}
