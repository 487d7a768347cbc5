import { expect } from "../../helpers/expect.ts";
import { testIf } from "../../helpers/skip.ts";
import { silentLog } from "../../../base/log.ts";
import { ConstraintError, type SqlValue } from "../../../store/database/engine.ts";
import type { Database } from "../../../store/database/open.ts";
import { openServerEngine } from "../../../store/database/server_engine.ts";
import { newAgent, newCapability, newEvent, NOW, openRecords, refusalOf, sql } from "./helpers.ts";
import { startProgram } from "./programs/program.ts";
import { createSqld, SQLD, type Sqld } from "./programs/sqld.ts";

function testServer(name: string, body: (server: Sqld) => Promise<void>): void {
  testIf(SQLD !== undefined, "STRING_TEST_SQLD does not name a libSQL server", name, async () => {
    const server = await createSqld();
    try {
      await server.start();
      await body(server);
    } finally {
      await server.remove();
    }
  });
}

async function mint(db: Database): Promise<string> {
  await db.agents.pair({ agent: newAgent() });
  return (await db.capabilities.insert(newCapability()))?.token_id ?? "";
}

testServer("a server keeps records as a file does: pairing, grants, events, cascades", async ({ url }) => {
  const db = await openRecords(url);
  const capability = newCapability();
  const { agent, created } = await db.agents.pair({ agent: newAgent(), keyHash: "key", capability });
  expect(created).toBe(true);
  expect(await db.agents.findByKeyHash("key")).toEqual(agent);
  expect(await db.capabilities.findByHash(capability.secret_hash)).toMatchObject(capability);
  expect(await db.events.append(newEvent(agent.incarnation), 1)).toBe("stored");
  expect(await db.events.append(newEvent(agent.incarnation), 1)).toBe("full");
  expect(await db.agents.remove("eve", NOW)).toEqual({ agent, revokedCapabilities: 1 });
  expect(await db.engine.read(sql("SELECT count(*) AS n FROM events"))).toEqual([{ n: 0 }]);
  await db.audit.append([], [{ hour: 1, token_id: "t", action: "get", count: 2 }]);
  expect(db.engine.changedElsewhere()).toBe(true);
  await db.close();
  expect(await refusalOf(db.settings.get("x"))).toMatchObject({ code: "unavailable" });
  const again = await openRecords(url);
  expect(await again.agents.count()).toBe(0);
  await again.close();
});

testServer("a server's write is all or nothing, and refuses what a file refuses", async ({ url }) => {
  const engine = await openServerEngine({ url, log: silentLog });
  await engine.write([sql("CREATE TABLE t (name TEXT PRIMARY KEY) STRICT")]);
  const insert = (name: SqlValue) => sql("INSERT INTO t VALUES (?) RETURNING name", name);
  expect(await engine.write([insert("a"), insert("b")])).toEqual([[{ name: "a" }], [{ name: "b" }]]);
  expect(await refusalOf(engine.write([insert("c"), insert("a")]))).toBeInstanceOf(ConstraintError);
  for (const value of [true, "a\0b", 1.5]) {
    expect(await refusalOf(engine.write([insert(value as SqlValue)]))).toBeInstanceOf(TypeError);
  }
  expect(await refusalOf(engine.read(sql("SELECT ?")))).toBeInstanceOf(TypeError);
  const bug = await refusalOf(engine.read(sql("SELECT no_such_column FROM t")));
  expect((bug as { code?: string }).code).not.toBe("unavailable");
  expect(await engine.read(sql("SELECT name FROM t ORDER BY name"))).toEqual([{ name: "a" }, { name: "b" }]);
  await engine.close();
});

testServer("report 2: spend() has one winner among two processes on one server", async ({ url }) => {
  const db = await openRecords(url);
  const other = startProgram("spender.ts", [url]);
  expect(await other.line()).toBe("ready");
  for (let round = 0; round < 10; round++) {
    const tokenId = await mint(db);
    const spending = { tokenId, nowMs: NOW, begunMs: NOW };
    const theirs = other.say(tokenId).then(() => other.line()).then(Number);
    const ours = await Promise.all(Array.from({ length: 8 }, () => db.capabilities.spend(spending)));
    expect(ours.filter(Boolean).length + await theirs, `round ${round}`).toBe(1);
  }
  await other.end();
  await db.close();
});

testServer(
  "report 44: a server that stops is unavailable, and every call works once it is back",
  async (server) => {
    const db = await openRecords(server.url);
    const tokenId = await mint(db);
    await server.stop();
    for (const call of [() => db.agents.find("eve"), () => db.capabilities.insert(newCapability())]) {
      const refusal = await refusalOf(call());
      expect(refusal).toMatchObject({ code: "unavailable", details: { retryAfterSeconds: 1 } });
      expect((refusal as Error).message.includes("127.0.0.1")).toBe(false);
    }
    await server.start();
    expect(await db.capabilities.findByTokenId(tokenId)).toBeDefined();
    for (let n = 0; n < 100; n++) expect(await db.capabilities.insert(newCapability())).toBeDefined();
    await db.close();
  },
);

testServer("a server that never answers is unavailable after the timeout, never a hang", async (server) => {
  const engine = await openServerEngine({ url: server.url, log: silentLog, timeoutMs: 300 });
  expect(await engine.read(sql("SELECT 1 AS n"))).toEqual([{ n: 1 }]);
  server.freeze();
  const begun = performance.now();
  const refusals = await Promise.all([
    refusalOf(engine.read(sql("SELECT 1 AS n"))),
    refusalOf(engine.write([sql("SELECT 1 AS n")])),
  ]);
  expect(performance.now() - begun).toBeLessThan(3_000);
  for (const refusal of refusals) expect(refusal).toMatchObject({ code: "unavailable" });
  server.thaw();
  expect(await engine.read(sql("SELECT 1 AS n"))).toEqual([{ n: 1 }]);
  await engine.close();
});

Deno.test("a server that is not there is unavailable, without its address", async () => {
  const engine = await openServerEngine({ url: "http://127.0.0.1:1", log: silentLog });
  const refusal = await refusalOf(engine.read(sql("SELECT 1")));
  expect(refusal).toMatchObject({ code: "unavailable" });
  expect((refusal as Error).message.includes("127.0.0.1")).toBe(false);
  await engine.close();
});
