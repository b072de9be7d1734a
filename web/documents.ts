/** Documents on the page: text as text, HTML in a frame in which nothing can run. */

import { type Api, type DocumentRef, passes, type Task } from "./api";
import { marked } from "./marking";
import { make, part } from "./page";
import { Patience } from "./retrying";

const LONGEST_FRAME_WAIT = 10_000;

export class Documents {
  private readonly places = [...part("documents").querySelectorAll<HTMLElement>("[data-side]")];
  private current: Task | null = null;

  constructor(private readonly api: Api) {}

  /** Show a task's documents; done when all can be read, or when another task took their place. */
  async show(task: Task): Promise<void> {
    this.current = task;
    const loading = task.sides.map((side, number) => {
      const place = this.places[number]!;
      return task.mode === "rankings"
        ? this.showRanking(task, place, side.documents)
        : this.showOne(task, place, side.documents[0]!);
    });
    await Promise.all(loading);
  }

  clear(): void {
    this.current = null;
    for (const place of this.places) place.replaceChildren();
  }

  /** Move all texts by a share of their height. */
  scroll(share: number): void {
    for (const text of part("documents").querySelectorAll<HTMLElement>(".scroller")) {
      text.scrollBy({ top: share * text.clientHeight });
    }
  }

  private showOne(task: Task, place: HTMLElement, document: DocumentRef): Promise<void> {
    const heading = make("h3", { className: "document-title" }, document.title);
    const body = make("div", { className: "document-body" });
    place.replaceChildren(make("header", {}, heading, ...linkTo(document.url)), body);
    place.setAttribute("aria-busy", "true");
    return this.fill(task, body, document).finally(() => place.removeAttribute("aria-busy"));
  }

  private async showRanking(
    task: Task,
    place: HTMLElement,
    documents: DocumentRef[],
  ): Promise<void> {
    const list = make("ol", { className: "ranking" });
    for (const document of documents) {
      const body = make("div", { className: "document-body" });
      const details = make("details", {}, make("summary", {}, document.title), body);
      details.addEventListener("toggle", () => {
        if (details.open && !body.hasChildNodes()) void this.fill(task, body, document);
      });
      list.append(make("li", {}, details));
    }
    const scroller = make("div", { className: "scroller", tabIndex: 0 }, list);
    scroller.setAttribute("role", "region");
    scroller.setAttribute("aria-label", `${place.dataset.label ?? ""} ranking`);
    place.replaceChildren(scroller);
  }

  private async fill(task: Task, body: HTMLElement, document: DocumentRef): Promise<void> {
    if (document.format === "html") {
      await fillFrame(body, this.api.pageOf(task.query_id, document.place), document.title);
    } else {
      await this.fillText(task, body, document);
    }
  }

  private async fillText(task: Task, body: HTMLElement, document: DocumentRef): Promise<void> {
    const patience = new Patience();
    while (this.current === task) {
      try {
        const { text, terms } = await this.api.document(task.query_id, document.place);
        const scroller = make("div", { className: "scroller text", tabIndex: 0 });
        scroller.setAttribute("role", "region");
        scroller.setAttribute("aria-label", document.title);
        scroller.append(text ? marked(text, terms) : "This document has no text.");
        body.replaceChildren(scroller);
        return;
      } catch (error) {
        if (!passes(error)) {
          body.replaceChildren(make("p", { className: "muted" }, String((error as Error).message)));
          return;
        }
        body.replaceChildren(
          make("p", { className: "muted" }, "This document could not be loaded. Trying again…"),
        );
        await patience.wait();
      }
    }
  }
}

function fillFrame(body: HTMLElement, address: string, title: string): Promise<void> {
  const frame = make("iframe", { title, src: address, referrerPolicy: "no-referrer" });
  frame.setAttribute("sandbox", "");
  const loaded = new Promise<void>((resolve) => {
    frame.addEventListener("load", () => resolve(), { once: true });
    setTimeout(resolve, LONGEST_FRAME_WAIT);
  });
  body.replaceChildren(frame);
  return loaded;
}

/** A link to where a document came from, if that is a web page and not a script. */
function linkTo(address: string): HTMLElement[] {
  let host: string;
  try {
    const parsed = new URL(address);
    if (parsed.protocol !== "https:" && parsed.protocol !== "http:") return [];
    host = parsed.host;
  } catch {
    return [];
  }
  const link = { href: address, target: "_blank", rel: "noopener noreferrer", className: "source" };
  return [make("a", link, host)];
}
