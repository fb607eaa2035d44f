// Which keys do what? Single letters, off while something is being typed; they can be turned off altogether.
import { useEffect, useRef, useState } from "preact/hooks";
import { Dialog } from "./ui.tsx";

const KEY = "machinist-shortcuts";
const isOff = () => localStorage.getItem(KEY) === "off";

export interface Commands {
  go: (path: string) => void;
  toggleTheme: () => void;
  help: () => void;
}

const LIST: [keys: string, what: string][] = [
  ["g f", "Go to the fleet"],
  ["g p", "Go to the plan"],
  ["g d", "Go to drift"],
  ["/", "Search for a machine"],
  ["t", "Light or dark"],
  ["?", "This list"],
  ["← → ↑ ↓", "On the map: from machine to machine; Home and End to the first and the last"],
  ["Enter", "On the map and the calendar: open the machine"],
  ["Escape", "Close a dialog or a hint"],
];

export function useShortcuts(commands: Commands): void {
  const current = useRef(commands);
  current.current = commands;
  useEffect(() => {
    let afterG = false;
    const press = (event: KeyboardEvent) => {
      if (isOff() || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const { go, toggleTheme, help } = current.current;
      const wasAfterG = afterG;
      afterG = false;
      if (wasAfterG && event.key === "f") go("/");
      else if (wasAfterG && event.key === "p") go("/plan");
      else if (wasAfterG && event.key === "d") go("/drift");
      else if (event.key === "g") afterG = true;
      else if (event.key === "t") toggleTheme();
      else if (event.key === "?") help();
      else if (event.key === "/") {
        event.preventDefault();
        const search = document.getElementById("search");
        if (search) search.focus();
        else {
          go("/");
          requestAnimationFrame(() => document.getElementById("search")?.focus());
        }
      }
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof Element && target.closest("input, textarea, select, dialog, [contenteditable]") !== null
  );
}

export function Shortcuts({ onClose }: { onClose: () => void }) {
  const [off, setOff] = useState(isOff());
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl class="keys">
        {LIST.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={off}
          onChange={(event) => {
            const next = event.currentTarget.checked;
            if (next) localStorage.setItem(KEY, "off");
            else localStorage.removeItem(KEY);
            setOff(next);
          }}
        />
        Turn the single-letter shortcuts off
      </label>
    </Dialog>
  );
}
