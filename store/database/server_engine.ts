/**
 * The engine for a libSQL server, over HTTP, through `@libsql/client`.
 *
 * Every call is one request that begins and ends its own transaction, so no failure can leave one open. How durable a
 * write is, is the server's own setting. Source: architecture.md "Records"; report 44.
 */
import type { Client, InStatement, ResultSet } from "@libsql/client/http";
import type { Log } from "../../base/log.ts";
import { backoffMs, BUSY_BUDGET_MS, pause } from "./backoff.ts";
import type { Engine, Row, SqlValue, Statement } from "./engine.ts";
import { failureName, FaultLog, isBusy, toFailure, unavailable } from "./failure.ts";
import { checkCount, checkParameters, countPlaceholders } from "./parameters.ts";

/** How a server is reached. */
export interface ServerEngineOptions {
  /** `http:`, `https:` or `libsql:` URL without a token. */
  readonly url: string;
  readonly authToken?: string | undefined;
  readonly log: Log;
  /** Longest wait for one answer, in milliseconds. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 5_000;
/** Requests at once; more wait their turn inside the client. */
const CONCURRENCY = 64;

/**
 * Opens a server engine. Nothing is sent yet.
 *
 * Throws `TypeError` for a URL that cannot be used, among them one that carries the token.
 */
export async function openServerEngine(options: ServerEngineOptions): Promise<Engine> {
  const url = URL.parse(options.url);
  if (url === null || url.username !== "" || url.password !== "" || url.searchParams.has("authToken")) {
    throw new TypeError(
      "Cannot use this database URL: it must be a URL without a token or a password; hand those over separately",
    );
  }
  // Loaded only here: whoever keeps records in a file need not wait at start for a client that is never used.
  const { createClient } = await import("@libsql/client/http");
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  const client = createClient({
    url: options.url,
    ...(options.authToken === undefined ? {} : { authToken: options.authToken }),
    concurrency: CONCURRENCY,
    fetch: (request: Request) => fetch(request, { signal: AbortSignal.timeout(timeoutMs) }),
  });
  return new ServerEngine(client, options.log);
}

/** The driver's rows also answer to numbers; ours are plain. */
function toRows(result: ResultSet): Row[] {
  return result.rows.map((row) =>
    Object.fromEntries(result.columns.map((column, index) => [column, row[index]]))
  );
}

function toInput({ sql, parameters }: Statement): InStatement {
  checkParameters(parameters);
  checkCount(countPlaceholders(sql), parameters.length);
  return { sql, args: parameters as SqlValue[] };
}

/** Codes of statements that the server understood and refused: a bug of ours, not its absence. */
const STATEMENT_FAULT = /^(?:SQL_|SQLITE_|ARGS_)/;

class ServerEngine implements Engine {
  readonly kind = "server";
  readonly #client: Client;
  readonly #faults: FaultLog;
  readonly #open = new Set<Promise<unknown>>();
  #closed = false;

  constructor(client: Client, log: Log) {
    this.#client = client;
    this.#faults = new FaultLog(log);
  }

  async read(statement: Statement): Promise<Row[]> {
    const input = toInput(statement);
    return toRows(await this.#ask(() => this.#client.execute(input)));
  }

  async write(statements: readonly Statement[]): Promise<Row[][]> {
    const inputs = statements.map(toInput);
    if (inputs.length === 0) return [];
    return (await this.#ask(() => this.#client.batch(inputs, "write"))).map(toRows);
  }

  /** Always true: any other process may have written to the server. */
  changedElsewhere(): boolean {
    return true;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await Promise.allSettled(this.#open);
    this.#client.close();
  }

  async #ask<T>(call: () => Promise<T>): Promise<T> {
    if (this.#closed) throw unavailable("The database is closed");
    const answer = this.#retryBusy(call);
    this.#open.add(answer);
    try {
      return await answer;
    } finally {
      this.#open.delete(answer);
    }
  }

  async #retryBusy<T>(call: () => Promise<T>): Promise<T> {
    const giveUpAt = performance.now() + BUSY_BUDGET_MS;
    for (let attempt = 0;; attempt++) {
      try {
        const answer = await call();
        this.#faults.clear();
        return answer;
      } catch (error) {
        // Only «busy» says that nothing happened. What timed out may have been done, and is never sent twice.
        if (!isBusy(error) || performance.now() >= giveUpAt) throw this.#toFailure(error);
      }
      await pause(backoffMs(attempt));
    }
  }

  #toFailure(error: unknown): unknown {
    let failure = toFailure(error);
    if (failure === error) {
      if (STATEMENT_FAULT.test(failureName(error))) return error;
      failure = unavailable("Cannot reach the database now", error);
    }
    this.#faults.report(error, failure);
    return failure;
  }
}
