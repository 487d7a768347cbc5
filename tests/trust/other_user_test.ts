import { routesByPath } from "../../routes/table.ts";
import { expect } from "../helpers/expect.ts";
import { startServer, type TestServer } from "../helpers/server.ts";
import { testIf } from "../helpers/skip.ts";
import {
  agentIds,
  asNobody,
  expectRefusal,
  NEEDS_OTHER_USERS,
  nobodyCanRun,
  outsideAddress,
} from "./support.ts";

const READY = await nobodyCanRun("curl", "--version");
const WHY = NEEDS_OTHER_USERS;

async function curlAsNobody(...args: string[]): Promise<{ status: number; body: string }> {
  const { out } = await asNobody("curl", "-sS", "--max-time", "20", "-w", "\n%{http_code}", ...args);
  const cut = out.lastIndexOf("\n");
  return { status: Number(out.slice(cut + 1)), body: out.slice(0, cut) };
}

testIf(READY, WHY, "a second user of the machine gets 401 on every admin and channel route", async () => {
  await using server = await startServer();
  await server.admin("POST", "/agents", { agent_id: "eve" });
  let asked = 0;
  for (const route of [...routesByPath().values()].flat()) {
    if (!["operator", "operator_or_agent", "agent"].includes(route.auth)) continue;
    const url = server.url + route.path.replaceAll(/\{\w+\}/g, "eve");
    const body = route.method === "POST" ? ["-d", '{"agent_id":"evil"}'] : [];
    const answer = await curlAsNobody("-X", route.method, "-H", "X-Agent-Id: eve", ...body, url);
    expectRefusal(answer, 401, "admin_required", route.id);
    asked++;
  }
  expect(asked).toBeGreaterThan(10);
  expect(await agentIds(server)).toEqual(["eve"]);
});

testIf(READY, WHY, "a second user gets in at no address of the machine, over either family", async () => {
  for (
    const [listen, dials] of [["0.0.0.0", ["127.0.0.1", "127.0.0.2"]], ["::", [
      "[::1]",
      "[::ffff:127.0.0.1]",
    ]]] as const
  ) {
    await using server = await startServer({ flags: { host: listen } });
    for (const dial of [...dials, "localhost"]) {
      const answer = await curlAsNobody("-d", '{"agent_id":"evil"}', `http://${dial}:${server.port}/agents`);
      expectRefusal(answer, 401, "admin_required", dial);
    }
    expect(await agentIds(server)).toEqual([]);
  }
});

testIf(
  READY,
  WHY,
  "a second user with the admin token, an agent's key or a webhook's URL is let in by that",
  async () => {
    await using server = await startServer();
    const { body } = await server.admin("POST", "/agents", { agent_id: "eve", key: true, webhook: true });
    const get = (path: string, token: unknown) =>
      curlAsNobody("-H", `Authorization: Bearer ${token}`, server.url + path);
    expect((await get("/agents", server.adminToken)).status).toBe(200);
    expect((await get("/events", body["agent_key"])).status).toBe(200);
    expect((await get("/agents", body["agent_key"])).status).toBe(401);
    expect(
      (await curlAsNobody("-H", "Content-Type: text/plain", "-d", "hello", String(body["webhook_url"])))
        .status,
    ).toBe(202);
  },
);

const outside = outsideAddress();
testIf(
  outside !== undefined,
  "this machine has no address but loopback ones",
  "a peer at the machine's own outside address is a stranger",
  async () => {
    await using server = await startServer({ flags: { host: "0.0.0.0" } });
    const ask = (host: string, headers: Record<string, string> = {}) =>
      fetch(`http://${host}:${server.port}/agents`, { headers }).then(async (r) => ({
        status: r.status,
        body: await r.text(),
      }));
    expectRefusal(await ask(String(outside)), 401, "admin_required");
    expectRefusal(await ask(String(outside), { host: "127.0.0.1" }), 401, "admin_required");
    expect((await ask(String(outside), { authorization: `Bearer ${server.adminToken}` })).status).toBe(200);
  },
);

/** What a server of the user `uid` makes of a request of `asUid`. */
async function askAcross(server: TestServer, uid: number): Promise<number> {
  const { stdout } = await new Deno.Command("curl", {
    args: ["-sS", "-o", "/dev/null", "-w", "%{http_code}", `${server.url}/agents`],
    uid,
    gid: uid,
    cwd: "/",
  }).output();
  return Number(new TextDecoder().decode(stdout));
}

testIf(READY, WHY, "no other user number gets in, root's own does", async () => {
  await using server = await startServer();
  for (const uid of [1, 1000, 65533, 65534, 4294967294]) {
    expect([uid, await askAcross(server, uid)]).toEqual([uid, 401]);
  }
  expect(await askAcross(server, 0)).toBe(200);
});
