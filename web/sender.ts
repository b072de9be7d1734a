/** Sends what is in the outbox, in order, until it is empty. */

import { type Api, type Next, passes, RefusedError, type Taken } from "./api";
import type { Kept, Outbox } from "./outbox";
import { Patience } from "./retrying";

export interface Listener {
  /** One answer arrived. */
  sent(kept: Kept, taken: Taken): void;
  /** The server cannot be reached; it is tried again by itself. */
  waiting(count: number): void;
  /** An answer can never be taken, and was let go. */
  dropped(problem: string): void;
  /** Nothing can be sent before the person signs in, or loads the page again. */
  stuck(why: "sign-in" | "out-of-date"): void;
  /** All is sent; the last answer of this tab may have brought what comes next. */
  empty(next: Next | null): void;
}

export class Sender {
  private readonly patience = new Patience();
  private busy = false;

  constructor(
    private readonly outbox: Outbox,
    private readonly api: Api,
    private readonly tab: string,
    private readonly listener: Listener,
  ) {}

  /** Send now, even if the next try was planned for later. */
  send(): void {
    this.patience.now();
    if (!this.busy) {
      this.busy = true;
      void this.sendAll().finally(() => (this.busy = false));
    }
  }

  private async sendAll(): Promise<void> {
    let next: Next | null = null;
    for (;;) {
      const [first, ...others] = this.outbox.list();
      if (!first) {
        this.busy = false;
        this.listener.empty(next);
        return;
      }
      try {
        // Only the last answer of this tab needs a task in return.
        const more = first.tab === this.tab && others.length === 0;
        const { token, choice, seconds, tab, reason } = first;
        const taken = await this.api.answer({ token, choice, seconds, tab, reason }, more);
        this.patience.reset();
        this.outbox.remove(first.token);
        next = more ? taken.next : null;
        this.listener.sent(first, taken);
      } catch (error) {
        if (passes(error)) {
          this.listener.waiting(others.length + 1);
          await this.patience.wait(error instanceof RefusedError ? error.retryAfter : 0);
        } else if (!(error instanceof RefusedError)) {
          throw error;
        } else if (error.status === 401) {
          this.listener.stuck("sign-in");
          return;
        } else if (error.status === 403 && !this.triedByFreshPage(first)) {
          this.outbox.put({ ...first, refusedWith: this.api.csrf });
          this.listener.stuck("out-of-date");
          return;
        } else {
          this.outbox.remove(first.token);
          this.listener.dropped(error.message);
        }
      }
    }
  }

  /** Whether a page before this one was refused already: then loading it again does not help. */
  private triedByFreshPage(kept: Kept): boolean {
    return kept.refusedWith !== undefined && kept.refusedWith !== this.api.csrf;
  }
}
