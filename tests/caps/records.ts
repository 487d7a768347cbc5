/** A real database file with agents in it, for the tests of this folder. */
import type { Clock } from "../../base/clock.ts";
import { AppError } from "../../base/errors.ts";
import { createId, PREFIX } from "../../base/ids.ts";
import { silentLog } from "../../base/log.ts";
import { join } from "../../base/std.ts";
import { type Grant, parseGrant } from "../../caps/grant.ts";
import { CapabilityService, type CapabilityServiceOptions } from "../../caps/service.ts";
import { CapabilityRows } from "../../store/database/capability_rows.ts";
import { createKysely } from "../../store/database/dialect.ts";
import type { Engine, Row, Statement } from "../../store/database/engine.ts";
import { type Database, openDatabase } from "../../store/database/open.ts";

/** A clock that stands until it is moved. */
export class HeldClock implements Clock {
  constructor(public ms = 1_800_000_000_000) {}
  now(): number {
    return this.ms;
  }
}

/** One database file and the ways into it. */
export interface Records {
  readonly clock: HeldClock;
  readonly database: Database;
  readonly path: string;
  /** A service on the database as its only owner, or as one more process of those that share it. */
  service(options?: Partial<CapabilityServiceOptions>): CapabilityService;
  /** Opens the file once more, as another process would. */
  openAgain(): Promise<Database>;
  addAgent(agentId: string): Promise<string>;
}

/** Runs `body` with a fresh database file, and closes and removes everything after. */
export async function withRecords(
  body: (records: Records) => Promise<void>,
  { shared = false } = {},
): Promise<void> {
  const folder = await Deno.makeTempDir();
  const path = join(folder, "string.db");
  const clock = new HeldClock();
  const opened: Database[] = [];
  const open = async () => {
    const database = await openDatabase({ url: path, shared, log: silentLog, clock });
    opened.push(database);
    return database;
  };
  try {
    const database = await open();
    await body({
      clock,
      database,
      path,
      service: (options) =>
        new CapabilityService({ rows: database.capabilities, engine: database.engine, clock, ...options }),
      openAgain: open,
      async addAgent(agentId) {
        const incarnation = createId(PREFIX.incarnation);
        await database.agents.pair({
          agent: {
            incarnation,
            agent_id: agentId,
            home: null,
            created_at: clock.now(),
            webhook_counter: 0,
            webhook_hash: incarnation,
          },
        });
        return incarnation;
      },
    });
  } finally {
    for (const database of opened) await database.close();
    await Deno.remove(folder, { recursive: true });
  }
}

/** A grant as it would have been parsed. */
export function grant(fields: Record<string, unknown> = {}): Grant {
  const input = { path_prefix: "in", verbs: ["PUT", "GET", "DELETE", "STAT"], ttl_ms: 60_000, ...fields };
  return parseGrant(input, { maxTtlMs: 1e9, operator: true });
}

/** The code that a call is refused with; "none" when it is not. Anything but an AppError is thrown on. */
export async function codeOf(call: () => unknown): Promise<string> {
  try {
    await call();
    return "none";
  } catch (error) {
    if (error instanceof AppError) return error.code;
    throw error;
  }
}

/** A real engine whose answers can be held back, to let one thing overtake another. */
export class HoldingEngine implements Engine {
  readonly kind = "file";
  readonly #engine: Engine;
  #afterRead: (() => Promise<void>) | undefined;
  #afterWrite: (() => Promise<void>) | undefined;
  /** What a write throws after it was committed. */
  failAfterCommit: Error | undefined;
  /** What `changedElsewhere` answers next, once. */
  changed = false;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Rows over this engine. */
  rows(): CapabilityRows {
    return new CapabilityRows(this, createKysely(this));
  }

  /** Holds the answer of the next read: `reached` resolves when the row was read, `release` lets it through. */
  holdRead(): { reached: Promise<void>; release: () => void } {
    const gate = Promise.withResolvers<void>(), reached = Promise.withResolvers<void>();
    this.#afterRead = () => {
      reached.resolve();
      return gate.promise;
    };
    return { reached: reached.promise, release: gate.resolve };
  }

  async read(statement: Statement): Promise<Row[]> {
    const rows = await this.#engine.read(statement);
    const afterRead = this.#afterRead;
    this.#afterRead = undefined;
    await afterRead?.();
    return rows;
  }

  /** Holds the answer of the next write: `reached` resolves when it is committed, `release` lets it through. */
  holdWrite(): { reached: Promise<void>; release: () => void } {
    const gate = Promise.withResolvers<void>(), reached = Promise.withResolvers<void>();
    this.#afterWrite = () => {
      reached.resolve();
      return gate.promise;
    };
    return { reached: reached.promise, release: gate.resolve };
  }

  async write(statements: readonly Statement[]): Promise<Row[][]> {
    const rows = await this.#engine.write(statements);
    const afterWrite = this.#afterWrite;
    this.#afterWrite = undefined;
    await afterWrite?.();
    if (this.failAfterCommit !== undefined) throw this.failAfterCommit;
    return rows;
  }

  changedElsewhere(): boolean {
    const { changed } = this;
    this.changed = false;
    return changed;
  }

  close(): Promise<void> {
    return this.#engine.close();
  }
}
