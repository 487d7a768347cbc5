import { formatDuration, tryParseDuration } from "../../base/durations.ts";
import { expect } from "../helpers/expect.ts";

Deno.test("tryParseDuration() reads whole numbers with a unit and nothing else (report 4)", () => {
  const rows: [string, number | undefined][] = [
    ["90s", 90_000],
    ["15m", 900_000],
    ["1h", 3_600_000],
    ["7d", 604_800_000],
    ["500ms", 500],
    ["0s", 0],
    ["1", undefined],
    ["1.5h", undefined],
    ["-1h", undefined],
    ["1w", undefined],
    ["NaN", undefined],
    ["h", undefined],
    ["1 h", undefined],
    ["999999999999999d", undefined],
  ];
  for (const [text, ms] of rows) expect(tryParseDuration(text), text).toBe(ms);
});

Deno.test("formatDuration() is read back as the same duration", () => {
  for (const text of ["90s", "15m", "1h", "7d", "1ms", "0s"]) {
    expect(formatDuration(tryParseDuration(text) ?? -1)).toBe(text);
  }
});
