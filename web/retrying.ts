/** Waiting between tries: longer each time, until something says that it is worth a try now. */

const LONGEST = 30_000;

export class Patience {
  private failures = 0;
  private wake: (() => void) | null = null;

  /** Forget past failures. */
  reset(): void {
    this.failures = 0;
  }

  /** Wait before the next try, at least for so many seconds. */
  async wait(atLeast = 0): Promise<void> {
    const grown = Math.min(1000 * 2 ** this.failures, LONGEST);
    this.failures += 1;
    // Not all browsers come back at the same moment after a server was down.
    const delay = Math.max(grown * (0.75 + Math.random() / 2), atLeast * 1000);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, delay);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.wake = null;
  }

  /** End the wait. */
  now(): void {
    this.failures = 0;
    this.wake?.();
  }
}
