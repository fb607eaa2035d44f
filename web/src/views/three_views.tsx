// Do the machine, its instance and its node agree? The same question in three columns; what differs is marked.
import type { MachineDetail } from "../api.ts";
import { Said, Term } from "../ui.tsx";

export function ThreeViews({ views }: { views: MachineDetail["views"] }) {
  const different = views.rows.filter((row) => row.differs).length;
  return (
    <section aria-labelledby="views">
      <div class="section-head">
        <h2 id="views">One machine, seen three times</h2>
        <span class={different > 0 ? "chip is-bad" : "chip is-good"} id="differences">
          {different === 0 ? "all agree" : different === 1 ? "1 difference" : `${different} differences`}
        </span>
      </div>
      {views.nodeHidden && <p class="box is-noted">The node is not shown: {views.nodeHidden}.</p>}
      <table class="views">
        <thead>
          <tr>
            <td />
            <th scope="col">
              <Term of="machine">Machine</Term>
            </th>
            <th scope="col">
              <Term of="instance">Instance</Term>
            </th>
            <th scope="col">
              <Term of="node">Node</Term>
            </th>
          </tr>
        </thead>
        <tbody>
          {views.rows.map((row) => (
            <tr key={row.key} class={row.differs ? "differs" : ""}>
              <th scope="row">
                <abbr class="term" tabIndex={0} data-tip={row.hint}>
                  {row.label}
                </abbr>
                {row.differs && (
                  <span class="differs-sign">
                    <span aria-hidden="true">≠</span>
                    <span class="unseen"> differs</span>
                  </span>
                )}
              </th>
              <Value of="Machine" value={row.machine} />
              <Value of="Instance" value={row.instance} />
              <Value of="Node" value={row.node} />
            </tr>
          ))}
        </tbody>
      </table>
      {different > 0 && (
        <ul class="differences">
          {views.rows
            .filter((row) => row.differs && row.why)
            .map((row) => (
              <li key={row.key}>
                <strong>{row.label}:</strong> <Said text={row.why ?? ""} />
              </li>
            ))}
        </ul>
      )}
    </section>
  );
}

function Value({ of, value }: { of: string; value: string | null }) {
  return <td data-of={of}>{value === null ? <span class="faint">–</span> : <Said text={value} />}</td>;
}
