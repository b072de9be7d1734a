/** Which documents of a task have been in view: a verdict needs both. */

/** So much of a document in view, in pixels, or half of a smaller one, is enough to have seen it. */
const ENOUGH_PX = 100;

export class SeenDocuments {
  private observer: IntersectionObserver | null = null;
  private unseen = new Set<Element>();

  constructor(private readonly onChange: () => void) {}

  /** Watch the documents of another task. */
  watch(panes: HTMLElement[]): void {
    this.observer?.disconnect();
    this.unseen = new Set(panes);
    this.observer = new IntersectionObserver((entries) => this.onSeen(entries), {
      threshold: [0, 0.1, 0.25, 0.5, 0.75, 1],
    });
    for (const pane of panes) this.observer.observe(pane);
  }

  /** What the first document that nobody has seen yet is called, or null. */
  get missing(): string | null {
    const [first] = this.unseen;
    return first instanceof HTMLElement ? (first.dataset.label ?? "") : null;
  }

  private onSeen(entries: IntersectionObserverEntry[]): void {
    for (const { target, isIntersecting, intersectionRect, boundingClientRect } of entries) {
      const enough = Math.min(ENOUGH_PX, boundingClientRect.height / 2);
      if (isIntersecting && intersectionRect.height >= enough && intersectionRect.width > 0) {
        this.unseen.delete(target);
        this.observer?.unobserve(target);
      }
    }
    this.onChange();
  }
}
