// Which machines are there, line by line? The operator sorts, filters and pages; a page is asked for again when
// something changed.
import { useEffect, useState } from "preact/hooks";
import type { MachineList } from "../api.ts";
import { type Filter, type Sort, writeFilter } from "../filter.ts";
import { useResource } from "../live.tsx";
import { machinePath } from "../route.ts";
import { Failure, Loading, Moment, Said, StateName, Term } from "../ui.tsx";

const LIMIT = 100;

export function FleetTable({ filter }: { filter: Filter }) {
  const [sort, setSort] = useState<Sort>("state");
  const [isDescending, setDescending] = useState(false);
  // The cursors of the pages before this one; the first page has none.
  const [trail, setTrail] = useState<string[]>([]);
  const asked = writeFilter(filter);
  const filtered = asked.toString();
  // another question begins at its first page
  useEffect(() => setTrail([]), [filtered, sort, isDescending]);
  asked.set("sort", sort);
  asked.set("order", isDescending ? "desc" : "asc");
  asked.set("limit", String(LIMIT));
  const cursor = trail.at(-1);
  if (cursor !== undefined) asked.set("cursor", cursor);
  const { data, error } = useResource<MachineList>(
    `/api/v1/machines?${asked}`,
    (change) => change.machines !== null,
  );

  if (!data) return error ? <Failure error={error} what="the machines" /> : <Loading what="the machines" />;
  const head = (column: Sort, label: string, term?: "pool" | "zone") => (
    <th scope="col" aria-sort={sort !== column ? undefined : isDescending ? "descending" : "ascending"}>
      <button
        type="button"
        class="link"
        onClick={() => {
          setDescending(sort === column && !isDescending);
          setSort(column);
        }}
      >
        {label}
        <span aria-hidden="true">{sort !== column ? "" : isDescending ? " ↓" : " ↑"}</span>
      </button>
      {term && <Term of={term}>?</Term>}
    </th>
  );
  return (
    <>
      {error && <Failure error={error} what="the machines" />}
      <p class="legend" id="shown">
        {data.total.toLocaleString("en")} {data.total === 1 ? "machine" : "machines"}
      </p>
      <section class="scroll" tabIndex={0} aria-label="Machines, as a table">
        <table>
          <thead>
            <tr>
              {head("name", "Machine")}
              {head("state", "State")}
              <th scope="col">What it waits for</th>
              {head("pool", "Pool")}
              {head("zone", "Zone")}
              <th scope="col">Instance</th>
              <th scope="col">Node</th>
              {head("age", "Age")}
            </tr>
          </thead>
          <tbody>
            {data.machines.map((row) => (
              <tr key={row.name}>
                <th scope="row">
                  <a href={machinePath(row.name)}>{row.name}</a>
                </th>
                <td>
                  <StateName state={row.state} />
                </td>
                <td class="sentence">
                  {row.waiting ? <Said text={row.waiting.message} /> : row.drift ? `It ${row.drift}.` : ""}
                </td>
                <td>{row.pool ?? "–"}</td>
                <td>{row.zone ?? "–"}</td>
                <td>{row.instance ? `${row.instance.id} ${row.instance.state ?? ""}` : "–"}</td>
                <td>{row.node ? `${row.node.state}${row.node.isCordoned ? ", cordoned" : ""}` : "–"}</td>
                <td>{row.createdAt ? <Moment at={row.createdAt} relative /> : "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <nav class="pages" aria-label="Pages of machines">
        <button type="button" disabled={trail.length === 0} onClick={() => setTrail(trail.slice(0, -1))}>
          Previous
        </button>
        <span>Page {trail.length + 1}</span>
        <button
          type="button"
          disabled={data.next === null}
          onClick={() => {
            if (data.next !== null) setTrail([...trail, data.next]);
          }}
        >
          Next
        </button>
      </nav>
    </>
  );
}
