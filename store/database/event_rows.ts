/** Texts left for agents: durable before they are acknowledged, bounded per agent (CH-EV-04, SYS-AG-06). */
import type { Kysely, Selectable } from "kysely";
import type { Engine } from "./engine.ts";
import { deleteInSlices } from "./delete_in_slices.ts";
import { prepare } from "./prepared.ts";
import type { EventsTable, Schema } from "./schema.ts";
import { toStatement } from "./batch.ts";

/** One stored event. */
export type EventRow = Selectable<EventsTable>;
/** An event to be stored, pending. */
export type NewEvent = Omit<EventRow, "seq" | "status" | "acked_at">;

/** What became of an event: `full`, too many are pending; `gone`, its agent is no more. */
export type AppendOutcome = "stored" | "full" | "gone";

/** Which events of an agent to list. */
export interface EventFilter {
  readonly incarnation: string;
  readonly status?: "pending" | "ack";
  /** Only those newer than the row of this `seq`. */
  readonly afterSeq?: number;
  readonly limit: number;
}

function buildQueries(kysely: Kysely<Schema>) {
  const all = kysely.selectFrom("events").selectAll();
  return {
    append: prepare<NewEvent & { max: number }, { seq: number }>((value) =>
      kysely.insertInto("events")
        .columns(["id", "incarnation", "agent_id", "received_at", "source", "text", "status"])
        .expression((eb) =>
          eb.selectFrom("agents")
            .select((agent) => [
              agent.val(value("id")).as("id"),
              "agents.incarnation",
              agent.val(value("agent_id")).as("agent_id"),
              agent.val(value("received_at")).as("received_at"),
              agent.val(value("source")).as("source"),
              agent.val(value("text")).as("text"),
              agent.val("pending").as("status"),
            ])
            .where("agents.incarnation", "=", value("incarnation"))
            .where((agent) =>
              // Counts no further than the limit, along the index.
              agent(
                agent.selectFrom((from) =>
                  from.selectFrom("events").select("seq")
                    .where("events.incarnation", "=", value("incarnation"))
                    .where("events.status", "=", "pending")
                    .limit(value("max")).as("pending")
                ).select((pending) => pending.fn.countAll<number>().as("count")),
                "<",
                value("max"),
              )
            )
        )
        .returning("seq")
    ),
    agent: prepare<{ incarnation: string }, { incarnation: string }>((value) =>
      kysely.selectFrom("agents").select("incarnation").where("incarnation", "=", value("incarnation"))
    ),
    find: prepare<{ incarnation: string; id: string }, EventRow>((value) =>
      all.where("id", "=", value("id")).where("incarnation", "=", value("incarnation"))
    ),
    ack: prepare<{ incarnation: string; id: string; now: number }, EventRow>((value) =>
      kysely.updateTable("events")
        .set((eb) => ({ status: "ack", acked_at: eb.fn.coalesce("acked_at", eb.val(value("now"))) }))
        .where("id", "=", value("id")).where("incarnation", "=", value("incarnation"))
        .returningAll()
    ),
    last: prepare<{ incarnation: string }, { seq: number }>((value) =>
      kysely.selectFrom("events").select("seq")
        .where("incarnation", "=", value("incarnation")).orderBy("seq", "desc").limit(1)
    ),
  };
}

/** The table `events`. Everything is asked for by incarnation: an agent sees its own only. */
export class EventRows {
  readonly #engine: Engine;
  readonly #kysely: Kysely<Schema>;
  readonly #queries: ReturnType<typeof buildQueries>;

  constructor(engine: Engine, kysely: Kysely<Schema>) {
    this.#engine = engine;
    this.#kysely = kysely;
    this.#queries = buildQueries(kysely);
  }

  /** Stores an event unless `maxPending` of its agent are waiting; durable when it resolves to `stored`. */
  async append(event: NewEvent, maxPending: number): Promise<AppendOutcome> {
    const stored = await this.#queries.append.write(this.#engine, { ...event, max: maxPending });
    if (stored.length === 1) return "stored";
    const agents = await this.#queries.agent.read(this.#engine, { incarnation: event.incarnation });
    return agents.length === 1 ? "full" : "gone";
  }

  /** Lists events, oldest first. */
  async list({ incarnation, status, afterSeq, limit }: EventFilter): Promise<EventRow[]> {
    let query = this.#kysely.selectFrom("events").selectAll()
      .where("incarnation", "=", incarnation).orderBy("seq").limit(limit);
    if (status !== undefined) query = query.where("status", "=", status);
    if (afterSeq !== undefined) query = query.where("seq", ">", afterSeq);
    return await query.execute();
  }

  /** Finds one event of this agent. */
  async find(incarnation: string, id: string): Promise<EventRow | undefined> {
    return (await this.#queries.find.read(this.#engine, { incarnation, id }))[0];
  }

  /** Acknowledges an event of this agent and returns it; a second time changes nothing. */
  async ack(incarnation: string, id: string, nowMs: number): Promise<EventRow | undefined> {
    return (await this.#queries.ack.write(this.#engine, { incarnation, id, now: nowMs }))[0];
  }

  /** Returns the `seq` of the agent's newest event on record, or 0. */
  async lastSeq(incarnation: string): Promise<number> {
    return (await this.#queries.last.read(this.#engine, { incarnation }))[0]?.seq ?? 0;
  }

  /** Drops events that were acknowledged before `beforeMs`. Returns how many. */
  purgeAcked(beforeMs: number): Promise<number> {
    return deleteInSlices(this.#engine, (limit) =>
      toStatement(
        this.#kysely.deleteFrom("events")
          .where("seq", "in", (eb) =>
            eb.selectFrom("events").select("seq").where("acked_at", "<", beforeMs).limit(limit))
          .returning("seq").compile(),
      ));
  }
}
