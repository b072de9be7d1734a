/** Measures the time that someone actively spends on a task, without pauses and idle time. */

export type PauseReason = "break" | "hidden" | "idle";

const MIN_IDLE_SECONDS = 60;
const MAX_IDLE_SECONDS = 600;
const CHARACTERS_PER_SECOND = 12; // slow, careful reading

/** After how many seconds without activity to ask whether the person is still there. */
export function idleTimeout(characters: number): number {
  const readingSeconds = MIN_IDLE_SECONDS / 2 + characters / CHARACTERS_PER_SECOND;
  return Math.min(Math.max(readingSeconds, MIN_IDLE_SECONDS), MAX_IDLE_SECONDS);
}

export class ActivityTimer {
  private accumulated = 0;
  private startedAt = 0;
  private lastActivityAt = 0;
  private readonly pauseReasons = new Set<PauseReason>();

  constructor(private readonly now: () => number = () => performance.now()) {
    this.restart();
  }

  /** Start timing a new task. A paused timer stays paused. */
  restart(): void {
    this.accumulated = 0;
    this.startedAt = this.lastActivityAt = this.now();
  }

  /** Record a key press, a pointer movement or a scroll. */
  recordActivity(): void {
    if (!this.isPaused) this.lastActivityAt = this.now();
  }

  /** Seconds without activity; 0 while paused. */
  get idleSeconds(): number {
    return this.isPaused ? 0 : (this.now() - this.lastActivityAt) / 1000;
  }

  get activeSeconds(): number {
    return (this.accumulated + (this.isPaused ? 0 : this.now() - this.startedAt)) / 1000;
  }

  pause(reason: PauseReason): void {
    if (!this.isPaused) {
      // Someone who is idle has been so since their last activity.
      const end = reason === "idle" ? this.lastActivityAt : this.now();
      this.accumulated += Math.max(end - this.startedAt, 0);
    }
    this.pauseReasons.add(reason);
  }

  resume(reason: PauseReason): void {
    if (this.pauseReasons.delete(reason) && !this.isPaused) {
      this.startedAt = this.lastActivityAt = this.now();
    }
  }

  private get isPaused(): boolean {
    return this.pauseReasons.size > 0;
  }
}

/** Format seconds as minutes and seconds, such as 1:05. */
export function formatDuration(seconds: number): string {
  const rounded = Math.floor(seconds);
  return `${Math.floor(rounded / 60)}:${String(rounded % 60).padStart(2, "0")}`;
}
