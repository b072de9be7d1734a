/** Which of the page's screens is shown, and what the bar above them says. */

import type { Progress } from "./api";
import { announce, part } from "./page";

export type Screen =
  | "loading"
  | "task"
  | "break"
  | "sending"
  | "wait"
  | "paused"
  | "yours-done"
  | "done"
  | "blocked"
  | "offline"
  | "sign-in"
  | "out-of-date"
  | "gone";

export class Screens {
  private readonly all = [...document.querySelectorAll<HTMLElement>("[data-screen]")];
  shown: Screen = "loading";

  show(screen: Screen): void {
    const changed = screen !== this.shown;
    this.shown = screen;
    for (const each of this.all) each.hidden = each.dataset.screen !== screen;
    if (changed && screen !== "task") {
      const found = this.all.find((each) => each.dataset.screen === screen)!;
      found.focus({ preventScroll: true });
      announce(found.querySelector("h2")?.textContent ?? "");
    }
  }

  progress({ judged, seconds, query_judged, query_left }: Progress): void {
    const left = Math.ceil(query_left);
    const bar = part<HTMLProgressElement>("progress");
    bar.max = query_judged + Math.max(left, 1);
    bar.value = query_judged;
    part("query-left").textContent = `about ${left} left`;
    part("judged").textContent = `${judged} judged`;
    part("average").textContent = judged ? `by you, ${Math.round(seconds / judged)} s each` : "by you";
  }

  /** What became of the answers: "saved", or how many wait to be sent. */
  saved(state: "saved" | "saving" | "nothing", waiting = 0): void {
    const words = {
      saved: "Saved",
      nothing: "",
      saving: waiting === 0 ? "Saving…" : `${waiting} not sent`,
    };
    const line = part("saved");
    line.textContent = words[state];
    line.className = `badge ${state === "saved" ? "good" : waiting ? "warn" : ""}`;
    line.hidden = state === "nothing";
  }
}
