// Is what is shown still true? A light when it is, a banner when it is not.
import { useEffect, useState } from "preact/hooks";
import type { Connection } from "./stream.ts";
import { hourAndMinute } from "./time.ts";
import { Moment } from "./ui.tsx";

const WORDS = { live: "Live", connecting: "Connecting", lost: "Not live", refused: "Not live" } as const;

export function ConnectionLight({ connection, asOf }: { connection: Connection; asOf: string }) {
  return (
    <span
      class={`light is-${connection.state}`}
      id="connection"
      tabIndex={0}
      data-tip={tipOf(connection, asOf)}
    >
      <span class="dot" aria-hidden="true" /> {WORDS[connection.state]}
    </span>
  );
}

function tipOf(connection: Connection, asOf: string): string {
  if (connection.state === "live") return "Changes appear by themselves.";
  return `What is shown is of ${hourAndMinute(asOf)}.`;
}

export function ConnectionBanner(properties: { connection: Connection; asOf: string; hurry: () => void }) {
  const { connection, asOf, hurry } = properties;
  const wasLost = useWasLost(connection);
  if (connection.state === "lost") {
    return (
      <div class="banner is-bad" role="alert" id="banner">
        <span>
          <strong>The connection is gone since {hourAndMinute(connection.since)}:</strong> {connection.why}.
          What you see is of <Moment at={asOf} />; it is not live. <Countdown to={connection.nextTry} />
        </span>
        <button type="button" onClick={hurry}>
          Try now
        </button>
      </div>
    );
  }
  if (connection.state === "refused") {
    return (
      <div class="banner is-bad" role="alert" id="banner">
        <span>
          <strong>The operator no longer lets you read.</strong> What you see is of <Moment at={asOf} />.
        </span>
      </div>
    );
  }
  if (wasLost) {
    return (
      <div class="banner is-good" role="status" id="banner">
        The connection is back. What you see is live.
      </div>
    );
  }
  return null;
}

const BACK_STAYS = 6_000;

/** For a while after the connection came back. */
function useWasLost(connection: Connection): boolean {
  const [wasLost, setWasLost] = useState(false);
  useEffect(() => {
    if (connection.state === "lost") setWasLost(true);
    if (connection.state !== "live") return;
    const timer = setTimeout(() => setWasLost(false), BACK_STAYS);
    return () => clearTimeout(timer);
  }, [connection]);
  return wasLost && connection.state === "live";
}

function Countdown({ to }: { to: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.ceil((to - now) / 1_000));
  return <span aria-hidden="true">{seconds > 0 ? `Next try in ${seconds} s.` : "Trying …"}</span>;
}
