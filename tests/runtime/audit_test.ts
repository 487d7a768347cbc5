import { silentLog } from "../../base/log.ts";
import { createSecret, PREFIX } from "../../base/ids.ts";
import { join } from "../../base/std.ts";
import { Audit } from "../../runtime/audit.ts";
import type { Database } from "../../store/database/open.ts";
import { expect } from "../helpers/expect.ts";
import { startServer, type TestServer } from "../helpers/server.ts";
import { NOW, withRecords } from "../store/database/helpers.ts";

const DAY_MS = 86_400_000;

interface Entry {
  readonly actor: string;
  readonly action: string;
  readonly agent_id: string | null;
  readonly token_id: string | null;
  readonly outcome: string;
  readonly detail: string;
}

async function entriesOf(db: Database): Promise<Entry[]> {
  const rows = await db.engine.read({ sql: "SELECT * FROM audit ORDER BY seq", parameters: [] });
  return rows as unknown as Entry[];
}

async function countersOf(db: Database): Promise<Record<string, number>> {
  const rows = await db.engine.read({ sql: "SELECT * FROM audit_counters", parameters: [] });
  return Object.fromEntries(rows.map((row) => [`${row.token_id} ${row.action}`, Number(row.count)]));
}

async function status(response: Promise<Response>): Promise<number> {
  const answer = await response;
  await answer.body?.cancel();
  return answer.status;
}

/** Does everything that leaves a trace, and returns every secret that was seen on the way. */
async function useEverything(server: TestServer): Promise<string[]> {
  const paired = await server.admin("POST", "/agents", {
    agent_id: "eve",
    webhook: true,
    key: true,
    capability: { path_prefix: "in", verbs: ["PUT"], ttl_ms: 60_000 },
  });
  const { webhook_url, agent_key, capability } = paired.body as Record<string, never>;
  const rotated = (await server.admin("POST", "/agents/eve/key")).body.agent_key;
  const url = (await server.admin("POST", "/agents/eve/webhook")).body.webhook_url;
  const whole = await server.mint({});
  const once = await server.mint({ path_prefix: "once", verbs: ["GET"], single_use: true });
  const own = await server.fetch("/capabilities", {
    method: "POST",
    headers: { authorization: `Bearer ${rotated}`, "content-type": "application/json" },
    body: JSON.stringify({ agent_id: "eve", path_prefix: "own", verbs: ["GET"], ttl_ms: 60_000 }),
  });
  const minted = await own.json();
  await status(server.fetch(`/fs/once?cap=${whole.secret}`, { method: "PUT", body: "x" }));
  expect(await status(server.fetch(`/fs/once?cap=${once.secret}`))).toBe(200);
  expect(await status(server.fetch(`/fs/once?cap=${once.secret}`))).toBe(401);
  for (let n = 0; n < 3; n++) await status(server.fetch(`/fs/once?cap=${whole.secret}`));
  await status(server.fetch(`/fs/${whole.secret}?cap=${minted.secret}`, { method: "PUT", body: "x" }));
  await status(server.fetch(`/fs/once?cap=${whole.secret}`, { method: "DELETE" }));
  await status(server.fetch(`/fs/x?cap=caps_${"z".repeat(43)}`));
  const hook = await fetch(String(url), { method: "POST", body: "hello" });
  await hook.body?.cancel();
  await server.admin("DELETE", `/capabilities/${minted.token_id}`);
  await server.admin("DELETE", "/agents/eve");
  const { secret } = capability as unknown as { secret: string };
  const tokens = [webhook_url, url].map((one) => String(one).split("/webhook/")[1] ?? "");
  return [
    secret,
    String(agent_key),
    String(rotated),
    whole.secret,
    once.secret,
    minted.secret,
    server.adminToken,
    ...tokens,
  ];
}

Deno.test("the audit records every mutation and every single use, with who did it", async () => {
  await using server = await startServer();
  await useEverything(server);
  await server.context.audit.flush();
  const entries = await entriesOf(server.context.database);
  const actions = entries.filter(({ outcome }) => outcome === "ok").map(({ actor, action }) =>
    `${actor.replace(/cap_.*/, "*")} ${action}`
  );
  for (
    const wanted of [
      "operator agent.pair",
      "operator agent.key",
      "operator agent.webhook",
      "operator agent.delete",
      "operator capability.mint",
      "agent:eve capability.mint",
      "operator capability.revoke",
      "capability:* fs.put",
      "capability:* fs.delete",
      "capability:* capability.spend",
      "webhook event.receive",
    ]
  ) expect(actions).toContain(wanted);
  expect(actions.some((action) => action.endsWith("fs.get")), "plain reads are only counted").toBe(false);
  expect(entries.every(({ agent_id }) => agent_id === "eve")).toBe(true);
  const counters = await countersOf(server.context.database);
  expect(Object.entries(counters).filter(([name]) => name.endsWith(" GET")).map(([, count]) => count))
    .toEqual([3]);
});

Deno.test("neither the audit nor anything else in the database's files shows a secret (SYS-ERR-03, S2)", async () => {
  await using server = await startServer();
  const secrets = await useEverything(server);
  expect(secrets.every((secret) => secret.length >= 43)).toBe(true);
  await server.context.audit.flush();
  for (const name of ["string.db", "string.db-wal"]) {
    const text = new TextDecoder("latin1").decode(await Deno.readFile(join(server.dataFolder, name)));
    expect(text.length).toBeGreaterThan(0);
    for (const secret of secrets) {
      expect(text.includes(secret.slice(5, 40)), `${name} shows a secret`).toBe(false);
    }
  }
});

Deno.test("refusals of a known capability are in the trail, and no more than 60 a minute", async () => {
  await using server = await startServer();
  const { secret, token_id } = await server.mint({ verbs: ["STAT"] });
  for (let n = 0; n < 70; n++) expect(await status(server.fetch(`/fs/a?cap=${secret}`))).toBe(403);
  for (let n = 0; n < 5; n++) await status(server.fetch(`/fs/a?cap=caps_${"z".repeat(43)}`));
  await server.context.audit.flush();
  const refused = (await entriesOf(server.context.database)).filter(({ outcome }) => outcome !== "ok");
  expect(refused.length).toBe(60);
  expect(refused[0]).toMatchObject({ token_id, outcome: "verb_not_allowed" });
  const counters = await countersOf(server.context.database);
  expect(counters[`${token_id} refused`]).toBe(10);
  expect(counters[" unknown_token"], "unknown secrets are only counted").toBe(5);
});

function withAudit(run: (audit: Audit, db: Database, clock: { ms: number }) => Promise<void>): Promise<void> {
  return withRecords(async (db) => {
    const clock = { ms: NOW };
    const audit = new Audit({ rows: db.audit, clock: { now: () => clock.ms }, log: silentLog });
    await run(audit, db, clock);
    await audit.close();
  });
}

const ENTRY = { actor: "operator", action: "agent.pair", outcome: "ok" } as const;

Deno.test("record() redacts what looks like a secret", () =>
  withAudit(async (audit, db) => {
    const secret = createSecret(PREFIX.capabilitySecret);
    audit.record({ ...ENTRY, detail: { note: `before ${secret} after` } });
    await audit.flush();
    const [entry] = await entriesOf(db);
    expect(entry?.detail).toBe('{"note":"before caps_… after"}');
  }));

Deno.test("refusal() begins a new budget each minute and has one for each capability", () =>
  withAudit(async (audit, db, clock) => {
    const refusal = { ...ENTRY, action: "fs.get", outcome: "expired" };
    for (const tokenId of ["cap_a", "cap_b"]) {
      for (let n = 0; n < 100; n++) audit.refusal({ ...refusal, tokenId });
    }
    clock.ms += 60_000;
    audit.refusal({ ...refusal, tokenId: "cap_a" });
    await audit.flush();
    expect((await entriesOf(db)).length).toBe(121);
    expect(await countersOf(db)).toEqual({ "cap_a refused": 40, "cap_b refused": 40 });
  }));

Deno.test("count() adds up over flushes, by hour", () =>
  withAudit(async (audit, db, clock) => {
    for (let n = 0; n < 3; n++) audit.count("cap_a", "GET");
    await audit.flush();
    for (let n = 0; n < 4; n++) audit.count("cap_a", "GET");
    clock.ms += 3_600_000;
    audit.count("cap_a", "GET");
    await audit.flush();
    const rows = await db.engine.read({
      sql: "SELECT count FROM audit_counters ORDER BY hour",
      parameters: [],
    });
    expect(rows).toEqual([{ count: 7 }, { count: 1 }]);
  }));

Deno.test("flush() keeps the entries of a database that fails, in order, and writes them once it works", () =>
  withAudit(async (audit, db) => {
    // A trigger that fails is as real as a broken disk.
    const fail = "CREATE TRIGGER broken BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'broken'); END";
    await db.engine.write([{ sql: fail, parameters: [] }]);
    audit.record({ ...ENTRY, agentId: "one" });
    audit.count("cap_a", "GET");
    await audit.flush();
    audit.record({ ...ENTRY, agentId: "two" });
    audit.count("cap_a", "GET");
    await audit.flush();
    expect(await entriesOf(db)).toEqual([]);
    await db.engine.write([{ sql: "DROP TRIGGER broken", parameters: [] }]);
    await audit.flush();
    expect((await entriesOf(db)).map(({ agent_id }) => agent_id)).toEqual(["one", "two"]);
    expect(await countersOf(db)).toEqual({ "cap_a GET": 2 });
  }));

Deno.test("record() drops what comes when ten thousand entries wait already", () =>
  withAudit(async (audit, db) => {
    for (let n = 0; n < 10_050; n++) audit.record({ ...ENTRY, agentId: `a${n}` });
    await audit.flush();
    const rows = await db.engine.read({ sql: "SELECT count(*) AS n FROM audit", parameters: [] });
    expect(rows).toEqual([{ n: 10_000 }]);
  }));

Deno.test("prune() drops what is older than 30 days and keeps the rest", () =>
  withAudit(async (audit, db, clock) => {
    audit.record({ ...ENTRY, agentId: "old" });
    audit.count("cap_old", "GET");
    clock.ms += 30 * DAY_MS;
    audit.record({ ...ENTRY, agentId: "edge" });
    await audit.flush();
    await audit.prune();
    expect((await entriesOf(db)).map(({ agent_id }) => agent_id)).toEqual(["old", "edge"]);
    clock.ms += 3_600_000;
    await audit.prune();
    expect((await entriesOf(db)).map(({ agent_id }) => agent_id)).toEqual(["edge"]);
    expect(await countersOf(db)).toEqual({});
  }));

Deno.test("close() writes what waits and starts no timer, also when the database fails", () =>
  withRecords(async (db) => {
    const audit = new Audit({ rows: db.audit, clock: { now: () => NOW }, log: silentLog });
    audit.record({ ...ENTRY, agentId: "last" });
    await audit.close();
    expect((await entriesOf(db)).length).toBe(1);
    const broken = new Audit({ rows: db.audit, clock: { now: () => NOW }, log: silentLog });
    await db.engine.write([{ sql: "DROP TABLE audit", parameters: [] }]);
    broken.record(ENTRY);
    await broken.close(); // the leak check of the test runner sees a timer that is left
  }));
