/** Capabilities as JSON. A secret is in the answer to a mint and nowhere else. Source: SYS-CAP-01, SYS-CAP-03. */
import { type Capability, type CapabilityStatus, statusOf, type Verb, VERBS } from "./model.ts";

/** What both the answer to a mint and a listing say. Times are ISO 8601 in UTC, null when the record has none. */
export interface CapabilityFields {
  readonly token_id: string;
  readonly agent_id: string;
  readonly path_prefix: string;
  readonly verbs: readonly Verb[];
  readonly expires_at: string | null;
  readonly single_use: boolean;
  readonly created_at: string | null;
  /** Present only when what is written with it counts as the agent's own. */
  readonly author?: "agent";
}

/** The answer to a mint: the only place where the secret is shown. */
export interface MintedCapability extends CapabilityFields {
  readonly secret: string;
}

/** One record of a listing. */
export interface CapabilityRecord extends CapabilityFields {
  readonly status: CapabilityStatus;
  readonly consumed_at: string | null;
  readonly revoked_at: string | null;
}

type Described = Pick<
  Capability,
  "tokenId" | "agentId" | "pathPrefix" | "author" | "singleUse" | "createdAtMs" | "expiresAtMs"
>;

/** The last moment that a date can name, in Unix milliseconds. */
const MAX_DATE_MS = 8.64e15;

function toIso(ms: number | null): string | null {
  return ms === null || !(Math.abs(ms) <= MAX_DATE_MS) ? null : new Date(ms).toISOString();
}

function toFields(capability: Described, verbs: Iterable<Verb>): Omit<CapabilityFields, "author"> {
  const granted = new Set(verbs);
  return {
    token_id: capability.tokenId,
    agent_id: capability.agentId,
    path_prefix: capability.pathPrefix,
    verbs: VERBS.filter((verb) => granted.has(verb)),
    expires_at: toIso(capability.expiresAtMs),
    single_use: capability.singleUse,
    created_at: toIso(capability.createdAtMs),
  };
}

function toAuthor({ author }: Described): { author?: "agent" } {
  return author === "agent" ? { author } : {};
}

/** Returns the answer to a mint. */
export function toMinted(capability: Described, verbs: Iterable<Verb>, secret: string): MintedCapability {
  const { token_id, ...fields } = toFields(capability, verbs);
  return { token_id, secret, ...fields, ...toAuthor(capability) };
}

/** Returns the public record of a capability, with what it is at `nowMs`. */
export function toRecord(capability: Capability, nowMs: number): CapabilityRecord {
  return {
    ...toFields(capability, capability.verbs),
    status: statusOf(capability, nowMs),
    consumed_at: toIso(capability.consumedAtMs),
    revoked_at: toIso(capability.revokedAtMs),
    ...toAuthor(capability),
  };
}
