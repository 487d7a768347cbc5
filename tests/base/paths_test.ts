import {
  covers,
  isReserved,
  MAX_PATH_BYTES,
  MAX_SEGMENT_BYTES,
  parsePlainPath,
  parseTargetPath,
  type PathResult,
  splitPath,
} from "../../base/paths.ts";
import { expect } from "../helpers/expect.ts";

function pathOf(result: PathResult): string {
  return result.ok ? result.path : `refused: ${result.message}`;
}

const kept: [raw: string, path: string][] = [
  ["", ""],
  ["/", ""],
  ["./.", ""],
  ["a", "a"],
  ["a//./b/", "a/b"],
  ["/a", "a"],
  ["a%2Db", "a-b"],
  ["%61/%62", "a/b"],
  ["a+b&c=d.txt", "a+b&c=d.txt"],
  ["a%20b", "a b"],
  ["a%3Fb%23c", "a?b#c"],
  ["%252e%252e", "%2e%2e"],
  ["%252F", "%2F"],
  ["...", "..."],
  ["a..", "a.."],
  ["..a", "..a"],
  [".hidden", ".hidden"],
  ["%EB%B3%B4%EA%B3%A0%EC%84%9C%20%C3%BCber%20100%25.pdf", "보고서 über 100%.pdf"],
  ["보고서", "보고서"],
  ["emoji-%F0%9F%A7%B5", "emoji-\u{1F9F5}"],
  ["line%0Abreak", "line\nbreak"],
  ["%EF%BB%BFbom", "\uFEFFbom"],
  ["__proto__/constructor", "__proto__/constructor"],
];
Deno.test("parseTargetPath() decodes each segment once and drops empty ones (SYS-FS-07, report 14)", () => {
  for (const [raw, path] of kept) expect(pathOf(parseTargetPath(raw)), raw).toBe(path);
});

const refused: [raw: string, says: string][] = [
  // report 20: '..' in any spelling
  ["..", "'..'"],
  ["a/../b", "'..'"],
  ["in/%2e%2e/%2e%2e/etc/passwd", "'..'"],
  ["in/.%2E/x", "'..'"],
  ["in/%2e./x", "'..'"],
  ["in/..%2f..%2fetc/passwd", "encoded slash"],
  ["a%2Fb", "encoded slash"],
  ["a%2fb", "encoded slash"],
  ["in/..%5c..%5cx", "backslash"],
  ["a\\b", "backslash"],
  ["a%5Cb", "backslash"],
  // report 23: NUL and bad escapes
  ["a%00b", "NUL"],
  ["a\0b", "NUL"],
  ["%", "percent-escape"],
  ["a%", "percent-escape"],
  ["%z", "percent-escape"],
  ["%zz", "percent-escape"],
  ["%2", "percent-escape"],
  ["%+1", "percent-escape"],
  ["% 1", "percent-escape"],
  ["%0x", "percent-escape"],
  ["%C0%80", "UTF-8"],
  ["%E0%A4%A", "percent-escape"],
  ["%E0%A4", "UTF-8"],
  ["%FF", "UTF-8"],
  ["%ED%A0%80", "UTF-8"],
  ["%F4%90%80%80", "UTF-8"],
  ["a\uFFFDb", "UTF-8"],
  ["a\ud800b", "UTF-8"],
];
Deno.test("parseTargetPath() refuses what can never be a path (SYS-FS-07, reports 20, 23)", () => {
  for (const [raw, says] of refused) {
    const result = pathOf(parseTargetPath(raw));
    expect(result, JSON.stringify(raw)).toContain("refused: Cannot use this path: ");
    expect(result, JSON.stringify(raw)).toContain(says);
  }
});

const lengths: [name: string, raw: string, fits: boolean][] = [
  ["255 plain bytes", "a".repeat(MAX_SEGMENT_BYTES), true],
  ["256 plain bytes", "a".repeat(MAX_SEGMENT_BYTES + 1), false],
  ["255 bytes in escapes", "%61".repeat(MAX_SEGMENT_BYTES), true],
  ["256 bytes in escapes", "%61".repeat(MAX_SEGMENT_BYTES + 1), false],
  ["254 bytes of two each", "%C3%BC".repeat(127), true],
  ["256 bytes of two each", "%C3%BC".repeat(128), false],
  ["a path of 4095 bytes", `${"a".repeat(254)}/`.repeat(16) + "a".repeat(15), true],
  ["a path of 4096 bytes", `${"a".repeat(254)}/`.repeat(16) + "a".repeat(16), false],
  [
    "a path of 4095 bytes and slashes to drop",
    `${"a".repeat(254)}//`.repeat(16) + "a".repeat(15) + "//",
    true,
  ],
];
Deno.test("parseTargetPath() keeps the limits in bytes of UTF-8 (SYS-FS-08, report 14)", () => {
  for (const [name, raw, fits] of lengths) {
    const result = parseTargetPath(raw);
    expect(result.ok, name).toBe(fits);
    if (!result.ok) {
      expect(result.message).toMatch(
        new RegExp(`longer than (${MAX_SEGMENT_BYTES}|${MAX_PATH_BYTES}) bytes`),
      );
    }
  }
});

Deno.test("parsePlainPath() decodes nothing", () => {
  expect(pathOf(parsePlainPath("/a//./b%2e%2e/"))).toBe("a/b%2e%2e");
  expect(pathOf(parsePlainPath("100%"))).toBe("100%");
  expect(pathOf(parsePlainPath("a\uFFFDb"))).toBe("a\uFFFDb");
  for (const text of ["..", "a/../b", "a\0", "a\\b", "a\ud800", "x".repeat(256)]) {
    expect(parsePlainPath(text).ok, JSON.stringify(text)).toBe(false);
  }
  expect(pathOf(parsePlainPath("a\\b", { backslash: true }))).toBe("a\\b");
});

function canonical(text: string) {
  const result = parsePlainPath(text);
  if (!result.ok) throw new TypeError(result.message);
  return result.path;
}

Deno.test("covers() compares whole segments, byte by byte (reports 8, 19)", () => {
  const rows: [prefix: string, path: string, covered: boolean][] = [
    ["", "", true],
    ["", "a/b", true],
    ["a", "a", true],
    ["a", "a/b", true],
    ["a", "ab", false],
    ["a", "a.b", false],
    ["a", "A", false],
    ["a/b", "a", false],
    ["a/b", "a/b/c/d", true],
    ["a/b", "a/bc", false],
    ["a/b", "x/a/b", false],
    ["caf\u00e9", "cafe\u0301", false],
  ];
  for (const [prefix, path, covered] of rows) {
    expect(covers(canonical(prefix), canonical(path)), `${prefix} ${path}`).toBe(covered);
  }
});

Deno.test("isReserved() knows String's own folder in any case, at the root alone", () => {
  for (const path of [".string", ".string/a", ".STRING/a/b", ".String"]) {
    expect(isReserved(canonical(path)), path).toBe(true);
  }
  for (const path of ["", "string", ".strings", ".strin", "a/.string", ".", ".string.bak/a"]) {
    expect(isReserved(canonical(path)), path).toBe(false);
  }
});

Deno.test("splitPath() parts the last segment from its parent", () => {
  expect(splitPath(canonical("a"))).toEqual({ parent: "", name: "a" });
  expect(splitPath(canonical("a/b/c"))).toEqual({ parent: "a/b", name: "c" });
});
