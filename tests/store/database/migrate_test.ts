import { expect } from "../../helpers/expect.ts";
import { silentLog } from "../../../base/log.ts";
import { fromFileUrl } from "../../../base/std.ts";
import { openFileEngine } from "../../../store/database/file_engine.ts";
import { DatabaseTooNewError, migrate, migrationStatus } from "../../../store/database/migrate.ts";
import { MIGRATIONS } from "../../../store/database/migrations/mod.ts";
import { NOW, openRecords, refusalOf, sql, withEngine, withPath } from "./helpers.ts";
import { startProgram } from "./programs/program.ts";

const OPTIONS = { clock: { now: () => NOW }, log: silentLog };

Deno.test("report 41: MIGRATIONS lists every file of the folder, in order and without gaps", () => {
  const folder = fromFileUrl(new URL("../../../store/database/migrations/", import.meta.url));
  const files = [...Deno.readDirSync(folder)].map(({ name }) => name).filter((name) => name !== "mod.ts")
    .sort();
  const listed = MIGRATIONS.map(({ id, name }) => `${String(id).padStart(4, "0")}_${name}.ts`);
  expect(listed).toEqual(files);
  expect(MIGRATIONS.map(({ id }) => id)).toEqual(MIGRATIONS.map((_, index) => index + 1));
});

Deno.test("report 41: migrate() refuses to run without migrations", () =>
  withEngine(async (engine) => {
    expect(await refusalOf(migrate(engine, { ...OPTIONS, migrations: [] }))).toMatchObject({
      message: "Cannot open the database: this program holds no migrations",
    });
  }));

Deno.test("migrate() runs each migration once, also when it is asked again", () =>
  withEngine(async (engine) => {
    await migrate(engine, OPTIONS);
    await migrate(engine, { ...OPTIONS, clock: { now: () => NOW + 1 } });
    expect(await migrationStatus(engine)).toEqual(
      MIGRATIONS.map(({ id, name }) => ({ id, name, appliedAtMs: NOW })),
    );
  }));

Deno.test("migrate() makes STRICT tables with the indexes that requests need", () =>
  withEngine(async (engine) => {
    await migrate(engine, OPTIONS);
    const tables = await engine.read(sql("SELECT name, strict FROM pragma_table_list WHERE schema = 'main'"));
    const own = tables.filter(({ name }) => !String(name).startsWith("sqlite_"));
    expect(own.map(({ name }) => name).sort()).toEqual([
      "agents",
      "audit",
      "audit_counters",
      "audit_size",
      "capabilities",
      "events",
      "marks",
      "migrations",
      "settings",
    ]);
    expect(own.every(({ strict }) => strict === 1)).toBe(true);
    for (
      const [query, ...parameters] of [
        ["SELECT * FROM capabilities WHERE secret_hash = ?", "x"],
        ["SELECT * FROM capabilities WHERE token_id = ?", "x"],
        ["SELECT * FROM capabilities WHERE agent_id = ? ORDER BY seq DESC", "x"],
        ["SELECT * FROM capabilities WHERE incarnation = ?", "x"],
        ["SELECT * FROM events WHERE incarnation = ? AND status = 'pending' ORDER BY seq", "x"],
        ["SELECT * FROM events WHERE incarnation = ? ORDER BY seq", "x"],
        ["SELECT * FROM events WHERE id = ?", "x"],
        ["SELECT * FROM agents WHERE agent_id = ?", "x"],
        ["SELECT * FROM agents WHERE key_hash = ?", "x"],
        ["SELECT * FROM agents WHERE webhook_hash = ?", "x"],
      ] as const
    ) {
      const plan = await engine.read(sql(`EXPLAIN QUERY PLAN ${query}`, ...parameters));
      const details = plan.map(({ detail }) => String(detail));
      expect(details, query).toHaveLength(1);
      expect(details[0]).toMatch(/^SEARCH .* USING (?:COVERING )?INDEX/);
    }
  }));

Deno.test("migrate() refuses a database that a newer program wrote", () =>
  withPath(async (path) => {
    const db = await openRecords(path);
    await db.engine.write([sql("INSERT INTO migrations (id, name, applied_at) VALUES (99, 'later', 1)")]);
    await db.close();
    const refusal = await refusalOf(openRecords(path));
    expect(refusal).toBeInstanceOf(DatabaseTooNewError);
    expect(refusal).toMatchObject({ databaseVersion: 99, programVersion: MIGRATIONS.length });
  }));

Deno.test("migrate() leaves nothing of a migration that fails", () =>
  withEngine(async (engine) => {
    const broken = { id: 2, name: "broken", statements: ["CREATE TABLE half (n INTEGER)", "NONSENSE"] };
    await refusalOf(migrate(engine, { ...OPTIONS, migrations: [...MIGRATIONS, broken] }));
    expect(await engine.read(sql("SELECT name FROM sqlite_master WHERE name = 'half'"))).toEqual([]);
    expect(await engine.read(sql("SELECT max(id) AS id FROM migrations"))).toEqual([{ id: 1 }]);
    await migrate(engine, OPTIONS);
  }));

Deno.test("migrate() lets eight connections that start at once end with the same schema", () =>
  withPath(async (path) => {
    const engines = [];
    for (let n = 0; n < 8; n++) engines.push(await openFileEngine({ path, shared: true, log: silentLog }));
    await Promise.all(engines.map((engine) => migrate(engine, OPTIONS)));
    for (const engine of engines) {
      expect(await engine.read(sql("SELECT count(*) AS n FROM migrations"))).toEqual([{
        n: MIGRATIONS.length,
      }]);
      await engine.close();
    }
  }));

Deno.test("openDatabase() lets three processes that start at once on no file all come up", () =>
  withPath(async (path) => {
    const programs = [1, 2, 3].map(() => startProgram("spender.ts", [path]));
    expect(await Promise.all(programs.map((program) => program.line()))).toEqual(["ready", "ready", "ready"]);
    for (const program of programs) expect(await program.end()).toBe(0);
  }));
