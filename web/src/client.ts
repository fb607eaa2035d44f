// How is the operator asked? With the user's own token, in a header, and never through a cookie.
import type { ErrorBody } from "./api.ts";

export class ApiError extends Error {
  constructor(
    /** 0: no answer at all. */
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string | null,
  ) {
    super(message);
  }
}

export class Client {
  constructor(
    readonly token: string,
    /** Called when the token is no longer taken: the page asks for another. */
    private readonly onUnauthenticated: (error: ApiError) => void = () => {},
  ) {}

  get<T>(path: string, signal?: AbortSignal): Promise<T> {
    return this.ask<T>(path, { method: "GET" }, signal);
  }

  post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
    const headers = { "Content-Type": "application/json" };
    return this.ask<T>(path, { method: "POST", body: JSON.stringify(body), headers }, signal);
  }

  private async ask<T>(path: string, init: RequestInit, signal?: AbortSignal): Promise<T> {
    let answer: Response;
    try {
      answer = await fetch(path, {
        ...init,
        headers: { ...init.headers, Accept: "application/json", Authorization: `Bearer ${this.token}` },
        cache: "no-store",
        credentials: "omit",
        ...(signal ? { signal } : {}),
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError(0, "Unreachable", "The operator cannot be reached.", null);
    }
    if (answer.ok) return (await answer.json()) as T;
    const failure = await errorOf(answer);
    if (failure.status === 401) this.onUnauthenticated(failure);
    throw failure;
  }
}

async function errorOf(answer: Response): Promise<ApiError> {
  try {
    const { error } = (await answer.json()) as ErrorBody;
    return new ApiError(answer.status, error.code, error.message, error.hint);
  } catch {
    return new ApiError(
      answer.status,
      "Unreadable",
      `The operator answered ${answer.status} and nothing readable.`,
      null,
    );
  }
}
