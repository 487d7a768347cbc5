/**
 * Byte ranges of a request.
 *
 * Pure. A header that is not exactly one well-formed byte range is ignored, as RFC 9110 §14.2 allows; several ranges
 * are ignored too. Source: SYS-FS-02; report 25.
 */

/** What to send: everything, the bytes from `start` to `end` (both included), or a 416. */
export type RangeResult =
  | { readonly kind: "whole" }
  | { readonly kind: "part"; readonly start: number; readonly end: number }
  | { readonly kind: "unsatisfiable" };

const WHOLE: RangeResult = { kind: "whole" };
const UNSATISFIABLE: RangeResult = { kind: "unsatisfiable" };
const ONE_RANGE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;

/** Compares two runs of digits by value: as numbers, long ones would lose their last digits. */
function isLess(left: string, right: string): boolean {
  const a = left.replace(/^0+/, ""), b = right.replace(/^0+/, "");
  return a.length === b.length ? a < b : a.length < b.length;
}

/**
 * Reads a `Range` header against a file of `sizeBytes`.
 *
 * A suffix longer than the file is all of it; an end past the file is its last byte. An empty file answers `0-` and
 * any suffix with all it has, which is nothing.
 */
export function parseRange(header: string | null | undefined, sizeBytes: number): RangeResult {
  const match = header ? ONE_RANGE.exec(header) : null;
  if (match === null) return WHOLE;
  const [, first = "", last = ""] = match;
  if (first === "") {
    if (last === "") return WHOLE;
    // Numbers past 2^53 lose digits here, but never come down to the size of a file.
    const suffix = Number(last);
    if (suffix === 0) return UNSATISFIABLE;
    if (sizeBytes === 0) return WHOLE;
    return { kind: "part", start: Math.max(sizeBytes - suffix, 0), end: sizeBytes - 1 };
  }
  if (last !== "" && isLess(last, first)) return WHOLE;
  const start = Number(first);
  if (sizeBytes === 0 && start === 0) return WHOLE;
  if (start >= sizeBytes) return UNSATISFIABLE;
  return { kind: "part", start, end: last === "" ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1) };
}
