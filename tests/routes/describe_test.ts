/** The handshake, health, the start page, and what is nowhere (SYS-DESC). */
import { join } from "../../base/std.ts";
import { VERSION } from "../../base/version.ts";
import { expect } from "../helpers/expect.ts";
import { sendRaw } from "../helpers/raw.ts";
import { startServer } from "../helpers/server.ts";
import { type Row, testRows } from "./rows.ts";

const described: Row[] = [
  {
    name: "GET /describe says what this server is and can, within which limits",
    rules: ["SYS-DESC-01", "SYS-DESC-02", "SYS-FS-10"],
    request: { method: "GET", path: "/describe", as: "nobody" },
    expect: {
      status: 200,
      json: {
        name: "string",
        version: VERSION,
        api: "string-daemon/v2",
        instance: { instance_label: "Büro 2", role: "production" },
        capabilities: {
          fs: { max_bytes: 1000, verbs: ["PUT", "GET", "DELETE", "STAT"] },
          "capability-tokens": { max_ttl_ms: 366 * 86_400_000, presigned: true },
          events: { max_webhook_text_bytes: 65_536 },
        },
      },
    },
    after(_, answer) {
      const { capabilities } = JSON.parse(answer.text);
      expect(Object.keys(capabilities).sort()).toEqual([
        "agent-keys",
        "agent-webhooks",
        "agents",
        "capability-tokens",
        "describe",
        "event-stream",
        "events",
        "fs",
        "health",
        "openapi",
      ]);
      expect(capabilities.fs.containment).toMatch(/^(kernel|portable)$/);
    },
  },
  {
    name: "GET /health says ok, version and counts, nothing more",
    rules: ["SYS-DESC-03"],
    request: { method: "GET", path: "/health", as: "nobody" },
    expect: {
      status: 200,
      body: JSON.stringify({ ok: true, version: VERSION, agents: 2, sessions: 0 }) + "\n",
    },
  },
  {
    name: "GET / is Markdown for a program",
    rules: ["issue 1"],
    request: { method: "GET", path: "/", as: "nobody", headers: { accept: "*/*" } },
    expect: {
      status: 200,
      headers: { "content-type": /^text\/markdown/, vary: /Accept/ },
      contains: ["curl"],
    },
  },
  {
    name: "GET / is a page without script for a browser",
    rules: ["issue 1"],
    request: { method: "GET", path: "/", as: "nobody", headers: { accept: "text/html,*/*;q=0.8" } },
    expect: {
      status: 200,
      headers: { "content-type": /^text\/html/, "content-security-policy": /default-src 'none'/ },
      contains: ["<h1>"],
      lacks: ["<script"],
    },
  },
  ...[
    "/agents/",
    "//agents",
    "/AGENTS",
    "/./agents",
    "/%61gents",
    "/fs",
    "/%66s/a",
    "/docs/../../etc/passwd",
    "/agents/a/b",
  ]
    .map((target): Row => ({
      name: `GET ${target} is 404, whoever asks`,
      rules: ["report 52", "report 20"],
      request: { method: "GET", target, as: "operator" },
      expect: { status: 404, reason: "not_found" },
    })),
  ...[
    ["POST", "/describe", "GET, HEAD"],
    ["DELETE", "/health", "GET, HEAD"],
    ["PUT", "/agents", "POST, GET, HEAD"],
    ["PATCH", "/agents/eve", "GET, HEAD, DELETE"],
    ["GET", "/webhook/x", "POST"],
    ["GET", "/events/x/ack", "POST"],
    ["POST", "/events/stream", "GET, HEAD"],
    ["PUT", "/capabilities", "POST, GET, HEAD"],
    ["GET", "/capabilities/x", "DELETE"],
    ["TRACE", "/", "GET, HEAD"],
    ["HEAD", "/webhook/x", "POST"],
  ].map(([method = "", path = "", allow = ""]): Row => ({
    name: `${method} ${path} is 405 and says what is allowed, before anyone is named`,
    rules: ["SYS-ERR-02", "M4"],
    request: { method, target: path, as: "nobody", headers: { "content-length": "0" } },
    expect: { status: 405, reason: "method_not_allowed", headers: { allow } },
  })),
];

const guarded: Row[] = [
  ...["GET /agents", "POST /capabilities", "GET /events"].flatMap((route) => {
    const [method = "", target = ""] = route.split(" ");
    const request = { method, target, as: "nobody" } as const;
    const host: Row = {
      name: `${route} under a foreign Host is 403`,
      rules: ["report 49"],
      request: { ...request, headers: { host: "evil.example", "content-length": "0" } },
      expect: { status: 403, reason: "host_not_allowed" },
    };
    const origin: Row = {
      name: `${route} from another origin is 403, even with the token`,
      rules: ["report 49"],
      request: {
        ...request,
        as: "operator",
        headers: { origin: "http://evil.example", "content-length": "0" },
      },
      expect: { status: 403, reason: "cross_site", headers: { "access-control-allow-origin": null } },
    };
    const site: Row = {
      name: `${route} from another site is 403, even with the token`,
      rules: ["report 49"],
      request: {
        ...request,
        as: "operator",
        headers: { "sec-fetch-site": "same-site", "content-length": "0" },
      },
      expect: { status: 403, reason: "cross_site" },
    };
    return [host, origin, site];
  }),
  {
    name: "GET /fs/{path} opens from any page and under any Host",
    rules: ["design: guard"],
    files: { a: "x" },
    request: {
      method: "GET",
      target: "/fs/a",
      as: "presigned",
      headers: { host: "evil.example", origin: "http://evil.example", "sec-fetch-site": "cross-site" },
    },
    expect: { status: 200, body: "x" },
  },
  {
    name: "an absolute-form target whose authority differs from Host is 400",
    rules: ["SYS-ERR-02", "report 52"],
    request: { method: "GET", target: "http://evil.example/agents" },
    expect: { status: 400, reason: "bad_host" },
  },
];

testRows("describe, health, the start page and what is nowhere", described, {
  flags: { label: "Büro 2", role: "production", maxBytes: "1000" },
});
testRows("the guard", guarded);

Deno.test("two Host headers, or none, are 400 (SYS-ERR-02)", async () => {
  await using server = await startServer();
  for (
    const hosts of [
      "",
      "Host: a\r\nHost: b\r\n",
      `Host: 127.0.0.1:${server.port}\r\nHost: localhost\r\n`,
      "Host: \r\n",
    ]
  ) {
    const answer = await sendRaw(server.port, `GET /health HTTP/1.1\r\n${hosts}Connection: close\r\n\r\n`);
    expect([hosts, answer.status]).toEqual([hosts, 400]);
  }
});

Deno.test("GET /health is 503 while the server drains (SYS-DESC-03)", async () => {
  await using server = await startServer();
  server.context.beginDrain();
  const response = await server.fetch("/health");
  expect(response.status).toBe(503);
  expect(response.headers.get("retry-after")).toBe("1");
  expect(await response.json()).toMatchObject({ ok: false, version: VERSION });
});

Deno.test("the database file shows no secret that was given out (S2)", async () => {
  await using server = await startServer();
  const { body } = await server.admin("POST", "/agents", { agent_id: "eve", webhook: true, key: true });
  const { secret } = await server.mint({});
  const secrets = [secret, body.agent_key, String(body.webhook_url).split("/webhook/")[1], server.adminToken];
  await server.context.audit.flush();
  for (const name of ["string.db", "string.db-wal"]) {
    const bytes = await Deno.readFile(join(server.dataFolder, name));
    const text = new TextDecoder("latin1").decode(bytes);
    for (const shown of secrets) expect(text.includes(String(shown)), `${name} holds a secret`).toBe(false);
  }
});
