import { expect } from "../../helpers/expect.ts";
import { ConstraintError } from "../../../store/database/engine.ts";
import { newAgent, newCapability, NOW, refusalOf, sql, withRecords } from "./helpers.ts";

Deno.test("insert() binds to the incarnation that lives, and stores nothing without one", () =>
  withRecords(async ({ agents, capabilities }) => {
    expect(await capabilities.insert(newCapability())).toBeUndefined();
    const { agent } = await agents.pair({ agent: newAgent() });
    const wanted = newCapability({ single_use: 0, verbs: "GET,STAT", author: "agent" });
    const row = await capabilities.insert(wanted);
    expect(row).toEqual({
      ...wanted,
      seq: row?.seq,
      incarnation: agent.incarnation,
      consumed_at: null,
      revoked_at: null,
      lease_id: null,
      lease_until: null,
    });
    expect(await capabilities.insert(newCapability({ incarnation: "inc_gone" }))).toBeUndefined();
    expect(await capabilities.insert(newCapability({ incarnation: agent.incarnation }))).toBeDefined();
    expect(await capabilities.list({ limit: 10 })).toHaveLength(2);
  }));

Deno.test("insert() refuses a second secret or token id of the same value", () =>
  withRecords(async ({ agents, capabilities }) => {
    const capability = newCapability();
    await agents.pair({ agent: newAgent(), capability });
    const same = [{ token_id: capability.token_id }, { secret_hash: capability.secret_hash }];
    for (const changes of same) {
      expect(await refusalOf(capabilities.insert(newCapability(changes)))).toBeInstanceOf(ConstraintError);
    }
  }));

Deno.test("findByHash() and findByTokenId() find dead capabilities too", () =>
  withRecords(async ({ agents, capabilities }) => {
    const capability = newCapability({ expires_at: 1 });
    await agents.pair({ agent: newAgent(), capability });
    expect(await capabilities.findByHash(capability.secret_hash)).toMatchObject(capability);
    expect(await capabilities.findByTokenId(capability.token_id)).toMatchObject(capability);
    expect(await capabilities.findByHash("nobody's")).toBeUndefined();
    expect(await capabilities.findByTokenId("cap_none")).toBeUndefined();
  }));

Deno.test("list() pages newest first, of all agents or one", () =>
  withRecords(async ({ agents, capabilities }) => {
    await agents.pair({ agent: newAgent("eve") });
    await agents.pair({ agent: newAgent("bob") });
    const ids: string[] = [];
    for (let n = 0; n < 6; n++) {
      const row = await capabilities.insert(newCapability({ agent_id: n % 3 === 0 ? "bob" : "eve" }));
      ids.unshift(row?.token_id ?? "");
    }
    const first = await capabilities.list({ limit: 4 });
    expect(first.map((row) => row.token_id)).toEqual(ids.slice(0, 4));
    const second = await capabilities.list({ limit: 4, beforeSeq: first.at(-1)?.seq ?? 0 });
    expect(second.map((row) => row.token_id)).toEqual(ids.slice(4));
    expect((await capabilities.list({ limit: 9, agentId: "bob" })).map((row) => row.token_id))
      .toEqual([ids[2], ids[5]]);
  }));

Deno.test("revoke() says once that it lived; dead ones and unknown ones are told apart", () =>
  withRecords(async ({ agents, capabilities }) => {
    await agents.pair({ agent: newAgent() });
    const [live, expired, spent] = [
      newCapability(),
      newCapability({ expires_at: NOW }),
      newCapability(),
    ];
    for (const capability of [live, expired, spent]) await capabilities.insert(capability);
    await capabilities.spend({ tokenId: spent.token_id, nowMs: NOW, begunMs: NOW });

    expect(await capabilities.revoke(live.token_id, NOW)).toMatchObject({
      revoked: true,
      row: { revoked_at: NOW },
    });
    expect(await capabilities.revoke(live.token_id, NOW + 5)).toMatchObject({
      revoked: false,
      row: { revoked_at: NOW },
    });
    expect(await capabilities.revoke(spent.token_id, NOW)).toMatchObject({
      revoked: false,
      row: { revoked_at: null },
    });
    expect(await capabilities.revoke("cap_none", NOW)).toEqual({ revoked: false });

    // An upload that began in time must not outlast a revocation, even when its grant expired meanwhile.
    expect(await capabilities.isLive({ tokenId: expired.token_id, begunMs: NOW - 1 })).toBe(true);
    expect(await capabilities.revoke(expired.token_id, NOW)).toMatchObject({ revoked: false });
    expect(await capabilities.isLive({ tokenId: expired.token_id, begunMs: NOW - 1 })).toBe(false);
  }));

Deno.test("purgeDead() drops what died before the given time, by any death, in any number", () =>
  withRecords(async ({ agents, capabilities, engine }) => {
    await agents.pair({ agent: newAgent() });
    const expired = Array.from({ length: 1200 }, () => newCapability({ expires_at: NOW - 10 }));
    await Promise.all(expired.map((capability) => capabilities.insert(capability)));
    const [live, revoked, spent, late] = [newCapability(), newCapability(), newCapability(), newCapability()];
    for (const capability of [live, revoked, spent, late]) await capabilities.insert(capability);
    await capabilities.revoke(revoked.token_id, NOW - 10);
    await capabilities.spend({ tokenId: spent.token_id, nowMs: NOW - 10, begunMs: NOW - 10 });
    await capabilities.revoke(late.token_id, NOW + 10);
    expect(await capabilities.purgeDead(NOW - 10)).toBe(0);
    expect(await capabilities.purgeDead(NOW)).toBe(1202);
    const left = await engine.read(sql("SELECT token_id FROM capabilities ORDER BY seq"));
    expect(left.map((row) => row.token_id)).toEqual([live.token_id, late.token_id]);
  }));
