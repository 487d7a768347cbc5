/**
 * The engine for a database file: one connection, synchronous inside, durable by turn of the event loop.
 *
 * All lists that are queued in one turn are committed by one `BEGIN IMMEDIATE … COMMIT`, so that one fdatasync pays for
 * all of them. A flush never yields, hence a read sees either nothing or all of it, and only what is durable.
 * Source: architecture.md "Records"; reports 44, 46, M9, M10; ADR 0002.
 */
import { setImmediate } from "node:timers";
import type { Log } from "../../base/log.ts";
import { backoffMs, BUSY_BUDGET_MS, pause } from "./backoff.ts";
import type { Engine, Row, Statement } from "./engine.ts";
import { failureName, FaultLog, isBusy, toFailure, unavailable } from "./failure.ts";
import { connectFile } from "./file_connection.ts";
import { checkParameters } from "./parameters.ts";
import { type Connection, StatementCache } from "./statement_cache.ts";

/** How a file is opened. */
export interface FileEngineOptions {
  /** Path of the database file; it is made when missing, its folder is not. */
  readonly path: string;
  /** Whether other processes may write to the same file. */
  readonly shared: boolean;
  readonly log: Log;
  /** How long a call waits for another process's lock, in milliseconds. */
  readonly busyBudgetMs?: number;
}

/** What an engine did since it was opened; for tests and benchmarks. */
export interface FileEngineStats {
  /** Transactions that were committed. */
  commits: number;
  /** Times that another connection's lock made a write wait. */
  waits: number;
}

/** One list of statements on its way to the disk. */
interface Pending {
  readonly statements: readonly Statement[];
  readonly giveUpAt: number;
  readonly settled: Promise<Row[][]>;
  resolve(rows: Row[][]): void;
  reject(reason: unknown): void;
}

type Outcome = { readonly rows: Row[][] } | { readonly failure: unknown };

/** Opens a file engine. Refuses with AppError `unavailable` when the file cannot be opened or is no database. */
export async function openFileEngine(options: FileEngineOptions): Promise<FileEngine> {
  const connection = await connectFile(options.path, options.busyBudgetMs);
  return new FileEngine(connection, options);
}

/** A libSQL file through the client's own engine. Made by `openFileEngine`. */
export class FileEngine implements Engine {
  readonly kind = "file";
  readonly stats: FileEngineStats = { commits: 0, waits: 0 };
  readonly #connection: Connection;
  readonly #statements: StatementCache;
  readonly #log: Log;
  readonly #faults: FaultLog;
  readonly #shared: boolean;
  readonly #budgetMs: number;
  #queue: Pending[] = [];
  #scheduled = false;
  /** Tries that another connection's lock refused in a row. */
  #refusals = 0;
  #closed = false;
  #dataVersion: unknown;

  constructor(connection: Connection, options: FileEngineOptions) {
    this.#connection = connection;
    this.#statements = new StatementCache(connection);
    this.#log = options.log;
    this.#faults = new FaultLog(options.log);
    this.#shared = options.shared;
    this.#budgetMs = options.busyBudgetMs ?? BUSY_BUDGET_MS;
    this.changedElsewhere();
  }

  async read(statement: Statement): Promise<Row[]> {
    checkParameters(statement.parameters);
    let giveUpAt: number | undefined;
    for (let attempt = 0;; attempt++) {
      if (this.#closed) throw unavailable("The database is closed");
      try {
        return this.#statements.run(statement.sql, statement.parameters);
      } catch (error) {
        giveUpAt ??= performance.now() + this.#budgetMs;
        if (!isBusy(error) || performance.now() >= giveUpAt) throw this.#toFailure(error);
      }
      await pause(backoffMs(attempt));
    }
  }

  // deno-lint-ignore require-await -- async, so that what is refused at once rejects like everything else
  async write(statements: readonly Statement[]): Promise<Row[][]> {
    for (const statement of statements) checkParameters(statement.parameters);
    if (this.#closed) throw unavailable("The database is closed");
    if (statements.length === 0) return [];
    const { promise: settled, resolve, reject } = Promise.withResolvers<Row[][]>();
    this.#queue.push({ statements, giveUpAt: performance.now() + this.#budgetMs, settled, resolve, reject });
    if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => this.#flush());
    }
    return settled;
  }

  changedElsewhere(): boolean {
    if (!this.#shared) return false;
    if (this.#closed) return true;
    const before = this.#dataVersion;
    try {
      this.#dataVersion = this.#statements.run("PRAGMA data_version", [])[0]?.data_version;
    } catch {
      this.#dataVersion = undefined; // not knowing means asking the database: the next read says what is wrong
    }
    return this.#dataVersion === undefined || this.#dataVersion !== before;
  }

  /**
   * Finishes what is queued and closes. No transaction is left, but the driver keeps a shared lock on the file until it
   * has collected its statements, at the latest when the process ends.
   */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    while (this.#queue.length > 0) await Promise.allSettled(this.#queue.map((list) => list.settled));
    this.#statements.clear();
    try {
      this.#connection.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch (error) {
      // The log beside the file is as good as the file: whoever opens it next carries it over.
      this.#log.debug("database checkpoint skipped", { code: failureName(error) });
    }
    this.#connection.close();
  }

  /** Commits what is queued. Runs to its end without yielding. */
  #flush(): void {
    this.#scheduled = false;
    const lists = this.#queue;
    this.#queue = [];
    // Asking a closed connection whether it is in a transaction aborts the process, and a failure asks that.
    if (lists.length > 0) this.#commit(lists);
  }

  #commit(lists: readonly Pending[]): void {
    const outcomes: Outcome[] = [];
    try {
      this.#connection.exec("BEGIN IMMEDIATE");
      for (const list of lists) outcomes.push(this.#runList(list.statements));
      this.#connection.exec("COMMIT");
    } catch (error) {
      this.#rollback();
      this.#failed(lists, error);
      return;
    }
    this.stats.commits++;
    this.#refusals = 0;
    this.#faults.clear();
    lists.forEach((list, index) => {
      const outcome = outcomes[index]!;
      if ("rows" in outcome) list.resolve(outcome.rows);
      else list.reject(this.#toFailure(outcome.failure));
    });
  }

  /** Runs one list; its failure undoes it alone. Throws only when the whole transaction is lost. */
  #runList(statements: readonly Statement[]): Outcome {
    // A statement undoes itself when it fails; only a list of several needs a savepoint.
    const nested = statements.length > 1;
    if (nested) this.#connection.exec("SAVEPOINT list");
    try {
      const rows = statements.map(({ sql, parameters }) => this.#statements.run(sql, parameters));
      if (nested) this.#connection.exec("RELEASE list");
      return { rows };
    } catch (failure) {
      // A full disk or a read error may end the transaction itself; then nothing of this turn is stored.
      if (!this.#connection.inTransaction) throw failure;
      if (nested) this.#connection.exec("ROLLBACK TO list; RELEASE list");
      return { failure };
    }
  }

  /** Leaves the connection outside any transaction, whatever state a failure left it in. */
  #rollback(): void {
    try {
      if (this.#connection.inTransaction) this.#connection.exec("ROLLBACK");
    } catch (error) {
      this.#log.error("database rollback failed", { code: failureName(error) });
    }
  }

  /** Decides what becomes of lists whose transaction did not commit. */
  #failed(lists: readonly Pending[], error: unknown): void {
    if (isBusy(error)) return this.#waitForLock(lists, error);
    if (lists.length > 1) {
      // One list too large for the disk must not refuse its neighbours, least of all a revocation: each alone.
      for (const list of lists) this.#commit([list]);
      return;
    }
    for (const list of lists) list.reject(this.#toFailure(error));
  }

  #toFailure(error: unknown): unknown {
    const failure = toFailure(error);
    this.#faults.report(error, failure);
    return failure;
  }

  #waitForLock(lists: readonly Pending[], error: unknown): void {
    this.stats.waits++;
    const now = performance.now();
    const late = lists.filter((list) => list.giveUpAt <= now);
    for (const list of late) list.reject(this.#toFailure(error));
    this.#queue = [...lists.filter((list) => list.giveUpAt > now), ...this.#queue];
    if (this.#queue.length === 0 || this.#scheduled) return;
    this.#scheduled = true;
    setTimeout(() => this.#flush(), backoffMs(this.#refusals++));
  }
}
