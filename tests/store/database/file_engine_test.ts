import { setImmediate } from "node:timers";
import { expect } from "../../helpers/expect.ts";
import { AppError } from "../../../base/errors.ts";
import { silentLog } from "../../../base/log.ts";
import { ConstraintError, type SqlValue } from "../../../store/database/engine.ts";
import { openFileEngine } from "../../../store/database/file_engine.ts";
import { refusalOf, sql, withEngine, withPath } from "./helpers.ts";

const CREATE = sql("CREATE TABLE t (name TEXT PRIMARY KEY, n INTEGER) STRICT");
const insert = (name: SqlValue, n: SqlValue = 0) =>
  sql("INSERT INTO t (name, n) VALUES (?, ?) RETURNING name", name, n);
const NAMES = sql("SELECT name FROM t ORDER BY name");

Deno.test("write() commits all that is queued in one turn by one transaction", () =>
  withEngine(async (engine) => {
    await engine.write([CREATE]);
    const before = engine.stats.commits;
    const rows = await Promise.all(Array.from({ length: 32 }, (_, n) => engine.write([insert(`row ${n}`)])));
    expect(engine.stats.commits - before).toBe(1);
    expect(rows[31]).toEqual([[{ name: "row 31" }]]);
    await engine.write([insert("alone")]);
    expect(engine.stats.commits - before).toBe(2);
  }));

Deno.test("write() undoes a failing list whole and none of its neighbours", () =>
  withEngine(async (engine) => {
    await engine.write([CREATE]);
    const before = engine.stats.commits;
    const settled = await Promise.allSettled([
      engine.write([insert("a")]),
      engine.write([insert("b"), insert("c"), insert("a")]),
      engine.write([insert("a")]),
      engine.write([insert("d"), sql("SELECT no_such_column FROM t")]),
      engine.write([insert("e"), insert("f")]),
    ]);
    expect(settled.map(({ status }) => status)).toEqual([
      "fulfilled",
      "rejected",
      "rejected",
      "rejected",
      "fulfilled",
    ]);
    expect((settled[1] as PromiseRejectedResult).reason).toBeInstanceOf(ConstraintError);
    expect((settled[2] as PromiseRejectedResult).reason).toBeInstanceOf(ConstraintError);
    expect((await engine.read(NAMES)).map((row) => row.name)).toEqual(["a", "e", "f"]);
    expect(engine.stats.commits - before).toBe(1);
  }));

Deno.test("write() refuses the one list whose commit fails, stores its neighbours, and leaves no transaction", () =>
  withEngine(async (engine) => {
    await engine.write([CREATE, sql("CREATE TABLE child (name TEXT REFERENCES t (name)) STRICT")]);
    // A deferred key is judged by COMMIT, which fails and leaves the transaction open.
    const orphan = [sql("PRAGMA defer_foreign_keys = ON"), sql("INSERT INTO child VALUES ('nobody')")];
    const settled = await Promise.allSettled([
      engine.write([insert("a")]),
      engine.write(orphan),
      engine.write([insert("b"), insert("c")]),
    ]);
    expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect((settled[1] as PromiseRejectedResult).reason).toBeInstanceOf(ConstraintError);
    expect(await refusalOf(engine.write(orphan))).toBeInstanceOf(ConstraintError);
    await engine.write([insert("d")]);
    expect((await engine.read(NAMES)).map((row) => row.name)).toEqual(["a", "b", "c", "d"]);
    expect(await engine.read(sql("SELECT count(*) AS n FROM child"))).toEqual([{ n: 0 }]);
  }));

Deno.test("read() sees all of a list or nothing, whatever turn it runs in", () =>
  withEngine(async (engine) => {
    await engine.write([CREATE]);
    const counts = [(await engine.read(NAMES)).length];
    let done = false;
    const writing = engine.write([insert("a"), insert("b")]).finally(() => done = true);
    counts.push((await engine.read(NAMES)).length);
    while (!done) {
      await new Promise((resolve) => setImmediate(() => resolve(undefined)));
      counts.push((await engine.read(NAMES)).length);
    }
    await writing;
    expect(counts.slice(0, 2)).toEqual([0, 0]);
    expect(counts.at(-1)).toBe(2);
    expect(counts.includes(1)).toBe(false);
  }));

Deno.test("read() gives each key its own row when keys alternate (libsql: get after all)", () =>
  withEngine(async (engine) => {
    await engine.write([CREATE, insert("a", 1), insert("b", 2)]);
    const find = (name: string) => engine.read(sql("SELECT name, n FROM t WHERE name = ?", name));
    for (const name of ["a", "b", "a", "missing", "b", "b", "missing", "a"]) {
      const rows = await find(name);
      expect(rows).toEqual(name === "missing" ? [] : [{ name, n: name === "a" ? 1 : 2 }]);
    }
  }));

Deno.test("write() refuses with TypeError what the driver would not store as it is", () =>
  withEngine(async (engine) => {
    await engine.write([CREATE]);
    const wrong: unknown[] = [
      true,
      false,
      "a\0b",
      Number.NaN,
      1.5,
      2 ** 53,
      Infinity,
      2n ** 60n,
      undefined,
      {},
      [
        1,
      ],
    ];
    for (const value of wrong) {
      expect(await refusalOf(engine.write([insert("x"), insert(value as SqlValue)])), Deno.inspect(value))
        .toBeInstanceOf(TypeError);
      expect(await refusalOf(engine.read(sql("SELECT ?", value as SqlValue)))).toBeInstanceOf(TypeError);
    }
    expect(await engine.read(NAMES)).toEqual([]);
  }));

Deno.test("write() refuses with TypeError a statement with too few or too many parameters", () =>
  withEngine(async (engine) => {
    await engine.write([CREATE, insert("a", 7)]);
    const short = sql("INSERT INTO t (name, n) VALUES (?, ?) RETURNING name", "short");
    // The driver itself would have bound the 7 of the call before.
    expect(await refusalOf(engine.write([short]))).toBeInstanceOf(TypeError);
    expect(await refusalOf(engine.read(sql("SELECT name FROM t WHERE name = ?", "a", "b"))))
      .toBeInstanceOf(TypeError);
    expect(await engine.read(sql("SELECT '?' AS mark, name FROM t WHERE name = ?", "a")))
      .toEqual([{ mark: "?", name: "a" }]);
  }));

Deno.test("write() stores integers to the last digit and long texts outside ASCII", () =>
  withEngine(async (engine) => {
    const text = "보고서 🧵 ".repeat(5000);
    await engine.write([
      CREATE,
      insert(text, Number.MAX_SAFE_INTEGER),
      insert("low", -Number.MAX_SAFE_INTEGER),
    ]);
    expect(await engine.read(sql("SELECT name, n FROM t ORDER BY n"))).toEqual([
      { name: "low", n: -Number.MAX_SAFE_INTEGER },
      { name: text, n: Number.MAX_SAFE_INTEGER },
    ]);
  }));

Deno.test("read() works on when far more statements were used than are kept prepared", () =>
  withEngine(async (engine) => {
    for (let n = 0; n < 600; n++) expect(await engine.read(sql(`SELECT ${n} AS n`))).toEqual([{ n }]);
  }));

Deno.test("openFileEngine() makes files that only their owner can read, also under a wide umask", () =>
  withPath(async (path) => {
    const umask = Deno.umask(0o000);
    try {
      const engine = await openFileEngine({ path, shared: false, log: silentLog });
      await engine.write([CREATE]);
      for (const suffix of ["", "-wal", "-shm"]) {
        expect((Deno.statSync(path + suffix).mode ?? 0) & 0o777, suffix).toBe(0o600);
      }
      await engine.close();
      Deno.chmodSync(path, 0o644);
      await (await openFileEngine({ path, shared: false, log: silentLog })).close();
      expect((Deno.statSync(path).mode ?? 0) & 0o777).toBe(0o600);
    } finally {
      Deno.umask(umask);
    }
  }));

Deno.test("openFileEngine() refuses with unavailable a file that is no database, without its path", () =>
  withPath(async (path) => {
    await Deno.writeTextFile(path, "not a database ".repeat(1000));
    const refusal = await refusalOf(openFileEngine({ path, shared: false, log: silentLog }));
    expect(refusal).toBeInstanceOf(AppError);
    expect(refusal).toMatchObject({ code: "unavailable" });
    expect((refusal as AppError).message.includes(path)).toBe(false);
  }));

Deno.test("changedElsewhere() tells another connection's commits from our own", () =>
  withEngine(async (engine, path) => {
    await engine.write([CREATE]);
    expect(engine.changedElsewhere()).toBe(false);
    const other = await openFileEngine({ path, shared: true, log: silentLog });
    await other.write([insert("theirs")]);
    expect(engine.changedElsewhere()).toBe(true);
    expect(engine.changedElsewhere()).toBe(false);
    await engine.write([insert("ours")]);
    expect(engine.changedElsewhere()).toBe(false);
    expect(other.changedElsewhere()).toBe(true);
    await other.close();
  }, { shared: true }));

Deno.test("changedElsewhere() is false for the only owner of a file", () =>
  withEngine(async (engine, path) => {
    const other = await openFileEngine({ path, shared: true, log: silentLog });
    await other.write([CREATE]);
    expect(engine.changedElsewhere()).toBe(false);
    await other.close();
  }));

Deno.test("close() finishes what is queued; later calls are refused with unavailable", () =>
  withPath(async (path) => {
    const engine = await openFileEngine({ path, shared: true, log: silentLog });
    const writing = engine.write([CREATE, insert("last")]);
    await Promise.all([engine.close(), engine.close()]);
    await writing;
    expect(await refusalOf(engine.write([insert("late")]))).toMatchObject({ code: "unavailable" });
    expect(await refusalOf(engine.read(NAMES))).toMatchObject({ code: "unavailable" });
    expect(engine.changedElsewhere()).toBe(true);
    const again = await openFileEngine({ path, shared: false, log: silentLog });
    expect(await again.read(NAMES)).toEqual([{ name: "last" }]);
    await again.close();
  }));
