import { parseRange, type RangeResult } from "../../base/ranges.ts";
import { expect } from "../helpers/expect.ts";

const whole: RangeResult = { kind: "whole" };
const unsatisfiable: RangeResult = { kind: "unsatisfiable" };
const part = (start: number, end: number): RangeResult => ({ kind: "part", start, end });

const rows: [size: number, header: string | null, expected: RangeResult][] = [
  [100, null, whole],
  [100, "", whole],
  // report 25
  [100, "bytes=-10", part(90, 99)],
  [100, "bytes=90-110", part(90, 99)],
  [100, "bytes=100-", unsatisfiable],
  [100, "bytes=-200", part(0, 99)],
  [100, "bytes=-0", unsatisfiable],
  [100, "bytes=5-2", whole],
  [100, "bytes=0-0,5-6", whole],
  [100, "items=0-1", whole],
  [0, "bytes=0-", whole],
  [0, "bytes=-5", whole],
  // around them
  [100, "bytes=0-0", part(0, 0)],
  [100, "bytes=0-", part(0, 99)],
  [100, "bytes=99-", part(99, 99)],
  [100, "bytes=0-99", part(0, 99)],
  [100, "bytes=100-100", unsatisfiable],
  [100, "bytes=-1", part(99, 99)],
  [100, "bytes=-100", part(0, 99)],
  [100, "Bytes= 1-2 ", part(1, 2)],
  [100, "bytes=0001-0002", part(1, 2)],
  [100, "bytes=09-8", whole],
  [100, "bytes=-", whole],
  [100, "bytes=", whole],
  [100, "bytes", whole],
  [100, "bytes 0-1", whole],
  [100, "bytes=1", whole],
  [100, "bytes=a-b", whole],
  [100, "bytes=1-2-3", whole],
  [100, "bytes=+1-2", whole],
  [100, "bytes=1.5-2", whole],
  [100, "bytes=0x1-2", whole],
  [100, "bytes=1e1-20", whole],
  [100, "bytes=--5", whole],
  [100, "bytes=１-２", whole],
  [0, "bytes=0-0", whole],
  [0, "bytes=1-", unsatisfiable],
  [0, "bytes=-0", unsatisfiable],
  [1, "bytes=0-", part(0, 0)],
  [1, "bytes=1-", unsatisfiable],
];
for (const [size, header, expected] of rows) {
  Deno.test(`parseRange() reads ${JSON.stringify(header)} on ${size} bytes (report 25)`, () => {
    expect(parseRange(header, size)).toEqual(expected);
  });
}

Deno.test("parseRange() loses no digits of huge numbers", () => {
  const huge = "9".repeat(400);
  expect(parseRange(`bytes=0-${huge}`, 100)).toEqual(part(0, 99));
  expect(parseRange(`bytes=${huge}-`, 100)).toEqual(unsatisfiable);
  expect(parseRange(`bytes=-${huge}`, 100)).toEqual(part(0, 99));
  // As floating point these two are the same number, and the range would count as well-formed.
  expect(parseRange("bytes=9007199254740993-9007199254740992", 100)).toEqual(whole);
  expect(parseRange("bytes=9007199254740992-9007199254740993", 100)).toEqual(unsatisfiable);
  const size = Number.MAX_SAFE_INTEGER;
  expect(parseRange(`bytes=${size - 1}-`, size)).toEqual(part(size - 1, size - 1));
});
