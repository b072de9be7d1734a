/** The fields of a result that a project shows: picture, price, tags, snippet and values. */

import type { DocumentContent } from "./api";
import { createElement } from "./dom";
import { highlightTerms } from "./highlight";

/** An element with a document's fields, or null if it has none. Text in them stays text. */
export function resultFields({ fields, terms }: DocumentContent): HTMLElement | null {
  if (fields.length === 0) return null;
  const pictures: HTMLElement[] = [];
  const facts = createElement("div", { className: "facts" });
  let values: HTMLElement | null = null;
  for (const { role, label, text, image } of fields) {
    if (role === "image") {
      if (image) pictures.push(createElement("img", { className: "picture", src: image, alt: "" }));
      continue;
    }
    if (role === "value") {
      values ??= facts.appendChild(createElement("dl", { className: "values" }));
      const term = createElement("dt", { dir: "auto" }, label);
      const value = createElement("dd", { dir: "auto" }, text);
      values.append(createElement("div", {}, ...(label ? [term] : []), value));
      continue;
    }
    values = null;
    if (role === "snippet") {
      const snippet = createElement("p", { className: "snippet", dir: "auto" });
      snippet.append(highlightTerms(text, terms));
      facts.append(snippet);
    } else if (role === "price") {
      facts.append(createElement("p", { className: "price", dir: "auto" }, text));
    } else {
      const before = label ? [createElement("span", { className: "muted" }, `${label} `)] : [];
      facts.append(createElement("p", { className: "tag", dir: "auto" }, ...before, text));
    }
  }
  return createElement("div", { className: "result" }, ...pictures, facts);
}
