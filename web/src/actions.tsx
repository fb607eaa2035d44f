// What may a person do here? Approve, postpone, pause, resume: asked for in a dialog, done with the person's own rights.
import { useState } from "preact/hooks";
import type { Action, Done, MachineDetail, Me, PauseView, PlanEntry } from "./api.ts";
import { ApiError } from "./client.ts";
import { operatorNow, useLive } from "./live.tsx";
import { DAY, forInput, fromInput } from "./time.ts";
import { ActionButton, Dialog, Failure, Said, Term } from "./ui.tsx";

type Asked = "approve" | "postpone" | "pause" | "resume" | undefined;

/** The buttons of one machine; whether each may be used is the operator's answer. */
export function MachineActions({ detail, onDone }: { detail: MachineDetail; onDone: () => void }) {
  const [asked, setAsked] = useState<Asked>();
  const { actions, row } = detail;
  const entry = detail.maintenance?.entry ?? undefined;
  const close = () => setAsked(undefined);
  const button = (what: Exclude<Asked, undefined>, label: string, action: Action, isMain = false) => (
    <ActionButton
      label={label}
      possible={action.possible}
      why={action.why}
      isMain={isMain && action.possible}
      onUse={() => setAsked(what)}
    />
  );
  const place = { place: "machine", name: row.name } as const;
  return (
    <div class="actions" role="group" aria-label={`What you can do with ${row.name}`}>
      {button("approve", "Approve", actions.approve, true)}
      {button("postpone", "Postpone", actions.postpone)}
      {button("pause", "Pause", actions.pause)}
      {button("resume", "Resume", actions.resume)}
      {asked === "approve" && (
        <ApproveDialog machine={row.name} sentence={entry?.sentence} onClose={close} onDone={onDone} />
      )}
      {asked === "postpone" && (
        <PostponeDialog machine={row.name} entry={entry} onClose={close} onDone={onDone} />
      )}
      {asked === "pause" && <PauseDialog places={[place]} onClose={close} onDone={onDone} />}
      {asked === "resume" && <ResumeDialog place={place} onClose={close} onDone={onDone} />}
    </div>
  );
}

/** The buttons of one line of the plan. */
export function EntryActions({ entry, onDone }: { entry: PlanEntry; onDone: () => void }) {
  const { me } = useLive();
  const [asked, setAsked] = useState<Asked>();
  const close = () => setAsked(undefined);
  return (
    <span class="actions">
      {entry.needsApproval && (
        <ActionButton
          label="Approve"
          about={entry.machine}
          isMain={me.may.approve}
          possible={me.may.approve}
          why={mayNot(me, "approve maintenance")}
          onUse={() => setAsked("approve")}
        />
      )}
      {entry.canPostpone && (
        <ActionButton
          label="Postpone"
          about={entry.machine}
          possible={me.may.postpone}
          why={mayNot(me, "postpone maintenance")}
          onUse={() => setAsked("postpone")}
        />
      )}
      {asked === "approve" && (
        <ApproveDialog machine={entry.machine} sentence={entry.sentence} onClose={close} onDone={onDone} />
      )}
      {asked === "postpone" && (
        <PostponeDialog machine={entry.machine} entry={entry} onClose={close} onDone={onDone} />
      )}
    </span>
  );
}

type Place = Pick<PauseView, "place" | "name">;

const RIGHTS = {
  cluster: "pauseCluster",
  policy: "pausePolicy",
  pool: "pausePool",
  machine: "pauseMachine",
} as const satisfies Record<PauseView["place"], keyof Me["may"]>;

function nameOf({ place, name }: Place): string {
  return name === null ? "all maintenance" : `${place} ${name}`;
}

/** Pauses all maintenance, or that of a policy or a pool. */
export function PauseButton({ places, onDone }: { places: Place[]; onDone: () => void }) {
  const { me } = useLive();
  const [isAsked, setAsked] = useState(false);
  const allowed = places.filter(({ place }) => me.may[RIGHTS[place]]);
  return (
    <>
      <ActionButton
        label="Pause …"
        possible={allowed.length > 0}
        why={mayNot(me, "pause maintenance")}
        onUse={() => setAsked(true)}
      />
      {isAsked && <PauseDialog places={allowed} onClose={() => setAsked(false)} onDone={onDone} />}
    </>
  );
}

/** What is paused, why, and how it goes on. */
export function Pauses({ pauses, onDone }: { pauses: PauseView[]; onDone: () => void }) {
  const { me } = useLive();
  const [asked, setAsked] = useState<Place | undefined>();
  return (
    <>
      {pauses.map((pause) => (
        <div class="box is-noted pause" key={`${pause.place}/${pause.name}`}>
          <span>
            <strong>
              <Term of="pause">Paused</Term>: {nameOf(pause)}.
            </strong>{" "}
            <Said text={pause.why} />
          </span>
          <ActionButton
            label="Resume"
            about={nameOf(pause)}
            possible={me.may[RIGHTS[pause.place]]}
            why={mayNot(me, "resume it")}
            onUse={() => setAsked(pause)}
          />
        </div>
      ))}
      {asked && <ResumeDialog place={asked} onClose={() => setAsked(undefined)} onDone={onDone} />}
    </>
  );
}

function mayNot(me: Me, what: string): string {
  return (
    me.why ?? `You may not ${what}: your user (${me.user}) lacks the right in namespace ${me.namespace}.`
  );
}

interface DialogProperties {
  onClose: () => void;
  onDone: () => void;
}

/** Sends a wish; says what became of it to everybody, or in the dialog what stands against it. */
function useWish({ onClose, onDone }: DialogProperties) {
  const { client, tell } = useLive();
  const [error, setError] = useState<ApiError | undefined>();
  const [isSending, setSending] = useState(false);
  async function send(path: string, body: unknown) {
    if (isSending) return;
    setSending(true);
    try {
      const done = await client.post<Done>(path, body);
      tell({ text: done.sentence, isBad: false });
      onDone();
      onClose();
    } catch (caught) {
      if (!(caught instanceof ApiError)) throw caught;
      setError(caught);
      setSending(false);
    }
  }
  return { error, isSending, send };
}

function Ask(properties: {
  title: string;
  yes: string;
  wish: { error: ApiError | undefined; isSending: boolean };
  onYes: () => void;
  onClose: () => void;
  children: preact.ComponentChildren;
}) {
  const { title, yes, wish, onYes, onClose, children } = properties;
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onYes();
        }}
      >
        {children}
        {wish.error && <Failure error={wish.error} what="your wish" />}
        <p class="dialog-end">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="main" disabled={wish.isSending}>
            {yes}
          </button>
        </p>
      </form>
    </Dialog>
  );
}

function ApproveDialog(properties: DialogProperties & { machine: string; sentence: string | undefined }) {
  const { machine, sentence } = properties;
  const wish = useWish(properties);
  const send = () => wish.send(`/api/v1/machines/${encodeURIComponent(machine)}/approve`, {});
  return (
    <Ask title={`Approve ${machine}?`} yes="Approve" wish={wish} onYes={send} onClose={properties.onClose}>
      {sentence && (
        <p>
          <Said text={sentence} />
        </p>
      )}
      <p class="hint">
        Your <Term of="approval" /> holds for the reasons that are known now. Work begins when the plan says
        so.
      </p>
    </Ask>
  );
}

function PostponeDialog(properties: DialogProperties & { machine: string; entry: PlanEntry | undefined }) {
  const { machine, entry } = properties;
  const wish = useWish(properties);
  const [until, setUntil] = useState(forInput(operatorNow() + DAY));
  const path = `/api/v1/machines/${encodeURIComponent(machine)}/postpone`;
  const send = () => {
    const time = fromInput(until);
    if (time !== null) void wish.send(path, { until: time });
  };
  return (
    <Ask title={`Postpone ${machine}`} yes="Postpone" wish={wish} onYes={send} onClose={properties.onClose}>
      <label class="field">
        Begin no earlier than (your time)
        <input
          type="datetime-local"
          required
          value={until}
          onInput={(event) => setUntil(event.currentTarget.value)}
        />
      </label>
      {entry?.latestSafeStart && (
        <p class="hint">
          Its <Term of="safeStart">last safe start</Term> is <Said text={entry.latestSafeStart} />. Later than
          that and it will miss its deadline.
        </p>
      )}
      {entry?.postponedUntil && (
        <p>
          It is postponed until <Said text={entry.postponedUntil} />.{" "}
          <button type="button" onClick={() => void wish.send(path, { until: null })}>
            Take that back
          </button>
        </p>
      )}
    </Ask>
  );
}

function PauseDialog(properties: DialogProperties & { places: Place[] }) {
  const { places } = properties;
  const wish = useWish(properties);
  const [reason, setReason] = useState("");
  const [chosen, setChosen] = useState(0);
  const place = places[chosen];
  return (
    <Ask
      title={places.length === 1 && place ? `Pause ${nameOf(place)}` : "Pause maintenance"}
      yes="Pause"
      wish={wish}
      onYes={() => {
        if (place)
          void wish.send("/api/v1/pause", { place: place.place, name: place.name, reason: reason.trim() });
      }}
      onClose={properties.onClose}
    >
      {places.length > 1 && (
        <label class="field">
          What?
          <select
            id="pause-place"
            value={chosen}
            onChange={(event) => setChosen(Number(event.currentTarget.value))}
          >
            {places.map((one, number) => (
              <option key={nameOf(one)} value={number}>
                {nameOf(one)}
              </option>
            ))}
          </select>
        </label>
      )}
      <label class="field">
        Why? It is shown to everybody.
        <input
          type="text"
          required
          maxLength={200}
          value={reason}
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      </label>
      <p class="hint">
        Nothing that is our own choice begins while the pause holds. Work under way is finished.
      </p>
    </Ask>
  );
}

function ResumeDialog(properties: DialogProperties & { place: Place }) {
  const { place, name } = properties.place;
  const wish = useWish(properties);
  return (
    <Ask
      title={`Resume ${nameOf(properties.place)}?`}
      yes="Resume"
      wish={wish}
      onYes={() => wish.send("/api/v1/resume", { place, name })}
      onClose={properties.onClose}
    >
      <p>What is due may begin at once.</p>
    </Ask>
  );
}
