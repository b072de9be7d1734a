/** Sends the answers in the outbox, in order, until it is empty. */

import { type AnswerResult, type Api, HttpError, isRetryable, type NextResult } from "./api";
import { Backoff } from "./backoff";
import type { Outbox, QueuedAnswer } from "./outbox";

export interface SenderListener {
  /** The server has one more answer. */
  onSent(answer: QueuedAnswer, result: AnswerResult): void;
  /**
   * What came with an answer of this tab: a task, one to be shown later if `ahead`, or why there is
   * none; null while the project is paused.
   */
  onNext(next: NextResult | null, ahead: boolean): void;
  /** The server cannot be reached; the sender tries again by itself. */
  onWaiting(count: number): void;
  /** The server will never accept an answer, so it was removed. */
  onDropped(problem: string): void;
  /** Nothing can be sent before the person signs in, or reloads the page. */
  onStuck(reason: "sign-in" | "out-of-date"): void;
  /** Everything is sent. */
  onEmpty(): void;
  /** The tokens of the tasks that this tab holds, the one that it shows first. */
  heldTokens(): string[];
}

export class Sender {
  private readonly backoff = new Backoff();
  private busy = false;

  constructor(
    private readonly outbox: Outbox,
    private readonly api: Api,
    private readonly tab: string,
    private readonly listener: SenderListener,
  ) {}

  /** Send now, even if the next attempt was scheduled for later. */
  send(): void {
    this.backoff.retryNow();
    if (!this.busy) {
      this.busy = true;
      void this.sendAll().finally(() => (this.busy = false));
    }
  }

  private async sendAll(): Promise<void> {
    for (;;) {
      const [first, ...others] = this.outbox.list();
      if (!first) {
        this.busy = false;
        this.listener.onEmpty();
        return;
      }
      try {
        // Only the last answer of this tab needs a task in return.
        const more = first.tab === this.tab && others.length === 0;
        const after = more ? this.listener.heldTokens() : [];
        const { token, choice, seconds, tab, reason = null, replies = {} } = first;
        const answer = { token, choice, seconds, tab, reason, replies };
        const result = await this.api.answer(answer, more, after);
        this.backoff.reset();
        this.outbox.remove(first.token);
        this.listener.onSent(first, result);
        if (more) this.listener.onNext(result.next, after.length > 0);
      } catch (error) {
        if (isRetryable(error)) {
          this.listener.onWaiting(others.length + 1);
          await this.backoff.wait(error instanceof HttpError ? error.retryAfter : 0);
        } else if (!(error instanceof HttpError)) {
          throw error;
        } else if (error.status === 401) {
          this.listener.onStuck("sign-in");
          return;
        } else if (error.status === 403 && !this.wasRefusedBefore(first)) {
          this.outbox.put({ ...first, refusedWith: this.api.csrf });
          this.listener.onStuck("out-of-date");
          return;
        } else if (error.status === 422 && first.at >= performance.timeOrigin) {
          // The project's grades or questions changed since the page was loaded.
          this.listener.onStuck("out-of-date");
          return;
        } else {
          this.outbox.remove(first.token);
          this.listener.onDropped(error.message);
        }
      }
    }
  }

  /** Whether the page was refused before it was reloaded: then reloading does not help. */
  private wasRefusedBefore(answer: QueuedAnswer): boolean {
    return answer.refusedWith !== undefined && answer.refusedWith !== this.api.csrf;
  }
}
