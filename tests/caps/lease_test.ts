import type { Capability } from "../../caps/model.ts";
import type { UploadLease } from "../../caps/lease.ts";
import type { CapabilityService } from "../../caps/service.ts";
import { AppError } from "../../base/errors.ts";
import { systemClock } from "../../base/clock.ts";
import { expect } from "../helpers/expect.ts";
import { codeOf, grant, type Records, withRecords } from "./records.ts";

/** Polling that would be seen: whoever depends on it in these tests runs into the deadline. */
const NO_POLL = { pollMs: 60_000 };

async function mintOnce(records: Records, caps: CapabilityService, fields = {}): Promise<Capability> {
  const { secret } = await caps.mint(grant({ verbs: ["PUT"], single_use: true, ...fields }), "eve");
  const capability = await caps.lookup(secret);
  if (capability === undefined) throw new Error("just minted");
  expect(capability.createdAtMs).toBeLessThanOrEqual(records.clock.now());
  return capability;
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + 5000;
  while (!await holds()) {
    if (performance.now() > giveUpAt) throw new Error("Waited five seconds in vain");
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** Whether a promise is still open after twenty turns of the event loop, in which commits happen too. */
async function isPending(promise: Promise<unknown>): Promise<boolean> {
  const open = Symbol("open");
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve, 0));
  return await Promise.race([promise.then(() => false, () => false), Promise.resolve(open)]) === open;
}

function withUploads(
  name: string,
  body: (records: Records, caps: CapabilityService, capability: Capability, begunMs: number) => Promise<void>,
): void {
  Deno.test(name, async () => {
    await withRecords(async (records) => {
      await records.addAgent("eve");
      const caps = records.service({ leaseTimes: NO_POLL });
      await body(records, caps, await mintOnce(records, caps), records.clock.now());
    });
  });
}

withUploads(
  "acquireLease() lets the next in at once when an upload broke",
  async (_, caps, capability, begunMs) => {
    const first = await caps.acquireLease(capability, begunMs);
    const second = caps.acquireLease(capability, begunMs);
    const third = caps.acquireLease(capability, begunMs);
    expect(await isPending(second)).toBe(true);
    await first.release();
    const lease = await second;
    expect(lease.id === first.id).toBe(false);
    expect(await isPending(third)).toBe(true);
    await lease.release();
    await lease.release();
    await (await third).release();
  },
);

withUploads(
  "acquireLease() answers already_used to all who waited for an upload that landed",
  async (_, caps, capability, begunMs) => {
    const first = await caps.acquireLease(capability, begunMs);
    const waiting = Array.from({ length: 20 }, () => codeOf(() => caps.acquireLease(capability, begunMs)));
    await caps.spend(capability, begunMs, first.id);
    await first.release();
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(["already_used"]));
  },
);

withUploads(
  "acquireLease() keeps one upload open of fifty, and exactly one lands",
  async (_, caps, capability, begunMs) => {
    let open = 0, most = 0;
    const outcomes = await Promise.all(Array.from({ length: 50 }, (_, index) =>
      codeOf(async () => {
        const lease = await caps.acquireLease(capability, begunMs);
        try {
          most = Math.max(most, ++open);
          await new Promise((resolve) => setTimeout(resolve, 1));
          // The first few break off.
          if (index < 5) throw new AppError("invalid_request", "The body broke off");
          await caps.spend(capability, begunMs, lease.id);
        } finally {
          open--;
          await lease.release();
        }
      })));
    expect(most).toBe(1);
    expect(outcomes.slice(0, 5)).toEqual(Array(5).fill("invalid_request"));
    expect(outcomes.slice(5)).toEqual(["none", ...Array(44).fill("already_used")]);
  },
);

withUploads(
  "acquireLease() stops waiting when the client is gone, and the line moves on",
  async (_, caps, capability, begunMs) => {
    const first = await caps.acquireLease(capability, begunMs);
    const gone = new AbortController();
    const second = caps.acquireLease(capability, begunMs, { signal: gone.signal });
    const third = caps.acquireLease(capability, begunMs);
    expect(await isPending(second)).toBe(true);
    gone.abort(new Error("gone"));
    await expect(second).rejects.toThrow("gone");
    await first.release();
    await (await third).release();
    await expect(caps.acquireLease(capability, begunMs, { signal: gone.signal })).rejects.toThrow("gone");
    await (await caps.acquireLease(capability, begunMs)).release();
  },
);

withUploads("acquireLease() answers 503 after the longest wait", async (_, caps, capability, begunMs) => {
  const first = await caps.acquireLease(capability, begunMs);
  let refusal: unknown;
  await caps.acquireLease(capability, begunMs, { waitMs: 20 }).catch((error) => refusal = error);
  if (!(refusal instanceof AppError)) throw refusal;
  expect([refusal.code, refusal.status, refusal.details.retryAfterSeconds]).toEqual(["unavailable", 503, 5]);
  await first.release();
  await (await caps.acquireLease(capability, begunMs)).release();
});

withUploads(
  "acquireLease() refuses a capability that died while waiting",
  async (_, caps, capability, begunMs) => {
    const first = await caps.acquireLease(capability, begunMs);
    const second = codeOf(() => caps.acquireLease(capability, begunMs));
    await caps.revoke(capability.tokenId);
    await first.release();
    expect(await second).toBe("revoked");
  },
);

withUploads(
  "acquireLease() judges expiry when the request began",
  async (records, caps, capability, begunMs) => {
    records.clock.ms += 600_000;
    expect(await codeOf(() => caps.acquireLease(capability, records.clock.now()))).toBe("expired");
    await (await caps.acquireLease(capability, begunMs)).release();
  },
);

withUploads(
  "release() does not fail when the database is gone",
  async (records, caps, capability, begunMs) => {
    const lease = await caps.acquireLease(capability, begunMs);
    await records.database.close();
    await lease.release();
  },
);

Deno.test("acquireLease() waits for an upload of another process and takes over when it breaks", async () => {
  await withRecords(async (records) => {
    await records.addAgent("eve");
    const other = await records.openAgain();
    const times = { leaseTimes: { pollMs: 5 } };
    const here = records.service(times);
    const there = records.service({ ...times, rows: other.capabilities, engine: other.engine });
    const capability = await mintOnce(records, here);
    const begunMs = records.clock.now();
    const first = await here.acquireLease(capability, begunMs);
    expect(await codeOf(() => there.acquireLease(capability, begunMs, { waitMs: 30 }))).toBe("unavailable");
    const second = there.acquireLease(capability, begunMs);
    expect(await isPending(second)).toBe(true);
    await first.release();
    const lease = await second;
    const third = codeOf(() => here.acquireLease(capability, begunMs));
    await there.spend(capability, begunMs, lease.id);
    await lease.release();
    expect(await third).toBe("already_used");
  }, { shared: true });
});

/** A second process that died while it held the lease: nobody renews it. */
async function leaveLease(records: Records, capability: Capability, ttlMs: number): Promise<void> {
  const nowMs = Date.now();
  await records.database.capabilities.acquireLease({
    tokenId: capability.tokenId,
    leaseId: "lease_of_the_dead",
    nowMs,
    untilMs: nowMs + ttlMs,
    begunMs: records.clock.now(),
  });
}

Deno.test("acquireLease() takes the lease of a killed process when it has run out", async () => {
  await withRecords(async (records) => {
    await records.addAgent("eve");
    const capability = await mintOnce(records, records.service());
    const caps = records.service({ clock: systemClock, leaseTimes: { pollMs: 5 } });
    await leaveLease(records, capability, 100);
    const begun = performance.now();
    const lease = await caps.acquireLease(capability, records.clock.now());
    expect(performance.now() - begun).toBeGreaterThan(50);
    await lease.release();
  });
});

Deno.test("a lease that is renewed outlives its time; one that was taken is lost and spends nothing", async () => {
  await withRecords(async (records) => {
    await records.addAgent("eve");
    const capability = await mintOnce(records, records.service());
    const begunMs = records.clock.now();
    const ttlMs = 300;
    const caps = records.service({ clock: systemClock, leaseTimes: { ttlMs, renewMs: 20, pollMs: 5 } });
    const lease = await caps.acquireLease(capability, begunMs);
    const begun = performance.now();
    const rival: { lease?: UploadLease } = {};
    const other = records.service({ clock: systemClock, leaseTimes: { ttlMs, renewMs: 20, pollMs: 5 } });
    await until(() => performance.now() - begun > 2 * ttlMs);
    expect(lease.lost).toBe(false);
    expect(await codeOf(() => other.acquireLease(capability, begunMs, { waitMs: 30 }))).toBe("unavailable");

    // As if this process had slept: its lease ran out and another upload was let in.
    await records.database.engine.write([{ sql: "UPDATE capabilities SET lease_id = NULL", parameters: [] }]);
    rival.lease = await other.acquireLease(capability, begunMs);
    await until(() => lease.lost);
    expect(await codeOf(() => caps.spend(capability, begunMs, lease.id))).toBe("unavailable");
    await lease.release();
    await other.spend(capability, begunMs, rival.lease.id);
    expect(await codeOf(() => caps.spend(capability, begunMs, lease.id))).toBe("already_used");
    await rival.lease.release();
  });
});

Deno.test("a lease that could not be renewed in time says that it is lost", async () => {
  await withRecords(async (records) => {
    await records.addAgent("eve");
    const caps = records.service({ leaseTimes: { ttlMs: 1000, renewMs: 60_000 } });
    const capability = await mintOnce(records, caps);
    const lease = await caps.acquireLease(capability, records.clock.now());
    records.clock.ms += 999;
    expect(lease.lost).toBe(false);
    records.clock.ms += 1;
    expect(lease.lost).toBe(true);
    await lease.release();
  });
});
