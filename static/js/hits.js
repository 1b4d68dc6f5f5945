// Where the words of the find bar stand: told to the outline.

import { find } from "./page.js";

export const hits = { seqs: [], present: 0 };

/** Tell where hits are, in the order of the conversation, and at which of them the reader is, if at one. */
export function setHits(seqs, present = 0) {
  Object.assign(hits, { seqs, present });
  find("#outline")?.dispatchEvent(new CustomEvent("hits"));
}
