/**
 * The tables as Kysely sees them, and the row types that other rooms share.
 *
 * Times are Unix milliseconds, flags are 0 or 1. The SQL that makes the tables is in `migrations/`.
 */
import type { Generated } from "kysely";

/** Facts about the whole installation: the admin token's hash, the fingerprint of the secret key. */
export interface SettingsTable {
  name: string;
  value: string;
}

/** One living agent. A deleted agent's row is gone; its name may come back with another incarnation. */
export interface AgentsTable {
  /** `inc_…`: what grants, events and webhook tokens bind to. */
  incarnation: string;
  agent_id: string;
  /** Absolute folder that the operator chose, or null for `<data>/workspaces/<agent_id>`. */
  home: string | null;
  created_at: number;
  /** SHA-256 (hex) of the agent's key, or null while it has none. */
  key_hash: string | null;
  /** Counts rotations of the webhook token. */
  webhook_counter: number;
  /** SHA-256 (hex) of the webhook token. */
  webhook_hash: string;
}

/** One capability, alive or dead. It outlives its agent for seven days, to answer `revoked` instead of `unknown_token`. */
export interface CapabilitiesTable {
  seq: Generated<number>;
  token_id: string;
  /** SHA-256 (hex) of the secret. */
  secret_hash: string;
  agent_id: string;
  incarnation: string;
  path_prefix: string;
  /** Verbs joined by commas, in the order of `VERBS`. */
  verbs: string;
  /** `outside`, or `agent` for a grant whose writes carry no mark of provenance. */
  author: string;
  single_use: number;
  created_at: number;
  expires_at: number;
  consumed_at: number | null;
  revoked_at: number | null;
  /** The upload that holds a single-use PUT at present, and until when. */
  lease_id: string | null;
  lease_until: number | null;
}

/** One text left for an agent. */
export interface EventsTable {
  seq: Generated<number>;
  id: string;
  incarnation: string;
  agent_id: string;
  received_at: number;
  source: string;
  text: string;
  /** `pending` or `ack`. */
  status: string;
  acked_at: number | null;
}

/** Provenance of a file on a file system without extended attributes. */
export interface MarksTable {
  /** The workspace's key (`WorkspaceRef.key`). */
  workspace: string;
  path: string;
  marked_at: number;
}

/** One thing that was done or refused; `detail` is redacted JSON. */
export interface AuditTable {
  seq: Generated<number>;
  at: number;
  actor: string;
  action: string;
  agent_id: string | null;
  token_id: string | null;
  outcome: string;
  detail: string;
}

/** How often a capability was used for plain reads, per hour. */
export interface AuditCountersTable {
  /** Start of the hour, Unix milliseconds. */
  hour: number;
  token_id: string;
  action: string;
  count: number;
}

/** One row (`id` 1): the bytes that the audit holds, kept up to date by triggers. */
export interface AuditSizeTable {
  id: number;
  bytes: number;
}

/** Migrations that ran. */
export interface MigrationsTable {
  id: number;
  name: string;
  applied_at: number;
}

/** All tables, for Kysely. */
export interface Schema {
  settings: SettingsTable;
  agents: AgentsTable;
  capabilities: CapabilitiesTable;
  events: EventsTable;
  marks: MarksTable;
  audit: AuditTable;
  audit_counters: AuditCountersTable;
  audit_size: AuditSizeTable;
  migrations: MigrationsTable;
}
