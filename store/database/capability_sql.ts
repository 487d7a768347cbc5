/** The SQL that decides about capabilities, shared by those who mint and those who spend. */
import type { ExpressionBuilder, Kysely, Selectable, SqlBool } from "kysely";
import { type Expression, sql } from "kysely";
import type { Placeholder } from "./prepared.ts";
import type { CapabilitiesTable, Schema } from "./schema.ts";

/** One stored capability. */
export type CapabilityRow = Selectable<CapabilitiesTable>;

/**
 * A capability to be stored. It binds to the incarnation that its agent has when it is stored.
 *
 * With `incarnation`, only to that one: for a mint by an agent's own key, whose agent may be gone by now.
 */
export type NewCapability =
  & Omit<
    CapabilityRow,
    "seq" | "incarnation" | "consumed_at" | "revoked_at" | "lease_id" | "lease_until"
  >
  & { readonly incarnation?: string };

/** The values of `insertCapability`. */
export type CapabilityValues = Omit<NewCapability, "incarnation"> & { incarnation: string | null };

/** Returns the values that store `capability`. */
export function toCapabilityValues(capability: NewCapability): CapabilityValues {
  return { ...capability, incarnation: capability.incarnation ?? null };
}

/** Stores a capability if its agent lives, and returns the row: INSERT … SELECT, so nothing can come between. */
export function insertCapability(kysely: Kysely<Schema>, value: Placeholder<CapabilityValues>) {
  return kysely.insertInto("capabilities")
    .columns([
      "token_id",
      "secret_hash",
      "agent_id",
      "incarnation",
      "path_prefix",
      "verbs",
      "author",
      "single_use",
      "created_at",
      "expires_at",
    ])
    .expression((eb) =>
      eb.selectFrom("agents")
        .select((agent) => [
          agent.val(value("token_id")).as("token_id"),
          agent.val(value("secret_hash")).as("secret_hash"),
          "agents.agent_id",
          "agents.incarnation",
          agent.val(value("path_prefix")).as("path_prefix"),
          agent.val(value("verbs")).as("verbs"),
          agent.val(value("author")).as("author"),
          agent.val(value("single_use")).as("single_use"),
          agent.val(value("created_at")).as("created_at"),
          agent.val(value("expires_at")).as("expires_at"),
        ])
        .where("agents.agent_id", "=", value("agent_id"))
        .where(sql<SqlBool>`agents.incarnation = coalesce(${value("incarnation")}, agents.incarnation)`)
    )
    .returningAll();
}

/**
 * Holds for a row that is unspent, unrevoked and not past its expiry at `begunMs`.
 *
 * Every comparison with an unreadable time must come out dead: in SQL a text is greater than any number (report 4).
 */
export function isUnspent(
  eb: ExpressionBuilder<Schema, "capabilities">,
  begunMs: number,
): Expression<SqlBool> {
  return eb.and([
    eb("capabilities.consumed_at", "is", null),
    eb("capabilities.revoked_at", "is", null),
    sql<SqlBool>`typeof(capabilities.expires_at) = 'integer'`,
    eb("capabilities.expires_at", ">", begunMs),
    eb("capabilities.expires_at", "<=", eb.lit(Number.MAX_SAFE_INTEGER)),
  ]);
}

/** `isUnspent`, and the agent it was granted for still lives: not one of the same name (report 5). */
export function isAlive(eb: ExpressionBuilder<Schema, "capabilities">, begunMs: number): Expression<SqlBool> {
  return eb.and([
    isUnspent(eb, begunMs),
    eb.exists(
      eb.selectFrom("agents").select(sql<number>`1`.as("lives"))
        .whereRef("agents.incarnation", "=", "capabilities.incarnation"),
    ),
  ]);
}
