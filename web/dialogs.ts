/** The page's dialogs: skip reason, idle check, help and guidelines. */

import { part } from "./dom";

export function openDialog(name: string): void {
  part<HTMLDialogElement>(name).showModal();
}

/** Ask why a task is skipped; `onSkip` is not called if the person cancels. */
export function askSkipReason(onSkip: (reason: string) => void): void {
  const dialog = part<HTMLDialogElement>("skip-dialog");
  const form = dialog.querySelector("form")!;
  form.reset();
  dialog.returnValue = "";
  dialog.addEventListener(
    "close",
    () => {
      if (dialog.returnValue !== "skip") return;
      const data = new FormData(form);
      const parts = ["reason", "comment"].map((name) => String(data.get(name) ?? "").trim());
      onSkip(parts.filter(Boolean).join(": "));
    },
    { once: true },
  );
  dialog.showModal();
}

/** Ask for a comment, starting from the one there is; `onKeep` is not called on cancel. */
export function askComment(comment: string, onKeep: (comment: string) => void): void {
  const dialog = part<HTMLDialogElement>("comment-dialog");
  const field = dialog.querySelector("textarea")!;
  field.value = comment;
  dialog.returnValue = "";
  dialog.addEventListener(
    "close",
    () => {
      if (dialog.returnValue === "keep") onKeep(field.value.trim());
    },
    { once: true },
  );
  dialog.showModal();
}

/** Ask whether the person is still there; closing the dialog in any way means yes. */
export function askStillThere(onConfirm: () => void): void {
  const dialog = part<HTMLDialogElement>("still-there");
  dialog.addEventListener("close", onConfirm, { once: true });
  dialog.showModal();
}
