/** Capabilities on record: mint, find, list, revoke. What one request spends is in `capability_spending.ts`. */
import type { Kysely } from "kysely";
import {
  type CapabilityRow,
  type CapabilityValues,
  insertCapability,
  type NewCapability,
  toCapabilityValues,
} from "./capability_sql.ts";
import type { Engine } from "./engine.ts";
import { CapabilitySpending } from "./capability_spending.ts";
import { deleteInSlices } from "./delete_in_slices.ts";
import { prepare } from "./prepared.ts";
import type { Schema } from "./schema.ts";
import { toStatement } from "./batch.ts";

export type { CapabilityRow, NewCapability } from "./capability_sql.ts";

/** Which capabilities to list. */
export interface CapabilityFilter {
  readonly agentId?: string;
  /** Only those of one incarnation of an agent. */
  readonly incarnation?: string;
  /** Only those older than the row of this `seq`. */
  readonly beforeSeq?: number;
  /** Most rows to return. */
  readonly limit: number;
}

function buildQueries(kysely: Kysely<Schema>) {
  const all = kysely.selectFrom("capabilities").selectAll();
  return {
    insert: prepare<CapabilityValues, CapabilityRow>((value) => insertCapability(kysely, value)),
    byHash: prepare<{ hash: string }, CapabilityRow>((value) => all.where("secret_hash", "=", value("hash"))),
    byTokenId: prepare<{ id: string }, CapabilityRow>((value) => all.where("token_id", "=", value("id"))),
    revoke: prepare<{ id: string; now: number }, CapabilityRow>((value) =>
      kysely.updateTable("capabilities").set({ revoked_at: value("now") })
        .where("token_id", "=", value("id"))
        .where("revoked_at", "is", null).where("consumed_at", "is", null)
        .returningAll()
    ),
  };
}

/** The table `capabilities`. */
export class CapabilityRows extends CapabilitySpending {
  readonly #engine: Engine;
  readonly #kysely: Kysely<Schema>;
  readonly #queries: ReturnType<typeof buildQueries>;

  constructor(engine: Engine, kysely: Kysely<Schema>) {
    super(engine, kysely);
    this.#engine = engine;
    this.#kysely = kysely;
    this.#queries = buildQueries(kysely);
  }

  /** Stores a capability for the agent that lives now; undefined, and nothing stored, when there is none. */
  async insert(capability: NewCapability): Promise<CapabilityRow | undefined> {
    const rows = await this.#queries.insert.write(this.#engine, toCapabilityValues(capability));
    return rows[0];
  }

  /** Finds a capability, dead or alive, by the SHA-256 (hex) of its secret. */
  async findByHash(hash: string): Promise<CapabilityRow | undefined> {
    return (await this.#queries.byHash.read(this.#engine, { hash }))[0];
  }

  /** Finds a capability, dead or alive, by its public id. */
  async findByTokenId(tokenId: string): Promise<CapabilityRow | undefined> {
    return (await this.#queries.byTokenId.read(this.#engine, { id: tokenId }))[0];
  }

  /** Lists capabilities, newest first. */
  async list(filter: CapabilityFilter): Promise<CapabilityRow[]> {
    const { agentId, incarnation, beforeSeq, limit } = filter;
    let query = this.#kysely.selectFrom("capabilities").selectAll().orderBy("seq", "desc").limit(limit);
    if (agentId !== undefined) query = query.where("agent_id", "=", agentId);
    if (incarnation !== undefined) query = query.where("incarnation", "=", incarnation);
    if (beforeSeq !== undefined) query = query.where("seq", "<", beforeSeq);
    return await query.execute();
  }

  /**
   * Revokes a capability. `revoked` tells whether it lived until now; no `row` means that there never was one.
   *
   * An expired one is marked too, because an upload that began in time may still be running.
   */
  async revoke(tokenId: string, nowMs: number): Promise<{ row?: CapabilityRow; revoked: boolean }> {
    const [changed, present] = await this.#engine.write([
      this.#queries.revoke.fill({ id: tokenId, now: nowMs }),
      this.#queries.byTokenId.fill({ id: tokenId }),
    ]);
    const row = present?.[0] as CapabilityRow | undefined;
    if (row === undefined) return { revoked: false };
    const { expires_at: expiresAt } = row;
    const lived = Number.isSafeInteger(expiresAt) && expiresAt > nowMs;
    return { row, revoked: changed?.length === 1 && lived };
  }

  /** Drops what expired, was consumed or was revoked before `beforeMs`. Returns how many. */
  async purgeDead(beforeMs: number): Promise<number> {
    let dropped = 0;
    for (const column of ["expires_at", "consumed_at", "revoked_at"] as const) {
      dropped += await deleteInSlices(this.#engine, (limit) =>
        toStatement(
          this.#kysely.deleteFrom("capabilities")
            .where("seq", "in", (eb) =>
              eb.selectFrom("capabilities").select("seq").where(column, "<", beforeMs).limit(limit))
            .returning("seq").compile(),
        ));
    }
    return dropped;
  }
}
