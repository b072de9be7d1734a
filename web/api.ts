/** What the judging pages ask of the server: see podium/studio/routes/judging.py. */

export interface DocumentRef {
  place: number;
  title: string;
  url: string;
  format: "text" | "html";
  length: number;
}

export interface Task {
  token: string;
  mode: "pairs" | "grades" | "rankings";
  query_id: number;
  query: string;
  description: string;
  sides: { documents: DocumentRef[] }[];
  expires_at: number;
  /** How often to say that someone is at it. */
  renew_seconds: number;
}

export interface Progress {
  judged: number;
  seconds: number;
  query_judged: number;
  query_left: number;
}

export interface Next {
  state: "task" | "wait" | "paused" | "yours-done" | "done" | "blocked";
  wait_seconds: number;
  /** What nobody can judge, and what would help. */
  problems: string[];
  task: Task | null;
  progress: Progress | null;
}

export interface Answer {
  token: string;
  choice: string;
  seconds: number;
  tab: string;
  reason: string | null;
}

export interface Taken {
  repeated: boolean;
  late: boolean;
  counts: boolean;
  next: Next | null;
}

export interface DocumentText {
  title: string;
  url: string;
  text: string;
  terms: string[];
}

/** The server answered, and not with what was asked for. */
export class RefusedError extends Error {
  constructor(
    readonly status: number,
    detail: string,
    readonly retryAfter: number,
  ) {
    super(detail);
  }

  /** Whether the same request may succeed a while later. */
  get passes(): boolean {
    return this.status >= 500 || this.status === 429 || this.status === 408;
  }
}

/** No answer came: the connection or the server is down. */
export class UnreachableError extends Error {}

export const passes = (error: unknown): boolean =>
  error instanceof UnreachableError || (error instanceof RefusedError && error.passes);

const LONGEST_WAIT = 20_000;

export class Api {
  private readonly root: string;

  constructor(
    private readonly project: string,
    readonly csrf: string,
  ) {
    this.root = `/api/v1/projects/${project}`;
  }

  // This page says that someone is there, so its leases are short: see podium/studio/judging/leases.py.

  next(tab: string): Promise<Next> {
    return this.post("/next", { tab, renews: true });
  }

  answer(answer: Answer, more: boolean): Promise<Taken> {
    return this.post("/answers", { ...answer, more, renews: true });
  }

  undo(token: string, tab: string, answer: string | null): Promise<Next> {
    return this.post("/undo", { token, tab, answer, renews: true });
  }

  /** Keep a task; until when, or null if it has gone to someone else. */
  async renew(token: string, tab: string): Promise<number | null> {
    const renewed = await this.post<{ expires_at: number | null }>("/renew", {
      token,
      tab,
      renews: true,
    });
    return renewed.expires_at;
  }

  /** Give a task up while the page goes away. A beacon has no headers: the form names the page. */
  leave({ token, expires_at }: Task): void {
    const form = { csrf: this.csrf, token, expires_at: String(expires_at) };
    navigator.sendBeacon(`/projects/${this.project}/judge/leave`, new URLSearchParams(form));
  }

  document(query: number, place: number): Promise<DocumentText> {
    return this.ask(`/queries/${query}/documents/${place}`, { method: "GET" });
  }

  pageOf(query: number, place: number): string {
    return `${this.root}/queries/${query}/documents/${place}/page`;
  }

  private post<T>(path: string, body: object): Promise<T> {
    const headers = { "Content-Type": "application/json", "X-CSRF-Token": this.csrf };
    return this.ask(path, { method: "POST", headers, body: JSON.stringify(body) });
  }

  private async ask<T>(path: string, request: RequestInit): Promise<T> {
    let status: number;
    let retryAfter: number;
    let body: unknown;
    try {
      const signal = AbortSignal.timeout(LONGEST_WAIT);
      // What was sent arrives also if the page is closed meanwhile.
      const keepalive = request.method === "POST";
      const response = await fetch(this.root + path, { ...request, signal, keepalive });
      status = response.status;
      retryAfter = Number(response.headers.get("Retry-After")) || 0;
      body = await response.json();
    } catch (error) {
      // A proxy's error page, which is no JSON, is a server that is down as well.
      throw new UnreachableError(String(error));
    }
    if (status !== 200) {
      const detail = (body as { detail?: unknown } | null)?.detail;
      throw new RefusedError(status, String(detail ?? `Error ${status}.`), retryAfter);
    }
    return body as T;
  }
}
