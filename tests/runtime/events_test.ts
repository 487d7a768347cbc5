import { AppError } from "../../base/errors.ts";
import { Events, KEEP_ACKED_MS, type StreamItem } from "../../runtime/events.ts";
import type { AgentRow } from "../../store/database/agent_rows.ts";
import type { Database } from "../../store/database/open.ts";
import { expect } from "../helpers/expect.ts";
import { newAgent, NOW, refusalOf, until, withRecords } from "../store/database/helpers.ts";

interface Inbox {
  readonly db: Database;
  readonly agent: AgentRow;
  /** A service of its own on the same records, as another process would have it. */
  open(options?: { pingMs?: number; shared?: boolean }): Events;
}

function withInbox(run: (inbox: Inbox) => Promise<void>): Promise<void> {
  return withRecords(async (db) => {
    const { agent } = await db.agents.pair({ agent: newAgent() });
    await run({
      db,
      agent,
      open: ({ pingMs = 30_000, shared = false } = {}) =>
        new Events({
          rows: db.events,
          clock: { now: () => NOW },
          shared,
          pingMs,
          pollMs: 10,
          isAlive: async ({ agent_id, incarnation }) =>
            (await db.agents.find(agent_id))?.incarnation === incarnation,
        }),
    });
  });
}

/** A stream that can be stopped, without its `ready`. */
async function begin(events: Events, agent: AgentRow, lastEventId: string | null = null) {
  const abort = new AbortController();
  const items = events.stream(agent, lastEventId, abort.signal);
  expect((await items.next()).value).toEqual({ kind: "ready", agentId: "eve" });
  return {
    next: async (): Promise<StreamItem | undefined> => (await items.next()).value ?? undefined,
    async stop() {
      abort.abort();
      await items.return(undefined);
    },
  };
}

Deno.test("stream() says ping when nothing happens, again and again (CH-EV-03)", () =>
  withInbox(async ({ agent, open }) => {
    const events = open({ pingMs: 15 });
    const stream = await begin(events, agent);
    for (let n = 0; n < 3; n++) expect(await stream.next()).toEqual({ kind: "ping" });
    await events.append(agent, "hello");
    const seen: string[] = [];
    while (!seen.includes("event")) seen.push((await stream.next())?.kind ?? "end");
    expect(seen.every((kind) => kind === "ping" || kind === "event")).toBe(true);
    await stream.stop();
    expect(events.streamCount).toBe(0);
  }));

Deno.test("stream() begins with the next event, and replays behind an acknowledged one", () =>
  withInbox(async ({ agent, open }) => {
    const events = open();
    const first = await events.append(agent, "first");
    await events.acknowledge(agent, first);
    const fresh = await begin(events, agent);
    await events.append(agent, "second");
    expect(await fresh.next()).toMatchObject({
      kind: "event",
      record: { text: "second", status: "pending" },
    });
    await fresh.stop();
    const replay = await begin(events, agent, first);
    expect(await replay.next()).toMatchObject({ kind: "event", record: { text: "second" } });
    await replay.stop();
  }));

Deno.test("stream() says gap once for an event that was purged", () =>
  withInbox(async ({ db, agent, open }) => {
    const events = open();
    const gone = await events.append(agent, "gone");
    await events.acknowledge(agent, gone);
    expect(await db.events.purgeAcked(NOW + 1)).toBe(1);
    const stream = await begin(events, agent, gone);
    expect(await stream.next()).toEqual({ kind: "gap" });
    await events.append(agent, "next");
    expect(await stream.next()).toMatchObject({ kind: "event", record: { text: "next" } });
    await stream.stop();
  }));

Deno.test("stream() sees what another process appends and deletes, where the records are shared", () =>
  withInbox(async ({ db, agent, open }) => {
    const [here, there] = [open({ shared: true }), open({ shared: true })];
    const stream = await begin(here, agent);
    await there.append(agent, "from there");
    expect(await stream.next()).toMatchObject({ kind: "event", record: { text: "from there" } });
    await db.agents.remove("eve", NOW);
    expect(await stream.next()).toBeUndefined();
    expect(here.streamCount).toBe(0);
  }));

Deno.test("stream() of a deleted agent ends, also where the end was there first", () =>
  withInbox(async ({ db, agent, open }) => {
    const events = open();
    await db.agents.remove("eve", NOW);
    events.closeStreams(agent.incarnation);
    const stream = await begin(events, agent);
    expect(await stream.next()).toBeUndefined();
  }));

Deno.test("stream() does not miss an event that comes while it looks", () =>
  withInbox(async ({ agent, open }) => {
    const events = open();
    const stream = await begin(events, agent);
    const seen: string[] = [];
    const reading = (async () => {
      while (seen.length < 200) {
        const item = await stream.next();
        if (item?.kind === "event") seen.push(item.record.text);
      }
    })();
    for (let n = 0; n < 200; n += 4) {
      await Promise.all([0, 1, 2, 3].map((more) => events.append(agent, `${n + more}`)));
    }
    await reading;
    expect(seen).toEqual(Array.from({ length: 200 }, (_, n) => String(n)));
    await stream.stop();
  }));

Deno.test("stream() that is stopped asleep ends at once and leaves nothing behind", () =>
  withInbox(async ({ agent, open }) => {
    const events = open();
    const streams = await Promise.all([begin(events, agent), begin(events, agent)]);
    const waiting = streams.map((stream) => stream.next());
    await until(() => events.streamCount === 2);
    events.drain();
    expect(await Promise.all(waiting)).toEqual([undefined, undefined]);
    expect(events.streamCount).toBe(0);
    await Promise.all(streams.map((stream) => stream.stop()));
  }));

Deno.test("append() refuses with unknown_token once the agent is gone", () =>
  withInbox(async ({ db, agent, open }) => {
    const events = open();
    await db.agents.remove("eve", NOW);
    const refusal = await refusalOf(events.append(agent, "x"));
    expect(refusal instanceof AppError && refusal.code).toBe("unknown_token");
  }));

Deno.test("acknowledged events are kept seven days, pending ones for good (SYS-AG-09)", () =>
  withInbox(async ({ db, agent, open }) => {
    const events = open();
    const acked = await events.append(agent, "acked");
    await events.append(agent, "pending");
    await events.acknowledge(agent, acked);
    const texts = async () =>
      (await events.list(agent, { afterSeq: 0, limit: 10 })).events.map((event) => event.text);
    expect(KEEP_ACKED_MS).toBe(7 * 86_400_000);
    const purgeAt = (nowMs: number) => db.events.purgeAcked(nowMs - KEEP_ACKED_MS);
    await purgeAt(NOW + KEEP_ACKED_MS);
    expect(await texts()).toEqual(["acked", "pending"]);
    await purgeAt(NOW + KEEP_ACKED_MS + 1);
    expect(await texts()).toEqual(["pending"]);
  }));

Deno.test("list() gives no more than 100 at once, whatever was asked for, and says where to go on", () =>
  withInbox(async ({ agent, open }) => {
    const events = open();
    const sent = Array.from({ length: 250 }, (_, n) => `text ${n}`);
    for (const text of sent) await events.append(agent, text);
    const pages: string[][] = [];
    for (let afterSeq: number | undefined = 0; afterSeq !== undefined;) {
      const page: Awaited<ReturnType<Events["list"]>> = await events.list(agent, { afterSeq, limit: 1000 });
      pages.push(page.events.map(({ text }) => text));
      afterSeq = page.nextSeq;
    }
    expect(pages.map(({ length }) => length)).toEqual([100, 100, 50]);
    expect(pages.flat()).toEqual(sent);
    expect((await events.list(agent, { afterSeq: 0, limit: 7 })).events).toHaveLength(7);
  }));
