// How is a moment shown? In the reader's own time zone; the exact moment in UTC is a hover away.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

const short = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});
const withYear = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
});
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

/** "Sat 7 Nov, 22:00"; with the year when it is not this one. */
export function moment(time: string | number, now: number): string {
  const date = new Date(time);
  const sameYear = date.getFullYear() === new Date(now).getFullYear();
  return (sameYear ? short : withYear).format(date);
}

export function hourAndMinute(time: string | number): string {
  return clock.format(new Date(time));
}

/** "in 2d 3h", "5m ago", "just now". Two units at most: nobody plans by the second. */
export function distance(time: string | number, now: number): string {
  const difference = new Date(time).getTime() - now;
  const words = span(Math.abs(difference));
  if (words === "0m") return difference > 0 ? "in a moment" : "just now";
  return difference > 0 ? `in ${words}` : `${words} ago`;
}

export function span(milliseconds: number): string {
  const minutes = Math.floor(milliseconds / MINUTE);
  const [days, hours] = [Math.floor(minutes / (24 * 60)), Math.floor(minutes / 60) % 24];
  if (days >= 10 || (days > 0 && hours === 0)) return `${days}d`;
  if (days > 0) return `${days}d ${hours}h`;
  if (hours >= 10 || (hours > 0 && minutes % 60 === 0)) return `${hours}h`;
  if (hours > 0) return `${hours}h ${minutes % 60}m`;
  return `${minutes}m`;
}

/** "2026-11-07 21:00 UTC" */
export function exact(time: string | number): string {
  return `${new Date(time).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

const TIME_IN_TEXT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

/** The moments inside a sentence of the operator's, apart from the words around them. */
export function splitTimes(sentence: string): { text: string; isTime: boolean }[] {
  const parts: { text: string; isTime: boolean }[] = [];
  let from = 0;
  for (const found of sentence.matchAll(TIME_IN_TEXT)) {
    if (found.index > from) parts.push({ text: sentence.slice(from, found.index), isTime: false });
    parts.push({ text: found[0], isTime: true });
    from = found.index + found[0].length;
  }
  if (from < sentence.length) parts.push({ text: sentence.slice(from), isTime: false });
  return parts;
}

/** A moment as `<input type="datetime-local">` holds it, in the reader's zone. */
export function forInput(time: number): string {
  const date = new Date(time - new Date(time).getTimezoneOffset() * MINUTE);
  return date.toISOString().slice(0, 16);
}

/** The other way round; nothing when the field is empty or nonsense. */
export function fromInput(value: string): string | null {
  const time = Date.parse(value);
  return Number.isNaN(time) ? null : new Date(time).toISOString().replace(/\.\d+Z$/, "Z");
}
