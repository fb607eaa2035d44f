// What does a stream of server-sent events say, piece by piece?
//
// The browser's own EventSource cannot send an Authorization header, so the stream is read by fetch and taken
// apart here. A piece may end anywhere, even between the two characters of a line's end.

export interface ServerEvent {
  id: string;
  event: string;
  data: string;
}

export class EventParser {
  private rest = "";
  private data: string[] = [];
  private event = "";
  /** Of the last event that was seen whole: where the stream resumes. */
  lastId = "";
  private nextId: string | undefined;
  /** What the server asked for, in milliseconds. */
  retry: number | undefined;

  constructor(lastId = "") {
    this.lastId = lastId;
  }

  /** Takes the next piece and gives the events that are whole by now. */
  push(piece: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    this.rest += piece;
    for (;;) {
      const end = this.rest.search(/[\r\n]/);
      if (end < 0) break;
      // A carriage return at the very end may have its line feed in the next piece.
      if (this.rest[end] === "\r" && end === this.rest.length - 1) break;
      const line = this.rest.slice(0, end);
      this.rest = this.rest.slice(end + (this.rest.startsWith("\r\n", end) ? 2 : 1));
      const whole = this.line(line);
      if (whole) events.push(whole);
    }
    return events;
  }

  private line(line: string): ServerEvent | undefined {
    if (line === "") return this.dispatch();
    if (line.startsWith(":")) return undefined;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "data") this.data.push(value);
    else if (field === "event") this.event = value;
    else if (field === "id" && !value.includes("\0")) this.nextId = value;
    else if (field === "retry" && /^\d+$/.test(value)) this.retry = Number(value);
    return undefined;
  }

  private dispatch(): ServerEvent | undefined {
    if (this.nextId !== undefined) this.lastId = this.nextId;
    this.nextId = undefined;
    const { data, event } = this;
    this.data = [];
    this.event = "";
    if (data.length === 0) return undefined;
    return { id: this.lastId, event: event || "message", data: data.join("\n") };
  }
}

/** How long to wait before the next attempt: twice as long each time, up to half a minute, never in step with others. */
export function backoff(attempt: number, random: number, base = 1_000, most = 30_000): number {
  const full = Math.min(most, base * 2 ** Math.min(attempt, 16));
  return Math.round(full / 2 + (full / 2) * random);
}
