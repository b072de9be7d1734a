/** Shows documents: text as text, HTML in a sandboxed frame that runs no scripts. */

import { type Api, type DocumentRef, isRetryable, type Task } from "./api";
import { Backoff } from "./backoff";
import { createElement, part } from "./dom";
import { highlightTerms } from "./highlight";

const FRAME_TIMEOUT_MS = 10_000;

export class DocumentsView {
  private readonly panes = [...part("documents").querySelectorAll<HTMLElement>("[data-side]")];
  private current: Task | null = null;

  constructor(private readonly api: Api) {}

  /** Show a task's documents. Resolves when all can be read, or another task replaced this one. */
  async show(task: Task): Promise<void> {
    this.current = task;
    const loading = task.sides.map((side, index) => {
      const pane = this.panes[index]!;
      return task.mode === "rankings"
        ? this.showRanking(task, pane, side.documents)
        : this.showDocument(task, pane, side.documents[0]!);
    });
    await Promise.all(loading);
  }

  clear(): void {
    this.current = null;
    for (const pane of this.panes) pane.replaceChildren();
  }

  /** Scroll all documents by a fraction of their height. */
  scroll(fraction: number): void {
    for (const scroller of part("documents").querySelectorAll<HTMLElement>(".scroller")) {
      scroller.scrollBy({ top: fraction * scroller.clientHeight });
    }
  }

  private showDocument(task: Task, pane: HTMLElement, document: DocumentRef): Promise<void> {
    const heading = createElement("h3", { className: "document-title" }, document.title);
    const body = createElement("div", { className: "document-body" });
    pane.replaceChildren(createElement("header", {}, heading, ...sourceLink(document.url)), body);
    pane.setAttribute("aria-busy", "true");
    return this.load(task, body, document).finally(() => pane.removeAttribute("aria-busy"));
  }

  private async showRanking(
    task: Task,
    pane: HTMLElement,
    documents: DocumentRef[],
  ): Promise<void> {
    const list = createElement("ol", { className: "ranking" });
    for (const document of documents) {
      const body = createElement("div", { className: "document-body" });
      const summary = createElement("summary", {}, document.title);
      const details = createElement("details", {}, summary, body);
      details.addEventListener("toggle", () => {
        if (details.open && !body.hasChildNodes()) void this.load(task, body, document);
      });
      list.append(createElement("li", {}, details));
    }
    const scroller = createElement("div", { className: "scroller", tabIndex: 0 }, list);
    scroller.setAttribute("role", "region");
    scroller.setAttribute("aria-label", `${pane.dataset.label ?? ""} ranking`);
    pane.replaceChildren(scroller);
  }

  private async load(task: Task, body: HTMLElement, document: DocumentRef): Promise<void> {
    if (document.format === "html") {
      const url = this.api.documentPageUrl(task.query_id, document.place);
      await loadFrame(body, url, document.title);
    } else {
      await this.loadText(task, body, document);
    }
  }

  private async loadText(task: Task, body: HTMLElement, document: DocumentRef): Promise<void> {
    const backoff = new Backoff();
    while (this.current === task) {
      try {
        const { text, terms } = await this.api.document(task.query_id, document.place);
        const scroller = createElement("div", { className: "scroller text", tabIndex: 0 });
        scroller.setAttribute("role", "region");
        scroller.setAttribute("aria-label", document.title);
        scroller.append(text ? highlightTerms(text, terms) : "This document has no text.");
        body.replaceChildren(scroller);
        return;
      } catch (error) {
        if (!isRetryable(error)) {
          showMessage(body, String((error as Error).message));
          return;
        }
        showMessage(body, "Could not load this document. Trying again…");
        await backoff.wait();
      }
    }
  }
}

function showMessage(body: HTMLElement, message: string): void {
  body.replaceChildren(createElement("p", { className: "muted" }, message));
}

function loadFrame(body: HTMLElement, url: string, title: string): Promise<void> {
  const frame = createElement("iframe", { title, src: url, referrerPolicy: "no-referrer" });
  frame.setAttribute("sandbox", "");
  const loaded = new Promise<void>((resolve) => {
    frame.addEventListener("load", () => resolve(), { once: true });
    setTimeout(resolve, FRAME_TIMEOUT_MS);
  });
  body.replaceChildren(frame);
  return loaded;
}

/** A link to the source of a document, if its URL is one of a web page and not a script. */
function sourceLink(url: string): HTMLElement[] {
  let host: string;
  try {
    const parsed = new URL(url);
    if (parsed.protocol !== "https:" && parsed.protocol !== "http:") return [];
    host = parsed.host;
  } catch {
    return [];
  }
  const properties = {
    href: url,
    target: "_blank",
    rel: "noopener noreferrer",
    className: "source",
  };
  return [createElement("a", properties, host)];
}
