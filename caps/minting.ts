/** How a grant becomes a record and the one answer that shows its secret. Source: SYS-CAP-01. */
import { createId, PREFIX } from "../base/ids.ts";
import type { NewCapability } from "../store/database/capability_rows.ts";
import type { Grant } from "./grant.ts";
import { createCapabilitySecret } from "./secret.ts";
import { type MintedCapability, toMinted } from "./wire.ts";

/** A capability that is ready to be stored, and what its holder is told once it is: never before. */
export interface PreparedCapability {
  readonly row: NewCapability;
  readonly minted: MintedCapability;
}

/**
 * Makes the record of a new capability with a fresh id and secret. Nothing is stored.
 *
 * It binds to the incarnation that the agent has when it is stored; with `incarnation`, to that one or to none.
 */
export function prepareCapability(
  grant: Grant,
  agentId: string,
  nowMs: number,
  incarnation?: string,
): PreparedCapability {
  const { pathPrefix, verbs, ttlMs, singleUse, author } = grant;
  const { secret, secretHash } = createCapabilitySecret();
  const tokenId = createId(PREFIX.capability);
  const expiresAtMs = nowMs + ttlMs;
  const described = { tokenId, agentId, pathPrefix, author, singleUse, createdAtMs: nowMs, expiresAtMs };
  return {
    row: {
      token_id: tokenId,
      secret_hash: secretHash,
      agent_id: agentId,
      path_prefix: pathPrefix,
      verbs: verbs.join(","),
      author,
      single_use: singleUse ? 1 : 0,
      created_at: nowMs,
      expires_at: expiresAtMs,
      ...(incarnation === undefined ? {} : { incarnation }),
    },
    minted: toMinted(described, verbs, secret),
  };
}
