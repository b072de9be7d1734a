/** The project's own questions beside the verdict. */

import { part } from "./dom";

export class Questions {
  private readonly form = part<HTMLFormElement>("questions");

  constructor() {
    // Enter in a field: keys are for verdicts again.
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      part("task").focus({ preventScroll: true });
    });
    // Keys are for verdicts again once someone chose an option with the pointer.
    this.form.addEventListener("click", ({ target, detail }) => {
      if (detail > 0 && target instanceof HTMLInputElement && target.type === "radio") {
        part("task").focus({ preventScroll: true });
      }
    });
  }

  reset(): void {
    this.form.reset();
  }

  /** The replies by the names of the questions. */
  replies(): Record<string, string> {
    const replies: Record<string, string> = {};
    for (const [name, value] of new FormData(this.form)) {
      if (typeof value === "string" && value.trim()) replies[name] = value.trim();
    }
    return replies;
  }

  /** The first question that needs a reply and has none, after the focus moved there, or null. */
  askMissing(): string | null {
    const replies = this.replies();
    for (const question of this.form.querySelectorAll<HTMLElement>("[data-required]")) {
      if (replies[question.dataset.required ?? ""]) continue;
      question.querySelector<HTMLElement>("input, textarea")?.focus();
      return question.dataset.text ?? "";
    }
    return null;
  }
}
