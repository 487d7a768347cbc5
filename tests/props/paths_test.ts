import { covers, isReserved, parsePlainPath, parseTargetPath } from "../../base/paths.ts";
import { expect } from "../helpers/expect.ts";
import { fc, law } from "../helpers/laws.ts";

/** Text made of what paths go wrong on, mixed with anything. */
const hostile = fc.array(
  fc.oneof(
    fc.constantFrom(
      "/",
      "..",
      ".",
      "%2e",
      "%2E",
      "%2f",
      "%5c",
      "\\",
      "%00",
      "\0",
      "%25",
      "%",
      "%C3%BC",
      "%c0",
      "a",
      "b",
    ),
    fc.constantFrom(
      ".string",
      ".STRING",
      "ü",
      "\u{1F9F5}",
      "\ud800",
      "\uFFFD",
      "\uFEFF",
      "\n",
      " ",
      "~",
      "-",
    ),
    fc.string({ unit: "binary", maxLength: 4 }),
  ),
  { maxLength: 12 },
).map((parts) => parts.join(""));

function encodePath(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

function expectCanonical(path: string): void {
  if (path === "") return;
  for (const segment of path.split("/")) {
    expect(["", ".", ".."].includes(segment), JSON.stringify(path)).toBe(false);
    expect(new TextEncoder().encode(segment).length).toBeLessThanOrEqual(255);
  }
  expect(path.includes("\0") || path.includes("\\"), JSON.stringify(path)).toBe(false);
  expect(path.isWellFormed()).toBe(true);
}

law(
  "parseTargetPath() gives canonical paths only",
  fc.property(hostile, (raw) => {
    const result = parseTargetPath(raw);
    if (result.ok) expectCanonical(result.path);
  }),
);

law(
  "parseTargetPath() gives the same path again for what it gave",
  fc.property(hostile, (raw) => {
    const first = parseTargetPath(raw);
    if (first.ok) expect(parseTargetPath(encodePath(first.path))).toEqual(first);
  }),
);

law(
  "parseTargetPath() and parsePlainPath() read an encoded and a plain spelling alike",
  fc.property(hostile.filter((text) => text.isWellFormed()), (text) => {
    const plain = parsePlainPath(text), encoded = parseTargetPath(encodePath(text));
    expect(encoded.ok).toBe(plain.ok);
    if (plain.ok && encoded.ok) expect(encoded.path).toBe(plain.path);
  }),
);

law(
  "parseTargetPath() takes the fast and the slow way to the same path",
  fc.property(
    fc.string({ unit: fc.constantFrom("a", "Z", "0", ".", "~", "_", "-", "/"), maxLength: 20 }),
    (raw) => {
      // An escape keeps the whole path off the fast way.
      const slow = parseTargetPath(`%78/${raw}`), fast = parseTargetPath(raw);
      expect(slow.ok).toBe(fast.ok);
      if (slow.ok && fast.ok) expect(slow.path).toBe(fast.path === "" ? "x" : `x/${fast.path}`);
    },
  ),
);

const segment = fc.constantFrom("a", "b", "ab", "a.b", "A", ".string", ".STRING", "...");
const segments = fc.array(segment, { maxLength: 5 });

law(
  "covers() holds exactly when the prefix's segments are the path's first",
  fc.property(segments, segments, (prefix, path) => {
    const left = parsePlainPath(prefix.join("/")), right = parsePlainPath(path.join("/"));
    if (!left.ok || !right.ok) throw new TypeError("plain segments make a path");
    const first = path.slice(0, prefix.length);
    expect(covers(left.path, right.path)).toBe(JSON.stringify(first) === JSON.stringify(prefix));
    expect(isReserved(right.path)).toBe(path[0]?.toLowerCase() === ".string");
  }),
);
