import { expect } from "../../helpers/expect.ts";
import { newAgent, newEvent, NOW, withRecords } from "./helpers.ts";

Deno.test("CH-EV-04: append() stores up to the limit of pending events, per agent", () =>
  withRecords(async ({ agents, events }) => {
    const { agent } = await agents.pair({ agent: newAgent() });
    const { agent: bob } = await agents.pair({ agent: newAgent("bob") });
    const append = (incarnation: string) => events.append(newEvent(incarnation), 3);
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => append(agent.incarnation)));
    expect(outcomes).toEqual(["stored", "stored", "stored", "full", "full"]);
    expect(await append(bob.incarnation)).toBe("stored");
    const [first] = await events.list({ incarnation: agent.incarnation, limit: 1 });
    await events.ack(agent.incarnation, first?.id ?? "", NOW);
    expect(await append(agent.incarnation)).toBe("stored");
    expect(await append(agent.incarnation)).toBe("full");
  }));

Deno.test("append() answers gone for an incarnation that is dead", () =>
  withRecords(async ({ agents, events }) => {
    const { agent } = await agents.pair({ agent: newAgent() });
    await agents.remove("eve", NOW);
    await agents.pair({ agent: newAgent() });
    expect(await events.append(newEvent(agent.incarnation), 3)).toBe("gone");
  }));

Deno.test("list() pages oldest first by status, and shows an agent its own events only", () =>
  withRecords(async ({ agents, events }) => {
    const { agent: { incarnation } } = await agents.pair({ agent: newAgent() });
    const { agent: bob } = await agents.pair({ agent: newAgent("bob") });
    const sent = Array.from({ length: 5 }, (_, n) => newEvent(incarnation, { text: `text ${n}` }));
    for (const event of sent) {
      await events.append(event, 99);
      await events.append(newEvent(bob.incarnation), 99);
    }
    await events.ack(incarnation, sent[1]?.id ?? "", NOW);
    const texts = async (filter: { status?: "pending" | "ack"; afterSeq?: number; limit: number }) =>
      (await events.list({ incarnation, ...filter })).map((event) => event.text);
    expect(await texts({ limit: 99 })).toEqual(["text 0", "text 1", "text 2", "text 3", "text 4"]);
    expect(await texts({ limit: 99, status: "pending" })).toEqual(["text 0", "text 2", "text 3", "text 4"]);
    expect(await texts({ limit: 99, status: "ack" })).toEqual(["text 1"]);
    const page = await events.list({ incarnation, limit: 2 });
    expect(await texts({ limit: 2, afterSeq: page[1]?.seq ?? 0 })).toEqual(["text 2", "text 3"]);
    expect(await events.find(incarnation, sent[0]?.id ?? "")).toMatchObject({
      ...sent[0],
      status: "pending",
    });
    expect(await events.find(bob.incarnation, sent[0]?.id ?? "")).toBeUndefined();
  }));

Deno.test("SYS-AG-09: ack() keeps its first time, and refuses another agent's event", () =>
  withRecords(async ({ agents, events }) => {
    const { agent: { incarnation } } = await agents.pair({ agent: newAgent() });
    const event = newEvent(incarnation);
    await events.append(event, 9);
    expect(await events.ack("inc_other", event.id, NOW)).toBeUndefined();
    expect(await events.ack(incarnation, "evt_none", NOW)).toBeUndefined();
    expect(await events.ack(incarnation, event.id, NOW)).toMatchObject({ status: "ack", acked_at: NOW });
    expect(await events.ack(incarnation, event.id, NOW + 5)).toMatchObject({ status: "ack", acked_at: NOW });
  }));

Deno.test("purgeAcked() drops old acknowledged events alone; a number is never given twice", () =>
  withRecords(async ({ agents, events }) => {
    const { agent: { incarnation } } = await agents.pair({ agent: newAgent() });
    const [old, recent, pending] = [newEvent(incarnation), newEvent(incarnation), newEvent(incarnation)];
    expect(await events.lastSeq(incarnation)).toBe(0);
    for (const event of [pending, recent, old]) await events.append(event, 9);
    await events.ack(incarnation, old.id, NOW - 10);
    await events.ack(incarnation, recent.id, NOW);
    const last = await events.lastSeq(incarnation);
    expect(await events.purgeAcked(NOW)).toBe(1);
    expect((await events.list({ incarnation, limit: 9 })).map(({ id }) => id)).toEqual([
      pending.id,
      recent.id,
    ]);
    await events.append(newEvent(incarnation), 9);
    expect(await events.lastSeq(incarnation)).toBeGreaterThan(last);
  }));
