/** The judging page: shows tasks, takes answers, and keeps them until the server has them. */

import { ActiveTime, clockFace, readingSeconds } from "./activetime";
import { Api, type Next, passes, RefusedError, type Taken, type Task } from "./api";
import { askStillThere, askWhySkip, openDialog } from "./dialogs";
import { Documents } from "./documents";
import { keepFocusOutOfFrames, pressButtonsByKey } from "./keys";
import { type Kept, Outbox } from "./outbox";
import { announce, hush, make, newToken, part, tell } from "./page";
import { Patience } from "./retrying";
import { Screens } from "./screens";
import { type Listener, Sender } from "./sender";
import { tabName } from "./tab";

/** Nobody reads two documents within this: a key that comes sooner was meant for the last pair. */
const TOO_SOON = 250;
/** After how long without an answer from the server the page says so. */
const SLOW = 600;
/** How long a page that has nothing to judge waits before it looks again. */
const LOOK_AGAIN_AFTER = 15_000;

type PageData = Record<"project" | "account" | "csrf", string>;

class Judge implements Listener {
  private readonly page = part("judge").dataset as PageData;
  private readonly tab = tabName();
  private readonly api = new Api(this.page.project, this.page.csrf);
  private readonly outbox = new Outbox(localStorage, this.page.project, this.page.account);
  private readonly sender = new Sender(this.outbox, this.api, this.tab, this);
  private readonly documents = new Documents(this.api);
  private readonly screens = new Screens();
  private readonly time = new ActiveTime();
  private readonly patience = new Patience();

  private task: Task | null = null;
  private query: number | null = null;
  /** Whether the task's documents could be read by now. */
  private readable = false;
  /** When the task was last known to be ours. */
  private heldAt = 0;
  private renewing = false;
  /** Tokens of this tab's answers, for taking them back. */
  private readonly answered: string[] = [];
  private undoing = false;
  private justSaved = false;
  private asked = 0;
  private later = 0;
  /** A tab that nobody sees takes no work away from others: it asks once it is seen. */
  private askWhenSeen = false;

  start(): void {
    pressButtonsByKey((button) => this.press(button));
    keepFocusOutOfFrames(part("task"));
    document.addEventListener("click", ({ target }) => {
      const button = target instanceof Element ? target.closest("button") : null;
      if (button) this.press(button);
    });
    for (const kind of ["keydown", "pointerdown", "pointermove", "wheel", "scroll", "touchmove"]) {
      document.addEventListener(kind, () => this.time.sign(), { capture: true, passive: true });
    }
    document.addEventListener("visibilitychange", () => this.visible(!document.hidden));
    addEventListener("online", () => this.connected());
    addEventListener("pagehide", () => this.leave());
    addEventListener("pageshow", (event) => event.persisted && this.comeBack());
    this.visible(!document.hidden);
    setInterval(() => this.tick(), 1000);
    if (this.outbox.list().length) {
      this.screens.saved("saving", this.outbox.list().length);
      this.sender.send();
    } else {
      void this.ask();
    }
  }

  // What the person does

  private press(button: HTMLButtonElement): void {
    const { choice, command, show } = button.dataset;
    if (choice) this.answer(choice, null);
    else if (show) this.showSide(show);
    else if (command) this.command(command);
  }

  private command(name: string): void {
    const away = this.screens.shown === "break";
    if (name === "pause") this.takeBreak(!away);
    else if (name === "help" || name === "guidelines") openDialog(`${name}-dialog`);
    else if (name === "hush") hush();
    else if (name === "ask") void this.ask();
    else if (name === "reload") location.reload();
    else if (away) return;
    else if (name === "undo") void this.undo();
    else if (name === "down" || name === "up") this.documents.scroll(name === "down" ? 0.8 : -0.8);
    else if (name === "skip" && this.task) askWhySkip((reason) => this.answer("skip", reason));
  }

  private answer(choice: string, reason: string | null): void {
    const task = this.task;
    if (!task || this.screens.shown !== "task" || this.undoing) return;
    if (!this.readable && choice !== "skip") return;
    this.task = null;
    this.mark(choice);
    hush();
    delete part("task").dataset.accepts;
    const seconds = Math.round(this.time.seconds * 10) / 10;
    const { token } = task;
    this.outbox.put({ token, choice, seconds, tab: this.tab, reason, at: Date.now() });
    this.screens.saved("saving");
    this.after(SLOW, () => this.screens.show("sending"));
    this.sender.send();
  }

  private async undo(): Promise<void> {
    if (this.undoing) return;
    if (this.outbox.list().length) {
      tell("Your last answer is not sent yet. It can be taken back once it is.");
      return;
    }
    // The same undo sent twice is one, as long as it keeps its name.
    const token = newToken();
    this.undoing = true;
    this.patience.reset();
    for (;;) {
      try {
        const answer = this.answered.at(-1) ?? null;
        const next = await this.api.undo(token, this.tab, answer);
        this.answered.pop();
        this.undoing = false;
        this.take(next);
        tell("Your last answer was taken back.");
        return;
      } catch (error) {
        if (passes(error)) {
          tell("The server cannot be reached: trying again to take your answer back.");
          await this.patience.wait();
          continue;
        }
        this.undoing = false;
        if (error instanceof RefusedError && error.status === 404) {
          this.answered.pop();
          tell(error.message);
        } else {
          this.refused(error);
        }
        return;
      }
    }
  }

  private takeBreak(start: boolean): void {
    if (start && this.screens.shown === "task") {
      this.time.begin("paused");
      this.screens.show("break");
    } else if (!start) {
      this.time.end("paused");
      this.screens.show("task");
      part("task").focus({ preventScroll: true });
      announce("You are judging again.");
      this.renew();
    }
  }

  private visible(yes: boolean): void {
    if (!yes) {
      this.time.begin("hidden");
      return;
    }
    this.time.end("hidden");
    if (this.outbox.list().length) this.sender.send();
    else if (this.askWhenSeen) void this.ask();
    else this.renew();
  }

  /** The page is closed, loaded again or left: others need not wait for what it shows. */
  private leave(): void {
    if (this.task) this.api.leave(this.task);
  }

  /** The browser brings the page back as it was left, but its task was given up. */
  private comeBack(): void {
    this.heldAt = -Infinity;
    this.renew();
  }

  private connected(): void {
    this.patience.now();
    this.sender.send();
  }

  /** On narrow screens one document is shown at a time. */
  private showSide(side: string): void {
    part("documents").dataset.shown = side;
    for (const button of document.querySelectorAll<HTMLElement>("[data-show]")) {
      button.setAttribute("aria-pressed", String(button.dataset.show === side));
    }
  }

  // What the server says

  sent(kept: Kept, taken: Taken): void {
    if (kept.tab === this.tab) this.answered.push(kept.token);
    this.justSaved = true;
    if (!taken.late && !taken.counts && !taken.repeated) {
      tell("You had answered this before, in another tab perhaps: that answer counts.");
    } else if (taken.late && !taken.repeated) {
      tell(
        taken.counts
          ? "An answer came late, and counts."
          : "An answer came late: meanwhile someone else was asked. It is kept, but does not count.",
      );
    }
  }

  waiting(count: number): void {
    this.screens.saved("saving", count);
    if (!this.task) {
      this.cancelLater();
      this.screens.show("sending");
    }
  }

  dropped(problem: string): void {
    tell(`An answer could not be taken. ${problem}`);
  }

  stuck(why: "sign-in" | "out-of-date"): void {
    this.cancelLater();
    this.screens.saved("saving", this.outbox.list().length);
    this.screens.show(why);
  }

  empty(next: Next | null): void {
    this.screens.saved(this.answered.length ? "saved" : "nothing");
    if (next) this.take(next);
    else if (!this.task) void this.ask();
  }

  private async ask(): Promise<void> {
    this.cancelLater();
    this.askWhenSeen = false;
    const asked = ++this.asked;
    for (;;) {
      try {
        const next = await this.api.next(this.tab);
        this.patience.reset();
        if (asked === this.asked) this.take(next);
        return;
      } catch (error) {
        if (asked !== this.asked) return;
        if (!passes(error)) {
          this.refused(error);
          return;
        }
        this.screens.show("offline");
        await this.patience.wait(error instanceof RefusedError ? error.retryAfter : 0);
      }
    }
  }

  private refused(error: unknown): void {
    if (!(error instanceof RefusedError)) throw error;
    if (error.status === 401) this.stuck("sign-in");
    else if (error.status === 403) this.stuck("out-of-date");
    else {
      part("gone-words").textContent = error.message;
      this.screens.show("gone");
    }
  }

  private take(next: Next): void {
    this.asked += 1; // whatever was asked before has its answer
    this.cancelLater();
    this.mark(null);
    if (next.progress) this.screens.progress(next.progress);
    if (next.task) {
      this.show(next.task);
      return;
    }
    this.task = null;
    this.documents.clear();
    part("problems").replaceChildren(...next.problems.map((words) => make("li", {}, words)));
    this.screens.show(next.state);
    // Others may open something for this person, or bring new queries: every screen looks again.
    const wait = next.state === "wait" ? next.wait_seconds * 1000 : LOOK_AGAIN_AFTER;
    this.after(wait, () => {
      if (document.hidden) this.askWhenSeen = true;
      else void this.ask();
    });
  }

  private show(task: Task): void {
    this.task = task;
    this.readable = false;
    delete part("task").dataset.accepts;
    this.heldAt = performance.now();
    part("query").textContent = task.query;
    part("description").textContent = task.description;
    part("description").hidden = !task.description;
    this.showSide("0");
    this.screens.show("task");
    this.time.restart();
    this.showTime();
    const titles = task.sides.map((side) => side.documents[0]?.title ?? "");
    const what = task.mode === "rankings" ? "Two rankings." : `${titles.join("; ")}.`;
    const query = task.query_id === this.query ? "" : `Query: ${task.query}. `;
    announce((this.justSaved ? "Saved. " : "") + query + what);
    this.justSaved = false;
    this.query = task.query_id;
    void this.documents.show(task).then(() => {
      if (this.task !== task) return;
      this.time.restart(); // loading is nobody's work
      setTimeout(() => this.accept(task), TOO_SOON);
    });
  }

  private accept(task: Task): void {
    if (this.task !== task) return;
    this.readable = true;
    part("task").dataset.accepts = task.token;
  }

  // What time does

  private tick(): void {
    this.showTime();
    if (!this.task || this.screens.shown !== "task") return;
    const sides = this.task.sides.flatMap((side) => side.documents);
    const characters = sides.reduce((sum, document) => sum + document.length, 0);
    if (this.time.still > readingSeconds(characters)) {
      this.time.begin("away");
      this.showTime();
      askStillThere(() => {
        this.time.end("away");
        this.renew();
      });
    } else if (!document.hidden && !document.querySelector("dialog[open]")) {
      this.renew();
    }
  }

  private showTime(): void {
    part("timer").textContent = clockFace(this.task ? this.time.seconds : 0);
  }

  /** Keep the task for as long as someone reads it; what ran out is replaced by another. */
  private renew(): void {
    const task = this.task;
    const held = (performance.now() - this.heldAt) / 1000;
    if (!task || this.renewing || held < task.renew_seconds) return;
    this.renewing = true;
    this.keep(task)
      .catch((error: unknown) => {
        // Some seconds until the next try.
        if (passes(error)) this.heldAt = performance.now() - 1000 * (task.renew_seconds - 5);
        else this.refused(error);
      })
      .finally(() => (this.renewing = false));
  }

  private async keep(task: Task): Promise<void> {
    const until = await this.api.renew(task.token, this.tab);
    if (until === null) {
      // It ended; the same comes back if nobody else has it by now.
      const next = await this.api.next(this.tab);
      if (this.task !== task || this.undoing) return;
      if (next.task?.token !== task.token) {
        this.take(next);
        tell("You were away for long, so this may be something else than before.");
        return;
      }
      task.expires_at = next.task.expires_at;
    } else {
      task.expires_at = until;
    }
    this.heldAt = performance.now();
  }

  private mark(choice: string | null): void {
    for (const button of document.querySelectorAll<HTMLElement>("[data-choice]")) {
      button.classList.toggle("chosen", button.dataset.choice === choice);
    }
  }

  private after(milliseconds: number, work: () => void): void {
    this.cancelLater();
    this.later = setTimeout(work, milliseconds);
  }

  private cancelLater(): void {
    clearTimeout(this.later);
  }
}

new Judge().start();
