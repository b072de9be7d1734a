/** A client for the judging API: see src/podium/studio/web/routes/judging.py. */

import type { components } from "./api-types";
import { gettext } from "./messages";

export type Schemas = components["schemas"];

export type DocumentRef = Schemas["DocumentRef"];
export type DocumentContent = Schemas["DocumentOut"];
/** A task; to one who decides a disagreement it comes with the earlier answers. */
export type Task = Schemas["TaskOut"] & { votes?: Schemas["VoteOut"][] };
export type Progress = Schemas["Progress"];
export type NextResult = Omit<Schemas["NextOut"], "task"> & { task?: Task | null };
/** What became of an answer; in training, with what is right. */
export type AnswerResult = Omit<Schemas["AnswerOut"], "next"> & {
  next: NextResult | null;
  feedback?: Schemas["ExampleAnswerOut"];
};
/** An answer as the page keeps it; the client adds what is about the request. */
export type Answer = Omit<Schemas["AnswerRequest"], "renews" | "more" | "after">;

/** The server answered with an error status. */
export class HttpError extends Error {
  constructor(
    readonly status: number,
    detail: string,
    readonly retryAfter: number,
  ) {
    super(detail);
  }

  /** Whether the same request may succeed later. */
  get isRetryable(): boolean {
    return this.status >= 500 || this.status === 429 || this.status === 408;
  }
}

/** No valid response: the connection or the server is down. */
export class NetworkError extends Error {}

export const isRetryable = (error: unknown): boolean =>
  error instanceof NetworkError || (error instanceof HttpError && error.isRetryable);

const REQUEST_TIMEOUT_MS = 20_000;
const DOCUMENTS_PER_REQUEST = 100;

export class Api {
  protected readonly baseUrl: string;

  constructor(
    private readonly project: string,
    readonly csrf: string,
    protected readonly mode: Task["mode"],
  ) {
    this.baseUrl = `/api/v1/projects/${project}`;
  }

  // This page renews its tasks, so their leases are short: see src/podium/studio/judging/unit_of_work.py.

  /** A task; one to show after those that the tab holds already, if it holds any. */
  next(tab: string, after: string[] = []): Promise<NextResult> {
    const body: Schemas["NextRequest"] = { tab, after, renews: true };
    return this.post("/next", body);
  }

  answer(answer: Answer, more: boolean, after: string[]): Promise<AnswerResult> {
    const body: Schemas["AnswerRequest"] = { ...answer, more, after, renews: true };
    return this.post("/answers", body);
  }

  undo(token: string, tab: string, answer: string | null): Promise<NextResult> {
    const body: Schemas["UndoRequest"] = { token, tab, answer, renews: true };
    return this.post("/undo", body);
  }

  /** Renew the lease of a task and of those to be shown after it. */
  renew(token: string, tab: string, after: string[]): Promise<Schemas["RenewalOut"]> {
    const body: Schemas["RenewalRequest"] = { token, tab, after, renews: true };
    return this.post("/renew", body);
  }

  /** Release a task while the page unloads. Beacons have no headers, so this is a form. */
  release({ token, expires_at }: Task): void {
    const form = { csrf: this.csrf, token, expires_at: String(expires_at) };
    navigator.sendBeacon(`/projects/${this.project}/judge/leave`, new URLSearchParams(form));
  }

  /** Documents of a query, in as many requests as it takes. */
  async documents(query: number, references: number[], text: boolean): Promise<DocumentContent[]> {
    const documents: DocumentContent[] = [];
    for (let start = 0; start < references.length; start += DOCUMENTS_PER_REQUEST) {
      const some = references.slice(start, start + DOCUMENTS_PER_REQUEST);
      const named = some.map((reference) => `reference=${reference}`).join("&");
      const path = `/queries/${query}/documents?text=${text}&${named}`;
      documents.push(...(await this.get<DocumentContent[]>(path)));
    }
    return documents;
  }

  /** The URL of a document's HTML, for a frame. */
  documentPageUrl(query: number, reference: number): string {
    return `${this.baseUrl}/queries/${query}/documents/${reference}/page`;
  }

  protected get<T>(path: string): Promise<T> {
    return this.request(path, { method: "GET" });
  }

  protected post<T>(path: string, body: object): Promise<T> {
    const headers = { "Content-Type": "application/json", "X-CSRF-Token": this.csrf };
    return this.request(path, { method: "POST", headers, body: JSON.stringify(body) });
  }

  private async request<T>(path: string, init: RequestInit): Promise<T> {
    let status: number;
    let retryAfter: number;
    let body: unknown;
    try {
      const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
      // A request that was sent should arrive even if the page is closed meanwhile.
      const keepalive = init.method === "POST";
      const response = await fetch(this.baseUrl + path, { ...init, signal, keepalive });
      status = response.status;
      retryAfter = Number(response.headers.get("Retry-After")) || 0;
      body = await response.json();
    } catch (error) {
      // A proxy's error page is not JSON: then the server behind it is down as well.
      throw new NetworkError(String(error));
    }
    if (status !== 200 && status !== 201) {
      const detail = (body as { detail?: unknown } | null)?.detail;
      throw new HttpError(status, String(detail ?? gettext("Error %(status)s.", { status })), retryAfter);
    }
    return body as T;
  }
}
