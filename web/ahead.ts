/**
 * Tasks that were fetched ahead, with their documents: the next one is shown at the press of a key.
 * The server gives only tasks that the answers to those before them cannot change.
 */

import type { Api, NextResult, Progress, Task } from "./api";
import type { DocumentsView, PreparedTask } from "./documents";

/** How many tasks are held besides the one that is shown: so many answers can wait offline. */
const AHEAD = 2;

export interface AheadTask extends PreparedTask {
  readonly progress: Progress | null;
}

export class AheadTasks {
  private tasks: AheadTask[] = [];
  private filling = false;
  /** Counts up whenever the tasks are let go: what was asked for before is not kept. */
  private generation = 0;

  constructor(
    private readonly api: Api,
    private readonly tab: string,
    private readonly documents: DocumentsView,
  ) {}

  get tokens(): string[] {
    return this.tasks.map(({ task }) => task.token);
  }

  /** Load the documents of a task that was given out to be shown later. */
  add(task: Task, progress: Progress | null): void {
    if (this.tokens.includes(task.token)) return;
    this.tasks.push({ ...this.documents.prepare(task), progress });
  }

  /** The next task, or the one with a token. */
  take(token?: string): AheadTask | null {
    const index = token === undefined ? 0 : this.tokens.indexOf(token);
    return index < 0 ? null : (this.tasks.splice(index, 1)[0] ?? null);
  }

  /** Ask for tasks until enough are held; `current` is the token of the one that is shown. */
  async fill(current: () => string | null): Promise<void> {
    if (this.filling) return;
    this.filling = true;
    const generation = this.generation;
    try {
      while (this.tasks.length < AHEAD) {
        const token = current();
        if (!token) return;
        const next: NextResult = await this.api.next(this.tab, [token, ...this.tokens]);
        if (!next.task) return;
        if (generation !== this.generation) {
          this.api.release(next.task);
          return;
        }
        this.add(next.task, next.progress ?? null);
      }
    } catch {
      // Without a connection there is nothing to fetch; the next answer tries again.
    } finally {
      this.filling = false;
    }
  }

  /** Forget tasks that went to others; the rest is kept until `expiresAt`. */
  renewed(lost: string[], expiresAt: number | null): void {
    for (const token of lost) {
      const gone = this.take(token);
      if (gone) this.documents.discard(gone);
    }
    // A release names the expiry, so that it ends no lease that was asked for again since.
    if (expiresAt !== null) for (const { task } of this.tasks) task.expires_at = expiresAt;
  }

  /** Forget all tasks, and give them back unless the server took them back already. */
  clear(release: boolean): void {
    this.generation += 1;
    for (const held of this.tasks.splice(0)) {
      if (release) this.api.release(held.task);
      this.documents.discard(held);
    }
  }
}
