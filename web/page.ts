/** What every page does: times in the reader's zone, and refreshed parts that stay as they were. */

import { followForms, orderRows } from "./forms";

/** The details of htmx's event before it swaps a response in. */
interface SwapDetail {
  target: HTMLElement;
  serverResponse: string;
  shouldSwap: boolean;
}

/** The page's language, as the reader's country writes it if the browser names one. */
function locale(): string {
  const language = document.documentElement.lang;
  return navigator.languages.find((each) => each.split("-")[0] === language) ?? language;
}

const FORMAT = new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeStyle: "short" });
const ISO_MINUTES = /\d{4}-\d\d-\d\dT\d\d:\d\dZ/g;
const TWO_WEEKS_MS = 14 * 24 * 3600 * 1000;
/** The last response for each part that refreshes itself, by id. */
const lastResponses = new Map<string, string>();

/** Show times in the reader's zone and language; the server writes UTC. */
function localiseTimes(root: ParentNode): void {
  for (const time of root.querySelectorAll<HTMLTimeElement>("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    time.title = time.textContent ?? "";
    time.textContent = FORMAT.format(moment);
  }
}

/** Charts that span days: weekdays for two weeks, dates for longer. */
function localiseCharts(root: ParentNode): void {
  for (const chart of root.querySelectorAll(".chart")) {
    const times = [...(chart.textContent ?? "").matchAll(ISO_MINUTES)].map(([iso]) => Date.parse(iso));
    if (!times.length) continue;
    const isLong = Math.max(...times) - Math.min(...times) > TWO_WEEKS_MS;
    const format = new Intl.DateTimeFormat(
      locale(),
      isLong
        ? { day: "numeric", month: "short" }
        : { weekday: "short", hour: "numeric", minute: "2-digit" },
    );
    for (const label of chart.querySelectorAll("text, title")) {
      label.textContent = (label.textContent ?? "").replace(ISO_MINUTES, (iso) =>
        format.format(new Date(iso)),
      );
    }
  }
}

/** Times that people type are of their own zone as well; the server takes UTC. */
function localiseFields(root: ParentNode): void {
  for (const field of root.querySelectorAll<HTMLInputElement>("input[data-utc]")) {
    const sent = document.createElement("input");
    sent.type = "hidden";
    sent.name = field.name;
    field.removeAttribute("name");
    field.after(sent);
    field.closest("label")?.querySelector("[data-zone]")?.remove();
    field.form?.addEventListener("submit", () => {
      sent.value = field.value && new Date(field.value).toISOString().slice(0, 16);
    });
  }
}

/** Leave a part alone if nothing in it changed; else keep open what the reader opened. */
function beforeSwap(detail: SwapDetail): void {
  const { target, serverResponse } = detail;
  if (!target.id) return;
  if (lastResponses.get(target.id) === serverResponse) {
    detail.shouldSwap = false;
    return;
  }
  lastResponses.set(target.id, serverResponse);
  const fresh = new DOMParser().parseFromString(serverResponse, "text/html");
  for (const open of target.querySelectorAll<HTMLDetailsElement>("details[id][open]")) {
    fresh.getElementById(open.id)?.setAttribute("open", "");
  }
  localiseTimes(fresh);
  localiseCharts(fresh);
  detail.serverResponse = fresh.body.innerHTML;
  const positions = [...target.querySelectorAll(".table")].map((table) => table.scrollLeft);
  if (positions.some(Boolean)) {
    addEventListener("htmx:afterSettle", () => restorePositions(target.id, positions), {
      once: true,
    });
  }
}

/** Tables that were scrolled sideways stay where they were. */
function restorePositions(id: string, positions: number[]): void {
  document.querySelectorAll(`#${CSS.escape(id)} .table`).forEach((table, index) => {
    table.scrollLeft = positions[index] ?? 0;
  });
}

/** Buttons that copy a secret; where the browser does not allow it, the secret is selected. */
function offerCopies(root: ParentNode): void {
  for (const button of root.querySelectorAll<HTMLButtonElement>("button[data-copy]")) {
    const secret = document.getElementById(button.dataset.copy ?? "");
    if (!secret) continue;
    button.addEventListener("click", () => {
      getSelection()?.selectAllChildren(secret);
      void navigator.clipboard?.writeText(secret.innerText).then(() => {
        button.textContent = button.dataset.done ?? "";
      });
    });
  }
}

localiseTimes(document);
localiseCharts(document);
localiseFields(document);
offerCopies(document);
orderRows(document);
followForms(document);
addEventListener("htmx:beforeSwap", (event) =>
  beforeSwap((event as CustomEvent<SwapDetail>).detail),
);
