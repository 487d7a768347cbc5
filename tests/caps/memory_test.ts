import { ROOT_PATH } from "../../base/paths.ts";
import { AppError } from "../../base/errors.ts";
import { CapabilityMemory } from "../../caps/memory.ts";
import type { Capability } from "../../caps/model.ts";
import { CapabilityService } from "../../caps/service.ts";
import { expect } from "../helpers/expect.ts";
import { codeOf, grant, HoldingEngine, type Records, withRecords } from "./records.ts";

function capability(name: string, incarnation = "inc_1"): Capability {
  return {
    tokenId: `cap_${name}`,
    secretHash: `hash of ${name}`,
    agentId: "eve",
    incarnation,
    pathPrefix: ROOT_PATH,
    verbs: new Set(["GET"]),
    author: "outside",
    singleUse: false,
    createdAtMs: 0,
    expiresAtMs: 1,
    consumedAtMs: null,
    revokedAtMs: null,
  };
}

Deno.test("CapabilityMemory keeps to its limit and drops the oldest", () => {
  const memory = new CapabilityMemory(3);
  for (const name of ["a", "b", "c", "d"]) memory.remember(capability(name), memory.epoch);
  expect(memory.size).toBe(3);
  expect(memory.get("hash of a")).toBeUndefined();
  expect(memory.get("hash of d")?.tokenId).toBe("cap_d");
  // The index by id is bounded alike: dropping what was forgotten leaves the others alone.
  memory.drop("cap_a");
  expect(memory.size).toBe(3);
});

Deno.test("CapabilityMemory gives the object that was there first", () => {
  const memory = new CapabilityMemory();
  const first = memory.remember(capability("a"), memory.epoch);
  expect(memory.remember(capability("a"), memory.epoch)).toBe(first);
  expect(memory.get("hash of a")).toBe(first);
});

const drops: [name: string, drop: (memory: CapabilityMemory) => void, left: string[]][] = [
  ["drop()", (memory) => memory.drop("cap_a"), ["b", "c"]],
  ["drop() of an unknown one", (memory) => memory.drop("cap_x"), ["a", "b", "c"]],
  ["dropAgent()", (memory) => memory.dropAgent("inc_1"), ["c"]],
  ["clear()", (memory) => memory.clear(), []],
];
for (const [name, drop, left] of drops) {
  Deno.test(`CapabilityMemory forgets after ${name}, also what was being read`, () => {
    const memory = new CapabilityMemory();
    for (const [each, incarnation] of [["a", "inc_1"], ["b", "inc_1"], ["c", "inc_2"]] as const) {
      memory.remember(capability(each, incarnation), memory.epoch);
    }
    const { epoch } = memory;
    drop(memory);
    expect(["a", "b", "c"].filter((each) => memory.get(`hash of ${each}`) !== undefined)).toEqual(left);
    memory.remember(capability("late"), epoch);
    expect(memory.get("hash of late")).toBeUndefined();
    expect(memory.size).toBe(left.length);
  });
}

/** A service whose reads can be held, with one capability that nobody looked up yet. */
async function withRace(
  body: (race: {
    engine: HoldingEngine;
    service: CapabilityService;
    secret: string;
    tokenId: string;
    incarnation: string;
    records: Records;
  }) => Promise<void>,
  fields: Record<string, unknown> = {},
): Promise<void> {
  await withRecords(async (records) => {
    const incarnation = await records.addAgent("eve");
    const engine = new HoldingEngine(records.database.engine);
    const service = records.service({ rows: engine.rows(), engine });
    const { secret, token_id: tokenId } = await service.mint(grant(fields), "eve");
    await body({ engine, service, secret, tokenId, incarnation, records });
  });
}

const ask = (service: CapabilityService, secret: string) => () => service.authorise(secret, "GET", "in/a");

Deno.test("lookup() that a revocation overtakes never brings the live record back", async () => {
  await withRace(async ({ engine, service, secret, tokenId }) => {
    const { reached, release } = engine.holdRead();
    const overtaken = Promise.resolve(service.lookup(secret));
    await reached;
    expect(await service.revoke(tokenId)).toEqual({ revoked: true });
    release();
    // It began before the revocation was answered, so either answer is right for it; only for it.
    expect((await overtaken)?.revokedAtMs).toBeNull();
    expect(await codeOf(ask(service, secret))).toBe("revoked");
  });
});

Deno.test("lookup() that a spend overtakes never brings the unspent record back (report 2)", async () => {
  await withRace(async ({ engine, service, secret, tokenId }) => {
    const capability = await service.find(tokenId);
    if (capability === undefined) throw new Error("just minted");
    const { reached, release } = engine.holdRead();
    const overtaken = service.lookup(secret);
    await reached;
    await service.spend(capability, capability.createdAtMs);
    release();
    await overtaken;
    expect(await codeOf(ask(service, secret))).toBe("already_used");
  }, { single_use: true });
});

Deno.test("lookup() that an agent's deletion overtakes never brings its record back (report 5)", async () => {
  await withRace(async ({ engine, service, secret, incarnation, records }) => {
    const { reached, release } = engine.holdRead();
    const overtaken = service.lookup(secret);
    await reached;
    await records.database.agents.remove("eve", records.clock.now());
    service.forgetAgent(incarnation);
    release();
    await overtaken;
    expect(await codeOf(ask(service, secret))).toBe("revoked");
  });
});

Deno.test("lookup() that a change elsewhere overtakes never brings the old record back", async () => {
  await withRace(async ({ engine, service, secret, tokenId, records }) => {
    const { reached, release } = engine.holdRead();
    const overtaken = service.lookup(secret);
    await reached;
    await records.database.capabilities.revoke(tokenId, records.clock.now());
    // Some other lookup is the one that learns of it.
    engine.changed = true;
    await service.lookup(`caps_${"A".repeat(43)}`);
    release();
    await overtaken;
    expect(await codeOf(ask(service, secret))).toBe("revoked");
  });
});

Deno.test("lookup() during a revocation is not remembered past it", async () => {
  await withRace(async ({ service, secret, tokenId }) => {
    const revoking = service.revoke(tokenId);
    // The write is queued, so this reads a live record and remembers it.
    expect((await service.lookup(secret))?.revokedAtMs).toBeNull();
    expect(await revoking).toEqual({ revoked: true });
    expect(await codeOf(ask(service, secret))).toBe("revoked");
  });
});

Deno.test("revoke() that fails after its commit leaves nothing remembered", async () => {
  await withRace(async ({ engine, service, secret, tokenId }) => {
    await service.lookup(secret);
    expect(service.remembered).toBe(1);
    engine.failAfterCommit = new AppError("unavailable", "The database is gone");
    const revoking = service.revoke(tokenId);
    await service.lookup(secret);
    expect(await codeOf(() => revoking)).toBe("unavailable");
    expect(await codeOf(ask(service, secret))).toBe("revoked");
  });
});

Deno.test("requireLive() refuses an upload as soon as a revocation is committed, before it is answered", async () => {
  await withRace(async ({ engine, service, secret, tokenId, records }) => {
    const capability = await service.lookup(secret);
    if (capability === undefined) throw new Error("just minted");
    const { reached, release } = engine.holdWrite();
    const revoking = service.revoke(tokenId);
    await reached;
    expect(await codeOf(() => service.requireLive(capability, records.clock.now()))).toBe("revoked");
    release();
    await revoking;
  });
});

Deno.test("requireLive() is not misled by a record that was read again after a revocation", async () => {
  await withRace(async ({ service, secret, tokenId, records }) => {
    const capability = await service.lookup(secret);
    if (capability === undefined) throw new Error("just minted");
    await service.revoke(tokenId);
    expect((await service.lookup(secret))?.revokedAtMs).toBe(records.clock.now());
    expect(service.remembered).toBe(1);
    expect(await codeOf(() => service.requireLive(capability, records.clock.now()))).toBe("revoked");
  });
});
