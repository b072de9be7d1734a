/**
 * What the page is used for besides judging: training, adjudication and the preview for managers.
 * Each gives tasks and takes answers as `Api` does, so that the page is the same.
 */

import {
  type Answer,
  type AnswerResult,
  Api,
  type DocumentContent,
  type NextResult,
  type Schemas,
  type Task,
} from "./api";
import { gettext } from "./messages";

/** How often to look for more while new answers are being looked through. */
const CHECK_SECONDS = 2;

const nothing = (state: NextResult["state"], problems: string[] = []): NextResult => ({
  state,
  problems,
  wait_seconds: CHECK_SECONDS,
});

/** Tasks that nobody else is given: there is nothing to hold, to fetch ahead or to take back. */
abstract class UnsharedApi extends Api {
  protected abstract first(): Promise<NextResult>;

  override async next(_tab: string, after: string[] = []): Promise<NextResult> {
    return after.length ? nothing("wait") : this.first();
  }

  override async renew(): Promise<Schemas["RenewalOut"]> {
    return { expires_at: Infinity, lost: [] };
  }

  override release(): void {}

  protected async taken(more: boolean): Promise<AnswerResult> {
    const next = more ? await this.first() : null;
    return { repeated: false, late: false, counts: true, finished: false, next };
  }

  protected task(shown: Schemas["ExampleOut"] | Schemas["DisputeOut"], token: string): Task {
    const { query_id, query, description, sides, choices } = shown;
    const mode = this.mode;
    const kept = { expires_at: Infinity, renew_seconds: Infinity };
    return { token, mode, query_id, query, description, sides, choices, questions: [], ...kept };
  }
}

class TrainingApi extends UnsharedApi {
  override async answer({ token, choice }: Answer, more: boolean): Promise<AnswerResult> {
    const path = `/training/examples/${token}/answer`;
    const feedback = await this.post<Schemas["ExampleAnswerOut"]>(path, { choice });
    return { ...(await this.taken(more)), feedback };
  }

  protected async first(): Promise<NextResult> {
    const own = await this.get<Schemas["OwnTrainingOut"]>("/training/mine");
    const { correct, answered, total } = own;
    const score = gettext("%(correct)s of %(answered)s examples right", { correct, answered });
    if (own.may_judge || !own.example) {
      const needed = gettext("needed: %(percent)s %", { percent: Math.round(100 * own.pass_mark) });
      const failed = [`${score}; ${needed}`];
      return own.may_judge ? nothing("done", answered ? [score] : []) : nothing("blocked", failed);
    }
    const task = this.task(own.example, String(own.example.id));
    const seconds = 0;
    const progress = { judged: answered, seconds, query_judged: answered, query_left: total - answered };
    return { ...nothing("task"), task, progress };
  }
}

class AdjudicationApi extends UnsharedApi {
  private decided = 0;

  override async answer({ token, choice, reason }: Answer, more: boolean): Promise<AnswerResult> {
    const [query_id, left, right] = token.split(":").map(Number);
    await this.post("/adjudication/decisions", { query_id, left, right, choice, reason });
    this.decided += 1;
    return this.taken(more);
  }

  protected async first(): Promise<NextResult> {
    const { dispute, left, checking } = await this.get<Schemas["NextDisputeOut"]>("/adjudication/next");
    if (!dispute) return nothing(checking ? "wait" : "done");
    const token = `${dispute.query_id}:${dispute.left}:${dispute.right}`;
    const task = { ...this.task(dispute, token), votes: dispute.votes };
    const judged = this.decided;
    const progress = { judged, seconds: 0, query_judged: judged, query_left: left };
    return { ...nothing("task"), task, progress };
  }
}

/** Tasks of the project, or of a table that is not imported yet, as a form's fields would show them. */
class PreviewApi extends UnsharedApi {
  private after = 0;
  private contents: DocumentContent[] = [];
  private readonly chosen = new URLSearchParams(location.search);

  override async answer(_answer: Answer, more: boolean): Promise<AnswerResult> {
    return this.taken(more);
  }

  /** They came with the task. */
  override async documents(): Promise<DocumentContent[]> {
    return this.contents;
  }

  override documentPageUrl(query: number, reference: number): string {
    if (!this.chosen.has("upload")) return super.documentPageUrl(query, reference);
    return `${this.baseUrl}/imports/preview/document?${this.chosen}&position=${reference}`;
  }

  protected async first(): Promise<NextResult> {
    const isTable = this.chosen.has("upload");
    if (isTable && this.contents.length) return nothing("done");
    this.chosen.set("after", String(this.after));
    const path = isTable ? "/imports/preview/task" : "/preview";
    const next = await this.get<Schemas["PreviewedTask"]>(`${path}?${this.chosen}`);
    if (next.task) {
      this.after = next.task.query_id;
      this.contents = next.documents ?? [];
      Object.assign(next.task, { expires_at: Infinity, renew_seconds: Infinity });
    }
    return next;
  }
}

const SURFACES = { judging: Api, training: TrainingApi, adjudication: AdjudicationApi, preview: PreviewApi };

export type Surface = keyof typeof SURFACES;

/** Where the tasks of the page come from. */
export function apiOf(surface: Surface, project: string, csrf: string, mode: Task["mode"]): Api {
  return new SURFACES[surface](project, csrf, mode);
}
