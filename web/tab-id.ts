/**
 * An identifier of this browser tab. It survives a reload, and a duplicated tab gets its own: while
 * a page is open its identifier is in memory only, so there is nothing in the storage to copy.
 */

import { randomUuid } from "./dom";

const KEY = "podium.tab";

export function tabId(): string {
  const id = sessionStorage.getItem(KEY) ?? randomUuid();
  sessionStorage.removeItem(KEY);
  addEventListener("pagehide", () => sessionStorage.setItem(KEY, id));
  addEventListener("pageshow", (event) => event.persisted && sessionStorage.removeItem(KEY));
  return id;
}
