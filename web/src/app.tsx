// Signed in or not? And while signed in: who is it, and what is the fleet as the page begins?
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import type { FleetView, Me } from "./api.ts";
import { ApiError, Client } from "./client.ts";
import { setClock } from "./live.tsx";
import { findToken, forgetToken, keepToken } from "./session.ts";
import { Shell } from "./shell.tsx";
import { learnStates } from "./states.ts";
import { Login } from "./views/login.tsx";

export function App() {
  const [token, setToken] = useState(findToken);
  const [problem, setProblem] = useState<ApiError | undefined>();

  const signOut = useCallback((error?: ApiError) => {
    forgetToken();
    setProblem(error);
    setToken(undefined);
  }, []);
  const client = useMemo(
    () => (token === undefined ? undefined : new Client(token, signOut)),
    [token, signOut],
  );

  // `machinist up` may be opened again in the same tab, with another token.
  useEffect(() => {
    const look = () => {
      const given = findToken();
      if (given !== undefined) setToken(given);
    };
    window.addEventListener("hashchange", look);
    return () => window.removeEventListener("hashchange", look);
  }, []);

  if (!client) {
    const signIn = (given: string) => {
      keepToken(given);
      setProblem(undefined);
      setToken(given);
    };
    return <Login problem={problem} onToken={signIn} />;
  }
  return <Beginning key={client.token} client={client} signOut={signOut} />;
}

/** How soon a beginning that failed is tried again. */
const RETRY = 3_000;

function Beginning({ client, signOut }: { client: Client; signOut: () => void }) {
  const [start, setStart] = useState<{ me: Me; fleet: FleetView } | undefined>();
  const [problem, setProblem] = useState<ApiError | undefined>();
  const [attempt, setAttempt] = useState(0);

  // another attempt is the reason to ask again
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    async function ask() {
      try {
        const me = await client.get<Me>("/api/v1/me", stop.signal);
        const fleet = await client.get<FleetView>("/api/v1/fleet", stop.signal);
        setClock(fleet.asOf);
        learnStates(fleet.states);
        setStart({ me, fleet });
      } catch (error) {
        if (stop.signal.aborted) return;
        if (!(error instanceof ApiError)) throw error;
        setProblem(error);
        if (error.status === 0 || error.status >= 500)
          timer = setTimeout(() => setAttempt((count) => count + 1), RETRY);
      }
    }
    void ask();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [client, attempt]);

  if (start) return <Shell client={client} me={start.me} firstFleet={start.fleet} signOut={signOut} />;
  return (
    <main class="alone">
      <h1>Machinist</h1>
      {problem ? <Obstacle problem={problem} signOut={signOut} /> : <p role="status">Reading the fleet …</p>}
    </main>
  );
}

function Obstacle({ problem, signOut }: { problem: ApiError; signOut: () => void }) {
  const comesBack = problem.status === 0 || problem.status >= 500;
  return (
    <div class="box is-bad" role="alert">
      <strong>
        {problem.status === 403
          ? "You are signed in, but may not see the fleet."
          : "The fleet cannot be read."}
      </strong>{" "}
      {problem.message}
      {problem.hint && <p class="hint">{problem.hint}</p>}
      {comesBack && <p class="hint">It is tried again every few seconds.</p>}
      <p>
        <button type="button" onClick={signOut}>
          Use another token
        </button>
      </p>
    </div>
  );
}
