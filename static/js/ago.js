// A time as the distance to now, as the server says it too: chatapp/rendering/words/ago.py.

const UNITS = [["minute", 60, 3600], ["hour", 3600, 86400], ["day", 86400, 7 * 86400]];
const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** "just now", "5 minutes ago", "yesterday"; after a week, the date in the reader's form. */
export function ago(date) {
  const seconds = (Date.now() - date) / 1000;
  if (seconds < 60) return "just now";
  for (const [unit, size, until] of UNITS) if (seconds < until) return words.format(-Math.floor(seconds / size), unit);
  const form = { day: "numeric", month: "short" };
  if (date.getFullYear() !== new Date().getFullYear()) form.year = "numeric";
  return date.toLocaleDateString([], form);
}
