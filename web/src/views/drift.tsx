// What happened behind our back? What was changed, by whom, and what is done about it.
import type { DriftView } from "../api.ts";
import { useResource } from "../live.tsx";
import { machinePath } from "../route.ts";
import { Failure, Loading, Moment, Said, Term } from "../ui.tsx";

export function DriftPage() {
  const { data, error } = useResource<DriftView>("/api/v1/drift", (change) => change.drift);
  return (
    <>
      <h1>
        <Term of="drift">Drift</Term>: what happened behind our back
      </h1>
      {error && <Failure error={error} what="drift" />}
      {!data && !error && <Loading what="drift" />}
      {data?.entries.length === 0 && (
        <p class="box is-good">Nothing. Every instance is as the cluster knows it.</p>
      )}
      {data && data.entries.length > 0 && (
        <>
          <p class="faint" id="shown">
            {data.total} {data.total === 1 ? "machine" : "machines"}, the newest first
          </p>
          <ul class="cards wide drift">
            {data.entries.map((entry) => (
              <li
                key={entry.machine}
                class={`card ${entry.needsAPerson ? "is-down-edge" : "is-attention-edge"}`}
              >
                <div class="card-head">
                  <a href={machinePath(entry.machine)}>{entry.machine}</a>
                  {entry.needsAPerson && <span class="chip is-bad">needs a person</span>}
                  <span class="faint">
                    {[entry.pool, entry.zone, entry.instance].filter(Boolean).join(" · ")}
                  </span>
                </div>
                <dl class="facts">
                  <div>
                    <dt>What happened</dt>
                    <dd>
                      It {entry.words}, <Moment at={entry.since} /> (<Moment at={entry.since} relative />){" "}
                      <code class="reason">{entry.class}</code>
                    </dd>
                  </div>
                  {entry.cause && (
                    <div>
                      <dt>Cause</dt>
                      <dd>
                        <Said text={entry.cause} />
                      </dd>
                    </div>
                  )}
                  <div>
                    <dt>What is done</dt>
                    <dd>
                      <Said text={entry.response} />
                      {entry.attempts > 0 && (
                        <span class="faint">
                          {" "}
                          {entry.attempts} {entry.attempts === 1 ? "attempt" : "attempts"}
                          {entry.actedAt && (
                            <>
                              , the last <Moment at={entry.actedAt} relative />
                            </>
                          )}
                        </span>
                      )}
                    </dd>
                  </div>
                  {entry.failure && (
                    <div class="is-bad">
                      <dt>What failed</dt>
                      <dd>
                        <Said text={entry.failure} />
                      </dd>
                    </div>
                  )}
                </dl>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}
