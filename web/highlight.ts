/** Highlights query terms in plain text. The text stays text: nothing in it becomes markup. */

import { createElement } from "./dom";

export function highlightTerms(text: string, terms: string[]): DocumentFragment {
  const fragment = document.createDocumentFragment();
  if (terms.length === 0) {
    fragment.append(text);
    return fragment;
  }
  const escaped = terms.map((term) => term.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")).join("|");
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}_])(?:${escaped})(?![\\p{L}\\p{N}_])`, "giu");
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    fragment.append(text.slice(end, match.index), createElement("mark", { textContent: match[0] }));
    end = match.index + match[0].length;
  }
  fragment.append(text.slice(end));
  return fragment;
}
