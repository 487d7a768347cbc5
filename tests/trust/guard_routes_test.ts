/** The guard over real sockets: `Host`, `Origin`, `Sec-Fetch-Site` and the credential together (report 49). */
import { FORWARDING_HEADERS } from "../../runtime/identity.ts";
import type { RouteSpec } from "../../routes/route_spec.ts";
import { routesByPath } from "../../routes/table.ts";
import { expect } from "../helpers/expect.ts";
import { type RawResponse, sendRaw } from "../helpers/raw.ts";
import { startServer, type TestServer } from "../helpers/server.ts";
import { agentIds, reasonIn } from "./support.ts";

type Headers = Readonly<Record<string, string>>;

function send(
  server: TestServer,
  method: string,
  path: string,
  headers: Headers,
  body = "",
): Promise<RawResponse> {
  const all = {
    host: `127.0.0.1:${server.port}`,
    connection: "close",
    ...(body === "" ? {} : { "content-length": String(body.length) }),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return sendRaw(server.port, `${method} ${path} HTTP/1.1\r\n${lines}\r\n${body}`);
}

const outcome = ({ status, body }: RawResponse) => status === 200 ? "200" : `${status} ${reasonIn(body)}`;
const OK = "200", CROSS = "403 cross_site", HOST = "403 host_not_allowed", NEEDS = "401 admin_required";

/** Headers, and what follows without a credential and with the admin token. `PORT` is the server's. */
const MATRIX: readonly [Headers, string, string][] = [
  [{}, OK, OK],
  [{ "sec-fetch-mode": "cors" }, OK, OK],
  // Names that are this machine wherever they are resolved.
  [{ host: "127.0.0.1" }, OK, OK],
  [{ host: "127.0.0.1:1" }, OK, OK],
  [{ host: "localhost" }, OK, OK],
  [{ host: "LOCALHOST:PORT" }, OK, OK],
  [{ host: "127.9.9.9" }, OK, OK],
  [{ host: "[::1]:PORT" }, OK, OK],
  [{ host: "[::ffff:127.0.0.1]" }, OK, OK],
  [{ host: "[0:0:0:0:0:0:0:1]" }, OK, OK],
  // Addresses pass the guard, but give nobody trust by place.
  [{ host: "0.0.0.0:PORT" }, NEEDS, OK],
  [{ host: "[::]:PORT" }, NEEDS, OK],
  [{ host: "192.0.2.1" }, NEEDS, OK],
  [{ host: "[2001:db8::1]:80" }, NEEDS, OK],
  [{ host: "[::ffff:192.0.2.1]" }, NEEDS, OK],
  // So do configured names.
  [{ host: "box.lan" }, NEEDS, OK],
  [{ host: "BOX.lan:PORT" }, NEEDS, OK],
  // Foreign names; a token that a program sends passes under any.
  [{ host: "evil.example" }, HOST, OK],
  [{ host: "evil.example:PORT" }, HOST, OK],
  [{ host: "127.0.0.1.evil.example" }, HOST, OK],
  [{ host: "localhost.evil.example" }, HOST, OK],
  [{ host: "a.localhost" }, HOST, OK],
  [{ host: "localhost." }, HOST, OK],
  [{ host: "127.0.0.1." }, HOST, OK],
  [{ host: "127.1" }, HOST, OK],
  [{ host: "2130706433" }, HOST, OK],
  [{ host: "0x7f.1" }, HOST, OK],
  [{ host: "box.lan.evil.example" }, HOST, OK],
  [{ host: "a".repeat(5_000) }, HOST, OK],
  // Pages: of this server, when their user gives them a token; of others never.
  [{ origin: "http://127.0.0.1:PORT" }, NEEDS, OK],
  [{ origin: "https://127.0.0.1:PORT" }, NEEDS, OK],
  [{ origin: "http://127.0.0.1:PORT", "sec-fetch-site": "same-origin" }, NEEDS, OK],
  [{ "sec-fetch-site": "same-origin" }, NEEDS, OK],
  [{ "sec-fetch-site": "none" }, NEEDS, OK],
  [{ host: "box.lan", origin: "https://box.lan" }, NEEDS, OK],
  [{ "sec-fetch-site": "same-site" }, CROSS, CROSS],
  [{ "sec-fetch-site": "cross-site" }, CROSS, CROSS],
  [{ "sec-fetch-site": "Same-Origin" }, CROSS, CROSS],
  [{ "sec-fetch-site": "" }, CROSS, CROSS],
  [{ origin: "http://evil.example" }, CROSS, CROSS],
  [{ origin: "http://127.0.0.1:1" }, CROSS, CROSS],
  [{ origin: "http://127.0.0.1" }, CROSS, CROSS],
  [{ origin: "http://localhost:PORT" }, CROSS, CROSS],
  [{ origin: "http://127.0.0.1:PORT.evil.example" }, CROSS, CROSS],
  [{ origin: "null" }, CROSS, CROSS],
  [{ origin: "" }, CROSS, CROSS],
  [{ origin: "http://127.0.0.1:PORT, http://evil.example" }, CROSS, CROSS],
  [{ origin: "file://" }, CROSS, CROSS],
  [{ origin: "chrome-extension://abcdef" }, CROSS, CROSS],
  [{ origin: "http://127.0.0.1:PORT", "sec-fetch-site": "cross-site" }, CROSS, CROSS],
  [{ host: "evil.example", origin: "http://evil.example" }, CROSS, CROSS],
  [{ host: "evil.example", origin: "http://evil.example", "sec-fetch-site": "same-origin" }, CROSS, CROSS],
  // A page under a foreign name that says nothing of its origin (a GET after DNS rebinding), even with a token.
  [{ host: "evil.example", "sec-fetch-site": "same-origin" }, HOST, HOST],
  [{ host: "evil.example", "sec-fetch-site": "none" }, HOST, HOST],
];

Deno.test("the guard and trust by place, by Host, Origin, Sec-Fetch-Site and credential (report 49)", async () => {
  await using server = await startServer({ flags: { allowedHost: ["box.lan"] } });
  const ambient = server.context.identity.ambientTrust === "on";
  for (const [template, without, withToken] of MATRIX) {
    const headers = Object.fromEntries(
      Object.entries(template).map(([name, value]) => [name, value.replaceAll("PORT", String(server.port))]),
    );
    const ask = async (more: Headers) =>
      outcome(await send(server, "GET", "/agents", { ...headers, ...more }));
    const got = [await ask({}), await ask({ authorization: `Bearer ${server.adminToken}` })];
    expect([template, ...got]).toEqual([template, without === OK && !ambient ? NEEDS : without, withToken]);
    // A wrong token is never mended by where it comes from, nor does it get past the guard of pages.
    const wrong = await ask({ authorization: `Bearer adm_${"x".repeat(43)}` });
    expect([template, wrong]).toEqual([template, withToken === OK ? "401 unknown_token" : withToken]);
  }
});

Deno.test("the public URL's host and origin are the server's own; nobody is trusted by place then", async () => {
  await using server = await startServer({ flags: { publicUrl: "https://public.example/base" } });
  const rows: [Headers, string, string][] = [
    [{}, NEEDS, OK],
    [{ host: "public.example" }, NEEDS, OK],
    [{ host: "public.example:8443" }, NEEDS, OK],
    [{ host: "public.example", origin: "https://public.example" }, NEEDS, OK],
    [{ origin: "https://public.example", "sec-fetch-site": "same-origin" }, NEEDS, OK],
    [{ host: "public.example", origin: "https://www.public.example" }, CROSS, CROSS],
    [{ origin: "http://public.example" }, CROSS, CROSS],
    [{ host: "other.example" }, HOST, OK],
  ];
  for (const [headers, without, withToken] of rows) {
    const authorization = `Bearer ${server.adminToken}`;
    const got = [
      outcome(await send(server, "GET", "/agents", headers)),
      outcome(await send(server, "GET", "/agents", { ...headers, authorization })),
    ];
    expect([headers, ...got]).toEqual([headers, without, withToken]);
  }
});

const GUARDED = [...routesByPath().values()].flat()
  .filter(({ auth }) => auth === "operator" || auth === "operator_or_agent" || auth === "agent");

/** What a page or a forwarder could send, on every guarded route. */
const ATTACKS: readonly [Headers, string][] = [
  [{ host: "evil.example" }, HOST],
  [{ host: "evil.example:PORT", origin: "http://evil.example:PORT" }, CROSS],
  [{ origin: "http://evil.example" }, CROSS],
  [{ origin: "null" }, CROSS],
  [{ origin: "http://127.0.0.1:1" }, CROSS],
  [{ "sec-fetch-site": "cross-site" }, CROSS],
  [{ "sec-fetch-site": "same-site" }, CROSS],
  [{ origin: "http://127.0.0.1:PORT", "sec-fetch-site": "same-origin" }, NEEDS],
  [{ [FORWARDING_HEADERS[0] ?? ""]: "for=127.0.0.1" }, NEEDS],
];

async function attack(server: TestServer, route: RouteSpec): Promise<void> {
  const path = route.path.replaceAll(/\{\w+\}/g, "eve");
  for (const [template, expected] of ATTACKS) {
    const headers = Object.fromEntries(
      Object.entries(template).map(([name, value]) => [name, value.replaceAll("PORT", String(server.port))]),
    );
    const body = route.method === "POST" ? '{"agent_id":"evil"}' : "";
    const answer = await send(server, route.method, path, { "x-agent-id": "eve", ...headers }, body);
    expect([route.id, template, outcome(answer)]).toEqual([route.id, template, expected]);
    expect(answer.header("access-control-allow-origin")).toBe(undefined);
  }
}

Deno.test("every admin and channel route of the table is behind the guard (report 49)", async () => {
  await using server = await startServer();
  await server.admin("POST", "/agents", { agent_id: "eve" });
  expect(GUARDED.length).toBeGreaterThan(12);
  for (const route of GUARDED) await attack(server, route);
  expect(await agentIds(server)).toEqual(["eve"]);
});

Deno.test("elsewhere only the credential counts: a presigned link opens from any page and under any Host", async () => {
  await using server = await startServer();
  const { secret } = await server.mint({});
  const { body } = await server.admin("POST", "/agents", { agent_id: "eve", webhook: true });
  const webhook = new URL(String(body["webhook_url"])).pathname;
  const pages: Headers[] = [
    { host: "evil.example" },
    { host: "evil.example", origin: "http://evil.example", "sec-fetch-site": "same-origin" },
    { origin: "https://evil.example", "sec-fetch-site": "cross-site" },
    { origin: "null", "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site", "x-forwarded-for": "203.0.113.9" },
    { host: "localhost." },
  ];
  for (const headers of pages) {
    const status = async (method: string, path: string, text?: string) =>
      (await send(server, method, path, headers, text)).status;
    expect(await status("PUT", `/fs/f?cap=${secret}`, "x")).toBeLessThan(202);
    for (const path of [`/fs/f?cap=${secret}`, "/describe", "/health", "/openapi.json", "/"]) {
      expect([headers, path, await status("GET", path)]).toEqual([headers, path, 200]);
    }
    expect([headers, await status("POST", webhook, "hello")]).toEqual([headers, 202]);
    expect([headers, await status("DELETE", `/fs/f?cap=${secret}`)]).toEqual([headers, 200]);
  }
});
