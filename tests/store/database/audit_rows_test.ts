import { expect } from "../../helpers/expect.ts";
import type { NewAudit } from "../../../store/database/audit_rows.ts";
import { NOW, sql, withRecords } from "./helpers.ts";

const entry = (at: number, detail = "{}"): NewAudit => ({
  at,
  actor: "operator",
  action: "capability.mint",
  agent_id: "eve",
  token_id: null,
  outcome: "ok",
  detail,
});

Deno.test("append() stores entries and adds up counters in one write", () =>
  withRecords(async ({ audit, engine }) => {
    const count = { hour: NOW, token_id: "cap_1", action: "get", count: 3 };
    await audit.append([entry(NOW), entry(NOW + 1)], [count, count]);
    await audit.append([], [{ ...count, count: 4 }, { ...count, action: "stat" }]);
    await audit.append([], []);
    expect(await engine.read(sql("SELECT action, count FROM audit_counters ORDER BY action"))).toEqual([
      { action: "get", count: 10 },
      { action: "stat", count: 3 },
    ]);
    expect(await engine.read(sql("SELECT count(*) AS n FROM audit"))).toEqual([{ n: 2 }]);
  }));

Deno.test("prune() drops entries and counters that are too old", () =>
  withRecords(async ({ audit, engine }) => {
    const old = Array.from({ length: 1100 }, (_, n) => entry(NOW - 2000 + n));
    await audit.append([...old, entry(NOW), entry(NOW + 1)], [
      { hour: NOW - 1, token_id: "cap_1", action: "get", count: 1 },
      { hour: NOW, token_id: "cap_1", action: "get", count: 1 },
    ]);
    expect(await audit.prune({ beforeMs: NOW, maxBytes: 1e9 })).toBe(1100);
    expect(await audit.prune({ beforeMs: NOW, maxBytes: 1e9 })).toBe(0);
    expect((await engine.read(sql("SELECT at FROM audit ORDER BY seq"))).map((row) => row.at)).toEqual([
      NOW,
      NOW + 1,
    ]);
    expect(await engine.read(sql("SELECT hour FROM audit_counters"))).toEqual([{ hour: NOW }]);
  }));

Deno.test("prune() drops the oldest entries when all take more than the limit, and no more than needed", () =>
  withRecords(async ({ audit, engine }) => {
    const detail = "é".repeat(500);
    await audit.append(Array.from({ length: 100 }, (_, n) => entry(NOW + n, detail)), []);
    const size = await audit.sizeBytes();
    expect(size).toBeGreaterThan(100_000);
    expect(await audit.prune({ beforeMs: 0, maxBytes: size })).toBe(0);
    expect(await audit.prune({ beforeMs: 0, maxBytes: size / 2 })).toBe(55);
    const left = await engine.read(sql("SELECT min(at) AS first, count(*) AS n FROM audit"));
    expect(left).toEqual([{ first: NOW + 55, n: 45 }]);
    expect(await audit.sizeBytes()).toBe(size * 0.45);
    expect(await audit.prune({ beforeMs: 0, maxBytes: 0 })).toBe(45);
    expect(await audit.sizeBytes()).toBe(0);
  }));
