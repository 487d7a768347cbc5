/** The order of checks (SYS-ERR-04): one row for each pair of neighbours, where both would refuse. */
import { type Row, testRows } from "./rows.ts";

const TOO_LONG = "x".repeat(2000);

const rows: Row[] = [
  ...["POST", "PATCH", "OPTIONS", "MKCOL", "EXEC"].map((method): Row => ({
    name: `${method} is 405 before the missing capability is 401`,
    rules: ["SYS-ERR-04", "seed 405"],
    request: { method, path: "/fs/a", as: "nobody" },
    expect: { status: 405, reason: "method_not_allowed", headers: { allow: "GET, HEAD, PUT, DELETE" } },
  })),
  {
    name: "POST with a body is 405 before the illegal path is 400",
    rules: ["SYS-ERR-04"],
    request: { method: "POST", target: "/fs/%00", headers: { "content-length": "0" } },
    expect: { status: 405, reason: "method_not_allowed" },
  },
  {
    name: "a missing capability is 401 before the illegal path is 400",
    rules: ["SYS-ERR-04"],
    request: { method: "GET", target: "/fs/../x", as: "nobody" },
    expect: { status: 401, reason: "missing_capability" },
  },
  {
    name: "a dead capability is 401 before the illegal path is 400",
    rules: ["SYS-ERR-04"],
    before: async ({ send, capability }) => {
      await send({ method: "DELETE", path: `/capabilities/${capability.token_id}` });
    },
    request: { method: "GET", target: "/fs/../x" },
    expect: { status: 401, reason: "revoked" },
  },
  {
    name: "a dead capability is 401 before its body is 413",
    rules: ["SYS-ERR-04"],
    before: async ({ send, capability }) => {
      await send({ method: "DELETE", path: `/capabilities/${capability.token_id}` });
    },
    request: { method: "PUT", path: "/fs/a", body: TOO_LONG },
    expect: { status: 401, reason: "revoked" },
    disk: { a: null },
  },
  {
    name: "an illegal path is 400 before the verb is 403",
    rules: ["SYS-ERR-04"],
    grant: { verbs: ["STAT"] },
    request: { method: "GET", target: "/fs/a%00" },
    expect: { status: 400, reason: "invalid_path" },
  },
  {
    name: "the verb is 403 before the subtree is 403",
    rules: ["SYS-ERR-04"],
    grant: { verbs: ["STAT"], path_prefix: "in" },
    request: { method: "GET", path: "/fs/out/a" },
    expect: { status: 403, reason: "verb_not_allowed" },
  },
  {
    name: "the verb is 403 before the size is 413",
    rules: ["SYS-ERR-04"],
    grant: { verbs: ["GET"] },
    request: { method: "PUT", path: "/fs/a", body: TOO_LONG },
    expect: { status: 403, reason: "verb_not_allowed" },
    disk: { a: null },
  },
  {
    name: "the subtree is 403 before the size is 413",
    rules: ["SYS-ERR-04"],
    grant: { path_prefix: "in" },
    request: { method: "PUT", path: "/fs/out/a", body: TOO_LONG },
    expect: { status: 403, reason: "path_outside_scope" },
    disk: { out: null },
  },
  {
    name: "the size is 413 before the folder is 409",
    rules: ["SYS-ERR-04"],
    files: { "d/x": "1" },
    request: { method: "PUT", path: "/fs/d", body: TOO_LONG },
    expect: { status: 413, reason: "too_large" },
  },
  {
    name: "the size is 413 before the link is 403",
    rules: ["SYS-ERR-04"],
    before: ({ home }) => Deno.symlink("/etc", `${home}/l`),
    request: { method: "PUT", path: "/fs/l/x", body: TOO_LONG },
    expect: { status: 413, reason: "too_large" },
  },
  {
    name: "the file is 409 before its condition is 412",
    rules: ["SYS-ERR-04"],
    files: { "d/x": "1" },
    request: { method: "PUT", path: "/fs/d", body: "x", headers: { "if-match": '"x"' } },
    expect: { status: 409, reason: "is_directory" },
  },
  {
    name: "the condition is 412 before the range is 416",
    rules: ["SYS-FS-02"],
    files: { a: "1" },
    request: { method: "GET", path: "/fs/a", headers: { "if-match": '"x"', range: "bytes=9-" } },
    expect: { status: 412, reason: "precondition_failed" },
  },
];

testRows("order of checks on /fs/{path}", rows, { flags: { maxBytes: "1000" } });
