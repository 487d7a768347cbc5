/**
 * What a database failure means to a caller: the one place that reads SQLite's result codes.
 *
 * Messages name no file, host or statement. Source: architecture.md "Records"; reports 44, S2.
 */
import { AppError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { ConstraintError } from "./engine.ts";

/** Primary result codes that decide anything here, by the name that the drivers report. */
const PRIMARY_CODES: Readonly<Record<string, number>> = {
  SQLITE_BUSY: 5,
  SQLITE_LOCKED: 6,
  SQLITE_NOMEM: 7,
  SQLITE_READONLY: 8,
  SQLITE_IOERR: 10,
  SQLITE_CORRUPT: 11,
  SQLITE_FULL: 13,
  SQLITE_CANTOPEN: 14,
  SQLITE_PROTOCOL: 15,
  SQLITE_CONSTRAINT: 19,
  SQLITE_NOTADB: 26,
};
const BUSY = new Set([5, 6, 15]);
const BROKEN = new Set([7, 8, 10, 11, 14, 26]);
const FULL = 13;
const CONSTRAINT = 19;
/** SQLITE_IOERR_SHMSIZE: the shared-memory file beside the log cannot grow, which is a full disk by another name. */
const IOERR_SHMSIZE = 4874;

interface Codes {
  readonly name: string;
  readonly primary: number | undefined;
  readonly extended: number | undefined;
}

function codesOf(error: unknown): Codes {
  const { code, rawCode } = (error instanceof Error ? error : {}) as { code?: unknown; rawCode?: unknown };
  const name = typeof code === "string" ? code : "";
  if (typeof rawCode === "number" && rawCode > 0) return { name, primary: rawCode & 0xff, extended: rawCode };
  const known = Object.keys(PRIMARY_CODES).find((prefix) => name === prefix || name.startsWith(prefix + "_"));
  return { name, primary: known === undefined ? undefined : PRIMARY_CODES[known], extended: undefined };
}

/** Returns whether another connection holds what this one needs, so that trying again may help. */
export function isBusy(error: unknown): boolean {
  const { primary } = codesOf(error);
  return primary !== undefined && BUSY.has(primary);
}

/** Returns the SQLite result code's name, or the kind of error, for a log line. */
export function failureName(error: unknown): string {
  return codesOf(error).name || (error instanceof Error ? error.name : "unknown");
}

/** The refusal for a database that cannot answer now (503 with `Retry-After`). */
export function unavailable(message: string, cause?: unknown): AppError {
  return new AppError("unavailable", message, { retryAfterSeconds: 1 }, cause);
}

/**
 * Turns what a driver threw into what the engine rejects with.
 *
 * Busy, broken and full become AppError, a constraint becomes `ConstraintError`; anything else is a bug and comes back
 * as it is.
 */
export function toFailure(error: unknown): unknown {
  if (error instanceof AppError || error instanceof ConstraintError) return error;
  const { primary, extended } = codesOf(error);
  if (primary === CONSTRAINT) return new ConstraintError("A constraint refused this write", { cause: error });
  if (primary === FULL || extended === IOERR_SHMSIZE) {
    return new AppError("disk_full", "Cannot store this: the disk is full", {}, error);
  }
  if (primary === undefined) return error;
  if (BUSY.has(primary)) return unavailable("Cannot use the database now: it is busy", error);
  return BROKEN.has(primary) ? unavailable("Cannot use the database now", error) : error;
}

/** Logs what is wrong with a database once, however many callers run into it, until it works again. */
export class FaultLog {
  #reported: string | undefined;

  constructor(readonly log: Log) {}

  /** Logs the code of a failure that made the database refuse work, unless it is the one logged last. */
  report(error: unknown, refusal: unknown): void {
    if (!(refusal instanceof AppError)) return;
    const { name, extended } = codesOf(error);
    const code = name || (error instanceof Error ? error.name : "unknown");
    if (code === this.#reported) return;
    this.#reported = code;
    this.log.error("database refuses work", { reason: refusal.code, code, raw_code: extended });
  }

  /** The database did its work. */
  clear(): void {
    if (this.#reported === undefined) return;
    this.#reported = undefined;
    this.log.info("database works again");
  }
}
