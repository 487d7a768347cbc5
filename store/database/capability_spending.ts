/**
 * What a request does to a capability: spend it, or hold the lease of a single-use upload.
 *
 * Each decision is one conditional UPDATE, so that of any number of racers in any number of processes one wins, and a
 * token that was spent is never given back. Source: architecture.md "Capabilities"; reports 2, 4, 5.
 */
import type { Kysely, SqlBool } from "kysely";
import { sql } from "kysely";
import { isAlive } from "./capability_sql.ts";
import type { Engine } from "./engine.ts";
import { prepare } from "./prepared.ts";
import type { Schema } from "./schema.ts";

/** One attempt to use up a single-use capability. */
export interface Spending {
  readonly tokenId: string;
  readonly nowMs: number;
  /** When the request began: its expiry is judged then. */
  readonly begunMs: number;
  /** The lease that an upload holds; it must still be its own. */
  readonly leaseId?: string;
}

/** One attempt to become the only open upload of a single-use capability. */
export interface LeaseRequest {
  readonly tokenId: string;
  readonly leaseId: string;
  readonly nowMs: number;
  /** When the lease falls back unless it is renewed. */
  readonly untilMs: number;
  readonly begunMs: number;
}

/** What became of a `LeaseRequest`: `held` by another upload, or the capability is `dead`. */
export type LeaseOutcome = "acquired" | "held" | "dead";

/** A lease that ends later than this from now was written under another clock, in milliseconds. */
const LONGEST_LEASE_MS = 60_000;

function buildQueries(kysely: Kysely<Schema>) {
  const change = kysely.updateTable("capabilities");
  const freed = { lease_id: null, lease_until: null };
  return {
    // A grant for both GET and PUT may be spent by a GET while an upload runs: the upload loses at its own spend.
    spend: prepare<{ id: string; now: number; begun: number }, { token_id: string }>((value) =>
      change.set({ consumed_at: value("now") })
        .where("token_id", "=", value("id"))
        .where((eb) => isAlive(eb, value("begun")))
        .returning("token_id")
    ),
    spendLeased: prepare<{ id: string; now: number; begun: number; lease: string }, { token_id: string }>(
      (value) =>
        change.set({ consumed_at: value("now") })
          .where("token_id", "=", value("id"))
          .where("lease_id", "=", value("lease"))
          .where((eb) => isAlive(eb, value("begun")))
          .returning("token_id"),
    ),
    isLive: prepare<{ id: string; begun: number }, { token_id: string }>((value) =>
      kysely.selectFrom("capabilities").select("token_id")
        .where("token_id", "=", value("id"))
        .where((eb) => isAlive(eb, value("begun")))
    ),
    acquire: prepare<
      { id: string; lease: string; now: number; until: number; begun: number },
      { token_id: string }
    >((value) =>
      change.set({ lease_id: value("lease"), lease_until: value("until") })
        .where("token_id", "=", value("id"))
        .where((eb) => isAlive(eb, value("begun")))
        .where((eb) =>
          eb.or([
            eb("lease_id", "is", null),
            eb("lease_id", "=", value("lease")),
            sql<SqlBool>`coalesce(lease_until, 0) <= ${value("now")}`,
            // Nobody takes a lease for so long: the clock was set back since.
            sql<SqlBool>`lease_until > ${value("now")} + ${sql.lit(LONGEST_LEASE_MS)}`,
          ])
        )
        .returning("token_id")
    ),
    renew: prepare<{ id: string; lease: string; until: number }, { token_id: string }>((value) =>
      change.set({ lease_until: value("until") })
        .where("token_id", "=", value("id")).where("lease_id", "=", value("lease"))
        .returning("token_id")
    ),
    release: prepare<{ id: string; lease: string }, unknown>((value) =>
      change.set(freed).where("token_id", "=", value("id")).where("lease_id", "=", value("lease"))
    ),
    clear: prepare<Record<string, never>, unknown>(() => change.set(freed).where("lease_id", "is not", null)),
  };
}

/** The part of the table `capabilities` that requests change. */
export class CapabilitySpending {
  readonly #engine: Engine;
  readonly #queries: ReturnType<typeof buildQueries>;

  constructor(engine: Engine, kysely: Kysely<Schema>) {
    this.#engine = engine;
    this.#queries = buildQueries(kysely);
  }

  /** Spends a capability; false when it is dead by now, or the lease is no longer the caller's. Never given back. */
  async spend({ tokenId, nowMs, begunMs, leaseId }: Spending): Promise<boolean> {
    const values = { id: tokenId, now: nowMs, begun: begunMs };
    const rows = leaseId === undefined
      ? await this.#queries.spend.write(this.#engine, values)
      : await this.#queries.spendLeased.write(this.#engine, { ...values, lease: leaseId });
    return rows.length === 1;
  }

  /** Returns whether a capability is unspent, unrevoked, was not expired at `begunMs`, and its agent still lives. */
  async isLive({ tokenId, begunMs }: { tokenId: string; begunMs: number }): Promise<boolean> {
    return (await this.#queries.isLive.read(this.#engine, { id: tokenId, begun: begunMs })).length === 1;
  }

  /** Takes the lease when nobody holds it, its holder let it run out, or it is the caller's already. */
  async acquireLease(request: LeaseRequest): Promise<LeaseOutcome> {
    const { tokenId: id, leaseId: lease, nowMs: now, untilMs: until, begunMs: begun } = request;
    const rows = await this.#queries.acquire.write(this.#engine, { id, lease, now, until, begun });
    if (rows.length === 1) return "acquired";
    return await this.isLive(request) ? "held" : "dead";
  }

  /** Moves the end of a lease; false when it is no longer the caller's. */
  async renewLease(tokenId: string, leaseId: string, untilMs: number): Promise<boolean> {
    const values = { id: tokenId, lease: leaseId, until: untilMs };
    return (await this.#queries.renew.write(this.#engine, values)).length === 1;
  }

  /** Gives a lease back, if it is still the caller's. */
  async releaseLease(tokenId: string, leaseId: string): Promise<void> {
    await this.#queries.release.write(this.#engine, { id: tokenId, lease: leaseId });
  }

  /** Ends all leases: at the start of the only process, no upload can be open. */
  async clearLeases(): Promise<void> {
    await this.#queries.clear.write(this.#engine, {});
  }
}
