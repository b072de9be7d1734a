/** The page's dialogs: why to skip, whether anyone is there, and two to read. */

import { part } from "./page";

export function openDialog(name: string): void {
  part<HTMLDialogElement>(name).showModal();
}

/** Ask for a reason, and tell it if the person does not think better of it. */
export function askWhySkip(skip: (reason: string) => void): void {
  const dialog = part<HTMLDialogElement>("skip-dialog");
  const form = dialog.querySelector("form")!;
  form.reset();
  dialog.returnValue = "";
  dialog.addEventListener(
    "close",
    () => {
      if (dialog.returnValue !== "skip") return;
      const said = new FormData(form);
      const words = [said.get("reason"), said.get("words")].map((each) => String(each ?? "").trim());
      skip(words.filter(Boolean).join(": "));
    },
    { once: true },
  );
  dialog.showModal();
}

/** Ask whether anyone is there; whatever closes the dialog is a yes. */
export function askStillThere(yes: () => void): void {
  const dialog = part<HTMLDialogElement>("still-there");
  dialog.addEventListener("close", yes, { once: true });
  dialog.showModal();
}
