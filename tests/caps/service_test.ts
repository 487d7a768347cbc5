import { encodeBase64Url } from "../../base/base64url.ts";
import { parseTargetPath } from "../../base/paths.ts";
import { DEAD_RECORD_KEPT_MS } from "../../caps/service.ts";
import { expect } from "../helpers/expect.ts";
import { codeOf, grant, type Records, withRecords } from "./records.ts";

const UNKNOWN = `caps_${"A".repeat(43)}`;

async function requireLookup(service: ReturnType<Records["service"]>, secret: string) {
  const capability = await service.lookup(secret);
  if (capability === undefined) throw new Error("Expected a capability");
  return capability;
}

Deno.test("mint() answers with the record and its secret, and stores only the hash (SYS-CAP-01, report S2)", async () => {
  await withRecords(async ({ service, addAgent, database, path, clock }) => {
    await addAgent("eve");
    const minted = await service().mint(
      grant({ path_prefix: "/in//discord/", verbs: ["stat", "put"] }),
      "eve",
    );
    expect(minted).toEqual({
      token_id: minted.token_id,
      secret: minted.secret,
      agent_id: "eve",
      path_prefix: "in/discord",
      verbs: ["PUT", "STAT"],
      expires_at: new Date(clock.now() + 60_000).toISOString(),
      single_use: false,
      created_at: new Date(clock.now()).toISOString(),
    });
    expect(minted.token_id).toMatch(/^cap_[A-Za-z0-9_-]{16}$/);
    expect(minted.secret).toMatch(/^caps_[A-Za-z0-9_-]{43}$/);
    await database.engine.read({ sql: "SELECT count(*) FROM capabilities", parameters: [] });
    for (const file of [path, `${path}-wal`]) {
      const text = new TextDecoder("latin1").decode(await Deno.readFile(file));
      expect(text.includes(minted.secret.slice(5))).toBe(false);
    }
  });
});

Deno.test("mint() shows author only where the operator set it", async () => {
  await withRecords(async ({ service, addAgent }) => {
    await addAgent("eve");
    const caps = service();
    expect((await caps.mint(grant({ author: "agent" }), "eve")).author).toBe("agent");
    expect(Object.hasOwn(await caps.mint(grant(), "eve"), "author")).toBe(false);
    const { capabilities } = await caps.list();
    expect(capabilities.map((record) => record.author)).toEqual([undefined, "agent"]);
  });
});

Deno.test("mint() refuses an unknown agent, and an incarnation that is gone", async () => {
  await withRecords(async ({ service, addAgent }) => {
    const incarnation = await addAgent("eve");
    expect(await codeOf(() => service().mint(grant(), "nobody"))).toBe("agent_not_found");
    expect(await codeOf(() => service().mint(grant(), "eve", "inc_gone"))).toBe("agent_not_found");
    expect(await codeOf(() => service().mint(grant(), "eve", incarnation))).toBe("none");
    expect((await service().list()).capabilities).toHaveLength(1);
  });
});

Deno.test("prepare() stores nothing until pairing does, and then works", async () => {
  await withRecords(async ({ service, database, clock }) => {
    const caps = service();
    const { row, minted } = caps.prepare(grant(), "eve");
    expect(await caps.lookup(minted.secret)).toBeUndefined();
    const agent = {
      incarnation: "inc_1",
      agent_id: "eve",
      home: null,
      webhook_counter: 0,
      webhook_hash: "h",
    };
    await database.agents.pair({ agent: { ...agent, created_at: clock.now() }, capability: row });
    expect((await caps.authorise(minted.secret, "GET", "in/a")).capability.incarnation).toBe("inc_1");
  });
});

Deno.test("lookup() is asked of the database once, then answered at once", async () => {
  await withRecords(async ({ service, addAgent }) => {
    await addAgent("eve");
    const caps = service();
    const { secret } = await caps.mint(grant(), "eve");
    const first = caps.lookup(secret);
    expect(first instanceof Promise).toBe(true);
    expect(caps.lookup(secret) instanceof Promise).toBe(true);
    const capability = await first;
    expect(caps.lookup(secret)).toBe(capability);
    expect(caps.authorise(secret, "GET", "in/a") instanceof Promise).toBe(false);
  });
});

Deno.test("lookup() never remembers an unknown secret and asks nothing about what is none", async () => {
  await withRecords(async ({ service, addAgent }) => {
    await addAgent("eve");
    const caps = service();
    expect(await caps.lookup(UNKNOWN)).toBeUndefined();
    expect(caps.remembered).toBe(0);
    for (const text of ["", "caps_", "x", UNKNOWN + "A", `${UNKNOWN.slice(0, -1)}é`]) {
      expect(caps.lookup(text)).toBeUndefined();
    }
  });
});

Deno.test("authorise() refuses in the order of SYS-ERR-04", async () => {
  await withRecords(async ({ service, addAgent, clock }) => {
    await addAgent("eve");
    const caps = service();
    const { secret } = await caps.mint(grant({ verbs: ["GET"] }), "eve");
    const rows: [secret: string | undefined, verb: "GET" | "PUT", target: string, code: string][] = [
      [undefined, "PUT", "..", "missing_capability"],
      ["", "PUT", "..", "missing_capability"],
      ["nonsense", "PUT", "..", "unknown_token"],
      [UNKNOWN, "PUT", "..", "unknown_token"],
      [secret, "PUT", "..", "invalid_path"],
      [secret, "PUT", "elsewhere", "verb_not_allowed"],
      [secret, "GET", "elsewhere", "path_outside_scope"],
      [secret, "GET", "in/a", "none"],
    ];
    // Twice: from the database, then from memory.
    for (const _ of [1, 2]) {
      for (const [given, verb, target, code] of rows) {
        expect(await codeOf(() => caps.authorise(given, verb, target)), `${verb} ${target}`).toBe(code);
      }
    }
    expect(await caps.authorise(secret, "GET", parseTargetPath("/in//a"))).toMatchObject({ path: "in/a" });
    const begunMs = clock.now();
    clock.ms += 60_000;
    expect(await codeOf(() => caps.authorise(secret, "GET", "in/a"))).toBe("expired");
    expect(await codeOf(() => caps.authorise(secret, "GET", "in/a", begunMs))).toBe("none");
  });
});

Deno.test("revoke() holds from the next request on and says whether anything lived (SYS-CAP-04)", async () => {
  await withRecords(async ({ service, addAgent, clock }) => {
    await addAgent("eve");
    const caps = service();
    const { secret, token_id } = await caps.mint(grant(), "eve");
    await caps.lookup(secret);
    expect(await caps.revoke(token_id)).toEqual({ revoked: true });
    expect(await codeOf(() => caps.authorise(secret, "GET", "in/a"))).toBe("revoked");
    expect(await caps.revoke(token_id)).toEqual({ revoked: false });
    const dead = await caps.mint(grant({ ttl_ms: 1 }), "eve");
    clock.ms += 1;
    expect(await caps.revoke(dead.token_id)).toEqual({ revoked: false });
    for (const id of ["cap_AAAAAAAAAAAAAAAA", "", "x", `${token_id}\0`, `${token_id}é`]) {
      expect(await codeOf(() => caps.revoke(id)), JSON.stringify(id)).toBe("capability_not_found");
      expect(await caps.find(id)).toBeUndefined();
    }
    expect((await caps.find(token_id))?.agentId).toBe("eve");
  });
});

Deno.test("authorise() refuses the secret of an agent that was deleted and made again (report 5)", async () => {
  await withRecords(async ({ service, addAgent, database, clock }) => {
    const incarnation = await addAgent("eve");
    const caps = service();
    const { secret } = await caps.mint(grant(), "eve");
    await caps.lookup(secret);
    await database.agents.remove("eve", clock.now());
    caps.forgetAgent(incarnation);
    await addAgent("eve");
    expect(await codeOf(() => caps.authorise(secret, "GET", "in/a"))).toBe("revoked");
  });
});

Deno.test("authorise() takes an unreadable stored expiry for dead (report 4)", async () => {
  await withRecords(async ({ service, addAgent, database }) => {
    await addAgent("eve");
    const { secret } = await service().mint(grant(), "eve");
    for (const expiry of ["9007199254740993", "9223372036854775807", "0", "-1"]) {
      await database.engine.write([{
        sql: `UPDATE capabilities SET expires_at = ${expiry}`,
        parameters: [],
      }]);
      expect(await codeOf(() => service().authorise(secret, "GET", "in/a")), expiry).toBe("expired");
      expect((await service().list()).capabilities[0]?.status).toBe("expired");
    }
  });
});

Deno.test("spend() lets exactly one of fifty racers win, over two connections (report 2)", async () => {
  await withRecords(async ({ service, addAgent, openAgain, clock }) => {
    await addAgent("eve");
    const other = await openAgain();
    const here = service(), there = service({ rows: other.capabilities, engine: other.engine });
    for (let round = 0; round < 10; round++) {
      const { secret } = await here.mint(grant({ single_use: true }), "eve");
      const outcomes = await Promise.all(Array.from({ length: 50 }, (_, index) =>
        codeOf(async () => {
          const caps = index % 2 === 0 ? here : there;
          const { capability } = await caps.authorise(secret, "GET", "in/a");
          await caps.spend(capability, clock.now());
        })));
      expect(outcomes.filter((code) => code === "none")).toHaveLength(1);
      expect(outcomes.filter((code) => code === "already_used")).toHaveLength(49);
      for (const caps of [here, there]) {
        expect(await codeOf(() => caps.authorise(secret, "GET", "in/a"))).toBe("already_used");
      }
    }
  }, { shared: true });
});

Deno.test("spend() says why it could not, and judges expiry when the request began", async () => {
  await withRecords(async ({ service, addAgent, database, clock }) => {
    await addAgent("eve");
    const caps = service();
    const mint = async () =>
      await requireLookup(caps, (await caps.mint(grant({ single_use: true }), "eve")).secret);
    const begunMs = clock.now();

    const slow = await mint();
    clock.ms += 60_000;
    expect(await codeOf(() => caps.spend(slow, clock.now()))).toBe("expired");
    expect(await codeOf(() => caps.spend(slow, begunMs))).toBe("none");
    expect(await codeOf(() => caps.spend(slow, begunMs))).toBe("already_used");

    const revoked = await mint();
    await caps.revoke(revoked.tokenId);
    expect(await codeOf(() => caps.spend(revoked, clock.now()))).toBe("revoked");

    const orphan = await mint();
    const expiredOrphan = await mint();
    const orphanBegunMs = clock.now();
    await database.engine.write([
      {
        sql: "UPDATE capabilities SET expires_at = ? WHERE token_id = ?",
        parameters: [clock.now() + 1, expiredOrphan.tokenId],
      },
    ]);
    clock.ms += 1;
    await database.agents.remove("eve", clock.now());
    expect(await codeOf(() => caps.spend(orphan, orphanBegunMs))).toBe("revoked");
    expect(await codeOf(() => caps.spend(expiredOrphan, orphanBegunMs))).toBe("revoked");

    clock.ms += DEAD_RECORD_KEPT_MS + 120_000;
    await caps.purge();
    expect(await codeOf(() => caps.spend(orphan, orphanBegunMs))).toBe("unknown_token");
  });
});

Deno.test("requireLive() is answered at once while nothing changed, and outlives the expiry of a slow upload", async () => {
  await withRecords(async ({ service, addAgent, clock }) => {
    await addAgent("eve");
    const caps = service();
    const { secret } = await caps.mint(grant(), "eve");
    const capability = await requireLookup(caps, secret);
    const begunMs = clock.now();
    clock.ms += 600_000;
    expect(caps.requireLive(capability, begunMs)).toBeUndefined();
    expect(await codeOf(() => caps.requireLive(capability, clock.now()))).toBe("expired");
  });
});

Deno.test("requireLive() asks the database after any change, and refuses what died meanwhile", async () => {
  await withRecords(async ({ service, addAgent, database, clock }) => {
    const incarnation = await addAgent("eve");
    const caps = service();
    const mint = async () => await requireLookup(caps, (await caps.mint(grant(), "eve")).secret);
    const kept = await mint(), revoked = await mint();
    await caps.revoke(revoked.tokenId);
    expect(await codeOf(() => caps.requireLive(revoked, clock.now()))).toBe("revoked");
    expect(caps.requireLive(kept, clock.now())).toBeUndefined();
    await database.agents.remove("eve", clock.now());
    caps.forgetAgent(incarnation);
    expect(await codeOf(() => caps.requireLive(kept, clock.now()))).toBe("revoked");
  });
});

Deno.test("a revocation by another process holds here from the next request on", async () => {
  await withRecords(async ({ service, addAgent, openAgain, clock }) => {
    await addAgent("eve");
    const other = await openAgain();
    const here = service(), there = service({ rows: other.capabilities, engine: other.engine });
    const { secret, token_id } = await here.mint(grant(), "eve");
    await here.lookup(secret);
    const { capability } = await here.authorise(secret, "PUT", "in/a");
    expect(here.remembered).toBe(1);
    await there.revoke(token_id);
    expect(await codeOf(() => here.requireLive(capability, clock.now()))).toBe("revoked");
    expect(await codeOf(() => here.authorise(secret, "GET", "in/a"))).toBe("revoked");
  }, { shared: true });
});

Deno.test("a service on a database that is always asked sees every change", async () => {
  await withRecords(async ({ service, addAgent, database, clock }) => {
    await addAgent("eve");
    const caps = service({ engine: { changedElsewhere: () => true } });
    const { secret, token_id } = await caps.mint(grant(), "eve");
    const capability = await requireLookup(caps, secret);
    expect(await codeOf(() => caps.requireLive(capability, clock.now()))).toBe("none");
    await database.capabilities.revoke(token_id, clock.now());
    expect(await codeOf(() => caps.authorise(secret, "GET", "in/a"))).toBe("revoked");
    expect(await codeOf(() => caps.requireLive(capability, clock.now()))).toBe("revoked");
  });
});

Deno.test("list() pages newest first, without secrets, with what each is now (SYS-CAP-03)", async () => {
  await withRecords(async ({ service, addAgent, clock }) => {
    await addAgent("eve");
    await addAgent("adam");
    const caps = service();
    const secrets: string[] = [];
    const mint = async (fields: Record<string, unknown>, agentId = "eve") => {
      const minted = await caps.mint(grant(fields), agentId);
      secrets.push(minted.secret);
      return minted;
    };
    await mint({ ttl_ms: 1 });
    await caps.revoke((await mint({})).token_id);
    const once = await mint({ single_use: true });
    await caps.spend(await requireLookup(caps, once.secret), clock.now());
    await mint({ verbs: ["stat", "get"] });
    await mint({}, "adam");
    clock.ms += 1;

    const all = await caps.list();
    expect(all.cursor).toBeUndefined();
    expect(all.capabilities.map((record) => [record.agent_id, record.status])).toEqual([
      ["adam", "live"],
      ["eve", "live"],
      ["eve", "consumed"],
      ["eve", "revoked"],
      ["eve", "expired"],
    ]);
    expect(all.capabilities[1]?.verbs).toEqual(["GET", "STAT"]);
    const at = new Date(clock.now() - 1).toISOString();
    expect(all.capabilities.map((record) => [record.consumed_at, record.revoked_at])).toEqual([
      [null, null],
      [null, null],
      [at, null],
      [null, at],
      [null, null],
    ]);
    const text = JSON.stringify(all);
    for (const secret of secrets) expect(text.includes(secret)).toBe(false);
    const shown = ["token_id", "agent_id", "path_prefix", "verbs", "expires_at", "single_use", "created_at"];
    expect(Object.keys(all.capabilities[0] ?? {})).toEqual([...shown, "status", "consumed_at", "revoked_at"]);

    const paged: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await caps.list({ agentId: "eve", limit: 3, ...(cursor === undefined ? {} : { cursor }) });
      paged.push(...page.capabilities.map((record) => record.status));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(paged).toEqual(["live", "consumed", "revoked", "expired"]);
    expect((await caps.list({ agentId: "eve", limit: 4 })).cursor).toBeUndefined();
    expect((await caps.list({ agentId: "nobody" })).capabilities).toEqual([]);
  });
});

Deno.test("list() refuses a cursor that no page gave, and a limit out of bounds", async () => {
  await withRecords(async ({ service }) => {
    const caps = service();
    const wrap = (text: string) => encodeBase64Url(new TextEncoder().encode(text));
    const cursors = [
      "",
      "x",
      "=",
      "1",
      wrap("0"),
      wrap("-1"),
      wrap("1.5"),
      wrap("01"),
      wrap("1e3"),
      wrap("9".repeat(20)),
      "é",
      "A".repeat(10_000),
    ];
    for (const cursor of cursors) {
      expect(await codeOf(() => caps.list({ cursor })), cursor.slice(0, 40)).toBe("invalid_request");
    }
    expect(await codeOf(() => caps.list({ cursor: wrap("1") }))).toBe("none");
    for (const limit of [0, -1, 1.5, Number.NaN, 1001, Infinity]) {
      expect(await codeOf(() => caps.list({ limit }))).toBe("invalid_request");
    }
  });
});

Deno.test("purge() drops what died more than seven days ago, and nothing else (SYS-CAP-05)", async () => {
  await withRecords(async ({ service, addAgent, clock, database }) => {
    await addAgent("eve");
    const caps = service();
    const short = await caps.mint(grant({ ttl_ms: 1000 }), "eve");
    const gone = await caps.mint(grant({ ttl_ms: 9e8 }), "eve");
    await caps.revoke(gone.token_id);
    await caps.mint(grant({ ttl_ms: 9e8 }), "eve");
    clock.ms += DEAD_RECORD_KEPT_MS;
    expect(await caps.purge()).toBe(0);
    expect(await codeOf(() => caps.authorise(short.secret, "GET", "in/a"))).toBe("expired");
    clock.ms += 1;
    expect(await caps.purge()).toBe(1);
    clock.ms += 1000;
    expect(await caps.purge()).toBe(1);
    expect(await codeOf(() => caps.authorise(short.secret, "GET", "in/a"))).toBe("unknown_token");
    expect((await database.capabilities.list({ limit: 10 })).map((row) => row.revoked_at)).toEqual([null]);
  });
});
