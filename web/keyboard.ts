/** Keyboard shortcuts: every button with a `data-key` is pressed by that key. */

/** The name of a key as the template has it, on any keyboard layout. */
export function keyName(event: KeyboardEvent): string {
  if (event.key.length > 1) return event.key;
  const typed = event.key.toLowerCase();
  if (/^[a-z0-9?]$/.test(typed)) return typed;
  // Letters of other alphabets, and digits that need Shift on some layouts, go by key position.
  const position = /^(?:Key|Digit|Numpad)([A-Z0-9])$/.exec(event.code);
  return position ? position[1]!.toLowerCase() : typed;
}

export function bindShortcuts(press: (button: HTMLButtonElement) => void): void {
  document.addEventListener("keydown", (event) => {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]") || isTyping(event)) return;
    if (scrollsText(event)) return;
    const name = CSS.escape(keyName(event));
    const button = document.querySelector<HTMLButtonElement>(
      `button[data-key="${name}"], button[data-other-key="${name}"]`,
    );
    if (button) {
      event.preventDefault();
      press(button);
    }
  });
}

/**
 * Keep the focus on this page: key presses inside a document's frame do not reach it. After a click
 * into a frame the focus returns to `home`. Focus moved there with Tab stays, for scrolling.
 */
export function returnFocusFromFrames(home: HTMLElement): void {
  let movedByTab = false;
  document.addEventListener("keydown", (event) => (movedByTab = event.key === "Tab"), true);
  document.addEventListener("pointermove", () => (movedByTab = false), true);
  addEventListener("blur", () =>
    // The frame gets the focus only after this event.
    setTimeout(() => {
      if (document.activeElement instanceof HTMLIFrameElement && !movedByTab) {
        document.activeElement.blur();
        window.focus();
        home.focus({ preventScroll: true });
      }
    }),
  );
}

/** Whether a key scrolls the text that has the focus: then it is not a shortcut. */
function scrollsText({ key, target }: KeyboardEvent): boolean {
  const scrolls = key === "ArrowDown" || key === "ArrowUp";
  return scrolls && target instanceof Element && target.closest(".scroller") !== null;
}

/** Whether a key is for the field that has the focus; an option takes arrows and space alone. */
function isTyping({ key, target }: KeyboardEvent): boolean {
  if (target instanceof HTMLInputElement && target.type === "radio") {
    return key.startsWith("Arrow") || key === " ";
  }
  return target instanceof HTMLElement && target.closest("input, textarea, select") !== null;
}
