import { useSyncExternalStore } from "react";

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
const MINUTE = 60_000;
const WEEK = 7 * 86_400;
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "narrow" });
const day = new Intl.DateTimeFormat("en", { dateStyle: "medium" });
const full = new Intl.DateTimeFormat("en", { dateStyle: "long", timeStyle: "short" });

/** Show how long ago a time was. */
export function Time({ at }: { at: string }) {
  const date = new Date(at);
  const text = useSyncExternalStore(everyMinute, () => ago(date));
  return (
    <time dateTime={at} title={full.format(date)}>
      {text}
    </time>
  );
}

/** All times on the screen share one timer. */
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function everyMinute(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => listeners.forEach((each) => each()), MINUTE);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

function ago(date: Date): string {
  const seconds = (Date.now() - date.getTime()) / 1_000;
  if (seconds > WEEK) return day.format(date);
  const unit = UNITS.find(([, length]) => seconds >= length);
  return unit ? relative.format(-Math.floor(seconds / unit[1]), unit[0]) : "now";
}
