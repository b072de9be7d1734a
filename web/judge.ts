/** The judging page: shows tasks, takes answers, and keeps them until the server has them. */

import { ActivityTimer, formatDuration, idleTimeout } from "./activity-timer";
import { AheadTasks } from "./ahead";
import {
  type AnswerResult,
  HttpError,
  isRetryable,
  type NextResult,
  type Progress,
  type Schemas,
  type Task,
} from "./api";
import { Backoff } from "./backoff";
import { askComment, askSkipReason, askStillThere, openDialog } from "./dialogs";
import { DocumentsView, type PreparedTask } from "./documents";
import { announce, createElement, hideNotice, part, randomUuid, showNotice } from "./dom";
import { bindShortcuts, returnFocusFromFrames } from "./keyboard";
import { gettext, ngettext } from "./messages";
import { Outbox, type QueuedAnswer } from "./outbox";
import { Questions } from "./questions";
import { Screens } from "./screens";
import { SeenDocuments } from "./seen";
import { type Surface, apiOf } from "./surfaces";
import { Sender, type SenderListener } from "./sender";
import { tabId } from "./tab-id";

/** Nobody reads two documents this fast: an earlier key press is taken only after this time. */
const ANSWER_DELAY_MS = 250;
/** The same answer again within this time is a key that bounced, or a double click. */
const DOUBLE_PRESS_MS = 150;
/** How long to wait for the server before the page says that an answer is not sent yet. */
const SLOW_RESPONSE_MS = 600;
/** How often to ask for a task while there is none. */
const POLL_INTERVAL_MS = 15_000;
/** How long to wait after a renewal that failed. */
const RENEWAL_RETRY_SECONDS = 5;

/** The server takes no longer reason. */
const LONGEST_REASON = 2000;

type ExampleAnswer = Schemas["ExampleAnswerOut"];

type PageData = Record<"project" | "account" | "csrf", string> & {
  surface: Surface;
  mode: Task["mode"];
};

class JudgingPage implements SenderListener {
  private readonly data = part("judge").dataset as PageData;
  private readonly tab = tabId();
  private readonly surface = this.data.surface;
  private readonly api = apiOf(this.surface, this.data.project, this.data.csrf, this.data.mode);
  private readonly outbox = new Outbox(
    localStorage,
    this.surface,
    this.data.project,
    this.data.account,
  );
  private readonly sender = new Sender(this.outbox, this.api, this.tab, this);
  private readonly documents = new DocumentsView(this.api);
  private readonly ahead = new AheadTasks(this.api, this.tab, this.documents);
  private readonly seen = new SeenDocuments(() => this.acceptIfReady());
  private readonly questions = new Questions();
  private readonly screens = new Screens(this.surface);
  private readonly timer = new ActivityTimer();
  private readonly backoff = new Backoff();

  private task: Task | null = null;
  private announcedQuery: number | null = null;
  /** Whether the task's documents have been readable for long enough to answer. */
  private isReadable = false;
  /** When the task's documents were loaded and shown; infinite before. */
  private legibleAt = Infinity;
  /** What was answered before the task accepts it. */
  private earlyChoice: string | null = null;
  private lastChoice = "";
  /** What comes after the feedback that is shown, once the person continues. */
  private afterFeedback: NextResult | null = null;
  /** When the lease of the task was last granted or renewed. */
  private renewedAt = 0;
  private renewing = false;
  /** Tokens of this tab's answers, for undo. */
  private readonly answeredTokens: string[] = [];
  /** What the person wrote about the task, sent with their answer. */
  private comment = "";
  private undoing = false;
  /** What this page's person did since it was opened. */
  private readonly shift = { judged: 0, seconds: 0, queries: 0 };
  private justSaved = false;
  /** The latest request for a task: responses to earlier ones are ignored. */
  private requestNumber = 0;
  private scheduled = 0;
  /** A hidden tab takes no work away from others: it asks for a task once it is visible. */
  private requestWhenVisible = false;

  start(): void {
    bindShortcuts((button) => this.press(button));
    returnFocusFromFrames(part("task"));
    document.addEventListener("click", ({ target }) => {
      const button = target instanceof Element ? target.closest("button") : null;
      if (button) this.press(button);
    });
    for (const type of ["keydown", "pointerdown", "pointermove", "wheel", "scroll", "touchmove"]) {
      const listener = () => this.timer.recordActivity();
      document.addEventListener(type, listener, { capture: true, passive: true });
    }
    document.addEventListener("visibilitychange", () => this.onVisibilityChange());
    addEventListener("online", () => this.onOnline());
    addEventListener("pagehide", () => this.releaseTask());
    addEventListener("pageshow", (event) => event.persisted && this.onRestored());
    this.onVisibilityChange();
    setInterval(() => this.onTick(), 1000);
    if (this.outbox.list().length) {
      this.screens.showSaveState("saving", this.outbox.list().length);
      this.sender.send();
    } else {
      void this.requestTask();
    }
  }

  // Actions of the assessor

  private press(button: HTMLButtonElement): void {
    const { choice, command, show } = button.dataset;
    if (choice) this.answer(choice, null);
    else if (show) this.showSide(show);
    else if (command) this.run(command);
  }

  private run(command: string): void {
    const onBreak = this.screens.current === "break";
    if (command === "pause") this.setBreak(!onBreak);
    else if (command === "help" || command === "guidelines") openDialog(`${command}-dialog`);
    else if (command === "close-notice") hideNotice();
    else if (command === "continue") this.leaveFeedback();
    else if (command === "check-again") void this.requestTask();
    else if (command === "reload") location.reload();
    else if (onBreak) return;
    else if (command === "undo") void this.undo();
    else if (command === "down") this.documents.scroll(0.8);
    else if (command === "up") this.documents.scroll(-0.8);
    else if (command === "skip" && this.task) {
      askSkipReason((reason) => this.answer("skip", reason));
    } else if (command === "comment" && this.task) {
      askComment(this.comment, (comment) => this.keepComment(comment));
    }
  }

  private keepComment(comment: string): void {
    this.comment = comment;
    if (comment) showNotice(gettext("Your comment will be saved with your judgment."));
    else hideNotice();
  }

  private answer(choice: string, reason: string | null): void {
    const task = this.task;
    if (!task || this.screens.current !== "task" || this.undoing) return;
    if (choice !== "skip" && !this.accepts(choice)) return;
    this.task = null;
    this.lastChoice = choice;
    this.markChoice(choice);
    hideNotice();
    delete part("task").dataset.accepts;
    const replies = choice === "skip" ? {} : this.questions.replies();
    const seconds = Math.round(this.timer.activeSeconds * 10) / 10;
    const { token } = task;
    const words = [reason, this.comment].filter(Boolean).join(": ").slice(0, LONGEST_REASON) || null;
    const answer = { token, choice, seconds, tab: this.tab, reason: words, replies };
    this.outbox.put({ ...answer, at: Date.now() });
    this.screens.showSaveState("saving");
    const next = this.ahead.take();
    if (next) {
      this.showPrepared(next, next.progress);
    } else {
      this.schedule(SLOW_RESPONSE_MS, () => this.screens.show("sending"));
    }
    this.sender.send();
  }

  /** Whether a judgment is taken now; if not, a notice says why, or it is kept for a moment. */
  private accepts(choice: string): boolean {
    if (!this.isReadable) {
      const age = performance.now() - this.legibleAt;
      if (age < 0) {
        showNotice(gettext("The documents are still loading."));
      } else if (choice !== this.lastChoice || age > DOUBLE_PRESS_MS) {
        this.earlyChoice = choice;
        this.markChoice(choice);
      }
      return false;
    }
    const unseen = this.seen.missing;
    if (unseen !== null) {
      showNotice(
        gettext(
          "Look at the document “%(side)s” first: a judgment needs both to have been seen.",
          { side: unseen },
        ),
      );
      return false;
    }
    const question = this.questions.askMissing();
    if (question !== null) {
      showNotice(gettext("Please reply first: %(question)s", { question }));
    }
    return question === null;
  }

  private async undo(): Promise<void> {
    if (this.undoing) return;
    if (this.outbox.list().length) {
      showNotice(gettext("Your last judgment has not been sent yet. You can undo it once it has."));
      return;
    }
    // Requests with the same token are one undo, however often they are sent.
    const token = randomUuid();
    this.undoing = true;
    this.backoff.reset();
    for (;;) {
      try {
        const answer = this.answeredTokens.at(-1) ?? null;
        const next = await this.api.undo(token, this.tab, answer);
        this.answeredTokens.pop();
        this.undoing = false;
        this.shift.judged = Math.max(this.shift.judged - 1, 0);
        this.ahead.clear(false); // the server released what this tab held
        this.showNext(next);
        showNotice(gettext("Your last judgment was undone."));
        return;
      } catch (error) {
        if (isRetryable(error)) {
          showNotice(gettext("Could not reach the server. Trying again to undo your judgment…"));
          await this.backoff.wait();
          continue;
        }
        this.undoing = false;
        if (error instanceof HttpError && error.status === 404) {
          this.answeredTokens.pop();
          showNotice(error.message);
        } else {
          this.onRefused(error);
        }
        return;
      }
    }
  }

  private setBreak(start: boolean): void {
    if (start && this.screens.current === "task") {
      this.timer.pause("break");
      this.showSummary();
      this.screens.show("break");
    } else if (!start) {
      this.timer.resume("break");
      this.screens.show("task");
      part("task").focus({ preventScroll: true });
      announce(gettext("Judging resumed."));
      this.renewIfDue();
    }
  }

  /** On narrow screens one document is shown at a time. */
  private showSide(side: string): void {
    this.documents.showSide(side);
    for (const button of document.querySelectorAll<HTMLElement>("[data-show]")) {
      button.setAttribute("aria-pressed", String(button.dataset.show === side));
    }
  }

  // Events of the browser

  private onVisibilityChange(): void {
    if (document.hidden) {
      this.timer.pause("hidden");
      return;
    }
    this.timer.resume("hidden");
    if (this.outbox.list().length) this.sender.send();
    else if (this.requestWhenVisible) void this.requestTask();
    else this.renewIfDue();
  }

  /** The page is closed, reloaded or left: others need not wait for its tasks. */
  private releaseTask(): void {
    if (this.task) this.api.release(this.task);
    this.ahead.clear(true);
  }

  /** The browser restored the page from its cache; its task was released when it was left. */
  private onRestored(): void {
    this.renewedAt = -Infinity;
    this.renewIfDue();
    this.fillAhead();
  }

  private onOnline(): void {
    this.backoff.retryNow();
    this.sender.send();
  }

  // Events of the sender

  onSent(answer: QueuedAnswer, result: AnswerResult): void {
    if (answer.tab === this.tab) this.answeredTokens.push(answer.token);
    if (!this.task) this.justSaved = true;
    if (answer.choice !== "skip" && !result.repeated) {
      this.shift.judged += 1;
      this.shift.seconds += answer.seconds;
    }
    if (result.finished) {
      this.shift.queries += 1;
      this.screens.showFinished();
    }
    if (result.feedback && part("task").dataset.shows === answer.token) {
      this.showFeedback(result.feedback);
    }
    if (!result.late && !result.counts && !result.repeated) {
      showNotice(
        gettext("You already judged this, perhaps in another tab. Your first judgment counts."),
      );
    } else if (result.late && !result.repeated) {
      showNotice(
        result.counts
          ? gettext("Your judgment arrived late but still counts.")
          : gettext(
              "Your judgment arrived late, after the task had gone to someone else. It was saved but does not count.",
            ),
      );
    }
  }

  onWaiting(count: number): void {
    this.screens.showSaveState("saving", count);
    if (!this.task) {
      this.cancelScheduled();
      this.screens.show("sending");
    }
  }

  onDropped(problem: string): void {
    showNotice(gettext("A judgment was rejected. %(problem)s", { problem }));
  }

  onStuck(reason: "sign-in" | "out-of-date"): void {
    this.cancelScheduled();
    this.screens.showSaveState("saving", this.outbox.list().length);
    this.screens.show(reason);
  }

  /** Say whether an example was answered right, beside its documents. */
  private showFeedback({ correct, choice, explanation }: ExampleAnswer): void {
    this.cancelScheduled();
    this.screens.show("task");
    for (const button of document.querySelectorAll<HTMLElement>("[data-choice]")) {
      button.classList.toggle("right", button.dataset.choice === choice);
    }
    const box = part("feedback");
    box.className = `notice feedback ${correct ? "good" : "warn"}`;
    const answer = choiceLabel(choice);
    part("feedback-title").textContent = correct
      ? gettext("Correct: %(answer)s", { answer })
      : gettext("Not quite: %(answer)s", { answer });
    part("feedback-text").textContent = explanation;
    box.hidden = false;
    const button = part<HTMLButtonElement>("continue");
    button.dataset.key = "Enter";
    button.focus({ preventScroll: true });
  }

  private leaveFeedback(): void {
    const next = this.afterFeedback;
    if (!next) return; // it has not come yet
    this.afterFeedback = null;
    part("feedback").hidden = true;
    delete part("continue").dataset.key;
    part("task").focus({ preventScroll: true });
    this.showNext(next);
  }

  onNext(next: NextResult | null, ahead: boolean): void {
    if (next && !part("feedback").hidden) {
      this.afterFeedback = next;
    } else if (next === null) {
      this.ahead.clear(true); // the project is paused
      void this.requestTask();
    } else if (!this.task && (next.task || !ahead)) {
      this.showNext(next);
    } else if (next.task) {
      this.ahead.add(next.task, next.progress ?? null);
      if (next.progress) this.screens.showTotals(next.progress);
    }
  }

  onEmpty(): void {
    this.screens.showSaveState(this.answeredTokens.length ? "saved" : "none");
    if (this.task) this.fillAhead();
    else if (part("feedback").hidden && this.screens.isBetweenTasks) void this.requestTask();
  }

  heldTokens(): string[] {
    return this.task ? [this.task.token, ...this.ahead.tokens] : [];
  }

  // Tasks

  private async requestTask(): Promise<void> {
    this.cancelScheduled();
    this.requestWhenVisible = false;
    const requestNumber = ++this.requestNumber;
    for (;;) {
      try {
        const next = await this.api.next(this.tab);
        this.backoff.reset();
        if (requestNumber === this.requestNumber) this.showNext(next);
        return;
      } catch (error) {
        if (requestNumber !== this.requestNumber) return;
        if (!isRetryable(error)) {
          this.onRefused(error);
          return;
        }
        this.screens.show("offline");
        await this.backoff.wait(error instanceof HttpError ? error.retryAfter : 0);
      }
    }
  }

  private onRefused(error: unknown): void {
    if (!(error instanceof HttpError)) throw error;
    if (error.status === 401) this.onStuck("sign-in");
    else if (error.status === 403) this.onStuck("out-of-date");
    else {
      part("gone-text").textContent = error.message;
      this.screens.show("gone");
    }
  }

  private showNext(next: NextResult): void {
    this.requestNumber += 1; // responses to earlier requests are out of date
    this.cancelScheduled();
    this.markChoice(null);
    if (next.progress) this.screens.showTotals(next.progress);
    if (next.task) {
      // A page that lost its task may be given one that it has fetched ahead.
      const prepared = this.ahead.take(next.task.token) ?? this.documents.prepare(next.task);
      this.showPrepared(prepared, next.progress ?? null);
      if (!this.outbox.list().length) this.fillAhead();
      return;
    }
    this.task = null;
    this.documents.clear();
    this.ahead.clear(true);
    const problems = next.problems.map((problem) => createElement("li", {}, problem));
    document.querySelector('[data-part="problems"]')?.replaceChildren(...problems);
    this.showSummary(next.state === "done" ? next.problems : []);
    this.screens.show(next.state);
    // Other people's answers and new queries can bring work at any time.
    const delay = next.state === "wait" ? next.wait_seconds * 1000 : POLL_INTERVAL_MS;
    this.schedule(delay, () => {
      if (document.hidden) this.requestWhenVisible = true;
      else void this.requestTask();
    });
  }

  /** Say what was done since the page was opened, or what came of the training. */
  private showSummary(given: string[] = []): void {
    const { judged, seconds, queries } = this.shift;
    const parts = [...given];
    if (judged && !given.length && this.surface === "judging") {
      const time = formatDuration(seconds);
      parts.push(
        ngettext(
          "%(count)s judgment in %(time)s since you opened this page.",
          "%(count)s judgments in %(time)s since you opened this page.",
          judged,
          { time },
        ),
      );
      if (queries) parts.push(ngettext("%(count)s query finished.", "%(count)s queries finished.", queries));
    }
    for (const element of document.querySelectorAll<HTMLElement>("[data-summary]")) {
      element.textContent = parts.join(" ");
      element.hidden = parts.length === 0;
    }
  }

  private fillAhead(): void {
    if (!document.hidden) void this.ahead.fill(() => this.task?.token ?? null);
  }

  private showPrepared(prepared: PreparedTask, progress: Progress | null): void {
    const { task } = prepared;
    if (this.task?.token !== task.token) {
      this.comment = "";
      this.questions.reset();
    }
    this.cancelScheduled();
    this.markChoice(null);
    this.task = task;
    this.isReadable = false;
    this.legibleAt = Infinity;
    this.earlyChoice = null;
    delete part("task").dataset.accepts;
    this.renewedAt = performance.now();
    if (progress) this.screens.showQueryProgress(progress);
    const changed = part("query").textContent !== task.query;
    part("query").textContent = task.query;
    part("query").classList.toggle("changed", changed && this.announcedQuery !== null);
    part("description").textContent = task.description;
    part("description").hidden = !task.description;
    if (task.votes) showVotes(task.votes);
    this.documents.show(prepared);
    this.showSide("0");
    this.screens.show("task");
    part("task").dataset.shows = task.token;
    this.seen.watch(this.documents.panes);
    this.timer.restart();
    this.showTime();
    void prepared.loaded.then(() => {
      if (this.task !== task) return;
      this.announceTask(task, prepared.titles);
      this.timer.restart(); // loading time does not count
      this.legibleAt = performance.now();
      setTimeout(() => {
        if (this.task !== task) return;
        this.isReadable = true;
        this.acceptIfReady();
        if (this.earlyChoice) this.answer(this.earlyChoice, null);
      }, ANSWER_DELAY_MS);
    });
  }

  private announceTask(task: Task, titles: string[]): void {
    const documents = task.mode === "rankings" ? gettext("Two rankings.") : `${titles.join("; ")}.`;
    const saved = this.justSaved ? [gettext("Saved.")] : [];
    const isNew = task.query_id !== this.announcedQuery;
    const query = isNew ? [gettext("Query: %(query)s.", { query: task.query })] : [];
    announce([...saved, ...query, documents].join(" "));
    this.justSaved = false;
    this.announcedQuery = task.query_id;
  }

  /** Tell, for tests and styles, that a verdict would be taken now. */
  private acceptIfReady(): void {
    if (!this.task || !this.isReadable || this.seen.missing !== null) return;
    part("task").dataset.accepts = this.task.token;
  }

  private markChoice(choice: string | null): void {
    for (const button of document.querySelectorAll<HTMLElement>("[data-choice]")) {
      button.classList.toggle("chosen", button.dataset.choice === choice);
      button.classList.remove("right");
    }
  }

  // Timers

  private onTick(): void {
    this.showTime();
    if (!this.task || this.screens.current !== "task" || this.surface !== "judging") return;
    const documents = this.task.sides.flatMap((side) => side.documents);
    const characters = documents.reduce((total, { length }) => total + length, 0);
    if (this.timer.idleSeconds > idleTimeout(characters)) {
      this.timer.pause("idle");
      this.showTime();
      askStillThere(() => {
        this.timer.resume("idle");
        this.renewIfDue();
      });
    } else if (!document.hidden && !document.querySelector("dialog[open]")) {
      this.renewIfDue();
    }
  }

  private showTime(): void {
    part("timer").textContent = formatDuration(this.task ? this.timer.activeSeconds : 0);
  }

  /** Renew the task's lease from time to time while someone is reading. */
  private renewIfDue(): void {
    const task = this.task;
    const age = (performance.now() - this.renewedAt) / 1000;
    if (!task || this.renewing || age < task.renew_seconds) return;
    this.renewing = true;
    this.renew(task)
      .catch((error: unknown) => {
        if (isRetryable(error)) {
          const wait = task.renew_seconds - RENEWAL_RETRY_SECONDS;
          this.renewedAt = performance.now() - 1000 * wait;
        } else {
          this.onRefused(error);
        }
      })
      .finally(() => (this.renewing = false));
  }

  private async renew(task: Task): Promise<void> {
    const renewal = await this.api.renew(task.token, this.tab, this.ahead.tokens);
    this.ahead.renewed(renewal.lost, renewal.expires_at);
    if (renewal.expires_at === null) {
      // The lease ended. The same task comes back unless someone else has it by now.
      const next = await this.api.next(this.tab);
      if (this.task !== task || this.undoing) return;
      if (next.task?.token !== task.token) {
        this.showNext(next);
        showNotice(gettext("You were away for a while, so this may be a different task."));
        return;
      }
      task.expires_at = next.task.expires_at;
    } else {
      task.expires_at = renewal.expires_at;
    }
    this.renewedAt = performance.now();
  }

  private schedule(milliseconds: number, callback: () => void): void {
    this.cancelScheduled();
    this.scheduled = setTimeout(callback, milliseconds);
  }

  private cancelScheduled(): void {
    clearTimeout(this.scheduled);
  }
}

/** What the button of a choice says. */
const choiceLabel = (choice: string): string =>
  document.querySelector(`[data-choice="${CSS.escape(choice)}"] span`)?.textContent ?? choice;

/** Show what people answered on whose disagreement this is; nobody is named. */
function showVotes(votes: NonNullable<Task["votes"]>): void {
  const lines = votes.map(({ choice, reason }, index) => {
    const answer = choiceLabel(choice);
    const line = gettext("Assessor %(number)s: %(answer)s", { number: index + 1, answer });
    const comment = reason ? [" – ", createElement("q", { dir: "auto" }, reason)] : [];
    return createElement("li", {}, line, ...comment);
  });
  part("votes").replaceChildren(...lines);
}

new JudgingPage().start();
