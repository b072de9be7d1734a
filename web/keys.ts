/** The keyboard: every button that names a key is pressed by it. */

/** What a key is called in the template, on any layout. */
export function keyName(event: KeyboardEvent): string {
  if (event.key.length > 1) return event.key;
  const typed = event.key.toLowerCase();
  if (/^[a-z0-9?]$/.test(typed)) return typed;
  // Letters of other alphabets, and digits that need Shift on some layouts, go by their place.
  const place = /^(?:Key|Digit|Numpad)([A-Z0-9])$/.exec(event.code);
  return place ? place[1]!.toLowerCase() : typed;
}

export function pressButtonsByKey(press: (button: HTMLButtonElement) => void): void {
  document.addEventListener("keydown", (event) => {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]") || isTyping(event.target)) return;
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
 * Keys pressed in a document's frame are lost to this page. After a click into a frame the focus
 * comes back at once; whoever goes there with Tab stays, to scroll with the keyboard.
 */
export function keepFocusOutOfFrames(home: HTMLElement): void {
  let byTab = false;
  document.addEventListener("keydown", (event) => (byTab = event.key === "Tab"), true);
  document.addEventListener("pointermove", () => (byTab = false), true);
  addEventListener("blur", () =>
    // The frame has the focus only after this event.
    setTimeout(() => {
      if (document.activeElement instanceof HTMLIFrameElement && !byTab) {
        document.activeElement.blur();
        window.focus();
        home.focus({ preventScroll: true });
      }
    }),
  );
}

/** In a text, the arrows up and down are for scrolling, whatever else they mean on the page. */
function scrollsText({ key, target }: KeyboardEvent): boolean {
  const scrolls = key === "ArrowDown" || key === "ArrowUp";
  return scrolls && target instanceof Element && target.closest(".scroller") !== null;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("input, textarea, select") !== null;
}
