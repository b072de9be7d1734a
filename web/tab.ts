/**
 * The name of this browser tab. It survives loading the page again, and a copy of the tab gets a
 * name of its own: while a page is open its name is in memory only, so there is nothing to copy.
 */

import { newToken } from "./page";

const KEY = "podium.tab";

export function tabName(): string {
  const name = sessionStorage.getItem(KEY) ?? newToken();
  sessionStorage.removeItem(KEY);
  addEventListener("pagehide", () => sessionStorage.setItem(KEY, name));
  addEventListener("pageshow", (event) => event.persisted && sessionStorage.removeItem(KEY));
  return name;
}
