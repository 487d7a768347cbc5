/**
 * The inbox of each agent: texts that arrive by webhook, kept until they are acknowledged, and a live stream of them.
 *
 * A stream reads from the database from where it is, so a slow reader costs no memory and misses nothing.
 * Source: CH-EV-01 … 04; SYS-AG-06, 07, 09.
 */
import type { Clock } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import { createId, PREFIX } from "../base/ids.ts";
import type { AgentRow } from "../store/database/agent_rows.ts";
import type { EventRow, EventRows } from "../store/database/event_rows.ts";

/** Longest text of one event, in bytes. */
export const MAX_EVENT_BYTES = 65_536;
/** Most events of one agent that wait to be acknowledged. */
export const MAX_PENDING_EVENTS = 10_000;
/** How long acknowledged events are kept. */
export const KEEP_ACKED_MS = 7 * 86_400_000;

/** How many events a stream holds in memory at once: at most 256 KiB of text. */
const BATCH = 4;
/** How many events a page has at most, whatever was asked for: a page is built in one go. */
const MAX_PAGE = 100;
/** How many streams an agent may have open. */
const MAX_STREAMS = 32;

/** An event as clients see it. */
export interface EventRecord {
  id: string;
  agentId: string;
  receivedAt: string;
  source: string;
  text: string;
  status: string;
  ackedAt?: string;
}

/** What comes out of a stream. */
export type StreamItem =
  | { readonly kind: "ready"; readonly agentId: string }
  | { readonly kind: "event"; readonly record: EventRecord }
  | { readonly kind: "gap" }
  | { readonly kind: "ping" };

/** What the events service works with. */
export interface EventsOptions {
  readonly rows: EventRows;
  readonly clock: Clock;
  /** Whether other processes may add events, so that streams must look for themselves. */
  readonly shared: boolean;
  /** Returns whether this incarnation of an agent still lives, and has the same key where `byKey`. */
  isAlive(agent: AgentRow, byKey: boolean): Promise<boolean>;
  /** Milliseconds between pings, and between looks at a shared database. */
  readonly pingMs?: number;
  readonly pollMs?: number;
}

/** Turns a stored row into the record that clients see. */
export function toEventRecord(row: EventRow): EventRecord {
  return {
    id: row.id,
    agentId: row.agent_id,
    receivedAt: new Date(row.received_at).toISOString(),
    source: row.source,
    text: row.text,
    status: row.status,
    ...(row.acked_at === null ? {} : { ackedAt: new Date(row.acked_at).toISOString() }),
  };
}

/** What cannot be an id never reaches the database, which takes no NUL. */
function isEventId(text: string): boolean {
  return /^evt_[A-Za-z0-9_-]{1,64}$/.test(text);
}

/** Keeps and streams events. */
export class Events {
  readonly #options: EventsOptions;
  readonly #listeners = new Map<string, Set<() => void>>();
  readonly #closed = new Set<string>();
  #draining = false;

  constructor(options: EventsOptions) {
    this.#options = options;
  }

  /** Stores a text for an agent; durable when it resolves. Throws `rate_limited` when the inbox is full. */
  async append(agent: AgentRow, text: string): Promise<string> {
    const id = createId(PREFIX.event);
    const outcome = await this.#options.rows.append({
      id,
      incarnation: agent.incarnation,
      agent_id: agent.agent_id,
      received_at: this.#options.clock.now(),
      source: "local-webhook",
      text,
    }, MAX_PENDING_EVENTS);
    if (outcome === "gone") {
      throw new AppError("unknown_token", "Cannot accept this webhook: its agent was deleted");
    }
    if (outcome === "full") {
      throw new AppError(
        "rate_limited",
        `Cannot accept this event: ${MAX_PENDING_EVENTS} are waiting already`,
        {
          hint: "Acknowledge events of this agent, then send it again.",
          retryAfterSeconds: 60,
        },
      );
    }
    this.#wake(agent.incarnation);
    return id;
  }

  /** Returns events, oldest first, from behind `afterSeq`, and where to go on when there may be more. */
  async list(
    agent: AgentRow,
    options: { status?: "pending" | "ack"; afterSeq: number; limit: number },
  ): Promise<{ events: EventRecord[]; nextSeq?: number }> {
    const limit = Math.min(options.limit, MAX_PAGE);
    const rows = await this.#options.rows.list({ incarnation: agent.incarnation, ...options, limit });
    const last = rows.at(-1);
    return {
      events: rows.map(toEventRecord),
      ...(last !== undefined && rows.length === limit ? { nextSeq: last.seq } : {}),
    };
  }

  /** Acknowledges an event; the first time counts. Throws `not_found`. */
  async acknowledge(agent: AgentRow, id: string): Promise<EventRecord> {
    const row = isEventId(id)
      ? await this.#options.rows.ack(agent.incarnation, id, this.#options.clock.now())
      : undefined;
    if (row === undefined) throw new AppError("not_found", "Cannot find this event in the agent's inbox");
    return toEventRecord(row);
  }

  /** Ends all streams of an incarnation that was deleted. */
  closeStreams(incarnation: string): void {
    if (!this.#listeners.has(incarnation)) return;
    this.#closed.add(incarnation);
    this.#wake(incarnation);
  }

  /** Makes the streams of an incarnation look whether they may go on: its key was replaced. */
  recheckStreams(incarnation: string): void {
    this.#wake(incarnation);
  }

  /** Ends all streams, because the server stops. */
  drain(): void {
    this.#draining = true;
    for (const incarnation of this.#listeners.keys()) this.#wake(incarnation);
  }

  /** Throws `rate_limited` when the agent has as many streams open as one may have. */
  requireRoom(agent: AgentRow): void {
    if ((this.#listeners.get(agent.incarnation)?.size ?? 0) < MAX_STREAMS) return;
    throw new AppError("rate_limited", `Cannot open another stream: ${MAX_STREAMS} of this agent are open`, {
      hint: "Close one first.",
      retryAfterSeconds: 30,
    });
  }

  /** How many streams are open. */
  get streamCount(): number {
    return this.#listeners.values().reduce((count, set) => count + set.size, 0);
  }

  /**
   * Streams an agent's events until `signal` aborts, the agent is deleted or the server drains.
   *
   * Begins with `ready`. With `lastEventId` it goes on behind that event, or says `gap` when that one is not kept any
   * more; without, it begins with the next event to come.
   */
  async *stream(
    agent: AgentRow,
    lastEventId: string | null,
    signal: AbortSignal,
    options: { byKey?: boolean } = {},
  ): AsyncGenerator<StreamItem> {
    const { rows } = this.#options;
    const waiter = this.#listen(agent.incarnation, signal);
    try {
      const last = lastEventId !== null && isEventId(lastEventId)
        ? await rows.find(agent.incarnation, lastEventId)
        : undefined;
      let seq = last?.seq ?? await rows.lastSeq(agent.incarnation);
      yield { kind: "ready", agentId: agent.agent_id };
      if (lastEventId !== null && last === undefined) yield { kind: "gap" };
      while (!signal.aborted && !this.#draining) {
        waiter.arm();
        if (this.#closed.has(agent.incarnation)) return;
        // Before each look: what was opened with a key ends with it, and what comes later is not for it.
        if (!await this.#options.isAlive(agent, options.byKey ?? false)) return;
        const batch = await rows.list({ incarnation: agent.incarnation, afterSeq: seq, limit: BATCH });
        for (const row of batch) {
          yield { kind: "event", record: toEventRecord(row) };
          seq = row.seq;
        }
        if (batch.length > 0) continue;
        if (await waiter.wait() === "ping") yield { kind: "ping" };
      }
    } finally {
      waiter.dispose();
    }
  }

  /** A stream's own alarm clock: woken by new events, by looking again, by the ping's time and by its end. */
  #listen(incarnation: string, signal: AbortSignal) {
    const { pingMs = 30_000, pollMs = 500, shared } = this.#options;
    let woken = Promise.withResolvers<void>();
    let pingAt = performance.now() + pingMs;
    const wake = () => woken.resolve();
    const listeners = this.#listeners.get(incarnation) ?? new Set();
    this.#listeners.set(incarnation, listeners.add(wake));
    signal.addEventListener("abort", wake);
    return {
      arm: () => {
        woken = Promise.withResolvers<void>();
        if (signal.aborted || this.#draining || this.#closed.has(incarnation)) woken.resolve();
      },
      wait: async (): Promise<"woken" | "ping"> => {
        const untilPing = Math.max(0, pingAt - performance.now());
        const timer = setTimeout(wake, shared ? Math.min(pollMs, untilPing) : untilPing);
        await woken.promise;
        clearTimeout(timer);
        if (performance.now() < pingAt) return "woken";
        pingAt = performance.now() + pingMs;
        return "ping";
      },
      dispose: () => {
        signal.removeEventListener("abort", wake);
        listeners.delete(wake);
        if (listeners.size > 0) return;
        this.#listeners.delete(incarnation);
        this.#closed.delete(incarnation);
      },
    };
  }

  #wake(incarnation: string): void {
    for (const wake of this.#listeners.get(incarnation) ?? []) wake();
  }
}
