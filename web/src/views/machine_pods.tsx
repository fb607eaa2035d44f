// What would stop a drain? The pods of the node, and the budgets over them.
import type { MachineDetail, PodView } from "../api.ts";
import { Said, Term } from "../ui.tsx";

const DRAIN: Record<PodView["drain"], string> = {
  evicted: "would be moved",
  blocked: "blocks the drain",
  stays: "stays",
  refuses: "refuses to go",
};

export function PodsSection({ pods }: { pods: MachineDetail["pods"] }) {
  const blocking = pods.budgets.filter((budget) => budget.blocks.length > 0);
  return (
    <section aria-labelledby="pods">
      <div class="section-head">
        <h2 id="pods">
          <Term of="pod">Pods</Term> and what would block a <Term of="drain" />
        </h2>
        {!pods.hidden && <span class="faint">{pods.total} on this node</span>}
      </div>
      {pods.hidden && <p class="box is-noted">They are not shown: {pods.hidden}.</p>}
      {!pods.hidden && blocking.length === 0 && <p class="box is-good">No budget would block a drain now.</p>}
      {blocking.length > 0 && (
        <ul class="cards wide">
          {blocking.map((budget) => (
            <li key={`${budget.namespace}/${budget.name}`} class="card is-down-edge">
              <div class="card-head">
                <strong>
                  <Term of="budget">Budget</Term> {budget.namespace}/{budget.name}
                </strong>
                {budget.isImpossible && <span class="chip is-bad">never allows it</span>}
              </div>
              <p>
                <Said text={budget.words} />
              </p>
              <p class="faint">
                {budget.healthy} of {budget.expected} healthy, {budget.desired} wanted, {budget.allowed} may
                go now. Here: {budget.blocks.join(", ")}
              </p>
            </li>
          ))}
        </ul>
      )}
      {pods.pods.length > 0 && (
        <section class="scroll is-limited" tabIndex={0} aria-label="Pods on this node">
          <table>
            <thead>
              <tr>
                <th scope="col">Pod</th>
                <th scope="col">In a drain it</th>
                <th scope="col">Why</th>
                <th scope="col">Phase</th>
                <th scope="col">Made by</th>
              </tr>
            </thead>
            <tbody>
              {pods.pods.map((pod) => (
                <tr
                  key={`${pod.namespace}/${pod.name}`}
                  class={pod.drain === "blocked" || pod.drain === "refuses" ? "is-bad" : ""}
                >
                  <th scope="row">
                    {pod.namespace}/{pod.name}
                  </th>
                  <td>{DRAIN[pod.drain]}</td>
                  <td class="sentence">{pod.why && <Said text={pod.why} />}</td>
                  <td>{pod.phase}</td>
                  <td>{pod.owner ?? "–"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      {pods.total > pods.pods.length && !pods.hidden && (
        <p class="faint">
          The first {pods.pods.length} of {pods.total} are shown; what blocks comes first.
        </p>
      )}
    </section>
  );
}
