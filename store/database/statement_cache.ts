/** Prepared statements of one connection, kept by their text: preparing costs as much as running. */
import type Database from "libsql";
import type { Row, SqlValue } from "./engine.ts";
import { checkCount, countPlaceholders } from "./parameters.ts";

/** The driver's connection. */
export type Connection = InstanceType<typeof Database>;

interface Prepared {
  readonly statement: ReturnType<Connection["prepare"]>;
  readonly placeholders: number;
}

/** Runs statements on one connection and keeps the last `capacity` of them prepared. */
export class StatementCache {
  readonly #prepared = new Map<string, Prepared>();

  constructor(readonly connection: Connection, readonly capacity = 256) {}

  /**
   * Runs one statement to its end and returns its rows.
   *
   * Only ever `all()`: the driver's `get()` after `all()` gives the previous key's row, which would be another
   * holder's capability. Parameters must have passed `checkParameters`.
   */
  run(sql: string, parameters: readonly SqlValue[]): Row[] {
    const prepared = this.#prepared.get(sql) ?? this.#prepare(sql);
    checkCount(prepared.placeholders, parameters.length);
    try {
      return prepared.statement.all(parameters) as Row[];
    } catch (error) {
      // A failed statement may be left half-run; a fresh one costs 10 µs and cannot be.
      this.#prepared.delete(sql);
      throw error;
    }
  }

  /** Forgets all statements, so that the driver may free them. */
  clear(): void {
    this.#prepared.clear();
  }

  #prepare(sql: string): Prepared {
    const prepared = { statement: this.connection.prepare(sql), placeholders: countPlaceholders(sql) };
    if (this.#prepared.size >= this.capacity) {
      const oldest = this.#prepared.keys().next();
      if (!oldest.done) this.#prepared.delete(oldest.value);
    }
    this.#prepared.set(sql, prepared);
    return prepared;
  }
}
