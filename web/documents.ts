/** Shows documents: text as text, HTML in a sandboxed frame that runs no scripts. */

import { type Api, type DocumentContent, type DocumentRef, isRetryable, type Task } from "./api";
import { Backoff } from "./backoff";
import { createElement, part } from "./dom";
import { highlightTerms } from "./highlight";
import { gettext } from "./messages";
import { resultFields } from "./result-fields";

const LOADING_TIMEOUT_MS = 10_000;

/** A task with its documents, which are loaded whether they are shown yet or not. */
export interface PreparedTask {
  readonly task: Task;
  readonly element: HTMLElement;
  /** Resolves when all documents can be read. */
  readonly loaded: Promise<void>;
  /** The headings of the documents, once they are loaded. */
  readonly titles: string[];
}

export class DocumentsView {
  private readonly stage = part("stage");
  private readonly template = part<HTMLTemplateElement>("documents-template");
  private current: PreparedTask | null = null;

  constructor(private readonly api: Api) {
    // What is laid out ahead has the room that it will have: all but what stands below it.
    const work = this.stage.parentElement!;
    const observer = new ResizeObserver(() => {
      const below = bottom(work.lastElementChild!) - bottom(this.stage);
      work.style.setProperty("--below", `${below}px`);
    });
    for (const element of work.children) observer.observe(element);
    addEventListener("resize", () => {
      for (const element of this.stage.querySelectorAll<HTMLElement>("[data-shown]")) stack(element);
    });
  }

  /** The sides of the task that is shown. */
  get panes(): HTMLElement[] {
    return this.current ? panesOf(this.current.element) : [];
  }

  /**
   * Load a task's documents out of sight, laid out where they will be shown: showing them is a
   * change of opacity. Browsers do not lay out frames that are not displayed or not visible.
   */
  prepare(task: Task): PreparedTask {
    const element = this.template.content.firstElementChild!.cloneNode(true) as HTMLElement;
    element.className = "ahead";
    element.inert = true;
    this.stage.append(element);
    const titles: string[] = [];
    const panes = panesOf(element);
    const loading =
      task.mode === "rankings"
        ? task.sides.map((side, index) => this.loadRanking(task, panes[index]!, side.documents))
        : [this.loadDocuments(task, panes, titles)];
    const loaded = Promise.all(loading).then(() => stack(element));
    return { task, element, loaded, titles };
  }

  show(prepared: PreparedTask): void {
    if (this.current && this.current !== prepared) this.current.element.remove();
    this.current = prepared;
    prepared.element.classList.replace("ahead", "documents");
    prepared.element.inert = false;
  }

  /** Remove documents that will not be shown. */
  discard(prepared: PreparedTask): void {
    prepared.element.remove();
  }

  clear(): void {
    this.current?.element.remove();
    this.current = null;
  }

  /** On narrow screens one document is shown at a time. */
  showSide(side: string): void {
    if (this.current) this.current.element.dataset.shown = side;
  }

  /** Scroll all documents by a fraction of their height. */
  scroll(fraction: number): void {
    const scrollers = this.current?.element.querySelectorAll<HTMLElement>(".scroller") ?? [];
    for (const scroller of scrollers) scroller.scrollBy({ top: fraction * scroller.clientHeight });
  }

  /** Load the documents of all sides at once, one document each. */
  private async loadDocuments(task: Task, panes: HTMLElement[], titles: string[]): Promise<void> {
    const references = task.sides.map((side) => side.documents[0]!);
    for (const [index, { title, url }] of references.entries()) {
      showHeading(panes[index]!, title, url, []);
      panes[index]!.setAttribute("aria-busy", "true");
    }
    const named = references.map(({ reference }) => reference);
    const contents = await this.fetch(panes[0]!, task, named, true);
    await Promise.all(
      references.map(async ({ reference }, index) => {
        const pane = panes[index]!;
        const content = contents.get(reference);
        titles[index] = content?.title || (pane.dataset.label ?? "");
        if (content) await this.showDocument(task, pane, content);
        pane.removeAttribute("aria-busy");
      }),
    );
  }

  private async showDocument(
    task: Task,
    pane: HTMLElement,
    content: DocumentContent,
  ): Promise<void> {
    const body = showHeading(pane, content.title, content.url, content.terms);
    const name = content.title || (pane.dataset.label ?? "");
    const fields = resultFields(content);
    if (content.format === "html") {
      if (fields) body.append(fields);
      const url = this.api.documentPageUrl(task.query_id, content.reference);
      await Promise.all([loadFrame(body, url, name), picturesIn(body)]);
    } else {
      body.append(textRegion(content, name, fields));
      await picturesIn(body);
    }
  }

  private async loadRanking(
    task: Task,
    pane: HTMLElement,
    references: DocumentRef[],
  ): Promise<void> {
    const list = createElement("ol", { className: "ranking" });
    const scroller = region(gettext("%(side)s ranking", { side: pane.dataset.label ?? "" }));
    scroller.append(list);
    pane.replaceChildren(scroller);
    const named = references.map(({ reference }) => reference);
    const contents = await this.fetch(pane, task, named, false);
    for (const item of references) {
      const content = contents.get(item.reference);
      const title = content?.title || gettext("Document");
      const body = createElement("div", { className: "document-body" });
      const heading = createElement("span", { dir: "auto" });
      heading.append(highlightTerms(title, content?.terms ?? []));
      const details = createElement("details", {}, createElement("summary", {}, heading), body);
      details.addEventListener("toggle", () => {
        if (details.open && !body.hasChildNodes()) void this.open(task, body, item, title);
      });
      const fields = content ? resultFields(content) : null;
      list.append(createElement("li", {}, details, ...(fields ? [fields] : [])));
    }
    if (pane.lastElementChild !== scroller) pane.replaceChildren(scroller);
    await picturesIn(pane);
  }

  /** Load the text of one document of a ranking. */
  private async open(
    task: Task,
    body: HTMLElement,
    item: DocumentRef,
    title: string,
  ): Promise<void> {
    const contents = await this.fetch(body, task, [item.reference], true);
    const content = contents.get(item.reference);
    if (content?.format === "html") {
      const url = this.api.documentPageUrl(task.query_id, item.reference);
      await loadFrame(body, url, title);
    } else if (content) {
      body.replaceChildren(textRegion(content, title, null));
    }
  }

  /** Documents by their references; tries until the server answers, and says so in `target`. */
  private async fetch(
    target: HTMLElement,
    task: Task,
    references: number[],
    text: boolean,
  ): Promise<Map<number, DocumentContent>> {
    const backoff = new Backoff();
    for (;;) {
      try {
        const contents = await this.api.documents(task.query_id, references, text);
        return new Map(contents.map((content) => [content.reference, content]));
      } catch (error) {
        const message = isRetryable(error)
          ? gettext("Could not load this document. Trying again…")
          : String((error as Error).message);
        const shown = target.querySelector(".document-body") ?? target;
        shown.replaceChildren(createElement("p", { className: "muted" }, message));
        if (!isRetryable(error)) return new Map();
        await backoff.wait();
        if (!target.isConnected) return new Map(); // nobody needs them any more
      }
    }
  }
}

const bottom = (element: Element): number => element.getBoundingClientRect().bottom;

/** On narrow screens: show both documents, one below the other, if they are short enough. */
function stack(element: HTMLElement): void {
  element.classList.add("stacked");
  const fits = element.scrollHeight <= element.clientHeight && !element.querySelector("iframe");
  element.classList.toggle("stacked", fits);
}

const panesOf = (element: HTMLElement): HTMLElement[] => [
  ...element.querySelectorAll<HTMLElement>("[data-side]"),
];

/** Show a document's heading and the link to its source; returns the empty body below them. */
function showHeading(pane: HTMLElement, title: string, url: string, terms: string[]): HTMLElement {
  const heading = createElement("h3", { className: "document-title", dir: "auto" });
  heading.append(highlightTerms(title, terms));
  const body = createElement("div", { className: "document-body" });
  const link = sourceLink(url);
  const header = createElement("header", {}, ...(title ? [heading] : []), ...link);
  pane.replaceChildren(...(title || link.length ? [header] : []), body);
  return body;
}

function region(label: string, className = "scroller"): HTMLElement {
  const element = createElement("div", { className, tabIndex: 0 });
  element.setAttribute("role", "region");
  element.setAttribute("aria-label", label);
  return element;
}

/** What is to be read of a document, in a region that scrolls. */
function textRegion(
  { text, terms }: DocumentContent,
  label: string,
  fields: HTMLElement | null,
): HTMLElement {
  const scroller = region(label);
  if (fields) scroller.append(fields);
  const paragraph = createElement("div", { className: "text", dir: "auto" });
  if (text) paragraph.append(highlightTerms(text, terms));
  else if (!fields) paragraph.append(gettext("This document has no text."));
  if (paragraph.hasChildNodes()) scroller.append(paragraph);
  return scroller;
}

/** Wait for pictures, so that nothing moves once the task can be answered. */
function picturesIn(element: HTMLElement): Promise<unknown> {
  const pictures = [...element.querySelectorAll("img")].map((picture) =>
    picture.decode().catch(() => {
      const text = gettext("Picture not available");
      picture.replaceWith(createElement("p", { className: "picture missing" }, text));
    }),
  );
  return Promise.race([Promise.all(pictures), timeout()]);
}

/** A document's HTML in a frame that is as high as it, or as there is room; no script runs in it. */
function loadFrame(body: HTMLElement, url: string, title: string): Promise<void> {
  const frame = createElement("iframe", { title, src: url, referrerPolicy: "no-referrer" });
  // The page may measure what is in the frame; without allow-scripts nothing in it can act.
  frame.setAttribute("sandbox", "allow-same-origin");
  const fit = () => {
    const content = frame.contentDocument?.body;
    if (!content?.childNodes.length) return;
    const margin = parseFloat(getComputedStyle(content).marginBottom) || 0;
    const height = Math.ceil(content.getBoundingClientRect().bottom + margin + frame.contentWindow!.scrollY);
    frame.style.setProperty("--height", `${height}px`);
  };
  const loaded = new Promise<void>((resolve) => {
    const onLoad = () => {
      fit();
      new ResizeObserver(fit).observe(frame);
      resolve();
    };
    frame.addEventListener("load", onLoad, { once: true });
  });
  body.append(frame);
  return Promise.race([loaded, timeout()]);
}

const timeout = (): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, LOADING_TIMEOUT_MS));

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
    dir: "auto",
  };
  return [createElement("a", properties, host)];
}
