// Which small things are shown everywhere? Words with an explanation, moments, states, errors, buttons.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import type { MachineState } from "./api.ts";
import type { ApiError } from "./client.ts";
import { GLOSSARY, type Word } from "./glossary.ts";
import { useNow } from "./live.tsx";
import { titleOf } from "./states.ts";
import { distance, exact, moment, splitTimes } from "./time.ts";

/** A word of ours; what it means is shown on hover and on focus. */
export function Term({ of, children }: { of: Word; children?: ComponentChildren }) {
  return (
    <abbr class="term" tabIndex={0} data-tip={GLOSSARY[of]}>
      {children ?? of}
    </abbr>
  );
}

export function Moment({ at, relative = false }: { at: string; relative?: boolean }) {
  const now = useNow();
  const [here, away] = [moment(at, now), distance(at, now)];
  return (
    <time dateTime={at} data-tip={`${here} (${away})\n${exact(at)}`}>
      {relative ? away : here}
    </time>
  );
}

/** A sentence of the operator's. Its moments are shown in the reader's time zone. */
export function Said({ text }: { text: string }) {
  const parts = splitTimes(text);
  return <>{parts.map((part) => (part.isTime ? <Moment key={part.text} at={part.text} /> : part.text))}</>;
}

/** A state's sign: colour, shape and letter. The title always stands beside it, for those who see none of them. */
export function Mark({ state }: { state: MachineState }) {
  return <span class={`mark is-${state}`} aria-hidden="true" />;
}

export function StateName({ state, title }: { state: MachineState; title?: string }) {
  return (
    <span class={`state is-${state}-text`}>
      <Mark state={state} /> {title ?? titleOf(state)}
    </span>
  );
}

export function Failure({ error, what }: { error: ApiError; what: string }) {
  const title = error.status === 403 ? `You may not see ${what}` : `No answer about ${what}`;
  return (
    <div class="box is-bad" role="alert">
      <strong>{title}.</strong> {error.message}
      {error.hint && <p class="hint">{error.hint}</p>}
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <p class="loading" role="status">
      Reading {what} …
    </p>
  );
}

/** A button that says why it cannot be used. It keeps its place in the tab order, so that the reason can be read. */
export function ActionButton(properties: {
  label: string;
  about?: string;
  possible: boolean;
  why: string | null;
  onUse: () => void;
  isMain?: boolean;
}) {
  const { label, about, possible, why, onUse, isMain } = properties;
  return (
    <button
      type="button"
      class={isMain ? "main" : ""}
      aria-disabled={possible ? undefined : "true"}
      aria-label={about ? `${label}: ${about}` : undefined}
      data-tip={possible ? undefined : (why ?? "this cannot be done now")}
      onClick={() => {
        if (possible) onUse();
      }}
    >
      {label}
    </button>
  );
}

/** A modal dialog. The browser keeps the focus inside and gives it back. */
export function Dialog(properties: { title: string; onClose: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={heading} onClose={properties.onClose}>
      <header>
        <h2 id={heading}>{properties.title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={() => dialog.current?.close()}>
          ✕
        </button>
      </header>
      {properties.children}
    </dialog>
  );
}
