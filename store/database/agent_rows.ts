/** Agents on record. Everything that others bind to is the incarnation, never the name (report 5). */
import type { Kysely, Selectable } from "kysely";
import {
  type CapabilityRow,
  type CapabilityValues,
  insertCapability,
  isUnspent,
  type NewCapability,
  toCapabilityValues,
} from "./capability_sql.ts";
import type { Engine, Statement } from "./engine.ts";
import { prepare } from "./prepared.ts";
import type { AgentsTable, Schema } from "./schema.ts";

/** One stored agent. */
export type AgentRow = Selectable<AgentsTable>;
/** An agent to be stored; its key, if any, is set beside. */
export type NewAgent = Omit<AgentRow, "key_hash">;

/** What one pairing stores, all of it or none. */
export interface Pairing {
  /** Used only when no agent of this `agent_id` lives. */
  readonly agent: NewAgent;
  /** SHA-256 (hex) of a new key, which replaces the present one. */
  readonly keyHash?: string;
  /** A first grant; its `agent_id` must be the agent's. */
  readonly capability?: Omit<NewCapability, "incarnation">;
}

/** What a pairing left behind. */
export interface Paired {
  readonly agent: AgentRow;
  readonly created: boolean;
  readonly capability?: CapabilityRow;
}

function buildQueries(kysely: Kysely<Schema>) {
  const all = kysely.selectFrom("agents").selectAll();
  return {
    byId: prepare<{ id: string }, AgentRow>((value) => all.where("agent_id", "=", value("id"))),
    byKey: prepare<{ hash: string }, AgentRow>((value) => all.where("key_hash", "=", value("hash"))),
    byWebhook: prepare<{ hash: string }, AgentRow>((value) => all.where("webhook_hash", "=", value("hash"))),
    insert: prepare<NewAgent, { incarnation: string }>((value) =>
      kysely.insertInto("agents")
        .values({
          incarnation: value("incarnation"),
          agent_id: value("agent_id"),
          home: value("home"),
          created_at: value("created_at"),
          webhook_counter: value("webhook_counter"),
          webhook_hash: value("webhook_hash"),
        })
        .onConflict((conflict) => conflict.column("agent_id").doNothing())
        .returning("incarnation")
    ),
    setKey: prepare<{ id: string; hash: string }, AgentRow>((value) =>
      kysely.updateTable("agents").set({ key_hash: value("hash") })
        .where("agent_id", "=", value("id")).returningAll()
    ),
    rotate: prepare<
      { incarnation: string; expected: number; next: number; hash: string },
      { incarnation: string }
    >(
      (value) =>
        kysely.updateTable("agents")
          .set({ webhook_counter: value("next"), webhook_hash: value("hash") })
          .where("incarnation", "=", value("incarnation"))
          .where("webhook_counter", "=", value("expected"))
          .returning("incarnation"),
    ),
    grant: prepare<CapabilityValues, CapabilityRow>((value) => insertCapability(kysely, value)),
    revokeAll: prepare<{ id: string; now: number }, { token_id: string }>((value) =>
      kysely.updateTable("capabilities").set({ revoked_at: value("now") })
        .where(
          "incarnation",
          "=",
          (eb) => eb.selectFrom("agents").select("agents.incarnation").where("agent_id", "=", value("id")),
        )
        .where((eb) => isUnspent(eb, value("now")))
        .returning("token_id")
    ),
    remove: prepare<{ id: string }, AgentRow>((value) =>
      kysely.deleteFrom("agents").where("agent_id", "=", value("id")).returningAll()
    ),
  };
}

/** The table `agents`. */
export class AgentRows {
  readonly #engine: Engine;
  readonly #kysely: Kysely<Schema>;
  readonly #queries: ReturnType<typeof buildQueries>;

  constructor(engine: Engine, kysely: Kysely<Schema>) {
    this.#engine = engine;
    this.#kysely = kysely;
    this.#queries = buildQueries(kysely);
  }

  /** Finds the living agent of this name. */
  async find(agentId: string): Promise<AgentRow | undefined> {
    return (await this.#queries.byId.read(this.#engine, { id: agentId }))[0];
  }

  /** Finds the agent that holds the key with this SHA-256 (hex). */
  async findByKeyHash(hash: string): Promise<AgentRow | undefined> {
    return (await this.#queries.byKey.read(this.#engine, { hash }))[0];
  }

  /** Finds the agent whose webhook token has this SHA-256 (hex). */
  async findByWebhookHash(hash: string): Promise<AgentRow | undefined> {
    return (await this.#queries.byWebhook.read(this.#engine, { hash }))[0];
  }

  /** Lists all agents, oldest first. */
  async list(): Promise<AgentRow[]> {
    return await this.#kysely.selectFrom("agents").selectAll()
      .orderBy("created_at").orderBy("agent_id").execute();
  }

  /** Returns how many agents live. */
  async count(): Promise<number> {
    const row = await this.#kysely.selectFrom("agents")
      .select((eb) => eb.fn.countAll<number>().as("count")).executeTakeFirstOrThrow();
    return row.count;
  }

  /** Pairs in one write: the agent unless it lives, its key if given, its first grant if given. */
  async pair({ agent, keyHash, capability }: Pairing): Promise<Paired> {
    const id = agent.agent_id;
    if (capability !== undefined && capability.agent_id !== id) {
      throw new TypeError("Cannot pair: the capability is for another agent");
    }
    const statements: Statement[] = [this.#queries.insert.fill(agent)];
    if (keyHash !== undefined) statements.push(this.#queries.setKey.fill({ id, hash: keyHash }));
    statements.push(this.#queries.byId.fill({ id }));
    if (capability !== undefined) statements.push(this.#queries.grant.fill(toCapabilityValues(capability)));
    const rows = await this.#engine.write(statements);
    const granted = capability === undefined ? undefined : rows.pop()?.[0] as CapabilityRow | undefined;
    const present = rows.pop()?.[0] as AgentRow | undefined;
    if (present === undefined || (capability !== undefined && granted === undefined)) {
      throw new Error("Pairing stored less than it was asked to");
    }
    const created = rows[0]?.length === 1;
    return granted === undefined
      ? { agent: present, created }
      : { agent: present, created, capability: granted };
  }

  /** Gives the agent a new key by its SHA-256 (hex), and returns it; undefined when there is no such agent. */
  async setKeyHash(agentId: string, hash: string): Promise<AgentRow | undefined> {
    return (await this.#queries.setKey.write(this.#engine, { id: agentId, hash }))[0];
  }

  /** Moves the webhook token to the next counter; false when another rotation came first or the agent is gone. */
  async rotateWebhook(incarnation: string, expectedCounter: number, newHash: string): Promise<boolean> {
    const values = { incarnation, expected: expectedCounter, next: expectedCounter + 1, hash: newHash };
    return (await this.#queries.rotate.write(this.#engine, values)).length === 1;
  }

  /** Removes an agent and its events and revokes its live capabilities, in one write. */
  async remove(agentId: string, nowMs: number): Promise<{ agent?: AgentRow; revokedCapabilities: number }> {
    const [revoked, removed] = await this.#engine.write([
      this.#queries.revokeAll.fill({ id: agentId, now: nowMs }),
      this.#queries.remove.fill({ id: agentId }),
    ]);
    const agent = removed?.[0] as AgentRow | undefined;
    const revokedCapabilities = revoked?.length ?? 0;
    return agent === undefined ? { revokedCapabilities } : { agent, revokedCapabilities };
  }
}
