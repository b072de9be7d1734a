/** Shows one of the page's screens, and the status in the bar above them. */

import type { NextResult, Progress } from "./api";
import { announce, focusHere, part } from "./dom";
import { gettext, ngettext } from "./messages";
import type { Surface } from "./surfaces";

/** How long it is shown that a query is finished. */
const FINISHED_MS = 4000;

export type Screen =
  | NextResult["state"]
  | "loading"
  | "break"
  | "sending"
  | "offline"
  | "sign-in"
  | "out-of-date"
  | "gone";

export class Screens {
  private readonly elements = [...document.querySelectorAll<HTMLElement>("[data-screen]")];
  current: Screen = "loading";

  /** How many judgments a crowd worker is to make; 0 for everyone else. */
  private readonly share = Number(part("judge").dataset.share);

  constructor(private readonly surface: Surface) {}

  show(screen: Screen): void {
    const changed = screen !== this.current;
    this.current = screen;
    for (const element of this.elements) element.hidden = element.dataset.screen !== screen;
    if (this.surface !== "preview") {
      // The figures came with a task: they are older than its answer.
      part("query-progress").hidden = ["wait", "yours-done", "done", "blocked"].includes(screen);
    }
    if (changed && screen !== "task") {
      const shown = this.elements.find((element) => element.dataset.screen === screen)!;
      // Enter does what there is to do.
      const button = shown.querySelector<HTMLElement>(".button, button");
      focusHere(button ?? shown);
      announce(shown.querySelector("h2")?.textContent ?? "");
    }
  }

  /** Whether a task was answered and nothing has taken its place yet. */
  get isBetweenTasks(): boolean {
    return ["loading", "task", "sending", "offline"].includes(this.current);
  }

  /** Show how far the query is, or a crowd worker's share. */
  showQueryProgress({ judged, query_judged, query_left }: Progress): void {
    const left = this.share ? Math.max(this.share - judged, 0) : Math.ceil(query_left);
    const done = this.share ? judged : query_judged;
    const bar = part<HTMLProgressElement>("progress");
    bar.max = done + Math.max(left, 1);
    bar.value = done;
    part("query-left").textContent =
      this.surface === "judging" && !this.share
        ? gettext("about %(count)s left", { count: left })
        : gettext("%(count)s left", { count: left });
  }

  /** Show how much the person has judged. */
  showTotals({ judged, seconds }: Progress): void {
    if (this.surface !== "judging") return;
    part("judged").textContent = ngettext("%(count)s judged", "%(count)s judged", judged);
    part("average").textContent = judged
      ? gettext("by you, %(seconds)s s each", { seconds: Math.round(seconds / judged) })
      : gettext("by you");
  }

  /** Show for a moment that nothing is left of a query. */
  showFinished(): void {
    const badge = part("finished");
    badge.textContent = gettext("Query finished");
    setTimeout(() => (badge.textContent = ""), FINISHED_MS);
  }

  /** Show whether answers are saved, or how many have not been sent. */
  showSaveState(state: "saved" | "saving" | "none", unsent = 0): void {
    const labels = {
      saved: gettext("Saved"),
      none: "",
      saving:
        unsent === 0
          ? gettext("Saving…")
          : ngettext("%(count)s not sent", "%(count)s not sent", unsent),
    };
    const badge = part("saved");
    badge.textContent = labels[state];
    badge.className = `badge ${state === "saved" ? "good" : unsent ? "warn" : ""}`;
    badge.hidden = state === "none";
  }
}
