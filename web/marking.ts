/** Text with some words marked. Text stays text: nothing in it becomes markup. */

import { make } from "./page";

export function marked(text: string, terms: string[]): DocumentFragment {
  const found = document.createDocumentFragment();
  if (terms.length === 0) {
    found.append(text);
    return found;
  }
  const words = terms.map((term) => term.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")).join("|");
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}_])(?:${words})(?![\\p{L}\\p{N}_])`, "giu");
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    found.append(text.slice(end, match.index), make("mark", { textContent: match[0] }));
    end = match.index + match[0].length;
  }
  found.append(text.slice(end));
  return found;
}
