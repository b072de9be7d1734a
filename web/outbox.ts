/**
 * Answers that the server has not confirmed yet, stored in this browser.
 *
 * Each answer has its own storage key, so that tabs never overwrite each other's. The key contains
 * what the page is used for, the project and the account, so that nobody sends the answers of someone
 * who used this browser before.
 */

import type { Answer } from "./api";

export interface QueuedAnswer extends Answer {
  at: number;
  /** The CSRF token of the page that was refused; a reloaded page may try once more. */
  refusedWith?: string;
}

export class Outbox {
  private readonly prefix: string;
  private readonly inMemory = new Map<string, QueuedAnswer>();

  constructor(
    private readonly storage: Storage,
    surface: string,
    project: string,
    account: string,
  ) {
    const kind = surface === "judging" ? "answers" : surface;
    this.prefix = `podium.${kind}.${project}.${account}.`;
  }

  put(answer: QueuedAnswer): void {
    try {
      this.storage.setItem(this.prefix + answer.token, JSON.stringify(answer));
      this.inMemory.delete(answer.token);
    } catch {
      this.inMemory.set(answer.token, answer); // storage is full or forbidden
    }
  }

  remove(token: string): void {
    this.inMemory.delete(token);
    this.storage.removeItem(this.prefix + token);
  }

  /** All answers, oldest first. */
  list(): QueuedAnswer[] {
    const answers = [...this.inMemory.values()];
    for (const key of Object.keys(this.storage)) {
      if (key.startsWith(this.prefix)) {
        const answer = parse(this.storage.getItem(key));
        if (answer) answers.push(answer);
        else this.storage.removeItem(key);
      }
    }
    return answers.sort((a, b) => a.at - b.at);
  }
}

function parse(json: string | null): QueuedAnswer | null {
  try {
    const answer = JSON.parse(json ?? "") as QueuedAnswer;
    return typeof answer.token === "string" && typeof answer.choice === "string" ? answer : null;
  } catch {
    return null;
  }
}
