import { expect } from "../../helpers/expect.ts";
import { ConstraintError } from "../../../store/database/engine.ts";
import { newAgent, newCapability, newEvent, NOW, refusalOf, withRecords } from "./helpers.ts";

Deno.test("pair() stores an agent, its key and its first grant at once", () =>
  withRecords(async ({ agents, capabilities }) => {
    const agent = newAgent();
    const capability = newCapability();
    const paired = await agents.pair({ agent, keyHash: "key-1", capability });
    expect(paired.created).toBe(true);
    expect(paired.agent).toEqual({ ...agent, key_hash: "key-1" });
    expect(paired.capability).toMatchObject({ ...capability, incarnation: agent.incarnation });
    expect(await agents.find("eve")).toEqual(paired.agent);
    expect(await agents.findByKeyHash("key-1")).toEqual(paired.agent);
    expect(await agents.findByWebhookHash(agent.webhook_hash)).toEqual(paired.agent);
    expect(await capabilities.findByHash(capability.secret_hash)).toEqual(paired.capability);
    expect(await agents.find("bob")).toBeUndefined();
    expect(await agents.findByKeyHash("key-2")).toBeUndefined();
    expect(await agents.findByWebhookHash("none")).toBeUndefined();
  }));

Deno.test("pair() of a living agent keeps it, and binds the new grant to its incarnation", () =>
  withRecords(async ({ agents }) => {
    const { agent } = await agents.pair({ agent: newAgent() });
    const again = await agents.pair({ agent: newAgent(), capability: newCapability() });
    expect(again).toMatchObject({ agent, created: false, capability: { incarnation: agent.incarnation } });
    expect((await agents.pair({ agent: newAgent(), keyHash: "key-2" })).agent.key_hash).toBe("key-2");
    expect((await agents.pair({ agent: newAgent() })).agent.key_hash).toBe("key-2");
    expect(await agents.count()).toBe(1);
  }));

Deno.test("pair() of one name from many sides creates it once", () =>
  withRecords(async ({ agents }) => {
    const all = await Promise.all(Array.from({ length: 20 }, () => agents.pair({ agent: newAgent() })));
    expect(all.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(all.map(({ agent }) => agent.incarnation)).size).toBe(1);
  }));

Deno.test("pair() stores nothing when a part of it is refused", () =>
  withRecords(async ({ agents, capabilities }) => {
    const capability = newCapability();
    await agents.pair({ agent: newAgent(), keyHash: "taken", capability });
    const bob = { ...capability, agent_id: "bob" };
    expect(await refusalOf(agents.pair({ agent: newAgent("bob"), capability: bob }))).toBeInstanceOf(
      ConstraintError,
    );
    expect(await refusalOf(agents.pair({ agent: newAgent("bob"), keyHash: "taken" })))
      .toBeInstanceOf(ConstraintError);
    expect(await refusalOf(agents.pair({ agent: newAgent("bob"), capability }))).toBeInstanceOf(TypeError);
    expect(await agents.find("bob")).toBeUndefined();
    expect(await capabilities.list({ limit: 9 })).toHaveLength(1);
  }));

Deno.test("list() gives all agents, oldest first", () =>
  withRecords(async ({ agents }) => {
    for (const name of ["zoe", "bob", "eve"]) await agents.pair({ agent: newAgent(name) });
    expect((await agents.list()).map((agent) => agent.agent_id)).toEqual(["zoe", "bob", "eve"]);
    expect(await agents.count()).toBe(3);
  }));

Deno.test("setKeyHash() replaces the key; the old one finds nobody", () =>
  withRecords(async ({ agents }) => {
    expect(await agents.setKeyHash("eve", "key-1")).toBeUndefined();
    await agents.pair({ agent: newAgent(), keyHash: "key-1" });
    expect(await agents.setKeyHash("eve", "key-2")).toMatchObject({ agent_id: "eve", key_hash: "key-2" });
    expect(await agents.findByKeyHash("key-1")).toBeUndefined();
    expect(await agents.findByKeyHash("key-2")).toBeDefined();
  }));

Deno.test("rotateWebhook() lets one of two rotations from the same counter win", () =>
  withRecords(async ({ agents }) => {
    const { agent } = await agents.pair({ agent: newAgent() });
    const tries = await Promise.all([
      agents.rotateWebhook(agent.incarnation, 0, "new-a"),
      agents.rotateWebhook(agent.incarnation, 0, "new-b"),
    ]);
    expect(tries).toEqual([true, false]);
    expect(await agents.find("eve")).toMatchObject({ webhook_counter: 1, webhook_hash: "new-a" });
    expect(await agents.findByWebhookHash(agent.webhook_hash)).toBeUndefined();
    expect(await agents.rotateWebhook("inc_none", 0, "new-c")).toBe(false);
  }));

Deno.test("remove() drops the agent with its events and revokes and counts its live grants alone", () =>
  withRecords(async ({ agents, capabilities, events }) => {
    const { agent } = await agents.pair({ agent: newAgent() });
    const { agent: bob } = await agents.pair({ agent: newAgent("bob") });
    const [live, other, expired, spent, revoked, bobs] = [
      newCapability(),
      newCapability(),
      newCapability({ expires_at: NOW }),
      newCapability(),
      newCapability(),
      newCapability({ agent_id: "bob" }),
    ];
    for (const capability of [live, other, expired, spent, revoked, bobs]) {
      await capabilities.insert(capability);
    }
    await capabilities.spend({ tokenId: spent.token_id, nowMs: NOW, begunMs: NOW });
    await capabilities.revoke(revoked.token_id, NOW - 1);
    await events.append(newEvent(agent.incarnation), 10);
    await events.append(newEvent(bob.incarnation), 10);

    expect(await agents.remove("eve", NOW)).toEqual({ agent, revokedCapabilities: 2 });
    expect(await agents.remove("eve", NOW)).toEqual({ revokedCapabilities: 0 });
    expect(await agents.find("eve")).toBeUndefined();
    expect(await events.list({ incarnation: agent.incarnation, limit: 9 })).toEqual([]);
    expect(await events.list({ incarnation: bob.incarnation, limit: 9 })).toHaveLength(1);
    expect(await capabilities.findByTokenId(live.token_id)).toMatchObject({ revoked_at: NOW });
    expect(await capabilities.findByTokenId(revoked.token_id)).toMatchObject({ revoked_at: NOW - 1 });
    expect(await capabilities.isLive({ tokenId: bobs.token_id, begunMs: NOW })).toBe(true);
  }));
