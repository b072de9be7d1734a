/**
 * Answers that the server does not have yet, kept in this browser until it does.
 *
 * Each has a key of its own, so that tabs never overwrite each other's, and the key names project
 * and account: whoever signs in here next does not send what someone else answered.
 */

import type { Answer } from "./api";

export interface Kept extends Answer {
  at: number;
  /** The word of the page that it was refused with: a fresh page may try it once more. */
  refusedWith?: string;
}

export class Outbox {
  private readonly prefix: string;
  private readonly unsaved = new Map<string, Kept>();

  constructor(
    private readonly storage: Storage,
    project: string,
    account: string,
  ) {
    this.prefix = `podium.answers.${project}.${account}.`;
  }

  put(kept: Kept): void {
    try {
      this.storage.setItem(this.prefix + kept.token, JSON.stringify(kept));
      this.unsaved.delete(kept.token);
    } catch {
      this.unsaved.set(kept.token, kept); // no room or no permission: this page's memory must do
    }
  }

  remove(token: string): void {
    this.unsaved.delete(token);
    this.storage.removeItem(this.prefix + token);
  }

  /** All answers, oldest first. */
  list(): Kept[] {
    const found = [...this.unsaved.values()];
    for (const key of Object.keys(this.storage)) {
      if (key.startsWith(this.prefix)) {
        const kept = parse(this.storage.getItem(key));
        if (kept) found.push(kept);
        else this.storage.removeItem(key);
      }
    }
    return found.sort((one, other) => one.at - other.at);
  }
}

function parse(text: string | null): Kept | null {
  try {
    const kept = JSON.parse(text ?? "") as Kept;
    return typeof kept.token === "string" && typeof kept.choice === "string" ? kept : null;
  } catch {
    return null;
  }
}
