/** How a file database is opened: its mode on disk and the settings of its one connection. */
import Database from "libsql";
import { backoffMs, BUSY_BUDGET_MS, pause } from "./backoff.ts";
import { isBusy, toFailure, unavailable } from "./failure.ts";
import type { Connection } from "./statement_cache.ts";

/**
 * `busy_timeout` is 0 because the driver's wait would stop the event loop (M10); the engine waits by timer instead.
 * FULL, because what the user was told is done must survive a power cut.
 */
const PRAGMAS = [
  "PRAGMA busy_timeout = 0",
  "PRAGMA journal_mode = WAL",
  "PRAGMA synchronous = FULL",
  "PRAGMA foreign_keys = ON",
];

/**
 * Makes the file and what stands beside it readable for the server's user alone.
 *
 * An existing file is never opened here: closing any descriptor of it would drop the locks that another connection of
 * this process holds on it.
 */
function makePrivate(path: string): void {
  try {
    Deno.openSync(path, { write: true, createNew: true, mode: 0o600 }).close();
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) {
      throw unavailable("Cannot make the database file: its folder is missing, full or not writable", error);
    }
  }
  if (Deno.build.os === "windows") return;
  for (const suffix of ["", "-wal", "-shm"]) {
    try {
      Deno.chmodSync(path + suffix, 0o600);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) {
        throw unavailable("Cannot protect the database file", error);
      }
    }
  }
}

function tryConnect(path: string): Connection {
  const connection = new Database(path);
  try {
    for (const pragma of PRAGMAS) connection.exec(pragma);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/**
 * Opens the one connection to a database file, which is made (0600) when it is missing.
 *
 * Waits by timer while another process has it locked; refuses with AppError `unavailable`.
 */
export async function connectFile(path: string, budgetMs = BUSY_BUDGET_MS): Promise<Connection> {
  makePrivate(path);
  const giveUpAt = performance.now() + budgetMs;
  for (let attempt = 0;; attempt++) {
    try {
      return tryConnect(path);
    } catch (error) {
      if (!isBusy(error) || performance.now() >= giveUpAt) throw toFailure(error);
    }
    await pause(backoffMs(attempt));
  }
}
