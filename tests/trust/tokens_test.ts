/** Tokens on the admin and channel planes: wrong, dead and oddly written ones, and whose they are. */
import { expect } from "../helpers/expect.ts";
import { sendRaw } from "../helpers/raw.ts";
import { startServer, type TestServer } from "../helpers/server.ts";
import { testIf } from "../helpers/skip.ts";
import { agentIds, outsideAddress, reasonIn } from "./support.ts";

const UNKNOWN = "401 unknown_token";

/** Asks over loopback as the server's own user: whatever is refused here was not mended by that. */
async function ask(server: TestServer, lines: readonly string[], target = "GET /agents"): Promise<string> {
  const head = [`Host: 127.0.0.1:${server.port}`, "Connection: close", ...lines].join("\r\n");
  const { status, body } = await sendRaw(server.port, `${target} HTTP/1.1\r\n${head}\r\n\r\n`);
  return status === 200 ? "200" : `${status} ${reasonIn(body)}`;
}

Deno.test("a token that nobody knows is 401 unknown_token, never mended by loopback", async () => {
  await using server = await startServer();
  const { body } = await server.admin("POST", "/agents", { agent_id: "eve", key: true });
  const { secret } = await server.mint({});
  const own = server.adminToken;
  const wrong = [
    `Bearer adm_${"x".repeat(43)}`,
    `Bearer agk_${"x".repeat(43)}`,
    `Bearer ${own.slice(0, -1)}`,
    `Bearer ${own}x`,
    `Bearer ${own.toUpperCase()}`,
    `Bearer ${own.replace("adm_", "agk_")}`,
    `Bearer ${String(body["agent_key"]).replace("agk_", "adm_")}`,
    `Bearer ${secret}`,
    `Bearer "${own}"`,
    `Bearer ${own},`,
    `Bearer ${own} ${own}`,
    `Bearer ${own}, Bearer ${own}`,
    `Bearer`,
    `Bearer `,
    ``,
    own,
    `Basic ${btoa(`admin:${own}`)}`,
    `Token ${own}`,
    `Bearer\u00a0${own}`,
    `Bearer ${own}\u00e9`,
    `Bearer ${"adm_".repeat(2_000)}`,
  ];
  for (const value of wrong) {
    expect([value, await ask(server, [`Authorization: ${value}`])]).toEqual([value, UNKNOWN]);
  }
  const twice = [`Authorization: Bearer ${own}`, `Authorization: Bearer adm_${"x".repeat(43)}`];
  expect([await ask(server, twice), await ask(server, twice.toReversed())]).toEqual([UNKNOWN, UNKNOWN]);
  for (const query of ["cap", "token", "access_token"]) {
    const strict = await startServer({ flags: { trustLoopback: "false" } });
    expect(await ask(strict, [], `GET /agents?${query}=${strict.adminToken}`), query).toBe(
      "401 admin_required",
    );
    await strict.stop();
    await Deno.remove(strict.dataFolder, { recursive: true });
  }
});

Deno.test("the scheme and the header's name may be written in any case", async () => {
  await using server = await startServer({ flags: { trustLoopback: "false" } });
  for (
    const line of [
      "authorization: bearer",
      "AUTHORIZATION: BEARER",
      "Authorization:  Bearer ",
      "Authorization: bEaReR",
    ]
  ) {
    expect([line, await ask(server, [`${line} ${server.adminToken}`])]).toEqual([line, "200"]);
  }
});

Deno.test("a key that was replaced, and one whose agent is gone, are 401 for good", async () => {
  await using server = await startServer();
  const pair = async () =>
    String((await server.admin("POST", "/agents", { agent_id: "eve", key: true })).body["agent_key"]);
  const askEvents = (key: string) => ask(server, [`Authorization: Bearer ${key}`], "GET /events");
  const first = await pair();
  const second = await pair();
  expect([await askEvents(first), await askEvents(second)]).toEqual([UNKNOWN, "200"]);
  await server.admin("DELETE", "/agents/eve");
  expect(await askEvents(second)).toBe(UNKNOWN);
  const third = await pair();
  expect([await askEvents(first), await askEvents(second), await askEvents(third)]).toEqual([
    UNKNOWN,
    UNKNOWN,
    "200",
  ]);
});

Deno.test("X-Agent-Id of another agent is 403 beside a key, on both planes, however it is written", async () => {
  await using server = await startServer();
  await server.admin("POST", "/agents", { agent_id: "bob" });
  const { body } = await server.admin("POST", "/agents", { agent_id: "eve", key: true });
  const key = `Authorization: Bearer ${body["agent_key"]}`;
  const names: [string[], string][] = [
    [["X-Agent-Id: eve"], "200"],
    [["x-agent-id:eve"], "200"],
    [["X-Agent-Id: bob"], "403 not_your_agent"],
    [["X-Agent-Id: EVE"], "403 not_your_agent"],
    [["X-Agent-Id: eve/../bob"], "403 not_your_agent"],
    [["X-Agent-Id: eve, bob"], "403 not_your_agent"],
    [["X-Agent-Id: eve", "X-Agent-Id: bob"], "403 not_your_agent"],
    [["X-Agent-Id: bob", "X-Agent-Id: eve"], "403 not_your_agent"],
    [["X-Agent-Id:"], "403 not_your_agent"],
  ];
  for (const [lines, expected] of names) {
    for (const target of ["GET /events", "GET /capabilities"]) {
      expect([target, lines, await ask(server, [key, ...lines], target)]).toEqual([target, lines, expected]);
    }
  }
  expect(await ask(server, [key], "GET /capabilities?agent_id=bob")).toBe("403 not_your_agent");
  expect(await ask(server, [key], "GET /agents")).toBe("401 admin_required");
  expect(await ask(server, [key], "DELETE /agents/bob")).toBe("401 admin_required");
  expect(await agentIds(server)).toEqual(["bob", "eve"]);
});

Deno.test("X-Agent-Id alone names an agent only for the operator, and only one that is there", async () => {
  await using trusting = await startServer();
  await trusting.admin("POST", "/agents", { agent_id: "eve" });
  const ambient = trusting.context.identity.ambientTrust === "on";
  const rows: [string[], string][] = [
    [["X-Agent-Id: eve"], ambient ? "200" : "401 admin_required"],
    [["X-Agent-Id: eve", "X-Agent-Id: eve"], ambient ? UNKNOWN : "401 admin_required"],
    [["X-Agent-Id: ../eve"], ambient ? UNKNOWN : "401 admin_required"],
    [["X-Agent-Id: eve", "X-Forwarded-For: 127.0.0.1"], "401 admin_required"],
    [["X-Agent-Id: eve", "Origin: null"], "403 cross_site"],
  ];
  for (const [lines, expected] of rows) {
    expect([lines, await ask(trusting, lines, "GET /events")]).toEqual([lines, expected]);
  }
});

const outside = outsideAddress();

testIf(
  outside !== undefined,
  "this machine has no address but loopback ones",
  "guessing is slowed for an outside address, a valid token never locked out (SYS-ERR-05)",
  async () => {
    await using server = await startServer({ flags: { host: "0.0.0.0" } });
    const { secret } = await server.mint({});
    const from = async (host: string, token: string, path = "/agents") => {
      const response = await fetch(`http://${host}:${server.port}${path}`, {
        headers: { authorization: `Bearer ${token}` },
      });
      await response.body?.cancel();
      return [response.status, response.headers.get("retry-after")];
    };
    const wrong = (index: number) => (index % 2 === 0 ? "adm_" : "agk_") + String(index).padStart(43, "x");
    const statuses = [];
    for (let index = 0; index < 25; index++) statuses.push((await from(String(outside), wrong(index)))[0]);
    expect(statuses.slice(0, 20)).toEqual(Array(20).fill(401));
    expect(statuses.at(-1)).toBe(429);
    const [status, retryAfter] = await from(String(outside), wrong(99));
    expect([status, Number(retryAfter) > 0]).toEqual([429, true]);
    expect((await from(String(outside), `caps_${"x".repeat(43)}`, "/fs/f"))[0], "one account for all planes")
      .toBe(429);
    expect((await from(String(outside), server.adminToken))[0]).toBe(200);
    expect((await from(String(outside), secret, "/fs/none"))[0]).toBe(404);
    for (let index = 0; index < 30; index++) expect((await from("127.0.0.1", wrong(index)))[0]).toBe(401);
    const nothing = await fetch(`http://${outside}:${server.port}/agents`);
    await nothing.body?.cancel();
    expect(nothing.status, "no credential is no guess").toBe(401);
  },
);
