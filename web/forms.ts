/** Forms with a preview beside them, and tables whose rows people put in order. */

import { gettext } from "./messages";

/** How long nothing is typed before the preview follows. */
const SETTLED_MS = 300;

/** Show in frames with `data-form` what a form says before it is saved. */
export function followForms(root: ParentNode): void {
  for (const frame of root.querySelectorAll<HTMLIFrameElement>("iframe[data-form]")) {
    const form = document.getElementById(frame.dataset.form!) as HTMLFormElement;
    const page = frame.src;
    let shown = "";
    const show = () => {
      const fields = [...new FormData(form)].filter(
        ([name, value]) => name !== "csrf" && typeof value === "string",
      ) as [string, string][];
      const address = `${page}&${new URLSearchParams(fields)}`;
      // A new place in the frame's history would be one to come back to.
      if (address !== shown) frame.contentWindow?.location.replace(address);
      shown = address;
    };
    let timer = 0;
    form.addEventListener("input", () => {
      clearTimeout(timer);
      timer = window.setTimeout(show, SETTLED_MS);
    });
    show();
  }
}

/** Let people drag the rows of tables with `data-ordered`, or move them with buttons. */
export function orderRows(root: ParentNode): void {
  for (const table of root.querySelectorAll<HTMLTableElement>("table[data-ordered]")) {
    const body = table.tBodies[0]!;
    const moved = () => table.dispatchEvent(new Event("input", { bubbles: true }));
    body.addEventListener("click", ({ target }) => {
      const button = target instanceof Element ? target.closest<HTMLElement>("[data-move]") : null;
      const row = button?.closest("tr");
      if (!button || !row) return;
      const up = button.dataset.move === "up";
      const other = up ? row.previousElementSibling : row.nextElementSibling;
      if (!other) return;
      if (up) other.before(row);
      else other.after(row);
      button.focus();
      const place = { position: row.sectionRowIndex + 1, total: body.rows.length };
      document.getElementById(table.dataset.ordered!)!.textContent = gettext(
        "Position %(position)s of %(total)s",
        place,
      );
      moved();
    });
    for (const handle of body.querySelectorAll<HTMLElement>(".handle")) {
      handle.addEventListener("pointerdown", (event) => {
        const row = handle.closest("tr")!;
        event.preventDefault();
        body.setPointerCapture(event.pointerId); // the row would lose it when it moves
        row.classList.add("dragged");
        const drag = ({ clientY }: PointerEvent) => {
          const below = [...body.rows].find((each) => {
            const { top, height } = each.getBoundingClientRect();
            return each !== row && clientY < top + height / 2;
          });
          if (below !== row.nextElementSibling) body.insertBefore(row, below ?? null);
        };
        const drop = () => {
          body.removeEventListener("pointermove", drag);
          row.classList.remove("dragged");
          moved();
        };
        body.addEventListener("pointermove", drag);
        body.addEventListener("lostpointercapture", drop, { once: true });
      });
    }
  }
}
