/** The live stream of an inbox over HTTP (SYS-AG-07, CH-EV-03). */
import { expect } from "../helpers/expect.ts";
import { startServer, type TestServer } from "../helpers/server.ts";
import { until } from "../store/database/helpers.ts";
import { SseClient } from "./sse.ts";

const MIB = 2 ** 20;

async function pairWithHook(server: TestServer, agentId: string): Promise<(text: string) => Promise<string>> {
  const { body } = await server.admin("POST", "/agents", { agent_id: agentId, webhook: true });
  return async (text) => {
    const response = await fetch(String(body.webhook_url), { method: "POST", body: text });
    return (await response.json()).event_id;
  };
}

Deno.test("GET /events/stream says ready, then each event as it comes, with its id (CH-EV-03)", async () => {
  await using server = await startServer();
  const send = await pairWithHook(server, "eve");
  await send("before the stream");
  const stream = await SseClient.open(server, "eve");
  expect(stream.response.headers.get("content-type")).toBe("text/event-stream");
  expect(stream.response.headers.get("cache-control")).toContain("no-store");
  expect(await stream.next()).toEqual({ event: "ready", id: undefined, data: { agent_id: "eve" } });
  for (const text of ["one", "two\n\nevent: forged\ndata: {}\n\n", "drei 🧵"]) {
    const id = await send(text);
    expect(await stream.next()).toEqual({
      event: "event",
      id,
      data: {
        id,
        agentId: "eve",
        receivedAt: expect.stringMatching(/Z$/),
        source: "local-webhook",
        text,
        status: "pending",
      },
    });
  }
  await stream.close();
  await until(() => server.context.events.streamCount === 0);
});

Deno.test("GET /events/stream shows an agent its own events alone (CH-EV-03)", async () => {
  await using server = await startServer();
  const [toEve, toBob] = [await pairWithHook(server, "eve"), await pairWithHook(server, "bob")];
  const [eve, bob] = [await SseClient.open(server, "eve"), await SseClient.open(server, "bob")];
  await Promise.all([eve.next(), bob.next()]);
  await toBob("for bob");
  await toEve("for eve");
  expect((await eve.next())?.data.text).toBe("for eve");
  expect((await bob.next())?.data.text).toBe("for bob");
  await Promise.all([eve.close(), bob.close()]);

  const foreign = await SseClient.open(server, "eve", await toBob("another"));
  expect((await foreign.next())?.event).toBe("ready");
  expect((await foreign.next())?.event, "another agent's event is not known").toBe("gap");
  await foreign.close();
});

Deno.test("GET /events/stream goes on behind Last-Event-ID, or says gap (CH-EV-03)", async () => {
  await using server = await startServer();
  const send = await pairWithHook(server, "eve");
  const ids = [await send("a"), await send("b"), await send("c")];
  const stream = await SseClient.open(server, "eve", ids[0]);
  expect((await stream.next())?.event).toBe("ready");
  expect([(await stream.next())?.id, (await stream.next())?.id]).toEqual(ids.slice(1));
  const live = await send("d");
  expect((await stream.next())?.id).toBe(live);
  await stream.close();

  const lost = await SseClient.open(server, "eve", "evt_nevermade");
  expect((await lost.next())?.event).toBe("ready");
  expect(await lost.next()).toEqual({ event: "gap", id: undefined, data: {} });
  const next = await send("e");
  expect((await lost.next())?.id).toBe(next);
  await lost.close();
});

Deno.test("GET /events/stream ends when its agent is deleted, and for no other (SYS-AG-04)", async () => {
  await using server = await startServer();
  await pairWithHook(server, "eve");
  const toBob = await pairWithHook(server, "bob");
  const [eve, bob] = [await SseClient.open(server, "eve"), await SseClient.open(server, "bob")];
  await Promise.all([eve.next(), bob.next()]);
  await server.admin("DELETE", "/agents/eve");
  expect(await eve.next()).toBeUndefined();
  await toBob("still here");
  expect((await bob.next())?.data.text).toBe("still here");

  const toNewEve = await pairWithHook(server, "eve");
  const fresh = await SseClient.open(server, "eve");
  expect((await fresh.next())?.event).toBe("ready");
  await toNewEve("to the new one");
  expect((await fresh.next())?.data.text).toBe("to the new one");
  await Promise.all([bob.close(), fresh.close()]);
});

Deno.test("GET /events/stream ends when the server drains", async () => {
  await using server = await startServer();
  await pairWithHook(server, "eve");
  const stream = await SseClient.open(server, "eve");
  await stream.next();
  server.context.beginDrain();
  expect(await stream.next()).toBeUndefined();
  await until(() => server.context.events.streamCount === 0);
});

Deno.test("GET /events/stream beyond 32 of an agent is 429 with Retry-After, until one is closed", async () => {
  await using server = await startServer();
  await pairWithHook(server, "eve");
  await pairWithHook(server, "bob");
  const open = (agentId: string) =>
    server.fetch("/events/stream", {
      headers: { authorization: `Bearer ${server.adminToken}`, "x-agent-id": agentId },
    });
  // All at once: none of them may slip in between another one's look and its opening.
  const answers = await Promise.all(Array.from({ length: 40 }, () => open("eve")));
  const refused = answers.filter(({ status }) => status === 429);
  const streams = answers.filter(({ status }) => status === 200).map((answer) => new SseClient(answer));
  expect([streams.length, refused.length]).toEqual([32, 8]);
  expect(server.context.events.streamCount).toBe(32);
  for (const answer of refused) {
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await answer.json()).toMatchObject({ reason: "rate_limited" });
  }
  const bob = await SseClient.open(server, "bob");
  await streams.pop()?.close();
  await until(() => server.context.events.streamCount === 32);
  streams.push(await SseClient.open(server, "eve"), bob);
  await Promise.all(streams.map((stream) => stream.close()));
  await until(() => server.context.events.streamCount === 0);
});

Deno.test("a client that does not read costs no memory and loses nothing (CH-EV-03)", async () => {
  await using server = await startServer();
  const send = await pairWithHook(server, "eve");
  const stream = await SseClient.open(server, "eve");
  await stream.next();
  const { incarnation } = await server.context.agents.get("eve");
  await send("warm");
  const before = Deno.memoryUsage().rss;
  // 2,000 events of 32 KiB, made by the database itself, so that this process has no part in their bytes.
  await server.context.database.engine.write([{
    sql: `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
      INSERT INTO events (id, incarnation, agent_id, received_at, source, text, status)
      SELECT 'evt_' || i, ?, 'eve', 0, 'local-webhook', hex(zeroblob(16384)), 'pending' FROM n`,
    parameters: [incarnation],
  }]);
  const last = await send("last");
  for (let n = 0; n < 20; n++) await (await server.fetch("/health")).body?.cancel();
  expect(Deno.memoryUsage().rss - before, "64 MiB wait in the database").toBeLessThan(40 * MIB);

  expect((await stream.next())?.data.text).toBe("warm");
  for (let n = 1; n <= 2000; n++) expect((await stream.next())?.id).toBe(`evt_${n}`);
  expect((await stream.next())?.id).toBe(last);
  await stream.close();
});
