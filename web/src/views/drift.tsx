// What happened behind our back? What was changed, by whom, what is done about it, and what came of it.
import type { DriftEntry, DriftView } from "../api.ts";
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
        <p class="box is-good">Nothing is open. Every instance is as the cluster knows it.</p>
      )}
      {data && data.entries.length > 0 && (
        <>
          <p class="faint" id="shown">
            {data.total} {data.total === 1 ? "machine" : "machines"}, the newest first
          </p>
          <ul class="cards wide drift" id="open">
            {data.entries.map((entry) => (
              <Incident key={entry.machine + entry.class} entry={entry} />
            ))}
          </ul>
        </>
      )}
      {data && (data.past.length > 0 || data.hidden) && (
        <section aria-labelledby="past">
          <h2 id="past">What is over</h2>
          <p class="faint">As long as the API server keeps its events, usually for an hour.</p>
          {data.hidden && <p class="box">{data.hidden}</p>}
          <ul class="cards wide drift" id="over">
            {data.past.map((entry) => (
              <Incident key={entry.machine + entry.since + entry.class} entry={entry} />
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

function Incident({ entry }: { entry: DriftEntry }) {
  const edge = entry.isOver ? "is-well-edge" : entry.needsAPerson ? "is-down-edge" : "is-attention-edge";
  return (
    <li class={`card ${edge}`}>
      <div class="card-head">
        <a href={machinePath(entry.machine)}>{entry.machine}</a>
        {entry.needsAPerson && <span class="chip is-bad">needs a person</span>}
        {entry.isOver && <span class="chip is-good">over</span>}
        <span class="faint">{[entry.pool, entry.zone, entry.instance].filter(Boolean).join(" · ")}</span>
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
        {entry.done.length > 0 && (
          <div>
            <dt>What was done</dt>
            <dd>
              {entry.done.map((deed) => (
                <div key={deed.at + deed.words}>
                  <Moment at={deed.at} />: <Said text={deed.words} />
                </div>
              ))}
            </dd>
          </div>
        )}
        {entry.response && (
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
        )}
        {entry.isOver && entry.done.length === 0 && (
          <div>
            <dt>What was done</dt>
            <dd>Nothing.</dd>
          </div>
        )}
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
  );
}
