/**
 * Kysely queries that are built and compiled once, with names in place of their values.
 *
 * Building costs as much as the lookup itself; what a request asks for is therefore compiled at
 * start, and only its values are filled in.
 */
import type { Compilable } from "kysely";
import type { Engine, Row, SqlValue, Statement } from "./engine.ts";

/** Values of one query, by name. */
export type Values = Readonly<Record<string, SqlValue>>;

/** Stands for the value `name` while a query is built. */
export type Placeholder<V extends Values> = <K extends keyof V & string>(name: K) => V[K];

class Slot {
  constructor(readonly name: string) {}
}

/** A compiled query that waits for its values. `R` is the row it returns. */
export class Prepared<V extends Values, R> {
  readonly #sql: string;
  readonly #parameters: readonly (SqlValue | Slot)[];

  constructor(build: (value: Placeholder<V>) => Compilable<R>) {
    // Kysely takes whatever it is given as a parameter and hands it through, so a marker may travel in place of a value.
    const compiled = build(<K extends keyof V & string>(name: K) => new Slot(name) as unknown as V[K])
      .compile();
    this.#sql = compiled.sql;
    this.#parameters = compiled.parameters as readonly (SqlValue | Slot)[];
  }

  /** Returns the statement with `values` in their places. */
  fill(values: V): Statement {
    return {
      sql: this.#sql,
      parameters: this.#parameters.map((parameter) => {
        if (!(parameter instanceof Slot)) return parameter;
        const value = values[parameter.name];
        if (value === undefined) throw new TypeError(`Cannot fill query: no value for "${parameter.name}"`);
        return value;
      }),
    };
  }

  /** Reads the rows for `values`. */
  async read(engine: Engine, values: V): Promise<R[]> {
    return await engine.read(this.fill(values)) as (Row & R)[];
  }

  /** Writes with `values` as one transaction of its own, and returns the rows that RETURNING names. */
  async write(engine: Engine, values: V): Promise<R[]> {
    const [rows] = await engine.write([this.fill(values)]);
    return (rows ?? []) as (Row & R)[];
  }
}

/** Compiles the query that `build` makes from named values: `prepare<{ id: string }, Row>((value) => …)`. */
export function prepare<V extends Values, R>(
  build: (value: Placeholder<V>) => Compilable<R>,
): Prepared<V, R> {
  return new Prepared(build);
}
