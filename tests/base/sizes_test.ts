import { formatSize, tryParseSize } from "../../base/sizes.ts";
import { expect } from "../helpers/expect.ts";

Deno.test("tryParseSize() reads bytes, decimal and binary units", () => {
  const rows: [string, number | undefined][] = [
    ["0", 0],
    ["1048576", 1048576],
    ["10MB", 10_000_000],
    ["256MiB", 268435456],
    ["5GiB", 5368709120],
    ["1.5KiB", 1536],
    ["5gib", 5368709120],
    ["12b", 12],
    ["1.5", undefined],
    ["-1", undefined],
    ["", undefined],
    ["MiB", undefined],
    ["5 GiB", undefined],
    ["5G", undefined],
    ["1e9", undefined],
    ["9999999TiB", undefined],
    ["constructor", undefined],
    ["1constructor", undefined],
  ];
  for (const [text, bytes] of rows) expect(tryParseSize(text), text).toBe(bytes);
});

Deno.test("formatSize() names the largest unit", () => {
  expect([0, 1023, 1024, 1536, 268435456, 5368709120].map(formatSize)).toEqual([
    "0 bytes",
    "1023 bytes",
    "1 KiB",
    "1.5 KiB",
    "256 MiB",
    "5 GiB",
  ]);
});
