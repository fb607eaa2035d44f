// What does every view need? Who the reader is, the fleet as it is now, whether the page is live, and a way to hear
// of changes.
import { createContext } from "preact";
import { useCallback, useContext, useEffect, useRef, useState } from "preact/hooks";
import type { Change, Me } from "./api.ts";
import { ApiError, type Client } from "./client.ts";
import type { Connection } from "./stream.ts";

/** Of the stream: a change, or that everything has to be asked for again. */
export type News = { kind: "change"; change: Change } | { kind: "reset" } | { kind: "back" };

export interface Live {
  client: Client;
  me: Me;
  connection: Connection;
  /** Calls the listener for all news until the function that it gives back is called. */
  listen: (listener: (news: News) => void) => () => void;
  /** Says something to a screen reader, and nothing to the eye. */
  announce: (sentence: string) => void;
  /** Says something to everybody, for a while. */
  tell: (message: Message) => void;
  go: (path: string) => void;
}

export interface Message {
  text: string;
  isBad: boolean;
}

export const LiveContext = createContext<Live | undefined>(undefined);

export function useLive(): Live {
  const live = useContext(LiveContext);
  if (!live) throw new Error("a view outside of the page");
  return live;
}

/** How far the reader's clock is off the operator's, in milliseconds. */
let skew = 0;
export function setClock(asOf: string): void {
  const difference = Date.parse(asOf) - Date.now();
  // Less than this is the way that the answer took.
  skew = Math.abs(difference) < 2_000 ? 0 : difference;
}
export function operatorNow(): number {
  return Date.now() + skew;
}

/** The operator's time, anew every half minute: "5m ago" grows old. */
export function useNow(): number {
  const [now, setNow] = useState(operatorNow);
  useEffect(() => {
    const timer = setInterval(() => setNow(operatorNow()), 30_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

export interface Resource<T> {
  data: T | undefined;
  error: ApiError | undefined;
  reload: () => void;
}

/** How often an answer is asked for again at most, and how soon after a failure. */
const PACE = 1_000;
const RETRY = 5_000;

/**
 * What a path answers, asked for again when `wants` says that a change concerns it. The old answer stays until the
 * new one is there; a failure leaves it standing.
 */
export function useResource<T>(path: string, wants: (change: Change) => boolean): Resource<T> {
  const { client, listen } = useLive();
  const [state, setState] = useState<{ path: string; data?: T; error?: ApiError }>({ path });
  const wish = useRef(wants);
  wish.current = wants;
  const reload = useRef<() => void>(() => {});

  useEffect(() => {
    const stop = new AbortController();
    let isAsking = false;
    let isStale = false;
    let timer: ReturnType<typeof setTimeout> | undefined;

    async function ask() {
      if (isAsking) {
        isStale = true;
        return;
      }
      clearTimeout(timer);
      [isAsking, isStale] = [true, false];
      let pause = PACE;
      try {
        const data = await client.get<T>(path, stop.signal);
        setState({ path, data });
      } catch (error) {
        if (stop.signal.aborted) return;
        if (!(error instanceof ApiError)) throw error;
        setState((before) => (before.path === path ? { ...before, error } : { path, error }));
        if (error.status === 0 || error.status === 429 || error.status >= 500)
          [isStale, pause] = [true, RETRY];
      }
      timer = setTimeout(() => {
        isAsking = false;
        if (isStale) void ask();
      }, pause);
    }

    reload.current = () => void ask();
    void ask();
    const unlisten = listen((news) => {
      if (news.kind !== "change" || wish.current(news.change)) void ask();
    });
    return () => {
      stop.abort();
      clearTimeout(timer);
      unlisten();
    };
  }, [client, listen, path]);

  const isCurrent = state.path === path;
  return {
    // The answer to the filter before this one is better than an empty page.
    data: state.data,
    error: isCurrent ? state.error : undefined,
    reload: useCallback(() => reload.current(), []),
  };
}
