import type { Migration } from "../migration.ts";

/** What an entry of the audit costs beside its texts, in bytes: numbers, row header, page overhead. */
const AUDIT_ROW_BYTES = 64;

function auditBytes(row: "NEW" | "OLD"): string {
  const texts = ["actor", "action", "agent_id", "token_id", "outcome", "detail"]
    .map((column) => `length(CAST(coalesce(${row}.${column}, '') AS BLOB))`);
  return [...texts, AUDIT_ROW_BYTES].join(" + ");
}

/** Settings, agents, capabilities, events, marks and the audit. */
export const records: Migration = {
  id: 1,
  name: "records",
  statements: [
    `CREATE TABLE settings (
      name TEXT PRIMARY KEY,
      value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID`,

    `CREATE TABLE agents (
      incarnation TEXT PRIMARY KEY,
      agent_id TEXT NOT NULL UNIQUE,
      home TEXT,
      created_at INTEGER NOT NULL,
      key_hash TEXT UNIQUE,
      webhook_counter INTEGER NOT NULL,
      webhook_hash TEXT NOT NULL UNIQUE
    ) STRICT`,

    // No foreign key: a record outlives its agent, to answer "revoked" instead of "unknown".
    `CREATE TABLE capabilities (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      token_id TEXT NOT NULL UNIQUE,
      secret_hash TEXT NOT NULL UNIQUE,
      agent_id TEXT NOT NULL,
      incarnation TEXT NOT NULL,
      path_prefix TEXT NOT NULL,
      verbs TEXT NOT NULL,
      author TEXT NOT NULL CHECK (author IN ('outside', 'agent')),
      single_use INTEGER NOT NULL CHECK (single_use IN (0, 1)),
      created_at INTEGER NOT NULL,
      expires_at INTEGER NOT NULL,
      consumed_at INTEGER,
      revoked_at INTEGER,
      lease_id TEXT,
      lease_until INTEGER
    ) STRICT`,
    `CREATE INDEX capabilities_by_agent ON capabilities (agent_id, seq)`,
    `CREATE INDEX capabilities_by_incarnation ON capabilities (incarnation)`,
    // For dropping the dead: by expiry, and the few that died early by that.
    `CREATE INDEX capabilities_by_expiry ON capabilities (expires_at)`,
    `CREATE INDEX capabilities_consumed ON capabilities (consumed_at) WHERE consumed_at IS NOT NULL`,
    `CREATE INDEX capabilities_revoked ON capabilities (revoked_at) WHERE revoked_at IS NOT NULL`,
    `CREATE INDEX capabilities_leased ON capabilities (lease_id) WHERE lease_id IS NOT NULL`,

    // A number is never given twice: it is the cursor of readers that come back.
    `CREATE TABLE events (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      incarnation TEXT NOT NULL REFERENCES agents (incarnation) ON DELETE CASCADE,
      agent_id TEXT NOT NULL,
      received_at INTEGER NOT NULL,
      source TEXT NOT NULL,
      text TEXT NOT NULL,
      status TEXT NOT NULL CHECK (status IN ('pending', 'ack')),
      acked_at INTEGER
    ) STRICT`,
    `CREATE INDEX events_by_status ON events (incarnation, status, seq)`,
    `CREATE INDEX events_by_incarnation ON events (incarnation, seq)`,
    `CREATE INDEX events_acked ON events (acked_at) WHERE acked_at IS NOT NULL`,

    `CREATE TABLE marks (
      workspace TEXT NOT NULL,
      path TEXT NOT NULL,
      marked_at INTEGER NOT NULL,
      PRIMARY KEY (workspace, path)
    ) STRICT, WITHOUT ROWID`,

    `CREATE TABLE audit (
      seq INTEGER PRIMARY KEY,
      at INTEGER NOT NULL,
      actor TEXT NOT NULL,
      action TEXT NOT NULL,
      agent_id TEXT,
      token_id TEXT,
      outcome TEXT NOT NULL,
      detail TEXT NOT NULL
    ) STRICT`,
    `CREATE TABLE audit_counters (
      hour INTEGER NOT NULL,
      token_id TEXT NOT NULL,
      action TEXT NOT NULL,
      count INTEGER NOT NULL,
      PRIMARY KEY (hour, token_id, action)
    ) STRICT, WITHOUT ROWID`,
    // The sum is kept by the database itself, so that no process must ever add up a gigabyte to know it.
    `CREATE TABLE audit_size (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      bytes INTEGER NOT NULL
    ) STRICT`,
    `INSERT INTO audit_size (id, bytes) VALUES (1, 0)`,
    `CREATE TRIGGER audit_grows AFTER INSERT ON audit BEGIN
      UPDATE audit_size SET bytes = bytes + ${auditBytes("NEW")} WHERE id = 1;
    END`,
    `CREATE TRIGGER audit_shrinks AFTER DELETE ON audit BEGIN
      UPDATE audit_size SET bytes = bytes - (${auditBytes("OLD")}) WHERE id = 1;
    END`,
  ],
};
