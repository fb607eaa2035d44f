// What stands around every view? Navigation, the state of the connection, messages, shortcuts.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Change, FleetView, Me } from "./api.ts";
import type { Client } from "./client.ts";
import { ConnectionBanner, ConnectionLight } from "./connection.tsx";
import { type Live, LiveContext, type Message, type News, setClock } from "./live.tsx";
import { type Route, routeOf } from "./route.ts";
import { Shortcuts, useShortcuts } from "./shortcuts.tsx";
import { type Connection, openStream } from "./stream.ts";
import { applyTheme, storedTheme, type Theme } from "./theme.ts";
import { DriftPage } from "./views/drift.tsx";
import { FleetPage } from "./views/fleet.tsx";
import { MachinePage } from "./views/machine.tsx";
import { PlanPage } from "./views/plan.tsx";

const MESSAGE_STAYS = 12_000;

export function Shell(properties: { client: Client; me: Me; firstFleet: FleetView; signOut: () => void }) {
  const { client, me, firstFleet, signOut } = properties;
  const [fleet, setFleet] = useState(firstFleet);
  const [connection, setConnection] = useState<Connection>({ state: "connecting" });
  const [message, setMessage] = useState<Message | undefined>();
  const [spoken, setSpoken] = useState("");
  const [showsHelp, setShowsHelp] = useState(false);
  const [theme, setTheme] = useState<Theme>(storedTheme);
  const { route, go } = useRoute();
  const listeners = useRef(new Set<(news: News) => void>());
  const hurry = useRef<() => void>(() => {});

  const listen = useCallback((listener: (news: News) => void) => {
    listeners.current.add(listener);
    return () => {
      listeners.current.delete(listener);
    };
  }, []);

  // the stream goes on from the first answer, once
  useEffect(() => {
    const spread = (news: News) => {
      for (const listener of listeners.current) listener(news);
    };
    const readFleet = () => client.get<FleetView>("/api/v1/fleet").then(setFleet, () => {});
    let wasLost = false;
    const stream = openStream({
      url: "/api/v1/events",
      token: client.token,
      lastId: firstFleet.version,
      onConnection: (next) => {
        setConnection(next);
        if (next.state === "lost" && !wasLost) setSpoken("The connection to the operator is lost.");
        if (next.state === "live" && wasLost) {
          setSpoken("The connection to the operator is back.");
          spread({ kind: "back" });
        }
        wasLost = next.state === "lost" || (wasLost && next.state !== "live");
      },
      onEvent: (event) => {
        const data = JSON.parse(event.data) as { asOf?: string };
        if (data.asOf !== undefined) setClock(data.asOf);
        if (event.event === "reset") {
          void readFleet();
          spread({ kind: "reset" });
        } else if (event.event === "change") {
          const change = data as Change;
          if (change.fleet) setFleet(change.fleet);
          spread({ kind: "change", change });
        }
      },
    });
    hurry.current = stream.hurry;
    return stream.close;
  }, [client]);

  // A token that is no longer taken is noticed at the next request; the stream asks none of the views.
  useEffect(() => {
    if (connection.state === "refused") client.get("/api/v1/me").catch(() => {});
  }, [connection, client]);

  useEffect(() => {
    if (!message) return;
    const timer = setTimeout(() => setMessage(undefined), MESSAGE_STAYS);
    return () => clearTimeout(timer);
  }, [message]);

  // What changed for the fleet is said once, in the operator's own words.
  const headline = useRef(fleet.headline);
  useEffect(() => {
    if (headline.current === fleet.headline) return;
    headline.current = fleet.headline;
    setSpoken(fleet.headline);
  }, [fleet.headline]);

  useEffect(() => {
    const down = fleet.counts.byState.down ?? 0;
    document.title = `${down > 0 ? `(${down} down) ` : ""}${titleOf(route)} · Machinist`;
  }, [route, fleet]);

  const toggleTheme = useCallback(() => {
    const isDark =
      theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
    const next = isDark ? "light" : "dark";
    applyTheme(next);
    setTheme(next);
  }, [theme]);
  useShortcuts({ go, toggleTheme, help: () => setShowsHelp(true) });

  const live: Live = useMemo(
    () => ({ client, me, connection, listen, announce: setSpoken, tell: setMessage, go }),
    [client, me, connection, listen, go],
  );
  const isFresh = connection.state === "live" || connection.state === "connecting";

  return (
    <LiveContext.Provider value={live}>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href="/">
          <img src="/favicon.svg" alt="" width="20" height="20" /> Machinist
        </a>
        <nav aria-label="Views">
          <NavLink
            to="/"
            label="Fleet"
            isHere={route.view === "fleet" || route.view === "machine"}
            count={fleet.attentionTotal}
            countMeans="need attention"
          />
          <NavLink
            to="/plan"
            label="Plan"
            isHere={route.view === "plan"}
            count={fleet.maintenance.late + fleet.maintenance.blocked + fleet.maintenance.needApproval}
            countMeans="late, blocked or waiting for approval"
          />
          <NavLink
            to="/drift"
            label="Drift"
            isHere={route.view === "drift"}
            count={fleet.drift}
            countMeans="changed behind our back"
          />
        </nav>
        <div class="top-end">
          <ConnectionLight connection={connection} asOf={fleet.asOf} />
          <span
            class="who"
            tabIndex={0}
            data-tip={`${me.user}\n${me.groups.join(", ")}\n${me.why ?? "You may change things."}`}
          >
            {shortName(me.user)}
          </span>
          <button
            type="button"
            class="quiet"
            aria-label="Switch between light and dark"
            data-tip="Light or dark (t)"
            onClick={toggleTheme}
          >
            ◐
          </button>
          <button
            type="button"
            class="quiet"
            aria-label="Keyboard shortcuts"
            data-tip="Keyboard shortcuts (?)"
            onClick={() => setShowsHelp(true)}
          >
            ?
          </button>
          <button type="button" class="quiet" onClick={() => signOut()}>
            Sign out
          </button>
        </div>
      </header>
      <ConnectionBanner connection={connection} asOf={fleet.asOf} hurry={() => hurry.current()} />
      <main id="main" tabIndex={-1} class={isFresh ? "" : "is-stale"}>
        <View route={route} fleet={fleet} />
      </main>
      <footer class="bottom">
        {me.cluster ? `Cluster ${me.cluster}, ` : ""}namespace {me.namespace}, machinist-operator {me.version}
      </footer>
      {message && (
        <div class={message.isBad ? "message is-bad" : "message"} role={message.isBad ? "alert" : "status"}>
          {message.text}
          <button
            type="button"
            class="quiet"
            aria-label="Close the message"
            onClick={() => setMessage(undefined)}
          >
            ✕
          </button>
        </div>
      )}
      <p class="unseen" role="status" aria-live="polite" id="spoken">
        {spoken}
      </p>
      {showsHelp && <Shortcuts onClose={() => setShowsHelp(false)} />}
    </LiveContext.Provider>
  );
}

function View({ route, fleet }: { route: Route; fleet: FleetView }) {
  switch (route.view) {
    case "fleet":
      return <FleetPage fleet={fleet} query={route.query} />;
    case "machine":
      return <MachinePage key={route.name} name={route.name} />;
    case "plan":
      return <PlanPage fleet={fleet} query={route.query} />;
    case "drift":
      return <DriftPage />;
    case "nowhere":
      return (
        <>
          <h1>There is no such view</h1>
          <p>
            Nothing is at <code>{route.path}</code>. <a href="/">To the fleet</a>
          </p>
        </>
      );
  }
}

/** An account's own name: where it lives is in the tip. */
function shortName(user: string): string {
  return user.startsWith("system:serviceaccount:") ? (user.split(":").pop() ?? user) : user;
}

function titleOf(route: Route): string {
  if (route.view === "machine") return route.name;
  return { fleet: "Fleet", plan: "Plan", drift: "Drift", nowhere: "Nothing here" }[route.view];
}

function NavLink(properties: {
  to: string;
  label: string;
  isHere: boolean;
  count: number;
  countMeans: string;
}) {
  const { to, label, isHere, count, countMeans } = properties;
  return (
    <a href={to} aria-current={isHere ? "page" : undefined}>
      {label}
      {count > 0 && (
        <span class="badge" data-tip={`${count} ${countMeans}`}>
          {count}
          <span class="unseen"> {countMeans}</span>
        </span>
      )}
    </a>
  );
}

/** The address, followed without loading the page anew: links stay links. */
function useRoute(): { route: Route; go: (path: string) => void } {
  const [route, setRoute] = useState(() => routeOf(location.pathname, location.search));
  const go = useCallback((path: string) => {
    if (path === location.pathname + location.search) return;
    const isOtherView = path.split("?")[0] !== location.pathname;
    history.pushState(null, "", path);
    setRoute(routeOf(location.pathname, location.search));
    if (isOtherView) {
      scrollTo(0, 0);
      document.getElementById("main")?.focus({ preventScroll: true });
    }
  }, []);
  useEffect(() => {
    const back = () => setRoute(routeOf(location.pathname, location.search));
    const click = (event: MouseEvent) => {
      if (
        event.defaultPrevented ||
        event.button !== 0 ||
        event.metaKey ||
        event.ctrlKey ||
        event.shiftKey ||
        event.altKey
      )
        return;
      const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
      // Links of a drawing hold their address in another kind of attribute than those of text.
      const address = link?.getAttribute("href");
      if (!link || !address?.startsWith("/") || address.startsWith("//") || link.hasAttribute("target"))
        return;
      event.preventDefault();
      go(address);
    };
    window.addEventListener("popstate", back);
    document.addEventListener("click", click);
    return () => {
      window.removeEventListener("popstate", back);
      document.removeEventListener("click", click);
    };
  }, [go]);
  return { route, go };
}
