/** Brings a database to the schema of this program, at every start. */
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { ConstraintError, type Engine } from "./engine.ts";
import { type Migration, MIGRATIONS } from "./migrations/mod.ts";

/** The database was written by a newer program: an operator's error at start, never a caller's. */
export class DatabaseTooNewError extends Error {
  override readonly name = "DatabaseTooNewError";

  constructor(readonly databaseVersion: number, readonly programVersion: number) {
    super(
      `Cannot open the database: it has schema ${databaseVersion}, this program knows ${programVersion}; ` +
        "start the newer version, or restore a backup made by this one",
    );
  }
}

/** One migration as `status` shows it. */
export interface MigrationStatus {
  readonly id: number;
  readonly name: string;
  /** Unix milliseconds, or null while it has not run. */
  readonly appliedAtMs: number | null;
}

/** What `migrate` needs beside the engine; `migrations` are ours unless a test brings its own. */
export interface MigrateOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly migrations?: readonly Migration[];
}

const CREATE_MIGRATIONS =
  "CREATE TABLE IF NOT EXISTS migrations (id INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT";

async function readApplied(engine: Engine): Promise<Map<number, number>> {
  const rows = await engine.read({
    sql: "SELECT id, applied_at FROM migrations ORDER BY id",
    parameters: [],
  });
  return new Map(rows.map((row) => [Number(row.id), Number(row.applied_at)]));
}

function refuseNewer(applied: ReadonlyMap<number, number>, migrations: readonly Migration[]): void {
  const known = migrations.at(-1)?.id ?? 0;
  const newest = Math.max(0, ...applied.keys());
  if (newest > known) throw new DatabaseTooNewError(newest, known);
}

/** Runs one migration, or finds that another process that started beside us just did. */
async function apply(engine: Engine, migration: Migration, options: MigrateOptions): Promise<void> {
  const { id, name } = migration;
  try {
    // The record comes first: its primary key is what lets only one of two processes run the rest.
    await engine.write([
      {
        sql: "INSERT INTO migrations (id, name, applied_at) VALUES (?, ?, ?)",
        parameters: [id, name, options.clock.now()],
      },
      ...migration.statements.map((sql) => ({ sql, parameters: [] })),
    ]);
    options.log.info("database migrated", { id, name });
  } catch (error) {
    if (!(error instanceof ConstraintError) || !(await readApplied(engine)).has(id)) throw error;
  }
}

/**
 * Runs what has not run yet, one write per migration; safe when several processes start at once.
 *
 * Throws `DatabaseTooNewError` for a database that a newer program wrote, and `Error` when there is no migration at all
 * (report 41: an empty list would be an empty database, silently).
 */
export async function migrate(engine: Engine, options: MigrateOptions): Promise<void> {
  const migrations = options.migrations ?? MIGRATIONS;
  if (migrations.length === 0) throw new Error("Cannot open the database: this program holds no migrations");
  await engine.write([{ sql: CREATE_MIGRATIONS, parameters: [] }]);
  const applied = await readApplied(engine);
  refuseNewer(applied, migrations);
  for (const migration of migrations) {
    if (!applied.has(migration.id)) await apply(engine, migration, options);
  }
}

/** Returns every migration this program knows, and when each ran on this (migrated) database. */
export async function migrationStatus(engine: Engine): Promise<MigrationStatus[]> {
  const applied = await readApplied(engine);
  return MIGRATIONS.map(({ id, name }) => ({ id, name, appliedAtMs: applied.get(id) ?? null }));
}
