/** Exponential backoff with jitter between attempts, which can be cut short. */

const MAX_DELAY_MS = 30_000;

export class Backoff {
  private failures = 0;
  private wake: (() => void) | null = null;

  /** Forget past failures. */
  reset(): void {
    this.failures = 0;
  }

  /** Wait before the next attempt, for at least so many seconds. */
  async wait(minSeconds = 0): Promise<void> {
    const base = Math.min(1000 * 2 ** this.failures, MAX_DELAY_MS);
    this.failures += 1;
    // Jitter: not all browsers should come back at the same moment after an outage.
    const delay = Math.max(base * (0.75 + Math.random() / 2), minSeconds * 1000);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, delay);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.wake = null;
  }

  /** End a wait now, and forget past failures. */
  retryNow(): void {
    this.failures = 0;
    this.wake?.();
  }
}
