import { expect } from "../../helpers/expect.ts";
import type { CapabilityRows } from "../../../store/database/capability_rows.ts";
import type { Database } from "../../../store/database/open.ts";
import { newAgent, newCapability, NOW, openRecords, sql, withPath, withRecords } from "./helpers.ts";
import { startProgram } from "./programs/program.ts";

async function mint(db: Database, changes: Parameters<typeof newCapability>[0] = {}): Promise<string> {
  await db.agents.pair({ agent: newAgent() });
  const row = await db.capabilities.insert(newCapability(changes));
  if (row === undefined) throw new Error("Expected a capability");
  return row.token_id;
}

const at = (tokenId: string, nowMs = NOW, begunMs = nowMs) => ({ tokenId, nowMs, begunMs });

Deno.test("report 2: spend() has one winner among fifty racers, and is never given back", () =>
  withRecords(async (db) => {
    const tokenId = await mint(db);
    const tries = await Promise.all(Array.from({ length: 50 }, () => db.capabilities.spend(at(tokenId))));
    expect(tries.filter(Boolean)).toHaveLength(1);
    expect(await db.capabilities.spend(at(tokenId))).toBe(false);
    expect(await db.capabilities.isLive(at(tokenId))).toBe(false);
    expect(await db.capabilities.findByTokenId(tokenId)).toMatchObject({ consumed_at: NOW });
  }));

Deno.test("report 2: spend() has one winner among two processes on one file, in each of 30 rounds", () =>
  withPath(async (path) => {
    const db = await openRecords(path, true);
    const other = startProgram("spender.ts", [path]);
    expect(await other.line()).toBe("ready");
    const wonBy = { us: 0, them: 0 };
    for (let round = 0; round < 30; round++) {
      const tokenId = await mint(db);
      const theirs = other.say(tokenId).then(() => other.line()).then(Number);
      // Every second round the other process gets a head start, so that both of them win some.
      if (round % 2 === 0) await theirs;
      const ours = await Promise.all(Array.from({ length: 8 }, () => db.capabilities.spend(at(tokenId))));
      const us = ours.filter(Boolean).length;
      const them = await theirs;
      expect(us + them, `round ${round}`).toBe(1);
      wonBy.us += us;
      wonBy.them += them;
    }
    expect(wonBy.them).toBeGreaterThan(0);
    expect(await other.end()).toBe(0);
    await db.close();
  }));

Deno.test("spend() judges expiry by when the request began, revocation by now", () =>
  withRecords(async (db) => {
    const tokenId = await mint(db, { expires_at: NOW });
    expect(await db.capabilities.spend(at(tokenId, NOW, NOW))).toBe(false);
    expect(await db.capabilities.spend(at(tokenId, NOW + 60_000, NOW - 1))).toBe(true);
    const revoked = await mint(db);
    await db.capabilities.revoke(revoked, NOW);
    expect(await db.capabilities.spend(at(revoked, NOW, NOW - 1000))).toBe(false);
    expect(await db.capabilities.spend(at("cap_none"))).toBe(false);
  }));

Deno.test("report 5: a capability is dead once its agent was deleted, also when the name comes back", () =>
  withRecords(async (db) => {
    const tokenId = await mint(db);
    expect(await db.capabilities.isLive(at(tokenId))).toBe(true);
    await db.agents.remove("eve", NOW);
    await db.agents.pair({ agent: newAgent() });
    expect(await db.capabilities.isLive(at(tokenId))).toBe(false);
    expect(await db.capabilities.spend(at(tokenId))).toBe(false);
    // Even if the revocation had been lost, the incarnation is another.
    await db.engine.write([sql("UPDATE capabilities SET revoked_at = NULL")]);
    expect(await db.capabilities.isLive(at(tokenId))).toBe(false);
    expect(await db.capabilities.spend(at(tokenId))).toBe(false);
    expect(await db.capabilities.acquireLease({ ...at(tokenId), leaseId: "l", untilMs: NOW + 1 })).toBe(
      "dead",
    );
  }));

Deno.test("report 4: an unreadable expiry counts as dead, never as eternal", () =>
  withRecords(async (db) => {
    const tokenId = await mint(db);
    await db.engine.write([
      sql("CREATE TABLE loose AS SELECT * FROM capabilities"),
      sql("DROP TABLE capabilities"),
      sql("ALTER TABLE loose RENAME TO capabilities"),
    ]);
    for (
      const garbage of [
        "'never'",
        "9e999",
        "NULL",
        "4000000000000.5",
        "4611686018427387904",
        "x'00'",
        "''",
        "-9e999",
      ]
    ) {
      await db.engine.write([sql(`UPDATE capabilities SET expires_at = ${garbage}`)]);
      expect(await db.capabilities.isLive(at(tokenId)), garbage).toBe(false);
      expect(await db.capabilities.spend(at(tokenId)), garbage).toBe(false);
      expect(await db.capabilities.acquireLease({ ...at(tokenId), leaseId: "l", untilMs: NOW }), garbage)
        .toBe("dead");
    }
    for (const column of ["consumed_at", "revoked_at"]) {
      await db.engine.write([
        sql(`UPDATE capabilities SET expires_at = ${NOW + 5}, consumed_at = NULL, revoked_at = NULL`),
        sql(`UPDATE capabilities SET ${column} = 'garbage'`),
      ]);
      expect(await db.capabilities.isLive(at(tokenId)), column).toBe(false);
    }
    await db.engine.write([sql("UPDATE capabilities SET revoked_at = NULL")]);
    expect(await db.capabilities.isLive(at(tokenId))).toBe(true);
  }));

function lease(capabilities: CapabilityRows, tokenId: string, leaseId: string, nowMs = NOW) {
  return capabilities.acquireLease({ ...at(tokenId, nowMs), leaseId, untilMs: nowMs + 1000 });
}

Deno.test("acquireLease() admits one open upload at a time, and the next when it is released or runs out", () =>
  withRecords(async (db) => {
    const { capabilities } = db;
    const tokenId = await mint(db);
    const tries = await Promise.all(["a", "b", "c"].map((id) => lease(capabilities, tokenId, id)));
    expect(tries.sort()).toEqual(["acquired", "held", "held"]);
    const holder = (await capabilities.findByTokenId(tokenId))?.lease_id ?? "";
    expect(await lease(capabilities, tokenId, holder)).toBe("acquired");
    expect(await capabilities.renewLease(tokenId, holder, NOW + 2000)).toBe(true);
    expect(await capabilities.renewLease(tokenId, "stranger", NOW + 9000)).toBe(false);
    expect(await lease(capabilities, tokenId, "next", NOW + 1999)).toBe("held");
    expect(await lease(capabilities, tokenId, "next", NOW + 2000)).toBe("acquired");
    expect(await capabilities.renewLease(tokenId, holder, NOW + 9000)).toBe(false);
    await capabilities.releaseLease(tokenId, holder);
    expect(await lease(capabilities, tokenId, "third", NOW + 2000)).toBe("held");
    await capabilities.releaseLease(tokenId, "next");
    expect(await lease(capabilities, tokenId, "third", NOW + 2000)).toBe("acquired");
    await capabilities.clearLeases();
    expect(await lease(capabilities, tokenId, "fourth", NOW + 2000)).toBe("acquired");
  }));

Deno.test("a lease that ends far ahead is taken over, for the clock was set back (report L15)", () =>
  withRecords(async (db) => {
    const { capabilities } = db;
    const tokenId = await mint(db);
    const HOUR_MS = 3_600_000;
    // Written by an upload whose clock was an hour ahead; it was killed then.
    expect(await lease(capabilities, tokenId, "ahead", NOW + HOUR_MS - 1000)).toBe("acquired");
    expect(await lease(capabilities, tokenId, "next")).toBe("acquired");
    expect(await lease(capabilities, tokenId, "third")).toBe("held");
    expect(await capabilities.renewLease(tokenId, "ahead", NOW + HOUR_MS)).toBe(false);
    expect(await capabilities.spend({ ...at(tokenId), leaseId: "ahead" })).toBe(false);
    expect(await capabilities.spend({ ...at(tokenId), leaseId: "next" })).toBe(true);
  }));

Deno.test("a lease that ends within a minute is held", () =>
  withRecords(async (db) => {
    const { capabilities } = db;
    const tokenId = await mint(db);
    const holding = { ...at(tokenId), leaseId: "holder", untilMs: NOW + 60_000 };
    expect(await capabilities.acquireLease(holding)).toBe("acquired");
    expect(await lease(capabilities, tokenId, "next")).toBe("held");
    expect(await lease(capabilities, tokenId, "next", NOW - 1)).toBe("acquired");
  }));

Deno.test("spend() with a lease needs that lease; without one it beats an open upload", () =>
  withRecords(async (db) => {
    const { capabilities } = db;
    const upload = await mint(db);
    await lease(capabilities, upload, "mine");
    expect(await capabilities.spend({ ...at(upload), leaseId: "other" })).toBe(false);
    expect(await capabilities.spend({ ...at(upload), leaseId: "mine" })).toBe(true);
    expect(await lease(capabilities, upload, "mine")).toBe("dead");
    expect(await lease(capabilities, "cap_none", "mine")).toBe("dead");

    const both = await mint(db);
    await lease(capabilities, both, "upload");
    expect(await capabilities.spend(at(both))).toBe(true);
    expect(await capabilities.spend({ ...at(both), leaseId: "upload" })).toBe(false);
  }));

Deno.test("openDatabase() ends all leases for the only owner, and none of a shared file", () =>
  withPath(async (path) => {
    const first = await openRecords(path);
    const tokenId = await mint(first);
    await lease(first.capabilities, tokenId, "crashed");
    await first.close();
    const shared = await openRecords(path, true);
    expect(await lease(shared.capabilities, tokenId, "next")).toBe("held");
    await shared.close();
    const own = await openRecords(path);
    expect(await lease(own.capabilities, tokenId, "next")).toBe("acquired");
    await own.close();
  }));
