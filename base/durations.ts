/** Durations as people write them: `500ms`, `90s`, `15m`, `1h`, `7d`. Pure. Source: System API, "CLI". */

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** What a duration may look like, for the sentence that refuses another. */
export const DURATION_EXAMPLES = "a whole number with ms, s, m, h or d, such as 90s, 15m, 1h or 7d";

/** Returns a duration in milliseconds, or undefined when the text is none. The unit is required. */
export function tryParseDuration(text: string): number | undefined {
  const match = /^(\d{1,15})(ms|s|m|h|d)$/.exec(text.trim());
  const unitMs = UNIT_MS[match?.[2] ?? ""];
  if (match === null || unitMs === undefined) return undefined;
  const ms = Number(match[1]) * unitMs;
  return Number.isSafeInteger(ms) ? ms : undefined;
}

/** Returns a duration in the largest unit that keeps it whole: 900000 is `15m`, 90000 is `90s`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return "0s";
  for (const unit of ["d", "h", "m", "s"]) {
    const unitMs = UNIT_MS[unit] ?? 1;
    if (ms % unitMs === 0) return `${ms / unitMs}${unit}`;
  }
  return `${ms}ms`;
}
