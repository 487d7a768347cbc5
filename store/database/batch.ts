/** Several Kysely queries as one atomic write. */
import type { Compilable, CompiledQuery } from "kysely";
import type { Engine, SqlValue, Statement } from "./engine.ts";

/** Returns a compiled query as a statement; its parameters are checked when it runs. */
export function toStatement(query: CompiledQuery): Statement {
  return { sql: query.sql, parameters: query.parameters as readonly SqlValue[] };
}

/** The rows of each of several queries, in their order. */
export type BatchRows<Q extends readonly Compilable<unknown>[]> = {
  -readonly [Index in keyof Q]: Q[Index] extends Compilable<infer R> ? R[] : never;
};

/**
 * Runs `queries` as one transaction and resolves, once it is durable, with the rows of each (RETURNING or SELECT).
 *
 * All of them or none; refuses as `Engine.write` does.
 */
export async function batch<const Q extends readonly Compilable<unknown>[]>(
  engine: Engine,
  ...queries: Q
): Promise<BatchRows<Q>> {
  const rows = await engine.write(queries.map((query) => toStatement(query.compile())));
  return rows as BatchRows<Q>;
}
