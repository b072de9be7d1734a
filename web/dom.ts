/** Small helpers for the page's elements, status messages and identifiers. */

/** The element that the template names by `data-part`. */
export function part<T extends HTMLElement = HTMLElement>(name: string): T {
  const element = document.querySelector<T>(`[data-part="${name}"]`);
  if (!element) throw new Error(`The page has no element with data-part="${name}".`);
  return element;
}

export function createElement<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Partial<HTMLElementTagNameMap[K]> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** Focus an element, unless this page is in a frame beside a form that somebody fills in. */
export function focusHere(element: HTMLElement): void {
  if (parent === window || document.hasFocus()) element.focus({ preventScroll: true });
}

/** Announce a message to screen readers, even if it is the same as the last one. */
export function announce(message: string): void {
  const region = part("announcement");
  region.textContent = region.textContent === message ? `${message}\u00a0` : message;
}

/** Show a notice below the bar until it is closed or replaced. */
export function showNotice(message: string): void {
  part("notice-text").textContent = message;
  part("notice").hidden = false;
}

export function hideNotice(): void {
  part("notice").hidden = true;
}

/** A random UUID. `crypto.randomUUID` exists only on pages served over HTTPS. */
export function randomUuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
