import { expect } from "../../helpers/expect.ts";
import { openFileEngine } from "../../../store/database/file_engine.ts";
import { silentLog } from "../../../base/log.ts";
import {
  fileEngineOf,
  newAgent,
  newCapability,
  newEvent,
  NOW,
  openRecords,
  refusalOf,
  sql,
  until,
  withEngine,
  withPath,
} from "./helpers.ts";
import { startProgram } from "./programs/program.ts";

async function expectNoLock(path: string): Promise<void> {
  const outside = startProgram("lock_holder.ts", [path]);
  await outside.say("hold");
  expect(await outside.line()).toBe("hold");
  await outside.say("release");
  expect(await outside.line()).toBe("release");
  expect(await outside.end()).toBe(0);
}

Deno.test("report 44: write() is refused while another process holds the lock, and every later one works (M9, M10)", () =>
  withEngine(async (engine, path) => {
    await engine.write([sql("CREATE TABLE t (n INTEGER) STRICT")]);
    const holder = startProgram("lock_holder.ts", [path]);
    await holder.say("hold");
    expect(await holder.line()).toBe("hold");

    let ticks = 0;
    const ticker = setInterval(() => ticks++, 5);
    const begun = performance.now();
    const refused = await Promise.all([
      refusalOf(engine.write([sql("INSERT INTO t VALUES (1)")])),
      refusalOf(engine.write([sql("INSERT INTO t VALUES (2)"), sql("INSERT INTO t VALUES (3)")])),
    ]);
    clearInterval(ticker);
    const waitedMs = performance.now() - begun;
    for (const refusal of refused) {
      expect(refusal).toMatchObject({ code: "unavailable", status: 503, details: { retryAfterSeconds: 1 } });
    }
    expect(waitedMs).toBeGreaterThanOrEqual(500);
    expect(waitedMs).toBeLessThan(3_000);
    expect(ticks).toBeGreaterThan(20);
    expect(await engine.read(sql("SELECT count(*) AS n FROM t"))).toEqual([{ n: 0 }]);

    await holder.say("release");
    expect(await holder.line()).toBe("release");
    for (let n = 0; n < 100; n++) await engine.write([sql("INSERT INTO t VALUES (?)", n)]);
    expect(await engine.read(sql("SELECT count(*) AS n FROM t"))).toEqual([{ n: 100 }]);
    await holder.end();
    await expectNoLock(path);
  }, { busyBudgetMs: 500 }));

Deno.test("report 44: a mint waits for a lock that is released in time, and 100 later ones succeed", () =>
  withPath(async (path) => {
    const db = await openRecords(path);
    await db.agents.pair({ agent: newAgent() });
    const holder = startProgram("lock_holder.ts", [path]);
    await holder.say("hold");
    expect(await holder.line()).toBe("hold");
    const minting = db.capabilities.insert(newCapability());
    await until(() => fileEngineOf(db).stats.waits > 2);
    await holder.say("release");
    expect((await minting)?.agent_id).toBe("eve");
    await holder.end();
    for (let n = 0; n < 100; n++) expect(await db.capabilities.insert(newCapability())).toBeDefined();
    await expectNoLock(path);
    await db.close();
    await expectNoLock(path);
  }));

Deno.test("report 44: close() while a write waits for a lock settles it first", () =>
  withPath(async (path) => {
    const engine = await openFileEngine({ path, shared: true, log: silentLog, busyBudgetMs: 100 });
    const holder = startProgram("lock_holder.ts", [path]);
    await holder.say("hold");
    await holder.line();
    const refusal = refusalOf(engine.write([sql("CREATE TABLE t (n INTEGER)")]));
    await until(() => engine.stats.waits > 0);
    await engine.close();
    expect(await refusal).toMatchObject({ code: "unavailable" });
    await holder.end();
  }));

Deno.test("report 46: the pragmas are ours after writes, failures and a busy lock; cascades hold", () =>
  withPath(async (path) => {
    const db = await openRecords(path, true);
    const pragma = async (name: string) =>
      Object.values((await db.engine.read(sql(`PRAGMA ${name}`)))[0] ?? {})[0];
    const expectOurs = async () => {
      expect(await pragma("foreign_keys")).toBe(1);
      expect(await pragma("busy_timeout")).toBe(0);
      expect(await pragma("journal_mode")).toBe("wal");
      expect(await pragma("synchronous")).toBe(2);
    };
    await expectOurs();
    const { agent } = await db.agents.pair({ agent: newAgent(), capability: newCapability() });
    await expectOurs();
    await refusalOf(db.engine.write([sql("INSERT INTO no_such_table VALUES (1)"), sql("SELECT 1")]));
    const holder = startProgram("lock_holder.ts", [path]);
    await holder.say("hold");
    await holder.line();
    const minting = db.capabilities.insert(newCapability());
    await until(() => fileEngineOf(db).stats.waits > 0);
    await holder.say("release");
    await minting;
    await holder.end();
    await expectOurs();
    await db.events.append(newEvent(agent.incarnation), 10);
    await db.agents.remove("eve", NOW);
    const left = await db.engine.read(
      sql("SELECT (SELECT count(*) FROM events) AS events, revoked_at FROM capabilities"),
    );
    expect(left.map((row) => row.events)).toEqual([0, 0]);
    expect(left.every((row) => row.revoked_at === NOW)).toBe(true);
    await expectOurs();
    await db.close();
  }));

Deno.test("report 44: a list is read at once while a write of the same process waits for a lock", () =>
  withPath(async (path) => {
    const db = await openRecords(path, true);
    await db.agents.pair({ agent: newAgent() });
    const holder = startProgram("lock_holder.ts", [path]);
    await holder.say("hold");
    await holder.line();
    let written = false;
    const writing = db.settings.set("name", "value").finally(() => written = true);
    await until(() => fileEngineOf(db).stats.waits > 0);
    expect(await db.agents.list()).toHaveLength(1);
    expect(await db.capabilities.list({ limit: 9 })).toEqual([]);
    expect(written).toBe(false);
    await holder.say("release");
    await writing;
    await holder.end();
    await db.close();
  }));
