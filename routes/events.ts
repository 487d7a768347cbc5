/** `/events`: an agent's inbox, its acknowledgements and its live stream. Source: SYS-AG-07, 09; CH-EV-01 … 04. */
import { AppError } from "../base/errors.ts";
import type { StreamItem } from "../runtime/events.ts";
import { actorOf, requireAgent } from "./access.ts";
import type { CallerHandler, Context } from "./handler.ts";
import { readLimit, readSeqCursor, toSeqCursor } from "./paging.ts";
import { json } from "./respond.ts";
import { readSingleQuery } from "./target.ts";

function readStatus(query: string): "pending" | "ack" | undefined {
  const text = readSingleQuery(query, "status");
  if (text === undefined || text === "pending" || text === "ack") return text;
  throw new AppError("invalid_request", "Cannot list: status must be 'pending' or 'ack'");
}

function toServerSentEvent(item: StreamItem): string {
  switch (item.kind) {
    case "ready":
      return `event: ready\ndata: ${JSON.stringify({ agent_id: item.agentId })}\n\n`;
    case "event":
      return `id: ${item.record.id}\nevent: event\ndata: ${JSON.stringify(item.record)}\n\n`;
    default:
      return `event: ${item.kind}\ndata: {}\n\n`;
  }
}

/** Pulls one item at a time, so that a client that does not read costs nothing. `first` is already on its way. */
function toStream(
  items: AsyncGenerator<StreamItem>,
  first: Promise<IteratorResult<StreamItem>>,
  abort: AbortController,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const encoder = new TextEncoder();
  let next: Promise<IteratorResult<StreamItem>> | undefined = first;
  return new ReadableStream({
    async pull(controller) {
      const step = await (next ?? items.next());
      next = undefined;
      if (step.done) controller.close();
      else controller.enqueue(encoder.encode(toServerSentEvent(step.value)));
    },
    cancel() {
      abort.abort();
      // The generator may be asleep; the abort wakes it and it ends by itself.
      items.return(undefined).catch(() => {});
    },
  }, { highWaterMark: 0 });
}

const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-store, no-transform",
  "x-content-type-options": "nosniff",
  "x-accel-buffering": "no",
};

/** Binds the handlers of events. */
export function bindEvents({ events, audit, access }: Context): {
  listEvents: CallerHandler;
  acknowledgeEvent: CallerHandler;
  streamEvents: CallerHandler;
} {
  return {
    async listEvents({ facts, target }, caller) {
      const agent = await requireAgent(facts, caller, access);
      const status = readStatus(target.query);
      const { events: page, nextSeq } = await events.list(agent, {
        afterSeq: readSeqCursor(target.query),
        limit: readLimit(target.query),
        ...(status === undefined ? {} : { status }),
      });
      return json({ events: page, ...(nextSeq === undefined ? {} : { cursor: toSeqCursor(nextSeq) }) });
    },

    async acknowledgeEvent({ facts, param }, caller) {
      const agent = await requireAgent(facts, caller, access);
      const record = await events.acknowledge(agent, param("event_id"));
      audit.record({ actor: actorOf(caller), action: "event.ack", agentId: agent.agent_id, outcome: "ok" });
      return json(record);
    },

    async streamEvents({ raw, facts }, caller) {
      const agent = await requireAgent(facts, caller, access);
      if (raw.method === "HEAD") return new Response(null, { headers: STREAM_HEADERS });
      // From here to the first step nothing may wait: it is that step which takes the place.
      events.requireRoom(agent);
      const abort = new AbortController();
      const items = events.stream(agent, facts.header("last-event-id"), abort.signal, {
        byKey: caller.kind === "agent",
      });
      return new Response(toStream(items, items.next(), abort), { headers: STREAM_HEADERS });
    },
  };
}
