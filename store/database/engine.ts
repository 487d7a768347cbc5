/**
 * The seam between String and a SQL engine: statements in, plain rows out.
 *
 * There are two: a file that this process opens (`file_engine.ts`) and a libSQL server (`server_engine.ts`).
 * A write is a list of statements that become durable together or not at all; there is no open transaction that
 * other work of this process could fall into.
 */

/** What a statement's parameter may be. No booleans: the file engine aborts the process on one. */
export type SqlValue = string | number | bigint | null | Uint8Array;

/** One statement with its parameters, in order. */
export interface Statement {
  readonly sql: string;
  readonly parameters: readonly SqlValue[];
}

/** One row, by column name. */
export type Row = Record<string, unknown>;

/** A database: reads and atomic, durable writes. */
export interface Engine {
  /** `file` in this process, or `server` over the network. */
  readonly kind: "file" | "server";

  /** Runs one reading statement. Refuses with AppError `unavailable` when the database is busy or gone. */
  read(statement: Statement): Promise<Row[]>;

  /**
   * Runs statements as one transaction and resolves, once it is durable, with the rows of each.
   *
   * A statement that fails undoes all of its own list and no other's. Refuses with AppError `unavailable` (busy, gone)
   * or `disk_full`; a broken constraint rejects with `ConstraintError`.
   */
  write(statements: readonly Statement[]): Promise<Row[][]>;

  /**
   * Returns whether another process may have written since the last call, so that remembered rows must be dropped.
   *
   * Always false for the only owner of a file; always true for a server, which must be asked each time.
   */
  changedElsewhere(): boolean;

  /** Finishes what is queued and closes. */
  close(): Promise<void>;
}

/** A unique, foreign or check constraint refused a write. */
export class ConstraintError extends Error {
  override readonly name = "ConstraintError";
}
