/** Real databases in temp folders, and rows to put into them. */
import { silentLog } from "../../../base/log.ts";
import { join } from "../../../base/std.ts";
import type { NewAgent } from "../../../store/database/agent_rows.ts";
import type { NewCapability } from "../../../store/database/capability_rows.ts";
import type { Statement } from "../../../store/database/engine.ts";
import type { NewEvent } from "../../../store/database/event_rows.ts";
import { FileEngine, openFileEngine } from "../../../store/database/file_engine.ts";
import { type Database, openDatabase } from "../../../store/database/open.ts";

/** The time that all rows of these tests are measured against. */
export const NOW = 1_800_000_000_000;

/** Runs `body` with the path of a database file that does not exist yet, in a folder that is removed afterwards. */
export async function withPath(body: (path: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await body(join(folder, "string.db"));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Runs `body` with a file engine. */
export function withEngine(
  body: (engine: FileEngine, path: string) => Promise<void>,
  options: { shared?: boolean; busyBudgetMs?: number } = {},
): Promise<void> {
  return withPath(async (path) => {
    const engine = await openFileEngine({ path, shared: false, log: silentLog, ...options });
    try {
      await body(engine, path);
    } finally {
      await engine.close();
    }
  });
}

/** Opens the records at `url` with a clock that stands at `NOW`. */
export function openRecords(url: string, shared = false): Promise<Database> {
  return openDatabase({ url, shared, log: silentLog, clock: { now: () => NOW } });
}

/** Runs `body` with a migrated database. */
export function withRecords(body: (db: Database, path: string) => Promise<void>): Promise<void> {
  return withPath(async (path) => {
    const db = await openRecords(path);
    try {
      await body(db, path);
    } finally {
      await db.close();
    }
  });
}

/** A statement. */
export function sql(text: string, ...parameters: Statement["parameters"]): Statement {
  return { sql: text, parameters };
}

let serial = 0;

/** An agent with an incarnation of its own. */
export function newAgent(agentId = "eve"): NewAgent {
  const number = ++serial;
  return {
    incarnation: `inc_${number}`,
    agent_id: agentId,
    home: null,
    created_at: NOW + number,
    webhook_counter: 0,
    webhook_hash: `webhook-${number}`,
  };
}

/** A live single-use capability for one hour. */
export function newCapability(changes: Partial<NewCapability> = {}): NewCapability {
  const number = ++serial;
  return {
    token_id: `cap_${number}`,
    secret_hash: `secret-${number}`,
    agent_id: "eve",
    path_prefix: "in",
    verbs: "PUT,GET",
    author: "outside",
    single_use: 1,
    created_at: NOW,
    expires_at: NOW + 3_600_000,
    ...changes,
  };
}

/** An event for `incarnation`. */
export function newEvent(incarnation: string, changes: Partial<NewEvent> = {}): NewEvent {
  return {
    id: `evt_${++serial}`,
    incarnation,
    agent_id: "eve",
    received_at: NOW,
    source: "local-webhook",
    text: "hello",
    ...changes,
  };
}

/** What a promise was refused with; fails when it was not. */
export async function refusalOf(promise: Promise<unknown>): Promise<unknown> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`Expected a refusal, got ${Deno.inspect(value)}`);
}

/** Waits until `condition` holds; fails after ten seconds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + 10_000;
  while (!(await condition())) {
    if (performance.now() > giveUpAt) throw new Error("Waited ten seconds in vain");
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** The engine of a file database, for its numbers. */
export function fileEngineOf(db: Database): FileEngine {
  if (!(db.engine instanceof FileEngine)) throw new Error("Expected a file database");
  return db.engine;
}
