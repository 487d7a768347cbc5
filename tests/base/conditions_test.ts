import {
  evaluateRead,
  type HeaderGetter,
  ifRangeHolds,
  parseReadConditions,
  parseWriteConditions,
} from "../../base/conditions.ts";
import { AppError } from "../../base/errors.ts";
import { parseHttpDate } from "../../base/http_date.ts";
import { expect } from "../helpers/expect.ts";

const MTIME = Date.UTC(2026, 6, 8, 9, 15, 30);
const SAME = "Wed, 08 Jul 2026 09:15:30 GMT";
const BEFORE = "Wed, 08 Jul 2026 09:15:29 GMT";
const AFTER = "Wed, 08 Jul 2026 09:15:31 GMT";
// Half a second that a date in a header cannot say.
const VERSION = { etag: '"a,b"', mtimeMs: MTIME + 500 };

function getter(headers: Record<string, string>): HeaderGetter {
  const all = new Headers(headers);
  return (name) => all.get(name);
}

type Outcome = ReturnType<typeof evaluateRead>;
const reads: [headers: Record<string, string>, expected: Outcome][] = [
  [{}, "proceed"],
  [{ "If-None-Match": '"a,b"' }, "not_modified"],
  [{ "If-None-Match": 'W/"a,b"' }, "not_modified"],
  [{ "If-None-Match": '"x", "a,b"' }, "not_modified"],
  [{ "If-None-Match": '"x","a,b","y"' }, "not_modified"],
  [{ "If-None-Match": ', "a,b" ,,' }, "not_modified"],
  [{ "If-None-Match": "*" }, "not_modified"],
  [{ "If-None-Match": '"a"' }, "proceed"],
  [{ "If-None-Match": '"a", "b"' }, "proceed"],
  [{ "If-None-Match": '"A,B"' }, "proceed"],
  [{ "If-None-Match": "a,b" }, "proceed"],
  [{ "If-None-Match": '"a,b" junk' }, "proceed"],
  [{ "If-None-Match": '"a,b' }, "proceed"],
  [{ "If-Modified-Since": SAME }, "not_modified"],
  [{ "If-Modified-Since": AFTER }, "not_modified"],
  [{ "If-Modified-Since": BEFORE }, "proceed"],
  [{ "If-Modified-Since": "yesterday" }, "proceed"],
  [{ "If-Modified-Since": "2027-01-01" }, "proceed"],
  // If-None-Match overrides the date, in both directions
  [{ "If-None-Match": '"x"', "If-Modified-Since": AFTER }, "proceed"],
  [{ "If-None-Match": '"a,b"', "If-Modified-Since": BEFORE }, "not_modified"],
  [{ "If-None-Match": "junk", "If-Modified-Since": AFTER }, "proceed"],
  [{ "If-Match": '"a,b"' }, "proceed"],
  [{ "If-Match": '"x", "a,b"' }, "proceed"],
  [{ "If-Match": "*" }, "proceed"],
  [{ "If-Match": '"x"' }, "precondition_failed"],
  [{ "If-Match": 'W/"a,b"' }, "precondition_failed"],
  [{ "If-Match": "junk" }, "precondition_failed"],
  [{ "If-Unmodified-Since": SAME }, "proceed"],
  [{ "If-Unmodified-Since": AFTER }, "proceed"],
  [{ "If-Unmodified-Since": BEFORE }, "precondition_failed"],
  [{ "If-Unmodified-Since": "junk" }, "proceed"],
  // If-Match overrides the date, in both directions
  [{ "If-Match": '"a,b"', "If-Unmodified-Since": BEFORE }, "proceed"],
  [{ "If-Match": '"x"', "If-Unmodified-Since": AFTER }, "precondition_failed"],
  // 412 comes before 304
  [{ "If-Match": '"x"', "If-None-Match": '"a,b"' }, "precondition_failed"],
  [{ "If-Match": '"a,b"', "If-None-Match": '"a,b"' }, "not_modified"],
  [{ "If-Unmodified-Since": BEFORE, "If-None-Match": '"a,b"' }, "precondition_failed"],
];
for (const [headers, expected] of reads) {
  Deno.test(`evaluateRead() says ${expected} for ${JSON.stringify(headers)} (RFC 9110 §13.2.2)`, () => {
    expect(evaluateRead(parseReadConditions(getter(headers)), VERSION)).toBe(expected);
  });
}

Deno.test("parseReadConditions() takes a getter that answers undefined", () => {
  expect(parseReadConditions(() => undefined)).toEqual({});
  expect(parseWriteConditions(() => undefined)).toEqual({});
});

Deno.test("parseReadConditions() stays fast on a hostile list of tags", () => {
  const begun = performance.now();
  for (
    const header of [
      '"'.repeat(60_000),
      '"a" '.repeat(15_000),
      " ".repeat(60_000),
      `${'"a",'.repeat(15_000)}x`,
    ]
  ) {
    expect(parseReadConditions((name) => name === "if-none-match" ? header : null)).toEqual({
      ifNoneMatch: [],
    });
  }
  expect(performance.now() - begun).toBeLessThan(500);
});

const ranges: [ifRange: string | null, holds: boolean][] = [
  [null, true],
  ['"a,b"', true],
  ['W/"a,b"', false],
  ['"x"', false],
  ['"a,b", "x"', false],
  [SAME, true],
  [BEFORE, false],
  [AFTER, false],
  ["junk", false],
  ["*", false],
];
Deno.test("ifRangeHolds() wants exactly this version (SYS-FS-02)", () => {
  for (const [ifRange, holds] of ranges) expect(ifRangeHolds(ifRange, VERSION), String(ifRange)).toBe(holds);
});

Deno.test("parseWriteConditions() gives what must hold (SYS-FS-05)", () => {
  const rows: [headers: Record<string, string>, expected: unknown][] = [
    [{}, {}],
    [{ "If-None-Match": "*" }, { ifNoneMatch: "*" }],
    [{ "If-None-Match": 'W/"a", "b"' }, { ifNoneMatch: ['"a"', '"b"'] }],
    [{ "If-Match": '"a", "b,c"' }, { ifMatch: ['"a"', '"b,c"'] }],
    [{ "If-Match": "*" }, { ifMatch: "*" }],
    // A weak tag can never match strongly; the condition stays and fails.
    [{ "If-Match": 'W/"a"' }, { ifMatch: [] }],
    [{ "If-Unmodified-Since": SAME }, { ifUnmodifiedSinceMs: MTIME }],
    [{ "If-Unmodified-Since": "junk" }, {}],
    [{ "If-Match": '"a"', "If-Unmodified-Since": SAME }, { ifMatch: ['"a"'] }],
    [{ "If-Modified-Since": SAME }, {}],
  ];
  for (const [headers, expected] of rows) expect(parseWriteConditions(getter(headers))).toEqual(expected);
});

Deno.test("parseWriteConditions() refuses a condition that it cannot read", () => {
  for (const value of ["a", '"a', '*, "a"', '"a" "b"', "W/", ",", 'w/"a"']) {
    for (const name of ["If-Match", "If-None-Match"]) {
      let code: string | undefined;
      try {
        parseWriteConditions(getter({ [name]: value }));
      } catch (error) {
        code = error instanceof AppError ? error.code : undefined;
      }
      expect(code, `${name}: ${value}`).toBe("invalid_request");
    }
  }
});

const dates: [text: string, ms: number | undefined][] = [
  ["Sun, 06 Nov 1994 08:49:37 GMT", Date.UTC(1994, 10, 6, 8, 49, 37)],
  ["Sunday, 06-Nov-94 08:49:37 GMT", Date.UTC(1994, 10, 6, 8, 49, 37)],
  ["Sun Nov  6 08:49:37 1994", Date.UTC(1994, 10, 6, 8, 49, 37)],
  ["Wednesday, 08-Jul-26 09:15:30 GMT", MTIME],
  ["Thu, 29 Feb 2024 00:00:00 GMT", Date.UTC(2024, 1, 29)],
  ["Fri, 30 Jun 2015 23:59:60 GMT", Date.UTC(2015, 6, 1)],
  ["Thu, 29 Feb 2023 00:00:00 GMT", undefined],
  ["Sun, 31 Apr 1994 08:49:37 GMT", undefined],
  ["Sun, 06 Nov 1994 24:00:00 GMT", undefined],
  ["Sun, 06 Nov 1994 08:60:37 GMT", undefined],
  ["Sun, 06 Nov 1994 08:49:61 GMT", undefined],
  ["Sun, 06 Xyz 1994 08:49:37 GMT", undefined],
  ["Sun, 06 Nov 1994 08:49:37", undefined],
  ["Sun, 06 Nov 1994 08:49:37 +0000", undefined],
  ["Sun, 6 Nov 1994 08:49:37 GMT", undefined],
  ["1994-11-06T08:49:37Z", undefined],
  ["0", undefined],
  ["", undefined],
];
Deno.test("parseHttpDate() takes the three forms of RFC 9110 and nothing else", () => {
  for (const [text, ms] of dates) expect(parseHttpDate(text), text).toBe(ms);
});
