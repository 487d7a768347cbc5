/** What was done, and how often: appended in groups, dropped by age and size (architecture.md "Records"). */
import type { Insertable, Kysely, Selectable } from "kysely";
import { sql } from "kysely";
import { batch } from "./batch.ts";
import type { Engine } from "./engine.ts";
import { prepare } from "./prepared.ts";
import type { AuditCountersTable, AuditTable, Schema } from "./schema.ts";

/** One entry of the audit. */
export type AuditRow = Selectable<AuditTable>;
/** An entry to be stored; `detail` is redacted JSON. */
export type NewAudit = Omit<AuditRow, "seq">;
/** A number to be added to what is counted for its hour, capability and action. */
export type AuditCount = Insertable<AuditCountersTable>;

/** What may stay. */
export interface AuditBounds {
  /** Entries older than this go (Unix milliseconds). */
  readonly beforeMs: number;
  /** When the entries take more bytes than this, the oldest go. */
  readonly maxBytes: number;
}

/** Entries looked at per write of `prune`. */
const SLICE_ROWS = 500;
/** Where pruning by size stops, so that it does not begin again with the next entry. */
const PRUNED_SHARE = 0.9;

function buildQueries(kysely: Kysely<Schema>) {
  return {
    append: prepare<NewAudit, unknown>((value) =>
      kysely.insertInto("audit").values({
        at: value("at"),
        actor: value("actor"),
        action: value("action"),
        agent_id: value("agent_id"),
        token_id: value("token_id"),
        outcome: value("outcome"),
        detail: value("detail"),
      })
    ),
    add: prepare<AuditCount, unknown>((value) =>
      kysely.insertInto("audit_counters")
        .values({
          hour: value("hour"),
          token_id: value("token_id"),
          action: value("action"),
          count: value("count"),
        })
        .onConflict((conflict) =>
          conflict.columns(["hour", "token_id", "action"]).doUpdateSet({
            count: sql<number>`audit_counters.count + excluded.count`,
          })
        )
    ),
  };
}

/** The tables `audit`, `audit_counters` and `audit_size`. */
export class AuditRows {
  readonly #engine: Engine;
  readonly #kysely: Kysely<Schema>;
  readonly #queries: ReturnType<typeof buildQueries>;

  constructor(engine: Engine, kysely: Kysely<Schema>) {
    this.#engine = engine;
    this.#kysely = kysely;
    this.#queries = buildQueries(kysely);
  }

  /** Stores entries and adds to counters, in one write. */
  async append(entries: readonly NewAudit[], counts: readonly AuditCount[]): Promise<void> {
    await this.#engine.write([
      ...entries.map((entry) => this.#queries.append.fill(entry)),
      ...counts.map((count) => this.#queries.add.fill(count)),
    ]);
  }

  /** Returns how many bytes the entries take: their texts and a fixed share per row. */
  async sizeBytes(): Promise<number> {
    const row = await this.#kysely.selectFrom("audit_size").select("bytes").executeTakeFirst();
    return row?.bytes ?? 0;
  }

  /** Drops what is too old, then the oldest entries until the rest fits. Returns how many entries went. */
  async prune({ beforeMs, maxBytes }: AuditBounds): Promise<number> {
    await this.#kysely.deleteFrom("audit_counters").where("hour", "<", beforeMs).execute();
    // Without excess only age decides.
    const targetBytes = await this.sizeBytes() > maxBytes ? maxBytes * PRUNED_SHARE : Infinity;
    for (let dropped = 0;;) {
      const { upToSeq, count } = await this.#oldest(beforeMs, await this.sizeBytes() - targetBytes);
      if (count === 0) return dropped;
      const [gone] = await batch(
        this.#engine,
        this.#kysely.deleteFrom("audit").where("seq", "<=", upToSeq).returning("seq"),
      );
      dropped += gone.length;
      if (count < SLICE_ROWS) return dropped;
    }
  }

  /** Finds how many of the oldest entries must go: while they are too old, or `excessBytes` are still to be freed. */
  async #oldest(beforeMs: number, excessBytes: number): Promise<{ upToSeq: number; count: number }> {
    const rows = await this.#kysely.selectFrom("audit")
      .select([
        "seq",
        "at",
        // The measure of the triggers that keep `audit_size`.
        sql<
          number
        >`length(CAST(actor || action || coalesce(agent_id, '') || coalesce(token_id, '') || outcome || detail AS BLOB)) + 64`
          .as("bytes"),
      ])
      .orderBy("seq").limit(SLICE_ROWS).execute();
    let freed = 0;
    let count = 0;
    for (const row of rows) {
      if (row.at >= beforeMs && freed >= excessBytes) break;
      freed += row.bytes;
      count++;
    }
    return { upToSeq: rows[count - 1]?.seq ?? 0, count };
  }
}
