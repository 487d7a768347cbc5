/** `POST /webhook/{token}`: a text is stored, and never run (SYS-AG-06, CH-EV). */
import { MAX_EVENT_BYTES, MAX_PENDING_EVENTS } from "../../runtime/events.ts";
import { expect } from "../helpers/expect.ts";
import { type Row, type RowRequest, testRows, type World } from "./rows.ts";
import { VALID } from "./scenarios.ts";

async function noteHook(world: World): Promise<void> {
  world.notes.hook = (await VALID.receiveWebhook(world)).path ?? "";
}

function hook(changes: Partial<RowRequest>) {
  return ({ notes }: World): RowRequest => ({
    method: "POST",
    path: notes.hook ?? "",
    as: "nobody",
    headers: { "content-type": "text/plain" },
    ...changes,
  });
}

async function inbox({ send, agentId }: World): Promise<{ id: string; text: string }[]> {
  const answer = await send({ method: "GET", path: "/events", headers: { "x-agent-id": agentId } });
  return JSON.parse(answer.text).events;
}

function stored(name: string, changes: Partial<RowRequest>, text: string): Row {
  return {
    name: `POST /webhook/{token} stores ${name}`,
    rules: ["SYS-AG-06", "CH-EV-01"],
    before: noteHook,
    request: hook(changes),
    expect: ({ agentId }) => ({ status: 202, json: { ok: true, agent_id: agentId } }),
    async after(world, answer) {
      const events = await inbox(world);
      expect(events.length).toBe(1);
      expect(events[0]).toEqual({
        id: JSON.parse(answer.text).event_id,
        agentId: world.agentId,
        receivedAt: expect.stringMatching(/^\d{4}-.*Z$/),
        source: "local-webhook",
        text,
        status: "pending",
      });
    },
  };
}

function refused(name: string, changes: Partial<RowRequest>, status: number, reason: string): Row {
  return {
    name: `POST /webhook/{token} answers ${status} for ${name}`,
    rules: ["SYS-AG-06"],
    before: noteHook,
    request: hook(changes),
    expect: { status, reason: reason as never },
    after: async (world) => expect(await inbox(world)).toEqual([]),
  };
}

const rows: Row[] = [
  stored("plain text", { body: "hello" }, "hello"),
  stored("JSON as it was sent", {
    body: '{ "a": [1] }',
    headers: { "content-type": "application/json" },
  }, '{ "a": [1] }'),
  stored("a text without a media type", { body: new TextEncoder().encode("x"), headers: {} }, "x"),
  stored("what looks like a command, as text", {
    body: "/act rm -rf / `id` $(id) {{secret}}\n```sfmd\n!action\n```",
  }, "/act rm -rf / `id` $(id) {{secret}}\n```sfmd\n!action\n```"),
  stored("64 KiB exactly", { body: "é".repeat(MAX_EVENT_BYTES / 2) }, "é".repeat(MAX_EVENT_BYTES / 2)),
  stored("a text with quotes and a byte order mark inside", { body: `a\ufeff'";--` }, `a\ufeff'";--`),
  refused("64 KiB and one byte", { body: "x".repeat(MAX_EVENT_BYTES + 1) }, 413, "too_large"),
  refused("nothing", {}, 400, "invalid_request"),
  refused("white space", { body: " \n\t" }, 400, "invalid_request"),
  refused("a NUL", { body: "a\0b" }, 400, "invalid_request"),
  refused("bytes that are no UTF-8", { body: new Uint8Array([0x61, 0xff]) }, 400, "invalid_request"),
  refused("an image", { body: "x", headers: { "content-type": "image/png" } }, 415, "unsupported_media_type"),
  refused(
    "a form",
    { body: "a=b", headers: { "content-type": "application/x-www-form-urlencoded" } },
    415,
    "unsupported_media_type",
  ),
  ...["x", "n".repeat(43), "", "%00", "..%2f"].map((token): Row => ({
    name: `POST /webhook/${token.slice(0, 8)} is no agent's`,
    rules: ["SYS-AG-06"],
    request: {
      method: "POST",
      target: `/webhook/${token}`,
      as: "nobody",
      headers: { "content-length": "0" },
    },
    expect: token === ""
      ? { status: 404, reason: "not_found" }
      : { status: 401, reason: "unknown_token", lacks: ["nnnnnnnn"] },
  })),
  {
    name: "POST /webhook/{token} answers 429 at 10,000 pending, and 202 after one is acknowledged",
    rules: ["CH-EV-04"],
    async before(world) {
      await noteHook(world);
      const { server, agentId } = world;
      const { incarnation } = await server.context.agents.get(agentId);
      await server.context.database.engine.write([{
        sql: `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${MAX_PENDING_EVENTS})
          INSERT INTO events (id, incarnation, agent_id, received_at, source, text, status)
          SELECT 'evt_' || i, ?, ?, 0, 'local-webhook', 'x', 'pending' FROM n`,
        parameters: [incarnation, agentId],
      }]);
    },
    request: hook({ body: "one too many" }),
    expect: { status: 429, reason: "rate_limited", contains: ["10000"] },
    async after({ send, agentId, notes }) {
      const ack = await send({
        method: "POST",
        path: "/events/evt_77/ack",
        headers: { "x-agent-id": agentId },
      });
      expect(ack.status).toBe(200);
      const again = await send({ method: "POST", path: notes.hook ?? "", body: "now", as: "nobody" });
      expect(again.status).toBe(202);
    },
  },
];

const acks: Row[] = [
  {
    name: "POST /events/{id}/ack acknowledges once; the second time changes nothing",
    rules: ["SYS-AG-09"],
    async before({ server, agentId, notes }) {
      notes.id = await server.context.events.append(await server.context.agents.get(agentId), "x");
    },
    request: ({ notes, agentId }) => ({
      method: "POST",
      path: `/events/${notes.id}/ack`,
      headers: { "x-agent-id": agentId },
    }),
    expect: ({ notes }) => ({ status: 200, json: { id: notes.id, status: "ack" } }),
    async after(world, answer) {
      const { send, notes, agentId } = world;
      const headers = { "x-agent-id": agentId };
      const again = await send({ method: "POST", path: `/events/${notes.id}/ack`, headers });
      expect(again.text).toBe(answer.text);
      const list = async (query: string) =>
        JSON.parse((await send({ method: "GET", path: `/events${query}`, headers })).text).events.length;
      expect([await list("?status=pending"), await list("?status=ack"), await list("")]).toEqual([0, 1, 1]);
    },
  },
  {
    name: "POST /events/{id}/ack of another agent's event is 404",
    rules: ["CH-EV-03"],
    async before({ server, notes }) {
      await server.admin("POST", "/agents", { agent_id: "bob" });
      notes.id = await server.context.events.append(await server.context.agents.get("bob"), "x");
    },
    request: ({ notes, agentId }) => ({
      method: "POST",
      path: `/events/${notes.id}/ack`,
      headers: { "x-agent-id": agentId },
    }),
    expect: { status: 404, reason: "not_found" },
    after: async ({ server }) => {
      const { events } = await server.context.events.list(await server.context.agents.get("bob"), {
        afterSeq: 0,
        limit: 10,
        status: "pending",
      });
      expect(events.length).toBe(1);
    },
  },
  {
    name: "GET /events pages oldest first, each event once",
    rules: ["SYS-AG-09"],
    async before({ server, agentId }) {
      const agent = await server.context.agents.get(agentId);
      for (let n = 0; n < 5; n++) await server.context.events.append(agent, `text ${n}`);
    },
    request: ({ agentId }) => ({
      method: "GET",
      path: "/events?limit=2&status=pending",
      headers: { "x-agent-id": agentId },
    }),
    expect: { status: 200 },
    async after({ send, agentId }, answer) {
      let page = JSON.parse(answer.text);
      const texts: string[] = [];
      for (;;) {
        texts.push(...page.events.map((event: { text: string }) => event.text));
        if (page.cursor === undefined) break;
        const path = `/events?limit=2&status=pending&cursor=${page.cursor}`;
        page = JSON.parse((await send({ method: "GET", path, headers: { "x-agent-id": agentId } })).text);
      }
      expect(texts).toEqual(["text 0", "text 1", "text 2", "text 3", "text 4"]);
    },
  },
  ...["limit=0", "status=all", "cursor=%21", "cursor=LTE"].map((query): Row => ({
    name: `GET /events?${query} is 400`,
    rules: ["SYS-AG-09"],
    request: ({ agentId }) => ({
      method: "GET",
      target: `/events?${query}`,
      headers: { "x-agent-id": agentId },
    }),
    expect: { status: 400, reason: "invalid_request" },
  })),
];

testRows("POST /webhook/{token}", rows);
testRows("events on record", acks);
