// The page of a project: its conversations follow what is done in the list beside it.

import { find } from "./page.js";

let asked = 0;

/** Load the project's conversations again. If that fails, those that are shown stay. */
export async function renew() {
  const number = ++asked;
  const answer = await fetch(location.href).catch(() => null);
  const text = answer?.ok && (await answer.text());
  const fresh = text && find("#inside", new DOMParser().parseFromString(text, "text/html"));
  if (fresh && number === asked) find("#inside").replaceWith(fresh);
}
