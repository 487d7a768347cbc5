/**
 * Kysely over our own `Engine`: SELECT reads, everything else is a write of one statement.
 *
 * The published dialect stands still and brings addons of its own. There are no Kysely transactions, because an
 * open one would hold the file's only connection over turns of the loop: use `batch`.
 */
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import type { Engine } from "./engine.ts";
import type { Schema } from "./schema.ts";
import { toStatement } from "./batch.ts";

function refuseTransaction(): Promise<never> {
  return Promise.reject(
    new TypeError("Cannot open a transaction: write several statements at once with `batch`"),
  );
}

class EngineConnection implements DatabaseConnection {
  constructor(readonly engine: Engine) {}

  /** Rows only: count what a write did by what it returns (RETURNING), the drivers' own counts lie. */
  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const statement = toStatement(query);
    const rows = query.query.kind === "SelectQueryNode"
      ? await this.engine.read(statement)
      : (await this.engine.write([statement]))[0];
    return { rows: (rows ?? []) as R[] };
  }

  streamQuery(): AsyncIterableIterator<never> {
    throw new TypeError("Cannot stream rows: read them in pages");
  }
}

class EngineDriver implements Driver {
  readonly #connection: EngineConnection;

  constructor(engine: Engine) {
    this.#connection = new EngineConnection(engine);
  }

  init(): Promise<void> {
    return Promise.resolve();
  }

  acquireConnection(): Promise<DatabaseConnection> {
    return Promise.resolve(this.#connection);
  }

  releaseConnection(): Promise<void> {
    return Promise.resolve();
  }

  beginTransaction = refuseTransaction;
  commitTransaction = refuseTransaction;
  rollbackTransaction = refuseTransaction;

  /** Leaves the engine open: whoever opened it closes it. */
  destroy(): Promise<void> {
    return Promise.resolve();
  }
}

/**
 * Kysely runs one query at a time on what has one connection, to keep an open transaction alone on it. There is none
 * here, and the wait would give each write a commit of its own and hold every list behind a write that waits for a lock.
 */
class EngineAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

/** A Kysely dialect whose statements run on `engine`. */
export class EngineDialect implements Dialect {
  constructor(readonly engine: Engine) {}

  createDriver(): Driver {
    return new EngineDriver(this.engine);
  }

  createQueryCompiler(): SqliteQueryCompiler {
    return new SqliteQueryCompiler();
  }

  createAdapter(): SqliteAdapter {
    return new EngineAdapter();
  }

  createIntrospector(kysely: Kysely<unknown>): SqliteIntrospector {
    return new SqliteIntrospector(kysely);
  }
}

/** Returns a query builder for our tables that runs on `engine`. */
export function createKysely(engine: Engine): Kysely<Schema> {
  return new Kysely<Schema>({ dialect: new EngineDialect(engine) });
}
