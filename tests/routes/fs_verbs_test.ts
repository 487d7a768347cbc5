/** The four verbs, the headers of a body, and the two forms of a secret. */
import { expect } from "../helpers/expect.ts";
import { type Row, testRows } from "./rows.ts";

const everyByte = Uint8Array.from({ length: 256 }, (_, index) => index);

const SAFE_HEADERS = {
  "content-type": "application/octet-stream",
  "accept-ranges": "bytes",
  "cache-control": /^private, no-store/,
  "content-security-policy": "sandbox; default-src 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "access-control-allow-origin": null,
  "content-encoding": null,
};

const puts: Row[] = [
  {
    name: "PUT answers 201 and makes parents when nothing is there",
    rules: ["SYS-FS-01"],
    request: { method: "PUT", path: "/fs/in/deep/a.txt", body: "hello" },
    expect: {
      status: 201,
      json: { path: "in/deep/a.txt", bytes: 5, created: true },
      headers: { etag: /^"[^"]+"$/, "cache-control": /no-store/ },
    },
    disk: { "in/deep/a.txt": "hello" },
    async after({ home, server, agentId }) {
      const info = await Deno.stat(`${home}/in/deep/a.txt`);
      expect((info.mode ?? 0) & 0o777).toBe(0o644);
      const agent = await server.context.agents.get(agentId);
      const { store, agents } = server.context;
      expect(await store.isFromOutside(agents.workspaceOf(agent), "in/deep/a.txt" as never)).toBe(true);
    },
  },
  {
    name: "PUT answers 200 and keeps the mode when it overwrites",
    rules: ["SYS-FS-01"],
    files: { "a.txt": "old and longer" },
    before: ({ home }) => Deno.chmod(`${home}/a.txt`, 0o600),
    request: { method: "PUT", path: "/fs/a.txt", body: everyByte },
    expect: { status: 200, json: { path: "a.txt", bytes: 256, created: false } },
    disk: { "a.txt": everyByte },
    async after({ home }) {
      expect(((await Deno.stat(`${home}/a.txt`)).mode ?? 0) & 0o777).toBe(0o600);
    },
  },
  {
    name: "PUT stores an empty file when there is no body",
    rules: ["SYS-FS-01"],
    request: { method: "PUT", path: "/fs/empty" },
    expect: { status: 201, json: { bytes: 0, created: true } },
    disk: { empty: "" },
  },
  {
    name: "PUT answers 409 when the path is a folder",
    rules: ["SYS-ERR-02", "seed 409"],
    files: { "folder/x": "1" },
    request: { method: "PUT", path: "/fs/folder", body: "x" },
    expect: { status: 409, reason: "is_directory" },
    disk: { "folder/x": "1" },
  },
  {
    name: "PUT answers 409 when a file is in a parent's place",
    rules: ["SYS-ERR-02", "seed 409"],
    files: { "a": "file" },
    request: { method: "PUT", path: "/fs/a/b/c", body: "x" },
    expect: { status: 409, reason: "parent_is_file" },
    disk: { a: "file" },
  },
  {
    name: "PUT to the workspace itself answers 409",
    rules: ["SYS-FS-07", "seed 409"],
    request: { method: "PUT", target: "/fs/" },
    expect: { status: 409, reason: "is_directory" },
  },
  {
    name: "PUT answers 413 when the body passes max_bytes, with the limit in words",
    rules: ["seed 413", "SYS-FS-10"],
    files: { "a.txt": "old" },
    request: { method: "PUT", path: "/fs/a.txt", body: "x".repeat(1001) },
    expect: { status: 413, reason: "too_large", contains: ["1000"] },
    disk: { "a.txt": "old" },
  },
  {
    name: "PUT takes a body of exactly max_bytes",
    rules: ["SYS-FS-10"],
    request: { method: "PUT", path: "/fs/a.txt", body: "x".repeat(1000) },
    expect: { status: 201, json: { bytes: 1000 } },
  },
  {
    name: "PUT through an author: agent grant leaves no mark",
    rules: ["SYS-CAP-02"],
    grant: { author: "agent" },
    request: { method: "PUT", path: "/fs/a.txt", body: "mine" },
    expect: { status: 201 },
    async after({ server, agentId }) {
      const { store, agents } = server.context;
      const workspace = agents.workspaceOf(await agents.get(agentId));
      expect(await store.isFromOutside(workspace, "a.txt" as never)).toBe(false);
    },
  },
];

const gets: Row[] = [
  {
    name: "GET answers every byte with safe headers",
    rules: ["SYS-FS-02", "SYS-FS-06", "report 28"],
    files: { "out/report.pdf": everyByte },
    request: { method: "GET", path: "/fs/out/report.pdf" },
    expect: {
      status: 200,
      body: everyByte,
      headers: {
        ...SAFE_HEADERS,
        "content-length": "256",
        "etag": /^"[^"]+"$/,
        "last-modified": /GMT$/,
        "content-disposition": 'attachment; filename="report.pdf"',
      },
    },
  },
  {
    name: "GET of an empty file is 200 with length 0",
    rules: ["SYS-FS-02"],
    files: { empty: "" },
    request: { method: "GET", path: "/fs/empty" },
    expect: { status: 200, body: "", headers: { ...SAFE_HEADERS, "content-length": "0" } },
  },
  {
    name: "GET names a file outside ASCII in plain and extended form",
    rules: ["SYS-FS-06", "report 28"],
    files: { "über 100%.html": "<script>" },
    request: { method: "GET", path: `/fs/${encodeURIComponent("über 100%.html")}` },
    expect: {
      status: 200,
      headers: {
        ...SAFE_HEADERS,
        "content-disposition": /^attachment; filename="[^"]*"; filename\*=UTF-8''%C3%BCber/,
      },
    },
  },
  {
    name: "GET of a name with a line break injects no header",
    rules: ["SYS-FS-06", "report 28"],
    files: { "a\r\nX-Y: z.txt": "x" },
    request: { method: "GET", target: "/fs/a%0d%0aX-Y:%20z.txt" },
    expect: { status: 200, headers: { "x-y": null, "content-disposition": /^attachment; [^\r\n]*$/ } },
  },
  {
    name: "GET of a name with a quote keeps the header whole",
    rules: ["SYS-FS-06", "report 28"],
    files: { 'a".txt': "x" },
    request: { method: "GET", target: "/fs/a%22.txt" },
    expect: { status: 200, headers: { "content-disposition": 'attachment; filename="a\\".txt"' } },
  },
  {
    name: "GET answers 404 when there is no file",
    rules: ["seed 404", "SYS-ERR-02"],
    request: { method: "GET", path: "/fs/none" },
    expect: { status: 404, reason: "not_found" },
  },
  {
    name: "GET answers 409 for a folder",
    rules: ["seed 409"],
    files: { "d/x": "1" },
    request: { method: "GET", path: "/fs/d" },
    expect: { status: 409, reason: "is_directory" },
  },
  {
    name: "GET of the workspace itself answers 409",
    rules: ["seed 409"],
    request: { method: "GET", target: "/fs/" },
    expect: { status: 409, reason: "is_directory" },
  },
  {
    name: "GET does not follow a link",
    rules: ["seed 403", "report 17"],
    before: ({ home }) => Deno.symlink("/etc", `${home}/l`),
    request: { method: "GET", path: "/fs/l/passwd" },
    expect: { status: 403, reason: "symlink", lacks: ["root:"] },
  },
  {
    name: "GET ignores a method override",
    rules: ["report 7"],
    grant: { verbs: ["STAT"] },
    files: { a: "x" },
    request: { method: "GET", path: "/fs/a", headers: { "x-http-method-override": "HEAD" } },
    expect: { status: 403, reason: "verb_not_allowed" },
  },
];

const heads: Row[] = [
  {
    name: "HEAD answers size, time and version without a body",
    rules: ["SYS-FS-03"],
    files: { a: "12345" },
    grant: { verbs: ["STAT"] },
    request: { method: "HEAD", path: "/fs/a" },
    expect: {
      status: 200,
      body: "",
      headers: { ...SAFE_HEADERS, "content-length": "5", etag: /^"/, "last-modified": /GMT$/ },
    },
  },
  {
    name: "HEAD of a folder is 409 without a body",
    rules: ["SYS-FS-03", "SYS-ERR-01"],
    files: { "d/x": "1" },
    request: { method: "HEAD", path: "/fs/d" },
    expect: { status: 409, reason: "is_directory" },
  },
  {
    name: "HEAD of nothing is 404 without a body",
    rules: ["seed 404", "SYS-ERR-01"],
    request: { method: "HEAD", path: "/fs/none" },
    expect: { status: 404, reason: "not_found" },
  },
  {
    name: "HEAD without STAT is 403 without a body and spends nothing",
    rules: ["report 1", "SYS-ERR-01"],
    grant: { verbs: ["GET"], single_use: true },
    files: { a: "x" },
    request: { method: "HEAD", path: "/fs/a", as: "presigned" },
    expect: { status: 403, reason: "verb_not_allowed" },
    database: { consumed_at: null },
  },
  {
    name: "HEAD with a dead token is 401 without a body",
    rules: ["SYS-ERR-01", "SYS-ERR-02"],
    request: { method: "HEAD", path: "/fs/a", as: "nobody" },
    expect: { status: 401, reason: "missing_capability" },
  },
  {
    name: "HEAD of an illegal path is 400 without a body",
    rules: ["SYS-ERR-01", "SYS-FS-07"],
    request: { method: "HEAD", target: "/fs/a%00b" },
    expect: { status: 400, reason: "invalid_path" },
  },
];

const deletes: Row[] = [
  {
    name: "DELETE removes a file",
    rules: ["SYS-FS-04"],
    files: { "a/b": "x" },
    request: { method: "DELETE", path: "/fs/a/b" },
    expect: { status: 200, json: { path: "a/b", existed: true } },
    disk: { "a/b": null },
  },
  {
    name: "DELETE of nothing is 200, existed false",
    rules: ["SYS-FS-04"],
    request: { method: "DELETE", path: "/fs/a/b" },
    expect: { status: 200, json: { path: "a/b", existed: false } },
  },
  {
    name: "DELETE of a folder is 409 and leaves it",
    rules: ["seed 409"],
    files: { "d/x": "1" },
    request: { method: "DELETE", path: "/fs/d" },
    expect: { status: 409, reason: "is_directory" },
    disk: { "d/x": "1" },
  },
  {
    name: "DELETE of the workspace itself is 409",
    rules: ["seed 409"],
    files: { x: "1" },
    request: { method: "DELETE", target: "/fs/" },
    expect: { status: 409, reason: "is_directory" },
    disk: { x: "1" },
  },
  {
    name: "DELETE below a file is 409",
    rules: ["SYS-ERR-02"],
    files: { f: "1" },
    request: { method: "DELETE", path: "/fs/f/x" },
    expect: { status: 409, reason: "parent_is_file" },
  },
  {
    name: "DELETE of a link is refused and leaves link and target",
    rules: ["report 17"],
    files: { target: "1" },
    before: ({ home }) => Deno.symlink("target", `${home}/l`),
    request: { method: "DELETE", path: "/fs/l" },
    expect: { status: 403, reason: "symlink" },
    disk: { target: "1", l: "1" },
  },
];

const credentials: Row[] = [
  {
    name: "GET takes the presigned form",
    rules: ["SYS-FS-09", "seed presigned"],
    files: { a: "x" },
    request: { method: "GET", path: "/fs/a", as: "presigned" },
    expect: { status: 200, body: "x" },
  },
  {
    name: "PUT takes the presigned form",
    rules: ["SYS-FS-09"],
    request: { method: "PUT", path: "/fs/a", as: "presigned", body: "x" },
    expect: { status: 201 },
  },
  {
    name: "GET takes both forms when they are the same secret",
    rules: ["SYS-FS-09"],
    files: { a: "x" },
    request: ({ capability }) => ({ method: "GET", path: `/fs/a?cap=${capability.secret}` }),
    expect: { status: 200, body: "x" },
  },
  {
    name: "GET answers 400 when both forms differ",
    rules: ["SYS-FS-09"],
    files: { a: "x" },
    request: { method: "GET", path: `/fs/a?cap=caps_${"x".repeat(43)}` },
    expect: { status: 400, reason: "conflicting_credentials", lacks: ["xxxxxxxx"] },
  },
  {
    name: "GET answers 400 when ?cap= is given twice with two secrets",
    rules: ["SYS-FS-09"],
    files: { a: "x" },
    request: { method: "GET", path: `/fs/a?cap=caps_${"x".repeat(43)}`, as: "presigned" },
    expect: { status: 400, reason: "conflicting_credentials", lacks: ["xxxxxxxx"] },
  },
  {
    name: "GET reads a percent-encoded ?cap=",
    rules: ["SYS-FS-09"],
    files: { a: "x" },
    request: ({ capability }) => ({
      method: "GET",
      target: `/fs/a?%63ap=${capability.secret.replace("_", "%5F")}`,
      as: "nobody",
    }),
    expect: { status: 200, body: "x" },
  },
  {
    name: "GET answers 400 when ?cap= has a bad escape",
    rules: ["SYS-FS-09"],
    files: { a: "x" },
    request: { method: "GET", target: "/fs/a?cap=%zz", as: "nobody" },
    expect: { status: 400, reason: "invalid_request" },
  },
  {
    name: "GET without a secret is 401",
    rules: ["SYS-ERR-02"],
    files: { a: "x" },
    request: { method: "GET", path: "/fs/a", as: "nobody" },
    expect: { status: 401, reason: "missing_capability" },
  },
  {
    name: "GET with an empty ?cap= is 401",
    rules: ["SYS-ERR-02"],
    files: { a: "x" },
    request: { method: "GET", path: "/fs/a?cap=", as: "nobody" },
    expect: { status: 401, reason: "missing_capability" },
  },
  {
    name: "GET with another scheme than Bearer is 401",
    rules: ["SYS-ERR-02"],
    files: { a: "x" },
    request: { method: "GET", path: "/fs/a", as: "nobody", headers: { authorization: "Basic YTpi" } },
    expect: { status: 401, reason: "missing_capability" },
  },
  {
    name: "GET with an unknown secret is 401",
    rules: ["seed 401", "SYS-ERR-02"],
    files: { a: "x" },
    request: { method: "GET", path: `/fs/a?cap=caps_${"y".repeat(43)}`, as: "nobody" },
    expect: { status: 401, reason: "unknown_token", lacks: ["yyyyyyyy"] },
  },
  {
    name: "GET with the admin token is 401: it is no capability",
    rules: ["design: planes"],
    files: { a: "x" },
    request: { method: "GET", path: "/fs/a", as: "operator" },
    expect: { status: 401, reason: "unknown_token" },
  },
  {
    name: "GET with an expired secret is 401",
    rules: ["seed 401"],
    files: { a: "x" },
    grant: { ttl_ms: 1 },
    async before({ capability }) {
      while (Date.now() <= Date.parse(capability.expires_at)) {
        await new Promise((done) => setTimeout(done, 1));
      }
    },
    request: { method: "GET", path: "/fs/a" },
    expect: { status: 401, reason: "expired" },
  },
  {
    name: "GET with a revoked secret is 401, from the next request on",
    rules: ["seed 401"],
    files: { a: "x" },
    async before({ send, capability }) {
      expect((await send({ method: "GET", path: "/fs/a" })).status).toBe(200);
      await send({ method: "DELETE", path: `/capabilities/${capability.token_id}` });
    },
    request: { method: "GET", path: "/fs/a" },
    expect: { status: 401, reason: "revoked" },
  },
  {
    name: "GET with a used single-use secret is 401",
    rules: ["seed 401"],
    files: { a: "x" },
    grant: { single_use: true },
    async before({ send }) {
      expect((await send({ method: "GET", path: "/fs/a" })).status).toBe(200);
    },
    request: { method: "GET", path: "/fs/a" },
    expect: { status: 401, reason: "already_used" },
  },
];

testRows("PUT /fs/{path}", puts, { flags: { maxBytes: "1000" } });
testRows("GET /fs/{path}", gets);
testRows("HEAD /fs/{path}", heads);
testRows("DELETE /fs/{path}", deletes);
testRows("credentials of /fs/{path}", credentials);
