/**
 * The words of capabilities: verbs, the record, and how a row becomes one.
 *
 * A *capability* is what was granted; its *secret* is the bearer string. Source: System API, "Capability tokens".
 */
import type { CapabilitiesTable } from "../store/database/schema.ts";
import type { CanonicalPath } from "../base/paths.ts";
import { parsePlainPath } from "../base/paths.ts";
import type { Selectable } from "kysely";

/** All that can be done on the system plane. There is no verb that executes. */
export const VERBS = ["PUT", "GET", "DELETE", "STAT"] as const;
/** One of `VERBS`. */
export type Verb = typeof VERBS[number];

/** A capability as the verifier uses it: immutable, without its secret. Times are Unix milliseconds. */
export interface Capability {
  readonly tokenId: string;
  readonly secretHash: string;
  readonly agentId: string;
  readonly incarnation: string;
  readonly pathPrefix: CanonicalPath;
  readonly verbs: ReadonlySet<Verb>;
  /** Whether what is written with it counts as the agent's own and gets no mark. */
  readonly author: "outside" | "agent";
  readonly singleUse: boolean;
  readonly createdAtMs: number;
  /** NaN when the stored value is no time: dead, never eternal (report 4). */
  readonly expiresAtMs: number;
  readonly consumedAtMs: number | null;
  readonly revokedAtMs: number | null;
}

/** What a capability is at a moment. */
export type CapabilityStatus = "live" | "expired" | "consumed" | "revoked";

/** Returns whether `text` is a verb of the system plane. */
export function isVerb(text: string): text is Verb {
  return (VERBS as readonly string[]).includes(text);
}

function toTime(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) ? value : Number.NaN;
}

/** A time that must be absent for life: anything unreadable counts as "it happened". */
function toDeath(value: unknown): number | null {
  return value === null || value === undefined ? null : typeof value === "number" ? value : 0;
}

/**
 * Turns a stored row into a capability. Whatever cannot be read makes it weaker, never stronger: an unknown verb is
 * dropped, an unreadable expiry is dead, an unreadable prefix revokes.
 */
export function toCapability(row: Selectable<CapabilitiesTable>): Capability {
  const prefix = parsePlainPath(String(row.path_prefix));
  const readable = prefix.ok && prefix.path === row.path_prefix;
  return {
    tokenId: row.token_id,
    secretHash: row.secret_hash,
    agentId: row.agent_id,
    incarnation: row.incarnation,
    pathPrefix: row.path_prefix as CanonicalPath,
    verbs: new Set(String(row.verbs).split(",").filter(isVerb)),
    author: row.author === "agent" ? "agent" : "outside",
    singleUse: row.single_use !== 0,
    createdAtMs: toTime(row.created_at),
    expiresAtMs: toTime(row.expires_at),
    consumedAtMs: toDeath(row.consumed_at),
    revokedAtMs: readable ? toDeath(row.revoked_at) : (toDeath(row.revoked_at) ?? 0),
  };
}

/** Returns what a capability is at `nowMs`. */
export function statusOf(capability: Capability, nowMs: number): CapabilityStatus {
  if (capability.consumedAtMs !== null) return "consumed";
  if (capability.revokedAtMs !== null) return "revoked";
  return capability.expiresAtMs > nowMs ? "live" : "expired";
}
