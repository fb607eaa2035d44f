// What is this machine, and why does it wait? The machine, its instance and its node side by side; everything else that
// is known, and what a person can do.
import { useCallback } from "preact/hooks";
import { MachineActions } from "../actions.tsx";
import type { ConditionView, MachineDetail, Timeline } from "../api.ts";
import { useResource } from "../live.tsx";
import { Failure, Loading, Moment, Said, StateName, Term } from "../ui.tsx";
import { PodsSection } from "./machine_pods.tsx";
import { TimelineSection } from "./machine_timeline.tsx";
import { ThreeViews } from "./three_views.tsx";

export function MachinePage({ name }: { name: string }) {
  const path = `/api/v1/machines/${encodeURIComponent(name)}`;
  const concerns = (change: {
    machines: { changed: { name: string }[]; removed: string[] } | null;
    plan: boolean;
  }) =>
    change.plan ||
    (change.machines !== null &&
      (change.machines.removed.includes(name) || change.machines.changed.some((row) => row.name === name)));
  const { data, error, reload } = useResource<MachineDetail>(path, concerns);
  const timeline = useResource<Timeline>(`${path}/timeline`, concerns);
  const reloadBoth = useCallback(() => {
    reload();
    timeline.reload();
  }, [reload, timeline.reload]);

  if (error?.status === 404) {
    return (
      <>
        <h1>{name}</h1>
        <p class="box is-noted" role="status">
          There is no machine of this name{data ? " any more: it was deleted while you looked" : ""}.{" "}
          <a href="/">To the fleet</a>
        </p>
      </>
    );
  }
  if (!data)
    return error ? <Failure error={error} what={`machine ${name}`} /> : <Loading what={`machine ${name}`} />;
  return (
    <>
      {error && <Failure error={error} what={`machine ${name}`} />}
      <Head detail={data} onDone={reloadBoth} />
      <ThreeViews views={data.views} />
      <div class="columns">
        <div>
          <MaintenanceSection detail={data} />
          <Conditions conditions={data.conditions} />
          <More detail={data} />
        </div>
        <div>
          <TimelineSection timeline={timeline.data} error={timeline.error} />
        </div>
      </div>
      <PodsSection pods={data.pods} />
    </>
  );
}

function Head({ detail, onDone }: { detail: MachineDetail; onDone: () => void }) {
  const { row, state, waits, drift } = detail;
  const place = [
    row.role && `role ${row.role}`,
    row.pool && `pool ${row.pool}`,
    row.zone && `zone ${row.zone}`,
  ];
  return (
    <>
      <p class="crumbs">
        <a href="/">Fleet</a> {row.pool && <a href={`/?pool=${encodeURIComponent(row.pool)}`}>{row.pool}</a>}
      </p>
      <div class="machine-head">
        <h1>{row.name}</h1>
        <span class="big-state" tabIndex={0} data-tip={state.explanation}>
          <StateName state={state.word} title={state.title} />
        </span>
        <span class="faint">{place.filter(Boolean).join(" · ")}</span>
        <MachineActions detail={detail} onDone={onDone} />
      </div>
      {(waits.length > 0 || drift || detail.hold || detail.pauses.length > 0) && (
        <section class={`box why is-${state.word}-edge`} aria-labelledby="why">
          <h2 id="why">Why it waits</h2>
          <ul>
            {waits.map((wait) => (
              <li key={wait.reason + wait.message}>
                <Said text={wait.message} /> <code class="reason">{wait.reason}</code>
              </li>
            ))}
            {drift && (
              <li>
                <Term of="drift">Drift</Term>: <Said text={drift.sentence} />
              </li>
            )}
            {detail.hold && (
              <li>
                <Term of="hold">On hold</Term>: {detail.hold}
              </li>
            )}
            {detail.pauses.map((pause) => (
              <li key={pause}>
                <Said text={pause} />
              </li>
            ))}
          </ul>
          {detail.help.length > 0 && (
            <>
              <h3>What would help</h3>
              <ul>
                {detail.help.map((help) => (
                  <li key={help}>
                    <Said text={help} />
                  </li>
                ))}
              </ul>
            </>
          )}
        </section>
      )}
    </>
  );
}

function MaintenanceSection({ detail }: { detail: MachineDetail }) {
  const { maintenance } = detail;
  if (!maintenance) return null;
  const { entry } = maintenance;
  return (
    <section aria-labelledby="maintenance">
      <h2 id="maintenance">
        <Term of="maintenance">Maintenance</Term>
        {maintenance.phase && <span class="chip">{maintenance.phase}</span>}
        {entry?.isLate && (
          <span class="chip is-bad">
            <Term of="late">late</Term>
          </span>
        )}
      </h2>
      {entry && (
        <p>
          <Said text={entry.sentence} />
        </p>
      )}
      {maintenance.message && (
        <p>
          <Said text={maintenance.message} />
        </p>
      )}
      <dl class="facts">
        {maintenance.reasons.map((reason) => (
          <div key={reason.title + reason.since}>
            <dt>Why</dt>
            <dd>
              <Said text={reason.title} />
              {reason.description && (
                <>
                  {" "}
                  <Said text={reason.description} />
                </>
              )}{" "}
              <span class="faint">
                known <Moment at={reason.since} relative /> by {reason.sources.join(", ")}
                {reason.state === "Active" ? "" : `, ${reason.state.toLowerCase()}`}
              </span>
            </dd>
          </div>
        ))}
        {entry && entry.whyAction !== "" && (
          <div>
            <dt>What</dt>
            <dd>
              {entry.action}, because <Said text={entry.whyAction} />
              {entry.andThen.length > 0 && `; if that fails: ${entry.andThen.join(", then ")}`}
            </dd>
          </div>
        )}
        {entry?.start && (
          <div>
            <dt>When</dt>
            <dd>
              <Moment at={entry.start} />
              {entry.window && (
                <>
                  {" in "}
                  <Term of="window">window</Term> {entry.window}
                </>
              )}
            </dd>
          </div>
        )}
        {entry?.latestSafeStart && (
          <div>
            <dt>
              <Term of="safeStart">Last safe start</Term>
            </dt>
            <dd>
              <Moment at={entry.latestSafeStart} /> (<Moment at={entry.latestSafeStart} relative />)
            </dd>
          </div>
        )}
        {entry?.deadline && (
          <div>
            <dt>
              <Term of="deadline">Deadline</Term>
            </dt>
            <dd>
              <Moment at={entry.deadline} /> (<Moment at={entry.deadline} relative />)
            </dd>
          </div>
        )}
        <div>
          <dt>
            <Term of="policy">Policy</Term>
          </dt>
          <dd>{maintenance.policy ?? "none selects it: the defaults hold"}</dd>
        </div>
      </dl>
      <Sentences title="It waits for" list={maintenance.waits.map((wait) => wait.message)} />
      <Sentences title="Its drain" list={maintenance.drain} />
      <Sentences title="What was done" list={maintenance.history} />
    </section>
  );
}

function Sentences({ title, list }: { title: string; list: string[] }) {
  if (list.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul>
        {list.map((sentence) => (
          <li key={sentence}>
            <Said text={sentence} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Conditions({ conditions }: { conditions: ConditionView[] }) {
  if (conditions.length === 0) return null;
  const [bad, good] = [conditions.filter((one) => one.isBad), conditions.filter((one) => !one.isBad)];
  return (
    <section aria-labelledby="conditions">
      <h2 id="conditions">
        <Term of="condition">Conditions</Term>
      </h2>
      {bad.length === 0 && <p class="faint">All are as they should be.</p>}
      <ul class="conditions">
        {bad.map((condition) => (
          <ConditionLine key={condition.of + condition.type} condition={condition} />
        ))}
      </ul>
      {good.length > 0 && (
        <details>
          <summary>{good.length} that are well</summary>
          <ul class="conditions">
            {good.map((condition) => (
              <ConditionLine key={condition.of + condition.type} condition={condition} />
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

function ConditionLine({ condition }: { condition: ConditionView }) {
  return (
    <li class={condition.isBad ? "is-bad" : ""}>
      <span class="sign" aria-hidden="true">
        {condition.isBad ? "!" : "✓"}
      </span>
      <div>
        <strong>{condition.title}</strong>{" "}
        <code class="reason">
          {condition.of} {condition.type}={condition.status}
          {condition.reason ? ` ${condition.reason}` : ""}
        </code>
        {condition.since && (
          <span class="faint">
            {" since "}
            <Moment at={condition.since} />
          </span>
        )}
        {condition.message && (
          <p>
            <Said text={condition.message} />
          </p>
        )}
      </div>
    </li>
  );
}

function More({ detail }: { detail: MachineDetail }) {
  const { health, hooks, outdated, controlPlane } = detail;
  const isEmpty = health.length + hooks.length + outdated.length + (controlPlane?.length ?? 0) === 0;
  if (isEmpty) return null;
  return (
    <section aria-labelledby="more">
      <h2 id="more">Also known</h2>
      <Sentences title="Control plane" list={controlPlane ?? []} />
      <Sentences title="Health checks" list={health} />
      <Sentences title="What holds its deletion" list={hooks} />
      <Sentences title="Differs from its pool's template in" list={outdated} />
    </section>
  );
}
