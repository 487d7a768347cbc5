import { expect } from "../helpers/expect.ts";
import { run, startServer } from "./harness.ts";

const MINTED = {
  token_id: "cap_kJ2m9xQw",
  secret: "caps_EXAMPLE-NOT-A-REAL-SECRET",
  agent_id: "eve",
  path_prefix: "outbox/report.pdf",
  verbs: ["GET"],
  expires_at: "2026-07-08T09:15:00.000Z",
  single_use: true,
  created_at: "2026-07-08T09:00:00.000Z",
};
const MINT = ["agent", "capability", "mint"];

Deno.test("mint prints the very lines of the System API's worked example", async () => {
  await using server = startServer({ "POST /capabilities": [201, MINTED] });
  const args = [...MINT, "--path", "outbox/report.pdf", "--verbs", "get", "--ttl", "15m", "--single-use"];
  const ran = await run(args, { STRING_URL: server.url, STRING_AGENT_ID: "eve" });
  expect(ran).toEqual({
    code: 0,
    err: "",
    out: `Minted capability cap_kJ2m9xQw into workspace 'eve':
  scope:   outbox/report.pdf [GET]
  expires: 2026-07-08T09:15:00.000Z   single-use
  secret: caps_EXAMPLE-NOT-A-REAL-SECRET
`,
  });
  expect(server.seen).toEqual([{
    method: "POST",
    target: "/capabilities",
    authorization: null,
    body: {
      agent_id: "eve",
      path_prefix: "outbox/report.pdf",
      verbs: ["GET"],
      ttl_ms: 900_000,
      single_use: true,
    },
  }]);
});

Deno.test("mint names the whole workspace and several verbs, and says nothing of a use that is not single", async () => {
  const answer = { ...MINTED, path_prefix: "", verbs: ["PUT", "STAT"], single_use: false };
  await using server = startServer({ "POST /capabilities": [201, answer] });
  const args = [
    ...MINT,
    "--path",
    "",
    "--verbs",
    " put,Stat,",
    "--ttl",
    "1h",
    "--agent",
    "eve",
    "--author",
    "agent",
  ];
  const ran = await run(args, { STRING_URL: server.url, STRING_AGENT_ID: "other" });
  expect(ran.out).toContain(
    "  scope:   (whole workspace) [PUT, STAT]\n  expires: 2026-07-08T09:15:00.000Z\n",
  );
  expect(server.seen[0]?.body).toEqual({
    agent_id: "eve",
    path_prefix: "",
    verbs: ["PUT", "STAT"],
    ttl_ms: 3_600_000,
    single_use: false,
    author: "agent",
  });
});

Deno.test("mint --json prints the server's answer as exactly one document", async () => {
  await using server = startServer({ "POST /capabilities": [201, MINTED] });
  const args = [...MINT, "--path", "a", "--verbs", "get", "--ttl", "1h", "--agent", "eve", "--json"];
  const ran = await run(args, { STRING_URL: server.url });
  expect(JSON.parse(ran.out)).toEqual(MINTED);
  expect(ran.err).toBe("");
});

Deno.test("mint refuses what it can tell by itself before it asks a server", async () => {
  await using server = startServer({});
  const env = { STRING_URL: server.url, STRING_AGENT_ID: "eve" };
  const rows: [string[], string][] = [
    [["--path", "a", "--verbs", "get", "--ttl", "1"], 'got "1"'],
    [["--path", "a", "--verbs", "get", "--ttl", "0s"], "--ttl"],
    [["--path", "a", "--verbs", "get", "--ttl", "NaN"], "--ttl"],
    [["--path", "a"], "--verbs, --ttl must be given"],
    [["--pth", "a"], "Did you mean --path?"],
    [["--path", "a", "--verbs", "get", "--ttl", "1h", "--author", "me"], "Allowed choices are agent"],
  ];
  for (const [flags, message] of rows) {
    const ran = await run([...MINT, ...flags], env);
    expect([ran.code, ran.out], flags.join(" ")).toEqual([2, ""]);
    expect(ran.err).toContain(message);
  }
  expect(server.seen).toEqual([]);
});

Deno.test("a refusal gives its own exit code, with message and hint on standard error alone", async () => {
  const rows: [status: number, code: number][] = [
    [400, 2],
    [401, 4],
    [403, 4],
    [404, 3],
    [409, 5],
    [412, 5],
    [413, 7],
    [415, 1],
    [429, 1],
    [500, 1],
    [503, 6],
    [507, 7],
  ];
  for (const [status, code] of rows) {
    await using server = startServer({
      "POST /capabilities": [status, { error: "Cannot do that", reason: "x", hint: "Do this" }],
    });
    const args = [...MINT, "--path", "a", "--verbs", "get", "--ttl", "1h", "--agent", "eve", "--json"];
    const ran = await run(args, { STRING_URL: server.url });
    expect(ran, String(status)).toEqual({ code, out: "", err: "error: Cannot do that\nhint:  Do this\n" });
  }
});

Deno.test("an answer that is no String server's is told apart", async () => {
  for (
    const [status, body] of [[200, "<html>"], [200, "[]"], [200, {}], [302, ""], [
      502,
      "Bad gateway",
    ]] as const
  ) {
    await using server = startServer({ "POST /capabilities": [status, body] });
    const args = [...MINT, "--path", "a", "--verbs", "get", "--ttl", "1h", "--agent", "eve"];
    const ran = await run(args, { STRING_URL: server.url });
    expect([ran.code, ran.out]).toEqual([status === 502 ? 6 : 1, ""]);
    expect(ran.err).toMatch(/is not a String server|answered \d+|no usable "token_id"/);
  }
});

function record(id: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  const { secret: _, ...rest } = MINTED;
  return { ...rest, token_id: id, status: "live", consumed_at: null, revoked_at: null, ...more };
}

Deno.test("list follows the cursors to the last page and prints a table", async () => {
  await using server = startServer({
    "GET /capabilities?limit=1000": [200, { capabilities: [record("cap_a")], cursor: "c1" }],
    "GET /capabilities?limit=1000&cursor=c1": [200, {
      capabilities: [
        record("cap_bb", { path_prefix: "", verbs: ["PUT", "STAT"], single_use: false, status: "revoked" }),
      ],
    }],
  });
  const ran = await run(["agent", "capability", "list"], { STRING_URL: server.url });
  expect(ran).toEqual({
    code: 0,
    err: "",
    out: `Capabilities (2):
  ID      AGENT  STATUS   VERBS      EXPIRES                   USE   SCOPE
  cap_a   eve    live     GET        2026-07-08T09:15:00.000Z  once  outbox/report.pdf
  cap_bb  eve    revoked  PUT, STAT  2026-07-08T09:15:00.000Z        (whole workspace)
`,
  });
});

Deno.test("list asks for one agent when one is named, for all with --all, and prints one JSON document", async () => {
  await using server = startServer({
    "GET /capabilities?limit=1000&agent_id=eve": [200, { capabilities: [record("cap_a")] }],
    "GET /capabilities?limit=1000": [200, { capabilities: [] }],
  });
  const env = { STRING_URL: server.url, STRING_AGENT_ID: "eve" };
  const one = await run(["agent", "capability", "list", "--json"], env);
  expect(JSON.parse(one.out)).toEqual({ capabilities: [record("cap_a")] });
  expect((await run(["agent", "capability", "list", "--all"], env)).out).toBe("Capabilities (0):\n");
});

Deno.test("list gives up on a server whose pages never end", async () => {
  await using server = startServer({
    "GET /capabilities?limit=1000": [200, { capabilities: [], cursor: "c" }],
    "GET /capabilities?limit=1000&cursor=c": [200, { capabilities: [], cursor: "c" }],
  });
  const ran = await run(["agent", "capability", "list"], { STRING_URL: server.url });
  expect([ran.code, ran.out]).toEqual([1, ""]);
});

Deno.test("list prints nothing that could steer a terminal", async () => {
  await using server = startServer({
    "GET /capabilities?limit=1000": [200, {
      capabilities: [record("cap_a", { path_prefix: "a\u001b[2Jb\u202ec\n" })],
    }],
  });
  const ran = await run(["agent", "capability", "list"], { STRING_URL: server.url });
  expect(ran.out).toContain("a\\u{1b}[2Jb\\u{202e}c\\u{a}");
});

Deno.test("revoke says whether the capability was alive, and takes no secret for an id", async () => {
  await using server = startServer({
    "DELETE /capabilities/cap_a": [200, { token_id: "cap_a", revoked: true }],
    "DELETE /capabilities/cap_b": [200, { token_id: "cap_b", revoked: false }],
    "DELETE /capabilities/cap_c": [404, {
      error: "No such capability",
      reason: "capability_not_found",
      hint: "x",
    }],
    "DELETE /capabilities/a%2Fb%3F": [200, { token_id: "a/b?", revoked: true }],
  });
  const env = { STRING_URL: server.url };
  const revoke = (id: string) => run(["agent", "capability", "revoke", id], env);
  expect(await revoke("cap_a")).toEqual({ code: 0, out: "Revoked cap_a\n", err: "" });
  expect(await revoke("cap_b")).toEqual({ code: 0, out: "cap_b was dead already\n", err: "" });
  expect(await revoke("cap_c")).toMatchObject({ code: 3, out: "" });
  expect((await revoke("cap_c")).err).toContain("string agent capability list");
  expect((await revoke("a/b?")).code).toBe(0);
  const before = server.seen.length;
  const secret = await revoke("caps_abcdefg");
  expect(secret.code).toBe(2);
  expect(secret.err).not.toContain("abcdefg");
  expect(server.seen.length).toBe(before);
});
