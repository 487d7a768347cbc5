import { parseRange } from "../../base/ranges.ts";
import { expect } from "../helpers/expect.ts";
import { fc, law } from "../helpers/laws.ts";

const digits = fc.oneof(
  fc.nat(300).map(String),
  fc.bigInt(0n, 10n ** 30n).map(String),
  fc.constantFrom("", "0", "00", "007"),
);
const header = fc.oneof(
  fc.tuple(digits, digits).map(([first, last]) => `bytes=${first}-${last}`),
  fc.string({ maxLength: 20 }).map((text) => `bytes=${text}`),
  fc.string({ maxLength: 20 }),
);

law(
  "parseRange() never leaves the file",
  fc.property(header, fc.oneof(fc.nat(300), fc.maxSafeNat()), (text, sizeBytes) => {
    const range = parseRange(text, sizeBytes);
    if (range.kind !== "part") return;
    expect(Number.isSafeInteger(range.start) && Number.isSafeInteger(range.end)).toBe(true);
    expect(0 <= range.start && range.start <= range.end && range.end < sizeBytes, JSON.stringify(range)).toBe(
      true,
    );
  }),
);

law(
  "parseRange() agrees with exact arithmetic",
  fc.property(digits, digits, fc.nat(300), (first, last, sizeBytes) => {
    const size = BigInt(sizeBytes);
    let expected: unknown = { kind: "whole" };
    if (first !== "" && (last === "" || BigInt(last) >= BigInt(first))) {
      const start = BigInt(first), end = last === "" || BigInt(last) >= size ? size - 1n : BigInt(last);
      if (start < size) expected = { kind: "part", start: Number(start), end: Number(end) };
      else if (start > 0n) expected = { kind: "unsatisfiable" };
    } else if (first === "" && last !== "") {
      const suffix = BigInt(last);
      if (suffix === 0n) expected = { kind: "unsatisfiable" };
      else if (size > 0n) {
        expected = { kind: "part", start: Number(suffix >= size ? 0n : size - suffix), end: sizeBytes - 1 };
      }
    }
    expect(parseRange(`bytes=${first}-${last}`, sizeBytes)).toEqual(expected);
  }),
);
