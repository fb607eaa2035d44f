// Who are you? A token of the cluster, pasted; it is kept in this tab only.
import { useState } from "preact/hooks";
import type { ApiError } from "../client.ts";

export function Login({
  problem,
  onToken,
}: {
  problem: ApiError | undefined;
  onToken: (token: string) => void;
}) {
  const [token, setToken] = useState("");
  const isEmpty = token.trim() === "";
  return (
    <main class="alone">
      <h1>Machinist</h1>
      <p>Machines, instances and nodes of one cluster: what is wrong, what comes next, what waits on what.</p>
      {problem && (
        <div class="box is-bad" role="alert">
          <strong>The token was not accepted.</strong> {problem.message}
          <p class="hint">{problem.hint ?? "It may have expired. Make a new one and paste it below."}</p>
        </div>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!isEmpty) onToken(token.trim());
        }}
      >
        <label for="token">Token</label>
        <textarea
          id="token"
          rows={4}
          spellcheck={false}
          autocomplete="off"
          value={token}
          aria-describedby="token-help"
          onInput={(event) => setToken(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !isEmpty) {
              event.preventDefault();
              onToken(token.trim());
            }
          }}
        />
        <div id="token-help" class="hint">
          <p>You see and may do what your Kubernetes user may. Get a token with one of</p>
          <pre>
            <code>oc whoami -t</code>
            {"\n"}
            <code>kubectl create token SERVICEACCOUNT -n NAMESPACE</code>
          </pre>
          <p>It stays in this tab and is gone when you close it.</p>
        </div>
        <button type="submit" class="main" aria-disabled={isEmpty ? "true" : undefined}>
          Sign in
        </button>
      </form>
    </main>
  );
}
