/** The time that someone spends on a task: breaks, hidden tabs and absence are taken off. */

export type Break = "paused" | "hidden" | "away";

const SHORTEST_READING = 60;
const LONGEST_READING = 600;
const CHARACTERS_PER_SECOND = 12; // slow, careful reading

/** After how many seconds without a sign of life one asks whether anyone is there. */
export function readingSeconds(characters: number): number {
  const needed = SHORTEST_READING / 2 + characters / CHARACTERS_PER_SECOND;
  return Math.min(Math.max(needed, SHORTEST_READING), LONGEST_READING);
}

export class ActiveTime {
  private counted = 0;
  private since = 0;
  private lastSign = 0;
  private readonly breaks = new Set<Break>();

  constructor(private readonly now: () => number = () => performance.now()) {
    this.restart();
  }

  /** Begin a task; a break that is on stays on. */
  restart(): void {
    this.counted = 0;
    this.since = this.lastSign = this.now();
  }

  /** A key, a touch, a scroll. */
  sign(): void {
    if (this.breaks.size === 0) this.lastSign = this.now();
  }

  /** Seconds without a sign of life; none during breaks. */
  get still(): number {
    return this.breaks.size ? 0 : (this.now() - this.lastSign) / 1000;
  }

  get seconds(): number {
    return (this.counted + (this.breaks.size ? 0 : this.now() - this.since)) / 1000;
  }

  begin(kind: Break): void {
    if (this.breaks.size === 0) {
      // Whoever is away has been so since the last sign of life.
      const until = kind === "away" ? this.lastSign : this.now();
      this.counted += Math.max(until - this.since, 0);
    }
    this.breaks.add(kind);
  }

  end(kind: Break): void {
    if (this.breaks.delete(kind) && this.breaks.size === 0) this.since = this.lastSign = this.now();
  }
}

/** Seconds as a clock shows them: 1:05. */
export function clockFace(seconds: number): string {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}
