/** The parts of the page, found by their names in the template. */

export function part<T extends HTMLElement = HTMLElement>(name: string): T {
  const found = document.querySelector<T>(`[data-part="${name}"]`);
  if (!found) throw new Error(`the page has no part ${name}`);
  return found;
}

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Partial<HTMLElementTagNameMap[K]> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const found = Object.assign(document.createElement(tag), properties);
  found.append(...children);
  return found;
}

/** Tell screen readers; the same words said again are read again. */
export function announce(words: string): void {
  const line = part("announcement");
  line.textContent = line.textContent === words ? `${words}\u00a0` : words;
}

/** A quiet line below the bar, until it is closed or replaced. */
export function tell(words: string): void {
  part("notice-words").textContent = words;
  part("notice").hidden = false;
}

export function hush(): void {
  part("notice").hidden = true;
}

/** A name for something new, also where the page came without HTTPS. */
export function newToken(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
