// Is the page live? Keeps one stream of events open, and says when it is gone and when it is back.
//
// After a break the stream resumes where it stopped (Last-Event-ID); what the server no longer remembers, it says
// with an event of its own, and the page reads everything anew. A stream that is silent for longer than the server's
// heartbeats allow is taken for lost: a proxy or a sleeping laptop may never close it.
import { backoff, EventParser, type ServerEvent } from "./sse.ts";

export type Connection =
  | { state: "connecting" }
  | { state: "live" }
  | { state: "lost"; since: number; nextTry: number; why: string }
  | { state: "refused"; status: number };

export interface StreamOptions {
  url: string;
  token: string;
  /** The version of what is shown already; the stream goes on from there. */
  lastId?: string;
  onEvent: (event: ServerEvent) => void;
  onConnection: (connection: Connection) => void;
  /** Injected by tests. */
  fetch?: typeof fetch;
  now?: () => number;
  random?: () => number;
  silence?: number;
  wait?: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

/** Two missed heartbeats (one each 10 to 15 s) and a little more. */
const SILENCE = 40_000;

export function openStream(options: StreamOptions): { close: () => void; hurry: () => void } {
  const stop = new AbortController();
  const now = options.now ?? Date.now;
  let hurry = () => {};
  let lastId = options.lastId ?? "";
  let attempt = 0;
  let since: number | undefined;

  const pause =
    options.wait ??
    ((milliseconds: number, signal: AbortSignal) =>
      new Promise<void>((resolve) => {
        const done = () => {
          clearTimeout(timer);
          signal.removeEventListener("abort", done);
          resolve();
        };
        const timer = setTimeout(done, milliseconds);
        signal.addEventListener("abort", done);
        hurry = done;
      }));

  async function once(): Promise<string> {
    const parser = new EventParser(lastId);
    const attemptOver = new AbortController();
    const end = () => attemptOver.abort();
    stop.signal.addEventListener("abort", end);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(end, options.silence ?? SILENCE);
    };
    try {
      heard();
      const headers: Record<string, string> = {
        Accept: "text/event-stream",
        Authorization: `Bearer ${options.token}`,
      };
      if (lastId !== "") headers["Last-Event-ID"] = lastId;
      const answer = await (options.fetch ?? fetch)(options.url, {
        headers,
        cache: "no-store",
        credentials: "omit",
        signal: attemptOver.signal,
      });
      if (answer.status === 401 || answer.status === 403) {
        options.onConnection({ state: "refused", status: answer.status });
        stop.abort();
        return "refused";
      }
      if (!answer.ok || !answer.body) return `the server answered ${answer.status}`;
      attempt = 0;
      since = undefined;
      options.onConnection({ state: "live" });
      const reader = answer.body.getReader();
      const decoder = new TextDecoder();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return "the server closed the stream";
        heard();
        for (const event of parser.push(decoder.decode(value, { stream: true }))) {
          lastId = parser.lastId;
          options.onEvent(event);
        }
      }
    } catch {
      return attemptOver.signal.aborted ? "nothing was heard for a while" : "the server cannot be reached";
    } finally {
      clearTimeout(timer);
      stop.signal.removeEventListener("abort", end);
      attemptOver.abort();
    }
  }

  async function run() {
    options.onConnection({ state: "connecting" });
    while (!stop.signal.aborted) {
      const why = await once();
      if (stop.signal.aborted) return;
      since ??= now();
      const delay = backoff(attempt, (options.random ?? Math.random)());
      attempt += 1;
      options.onConnection({ state: "lost", since, nextTry: now() + delay, why });
      await pause(delay, stop.signal);
    }
  }

  void run();
  return { close: () => stop.abort(), hurry: () => hurry() };
}
