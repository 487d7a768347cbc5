/** Conditional requests: what is not as the client believes must change nothing. */
import { expect } from "../helpers/expect.ts";
import { type Row, testRows, type World } from "./rows.ts";

/** Notes the tag and date of `a.txt` as the server gives them. */
async function noteVersion({ send, notes }: World): Promise<void> {
  const { headers } = await send({ method: "HEAD", path: "/fs/a.txt" });
  notes.etag = headers.get("etag") ?? "";
  notes.modified = headers.get("last-modified") ?? "";
}

/** Notes the version, then writes another one. */
async function noteStaleVersion(world: World): Promise<void> {
  await noteVersion(world);
  await world.send({ method: "PUT", path: "/fs/a.txt", body: "newer" });
}

const files = { "a.txt": "old" };
const YESTERDAY = new Date(Date.now() - 86_400_000).toUTCString();
const TOMORROW = new Date(Date.now() + 86_400_000).toUTCString();

function put(headers: Record<string, string>) {
  return { method: "PUT", path: "/fs/a.txt", body: "new", headers };
}

function get(headers: Record<string, string>) {
  return { method: "GET", path: "/fs/a.txt", headers };
}

const REFUSED = { status: 412, reason: "precondition_failed" } as const;

const writes: Row[] = [
  {
    name: "PUT with If-None-Match: * creates",
    rules: ["SYS-FS-05"],
    request: put({ "if-none-match": "*" }),
    expect: { status: 201 },
    disk: { "a.txt": "new" },
  },
  {
    name: "PUT with If-None-Match: * answers 412 and changes nothing when a file is there",
    rules: ["SYS-FS-05"],
    files,
    request: put({ "if-none-match": "*" }),
    expect: REFUSED,
    disk: { "a.txt": "old" },
  },
  {
    name: "PUT with If-None-Match: * makes no parents when it is refused by a folder",
    rules: ["SYS-FS-05"],
    files: { "a.txt/x": "1" },
    request: put({ "if-none-match": "*" }),
    expect: { status: 409, reason: "is_directory" },
  },
  {
    name: "PUT with If-Match replaces the version it names",
    rules: ["SYS-FS-05"],
    files,
    before: noteVersion,
    request: ({ notes }) => put({ "if-match": `"other", ${notes.etag}` }),
    expect: { status: 200 },
    disk: { "a.txt": "new" },
  },
  {
    name: "PUT with a stale If-Match answers 412 and changes nothing",
    rules: ["SYS-FS-05", "report 16"],
    files,
    before: noteStaleVersion,
    request: ({ notes }) => put({ "if-match": notes.etag ?? "" }),
    expect: REFUSED,
    disk: { "a.txt": "newer" },
  },
  {
    name: "PUT with a weak If-Match answers 412",
    rules: ["SYS-FS-05"],
    files,
    before: noteVersion,
    request: ({ notes }) => put({ "if-match": `W/${notes.etag}` }),
    expect: REFUSED,
    disk: { "a.txt": "old" },
  },
  {
    name: "PUT with If-Match: * answers 412 when nothing is there, and makes no parents",
    rules: ["SYS-FS-05"],
    request: { method: "PUT", path: "/fs/in/a.txt", body: "x", headers: { "if-match": "*" } },
    expect: REFUSED,
    disk: { in: null },
  },
  {
    name: "PUT with the file's own tag in If-None-Match answers 412",
    rules: ["SYS-FS-05"],
    files,
    before: noteVersion,
    request: ({ notes }) => put({ "if-none-match": notes.etag ?? "" }),
    expect: REFUSED,
    disk: { "a.txt": "old" },
  },
  {
    name: "PUT with If-Unmodified-Since in the past answers 412",
    rules: ["SYS-FS-05"],
    files,
    request: put({ "if-unmodified-since": YESTERDAY }),
    expect: REFUSED,
    disk: { "a.txt": "old" },
  },
  {
    name: "PUT with an unreadable If-Match answers 400 and changes nothing",
    rules: ["SYS-FS-05"],
    files,
    request: put({ "if-match": "abc" }),
    expect: { status: 400, reason: "invalid_request" },
    disk: { "a.txt": "old" },
  },
  {
    name: "a single-use PUT that is refused by its condition is not spent",
    rules: ["SYS-FS-05", "design: single use"],
    files,
    grant: { single_use: true },
    request: put({ "if-none-match": "*" }),
    expect: REFUSED,
    disk: { "a.txt": "old" },
    database: { consumed_at: null, lease_id: null },
  },
  {
    name: "DELETE with a stale If-Match answers 412 and removes nothing",
    rules: ["SYS-FS-05"],
    files,
    before: noteStaleVersion,
    request: ({ notes }) => ({
      method: "DELETE",
      path: "/fs/a.txt",
      headers: { "if-match": notes.etag ?? "" },
    }),
    expect: REFUSED,
    disk: { "a.txt": "newer" },
  },
  {
    name: "DELETE with the current If-Match removes",
    rules: ["SYS-FS-05"],
    files,
    before: noteVersion,
    request: ({ notes }) => ({
      method: "DELETE",
      path: "/fs/a.txt",
      headers: { "if-match": notes.etag ?? "" },
    }),
    expect: { status: 200, json: { existed: true } },
    disk: { "a.txt": null },
  },
  {
    name: "DELETE with an unreadable If-Match answers 400",
    rules: ["SYS-FS-05"],
    files,
    request: { method: "DELETE", path: "/fs/a.txt", headers: { "if-match": "abc" } },
    expect: { status: 400, reason: "invalid_request" },
    disk: { "a.txt": "old" },
  },
  {
    name: "the ETag of a PUT is the one that GET answers",
    rules: ["SYS-FS-02"],
    request: put({}),
    expect: { status: 201 },
    async after({ send }, answer) {
      const read = await send({ method: "GET", path: "/fs/a.txt" });
      expect(read.headers.get("etag")).toBe(answer.headers.get("etag"));
    },
  },
];

const reads: Row[] = [
  {
    name: "GET with If-None-Match of the current version is 304 without a body",
    rules: ["SYS-FS-02"],
    files,
    before: noteVersion,
    request: ({ notes }) => get({ "if-none-match": `"x", W/${notes.etag}` }),
    expect: ({ notes }) => ({ status: 304, body: "", headers: { etag: notes.etag ?? "" } }),
  },
  {
    name: "GET with If-None-Match of an old version is 200",
    rules: ["SYS-FS-02"],
    files,
    before: noteStaleVersion,
    request: ({ notes }) => get({ "if-none-match": notes.etag ?? "" }),
    expect: { status: 200, body: "newer" },
  },
  {
    name: "GET with If-Modified-Since of the file's own date is 304",
    rules: ["SYS-FS-02"],
    files,
    before: noteVersion,
    request: ({ notes }) => get({ "if-modified-since": notes.modified ?? "" }),
    expect: { status: 304, body: "" },
  },
  {
    name: "GET with an older If-Modified-Since is 200",
    rules: ["SYS-FS-02"],
    files,
    request: get({ "if-modified-since": YESTERDAY }),
    expect: { status: 200, body: "old" },
  },
  {
    name: "GET lets If-None-Match win over If-Modified-Since",
    rules: ["SYS-FS-02"],
    files,
    request: get({ "if-none-match": '"x"', "if-modified-since": TOMORROW }),
    expect: { status: 200, body: "old" },
  },
  {
    name: "GET with a stale If-Match is 412",
    rules: ["SYS-FS-02"],
    files,
    request: get({ "if-match": '"x"' }),
    expect: REFUSED,
  },
  {
    name: "HEAD with If-None-Match of the current version is 304",
    rules: ["SYS-FS-03"],
    files,
    before: noteVersion,
    request: ({ notes }) => ({
      method: "HEAD",
      path: "/fs/a.txt",
      headers: { "if-none-match": notes.etag ?? "" },
    }),
    expect: { status: 304 },
  },
  {
    name: "HEAD with a stale If-Match is 412 without a body",
    rules: ["SYS-FS-03", "SYS-ERR-01"],
    files,
    request: { method: "HEAD", path: "/fs/a.txt", headers: { "if-match": '"x"' } },
    expect: REFUSED,
  },
  {
    name: "GET with If-Range of the current version gives the range",
    rules: ["SYS-FS-02"],
    files,
    before: noteVersion,
    request: ({ notes }) => get({ range: "bytes=1-", "if-range": notes.etag ?? "" }),
    expect: { status: 206, body: "ld" },
  },
  {
    name: "GET with If-Range of an old version gives the whole",
    rules: ["SYS-FS-02"],
    files,
    before: noteStaleVersion,
    request: ({ notes }) => get({ range: "bytes=1-", "if-range": notes.etag ?? "" }),
    expect: { status: 200, body: "newer", headers: { "content-range": null } },
  },
  {
    name: "GET with a weak If-Range gives the whole",
    rules: ["SYS-FS-02"],
    files,
    before: noteVersion,
    request: ({ notes }) => get({ range: "bytes=1-", "if-range": `W/${notes.etag}` }),
    expect: { status: 200, body: "old" },
  },
  {
    name: "a single-use GET that answers 304 is not spent",
    rules: ["design: single use"],
    files,
    grant: { single_use: true },
    before: noteVersion,
    request: ({ notes }) => get({ "if-none-match": notes.etag ?? "" }),
    expect: { status: 304 },
    database: { consumed_at: null },
  },
];

testRows("conditional writes on /fs/{path}", writes);
testRows("conditional reads on /fs/{path}", reads);
