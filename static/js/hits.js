// Where the words of the find bar stand: told to the outline.

import { find } from "./page.js";

export const hits = { seqs: [] };

/** Tell where hits are, in the order of the conversation. */
export function setHits(seqs) {
  hits.seqs = seqs;
  find("#outline")?.dispatchEvent(new CustomEvent("hits"));
}
