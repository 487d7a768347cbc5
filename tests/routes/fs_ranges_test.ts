/** Ranges over HTTP: report 25, on a small file that is answered from memory and on a large one that streams. */
import { expect } from "../helpers/expect.ts";
import { type Row, type RowExpectation, testRows } from "./rows.ts";

const hundred = Array.from({ length: 100 }, (_, index) => String.fromCharCode(32 + index % 90)).join("");
const large = new Uint8Array(300_000).map((_, index) => index * 31 + (index >> 8));

function ranged(range: string, content: string | Uint8Array, expected: RowExpectation): Row {
  return {
    name: `GET with Range: ${range} on ${content.length} bytes is ${expected.status}`,
    rules: ["SYS-FS-02", "report 25"],
    files: { f: content },
    request: { method: "GET", path: "/fs/f", headers: { range } },
    expect: expected,
  };
}

function part(range: string, content: string | Uint8Array, start: number, end: number): Row {
  return ranged(range, content, {
    status: 206,
    body: content.slice(start, end + 1),
    headers: {
      "content-range": `bytes ${start}-${end}/${content.length}`,
      "content-length": String(end - start + 1),
      "accept-ranges": "bytes",
      etag: /^"/,
    },
  });
}

function whole(range: string, content: string | Uint8Array): Row {
  return ranged(range, content, {
    status: 200,
    body: content,
    headers: { "content-range": null, "content-length": String(content.length) },
  });
}

function unsatisfiable(range: string, content: string | Uint8Array): Row {
  return ranged(range, content, {
    status: 416,
    reason: "range_not_satisfiable",
    headers: { "content-range": `bytes */${content.length}` },
  });
}

const rows: Row[] = [
  part("bytes=-10", hundred, 90, 99),
  part("bytes=90-110", hundred, 90, 99),
  part("bytes=0-0", hundred, 0, 0),
  part("bytes=-200", hundred, 0, 99),
  unsatisfiable("bytes=100-", hundred),
  unsatisfiable("bytes=-0", hundred),
  whole("bytes=5-2", hundred),
  whole("bytes=0-0,5-6", hundred),
  whole("items=0-1", hundred),
  whole("bytes=0-", ""),
  whole("bytes=-5", ""),
  part("bytes=100000-199999", large, 100_000, 199_999),
  part("bytes=-1", large, 299_999, 299_999),
  part("bytes=65536-", large, 65_536, 299_999),
  unsatisfiable("bytes=300000-", large),
  {
    name: "a single-use GET ignores Range and hands over the whole file",
    rules: ["design: single use"],
    files: { f: hundred },
    grant: { single_use: true },
    request: { method: "GET", path: "/fs/f", headers: { range: "bytes=0-0" } },
    expect: { status: 200, body: hundred },
    after: async ({ send }) => expect((await send({ method: "GET", path: "/fs/f" })).status).toBe(401),
  },
  {
    name: "HEAD ignores Range",
    rules: ["SYS-FS-03"],
    files: { f: hundred },
    request: { method: "HEAD", path: "/fs/f", headers: { range: "bytes=0-0" } },
    expect: { status: 200, headers: { "content-length": "100", "content-range": null } },
  },
];

testRows("ranges of GET /fs/{path}", rows);
