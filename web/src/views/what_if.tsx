// What would the plan be, if …? A form for other windows, freezes and events; the operator plans again and saves
// nothing.
import { useEffect, useRef, useState } from "preact/hooks";
import type { MachineList, PolicyList, PolicyView, WhatIfAnswer } from "../api.ts";
import { ApiError } from "../client.ts";
import { operatorNow, useLive, useResource } from "../live.tsx";
import { machinePath } from "../route.ts";
import { DAY, forInput } from "../time.ts";
import { Failure, Loading, Said, Term } from "../ui.tsx";
import {
  type Attempt,
  freezeNames,
  isQuestion,
  NO_ATTEMPT,
  newWindow,
  questionOf,
  type TriedEvent,
  type TriedFreeze,
  type TriedWindow,
  windowsOf,
} from "../what_if.ts";

const CODES = [
  "instance-retirement",
  "instance-stop",
  "system-reboot",
  "system-maintenance",
  "instance-reboot",
];

export function WhatIfForm({
  onAnswer,
  hasAnswer,
}: {
  onAnswer: (answer: WhatIfAnswer) => void;
  hasAnswer: boolean;
}) {
  const { client, announce } = useLive();
  const policies = useResource<PolicyList>("/api/v1/policies", (change) => change.policies);
  const [attempt, setAttempt] = useState<Attempt>(NO_ATTEMPT);
  const [error, setError] = useState<ApiError | undefined>();
  const [isAsking, setAsking] = useState(false);
  const known = policies.data?.policies ?? [];
  const question = questionOf(attempt, known);

  async function ask() {
    if (isAsking || !isQuestion(question)) return;
    setAsking(true);
    setError(undefined);
    try {
      const answer = await client.post<WhatIfAnswer>("/api/v1/what-if", question);
      onAnswer(answer);
      announce(`Tried. ${answer.summary}`);
    } catch (caught) {
      if (!(caught instanceof ApiError)) throw caught;
      setError(caught);
    }
    setAsking(false);
  }

  return (
    <section class="box what-if" aria-labelledby="what-if">
      <h2 id="what-if">
        <Term of="whatIf">What if</Term> …
      </h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void ask();
        }}
      >
        {policies.error && <Failure error={policies.error} what="the policies" />}
        {!policies.data && !policies.error && <Loading what="the policies" />}
        <PolicyPart policies={known} attempt={attempt} setAttempt={setAttempt} />
        <EventPart attempt={attempt} setAttempt={setAttempt} />
        {error && (
          <div class="box is-bad" role="alert">
            <strong>The operator cannot plan with this.</strong> <Said text={error.message} />
            {error.hint && <p class="hint">{error.hint}</p>}
          </div>
        )}
        <p class="dialog-end">
          <span class="hint">Nothing is saved.</span>
          <button
            type="submit"
            class="main"
            disabled={isAsking}
            aria-disabled={isQuestion(question) ? undefined : "true"}
          >
            {hasAnswer ? "Try again" : "See what would change"}
          </button>
        </p>
      </form>
    </section>
  );
}

interface Part {
  attempt: Attempt;
  setAttempt: (attempt: Attempt) => void;
}

function PolicyPart({ policies, attempt, setAttempt }: Part & { policies: PolicyView[] }) {
  const choose = (name: string) => {
    const policy = policies.find((one) => one.name === name);
    setAttempt({
      ...attempt,
      policy: policy?.name ?? null,
      windows: policy ? windowsOf(policy) : [],
      withoutFreezes: [],
      freezes: [],
    });
  };
  const chosen = policies.find((policy) => policy.name !== null && policy.name === attempt.policy);
  return (
    <fieldset>
      <legend>
        … a <Term of="policy" /> had other windows or freezes
      </legend>
      <label class="field">
        Policy
        <select
          id="try-policy"
          value={attempt.policy ?? ""}
          onChange={(event) => choose(event.currentTarget.value)}
        >
          <option value="">As it is</option>
          {policies
            .filter((policy) => policy.name !== null)
            .map((policy) => (
              <option key={policy.name} value={policy.name ?? ""}>
                {policy.name} ({policy.machines} {policy.machines === 1 ? "machine" : "machines"})
              </option>
            ))}
        </select>
      </label>
      {chosen && (
        <>
          {attempt.windows.map((window, index) => (
            <WindowRow
              // a row is what is at its place; its name is being typed
              key={index}
              window={window}
              onChange={(next) => setAttempt({ ...attempt, windows: attempt.windows.with(index, next) })}
              onRemove={() => setAttempt({ ...attempt, windows: attempt.windows.toSpliced(index, 1) })}
            />
          ))}
          {freezeNames(chosen).map((name) => (
            <label class="check" key={name}>
              <input
                type="checkbox"
                checked={!attempt.withoutFreezes.includes(name)}
                onChange={(event) =>
                  setAttempt({
                    ...attempt,
                    withoutFreezes: event.currentTarget.checked
                      ? attempt.withoutFreezes.filter((one) => one !== name)
                      : [...attempt.withoutFreezes, name],
                  })
                }
              />
              Freeze {name}
            </label>
          ))}
          {attempt.freezes.map((freeze, index) => (
            <FreezeRow
              key={index}
              freeze={freeze}
              onChange={(next) => setAttempt({ ...attempt, freezes: attempt.freezes.with(index, next) })}
              onRemove={() => setAttempt({ ...attempt, freezes: attempt.freezes.toSpliced(index, 1) })}
            />
          ))}
          <p class="row">
            <button
              type="button"
              onClick={() =>
                setAttempt({
                  ...attempt,
                  windows: [...attempt.windows, newWindow(attempt.windows.map((window) => window.name))],
                })
              }
            >
              Add a window
            </button>
            <button
              type="button"
              onClick={() => {
                const now = operatorNow();
                const freeze = { name: "tried-freeze", from: forInput(now), to: forInput(now + DAY) };
                setAttempt({ ...attempt, freezes: [...attempt.freezes, freeze] });
              }}
            >
              Add a freeze
            </button>
          </p>
        </>
      )}
    </fieldset>
  );
}

function WindowRow(properties: {
  window: TriedWindow;
  onChange: (window: TriedWindow) => void;
  onRemove: () => void;
}) {
  const { window, onChange, onRemove } = properties;
  return (
    <div class="row tried-window">
      <label class="field">
        Window
        <input
          value={window.name}
          required
          onInput={(event) => onChange({ ...window, name: event.currentTarget.value })}
        />
      </label>
      <label class="field">
        Opens by
        <select
          value={window.rule}
          onChange={(event) =>
            onChange({ ...window, rule: event.currentTarget.value === "rrule" ? "rrule" : "cron" })
          }
        >
          <option value="cron">cron</option>
          <option value="rrule">repeat rule</option>
        </select>
      </label>
      <label class="field grow">
        <span>
          When <Term of={window.rule}>{window.rule === "cron" ? "cron" : "repeat rule"}</Term>
        </span>
        <input
          value={window.schedule}
          required
          spellcheck={false}
          onInput={(event) => onChange({ ...window, schedule: event.currentTarget.value })}
        />
      </label>
      <label class="field">
        Stays open
        <input
          class="brief"
          value={window.duration}
          required
          onInput={(event) => onChange({ ...window, duration: event.currentTarget.value })}
        />
      </label>
      <label class="field">
        Time zone
        <input
          value={window.timeZone}
          placeholder="UTC"
          onInput={(event) => onChange({ ...window, timeZone: event.currentTarget.value })}
        />
      </label>
      <button type="button" aria-label={`Leave out window ${window.name}`} onClick={onRemove}>
        Leave out
      </button>
    </div>
  );
}

function FreezeRow(properties: {
  freeze: TriedFreeze;
  onChange: (freeze: TriedFreeze) => void;
  onRemove: () => void;
}) {
  const { freeze, onChange, onRemove } = properties;
  return (
    <div class="row">
      <label class="field">
        Freeze
        <input
          value={freeze.name}
          required
          onInput={(event) => onChange({ ...freeze, name: event.currentTarget.value })}
        />
      </label>
      <label class="field">
        From (your time)
        <input
          type="datetime-local"
          required
          value={freeze.from}
          onInput={(event) => onChange({ ...freeze, from: event.currentTarget.value })}
        />
      </label>
      <label class="field">
        To
        <input
          type="datetime-local"
          required
          value={freeze.to}
          onInput={(event) => onChange({ ...freeze, to: event.currentTarget.value })}
        />
      </label>
      <button type="button" aria-label={`Leave out freeze ${freeze.name}`} onClick={onRemove}>
        Leave out
      </button>
    </div>
  );
}

function EventPart({ attempt, setAttempt }: Part) {
  const change = (index: number, event: TriedEvent) =>
    setAttempt({ ...attempt, events: attempt.events.with(index, event) });
  return (
    <fieldset>
      <legend>
        … the cloud announced an <Term of="event" />
      </legend>
      {attempt.events.map((event, index) => (
        // a row is what is at its place
        <div class="row tried-event" key={index}>
          <MachineField
            value={event.machine}
            id={`tried-${index}`}
            onChange={(machine) => change(index, { ...event, machine })}
          />
          <label class="field">
            Event
            <select
              value={event.code}
              onChange={(input) => change(index, { ...event, code: input.currentTarget.value })}
            >
              {CODES.map((code) => (
                <option key={code}>{code}</option>
              ))}
            </select>
          </label>
          <label class="field">
            Not before (your time)
            <input
              type="datetime-local"
              required
              value={event.notBefore}
              onInput={(input) => change(index, { ...event, notBefore: input.currentTarget.value })}
            />
          </label>
          <button
            type="button"
            aria-label={`Leave out the event of ${event.machine || "no machine"}`}
            onClick={() => setAttempt({ ...attempt, events: attempt.events.toSpliced(index, 1) })}
          >
            Leave out
          </button>
        </div>
      ))}
      <p class="row">
        <button
          type="button"
          onClick={() => {
            const event = {
              machine: "",
              code: "instance-retirement",
              notBefore: forInput(operatorNow() + 7 * DAY),
            };
            setAttempt({ ...attempt, events: [...attempt.events, event] });
          }}
        >
          Add an event
        </button>
      </p>
    </fieldset>
  );
}

/** A machine's name; the operator suggests those that match what is typed. */
function MachineField({
  value,
  id,
  onChange,
}: {
  value: string;
  id: string;
  onChange: (machine: string) => void;
}) {
  const asked = new URLSearchParams({ search: value.trim(), limit: "20" });
  const { data } = useResource<MachineList>(`/api/v1/machines?${asked}`, () => false);
  return (
    <label class="field grow">
      Machine
      <input
        value={value}
        required
        list={id}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      <datalist id={id}>
        {data?.machines.map((row) => (
          <option key={row.name} value={row.name} />
        ))}
      </datalist>
    </label>
  );
}

const CHANGES = {
  added: "+ new",
  removed: "− gone",
  earlier: "← earlier",
  later: "→ later",
  other: "≠ other",
} as const;

/** What a trial changes. It says all the while that nothing is saved. */
export function Trial({ trial, onEnd }: { trial: WhatIfAnswer; onEnd: () => void }) {
  const home = useRef<HTMLElement>(null);
  // What was asked for is brought into sight, each time.
  useEffect(() => home.current?.scrollIntoView({ block: "start" }), [trial]);
  return (
    <section class="box is-trial" aria-labelledby="trial" ref={home}>
      <div class="section-head">
        <h2 id="trial">A trial: nothing is saved</h2>
        <button type="button" onClick={onEnd}>
          Back to the real plan
        </button>
      </div>
      <p id="trial-summary">
        <Said text={trial.summary} />
      </p>
      {trial.changes.length > 0 && (
        <ul class="changes">
          {trial.changes.map((change) => (
            <li key={change.machine} class={`change-${change.change}`}>
              <span class="chip">{CHANGES[change.change]}</span>{" "}
              <a href={machinePath(change.machine)}>{change.machine}</a> <Said text={change.sentence} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
