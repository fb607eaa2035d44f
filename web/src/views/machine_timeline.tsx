// What happened to this machine? What the cloud did, what the cluster said and what we did, in one line of time.
import { useState } from "preact/hooks";
import type { Timeline } from "../api.ts";
import type { ApiError } from "../client.ts";
import { Failure, Loading, Moment, Said } from "../ui.tsx";

const SOURCES: Record<string, string> = {
  cloud: "cloud",
  cluster: "cluster",
  machinist: "us",
};
const FIRST = 25;

export function TimelineSection({
  timeline,
  error,
}: {
  timeline: Timeline | undefined;
  error: ApiError | undefined;
}) {
  const [showsAll, setShowsAll] = useState(false);
  return (
    <section aria-labelledby="timeline">
      <h2 id="timeline">Timeline</h2>
      {error && <Failure error={error} what="the timeline" />}
      {!timeline && !error && <Loading what="the timeline" />}
      {timeline?.hidden && <p class="box is-noted">Not all is shown: {timeline.hidden}.</p>}
      {timeline?.entries.length === 0 && <p class="faint">Nothing is recorded.</p>}
      {timeline && (
        <ol class="timeline">
          {timeline.entries.slice(0, showsAll ? undefined : FIRST).map((item, index) => (
            // entries have no name; they are only ever shown
            <li key={index} class={`from-${item.source} ${item.severity === "Warning" ? "is-bad" : ""}`}>
              <span class="when">
                <Moment at={item.time} />
              </span>
              <span class="source">{SOURCES[item.source] ?? item.source}</span>
              <span class="what">
                {item.severity === "Warning" && (
                  <span class="sign">
                    <span aria-hidden="true">!</span>
                    <span class="unseen">Warning: </span>
                  </span>
                )}
                <Said text={item.message} />
                {item.count > 1 && <span class="faint"> ({item.count} times)</span>}{" "}
                <span class="faint">
                  {item.about} <code class="reason">{item.reason}</code>
                </span>
              </span>
            </li>
          ))}
        </ol>
      )}
      {timeline && timeline.entries.length > FIRST && !showsAll && (
        <button type="button" onClick={() => setShowsAll(true)}>
          Show {timeline.entries.length - FIRST} older
        </button>
      )}
    </section>
  );
}
