/** The one way to open the records: picks the engine, migrates, and hands out the tables. */
import type { Kysely } from "kysely";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { fromFileUrl } from "../../base/std.ts";
import { AgentRows } from "./agent_rows.ts";
import { AuditRows } from "./audit_rows.ts";
import { CapabilityRows } from "./capability_rows.ts";
import { createKysely } from "./dialect.ts";
import type { Engine } from "./engine.ts";
import { EventRows } from "./event_rows.ts";
import { openFileEngine } from "./file_engine.ts";
import { MarkRows } from "./mark_rows.ts";
import { migrate } from "./migrate.ts";
import type { Schema } from "./schema.ts";
import { openServerEngine } from "./server_engine.ts";
import { SettingRows } from "./setting_rows.ts";

export { DatabaseTooNewError } from "./migrate.ts";

/** Where the records lie and who else uses them. */
export interface OpenDatabaseOptions {
  /** A path, a `file:` URL (percent-encoded), or an `http:`, `https:` or `libsql:` URL of a libSQL server. */
  readonly url: string;
  /** The server's token. Never part of `url`, which a list of processes shows. */
  readonly authToken?: string | undefined;
  /** Whether other processes use the same file; a server is always shared. */
  readonly shared: boolean;
  readonly log: Log;
  readonly clock: Clock;
}

/** The records: one object per group of tables, over one engine. */
export interface Database {
  readonly engine: Engine;
  readonly kysely: Kysely<Schema>;
  readonly agents: AgentRows;
  readonly capabilities: CapabilityRows;
  readonly events: EventRows;
  readonly audit: AuditRows;
  readonly settings: SettingRows;
  readonly marks: MarkRows;
  /** Finishes what is queued and closes. */
  close(): Promise<void>;
}

const SERVER_URL = /^(?:https?|libsql):\/\//i;
const OTHER_SCHEME = /^[a-z][a-z0-9+.-]+:/i;

/** Returns the path that a database URL names, or undefined for a server's. Throws `TypeError` for any other scheme. */
export function databasePath(url: string): string | undefined {
  if (SERVER_URL.test(url)) return undefined;
  if (/^file:\//i.test(url)) return fromFileUrl(url);
  if (OTHER_SCHEME.test(url)) {
    throw new TypeError("Cannot open the database: use a path, or a file:/, http:, https: or libsql: URL");
  }
  return url;
}

function openEngine(options: OpenDatabaseOptions): Promise<Engine> {
  const path = databasePath(options.url);
  return path === undefined ? openServerEngine(options) : openFileEngine({ ...options, path });
}

/**
 * Opens the records and brings them to this program's schema.
 *
 * Refuses with AppError `unavailable` (locked, unreachable, broken) and `DatabaseTooNewError`.
 */
export async function openDatabase(options: OpenDatabaseOptions): Promise<Database> {
  const engine = await openEngine(options);
  try {
    await migrate(engine, options);
    const kysely = createKysely(engine);
    const capabilities = new CapabilityRows(engine, kysely);
    // The only owner has just begun, so nobody can hold a lease.
    if (engine.kind === "file" && !options.shared) await capabilities.clearLeases();
    return {
      engine,
      kysely,
      agents: new AgentRows(engine, kysely),
      capabilities,
      events: new EventRows(engine, kysely),
      audit: new AuditRows(engine, kysely),
      settings: new SettingRows(engine, kysely),
      marks: new MarkRows(engine, kysely, options.clock),
      close: () => engine.close(),
    };
  } catch (error) {
    await engine.close();
    throw error;
  }
}
