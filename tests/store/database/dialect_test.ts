import { expect } from "../../helpers/expect.ts";
import { batch } from "../../../store/database/batch.ts";
import { prepare } from "../../../store/database/prepared.ts";
import { fileEngineOf, refusalOf, sql, withRecords } from "./helpers.ts";

Deno.test("the dialect reads what SELECT gives and writes the rest, with rows from RETURNING", () =>
  withRecords(async ({ kysely, engine }) => {
    const inserted = await kysely.insertInto("settings").values([{ name: "a", value: "1" }, {
      name: "b",
      value: "2",
    }])
      .returning("name").execute();
    expect(inserted).toEqual([{ name: "a" }, { name: "b" }]);
    expect(await kysely.selectFrom("settings").selectAll().orderBy("name").execute()).toEqual([
      { name: "a", value: "1" },
      { name: "b", value: "2" },
    ]);
    expect((await kysely.introspection.getTables()).map(({ name }) => name)).toContain("settings");
    expect(await engine.read(sql("SELECT count(*) AS n FROM settings"))).toEqual([{ n: 2 }]);
  }));

Deno.test("a Kysely transaction is refused with a TypeError that names batch", () =>
  withRecords(async ({ kysely }) => {
    const refusal = await refusalOf(
      kysely.transaction().execute((transaction) => transaction.deleteFrom("settings").execute()),
    );
    expect(refusal).toBeInstanceOf(TypeError);
    expect((refusal as TypeError).message).toContain("`batch`");
  }));

Deno.test("batch() stores all or nothing and gives the rows of each query", () =>
  withRecords(async ({ kysely, engine }) => {
    const add = (name: string) =>
      kysely.insertInto("settings").values({ name, value: "v" }).returning("name");
    const count = kysely.selectFrom("settings").select((eb) => eb.fn.countAll<number>().as("n"));
    const [first, counted] = await batch(engine, add("a"), count);
    expect([first[0]?.name, counted[0]?.n]).toEqual(["a", 1]);
    await refusalOf(batch(engine, add("b"), add("a")));
    expect(await count.execute()).toEqual([{ n: 1 }]);
  }));

Deno.test("prepare() compiles once and puts each value in its places", () =>
  withRecords(async ({ kysely, engine }) => {
    const query = prepare<{ name: string; value: string }, { name: string }>((value) =>
      kysely.insertInto("settings").values({ name: value("name"), value: value("value") })
        .onConflict((conflict) => conflict.column("name").doUpdateSet({ value: value("value") }))
        .returning("name")
    );
    expect(await query.write(engine, { name: "a", value: "1" })).toEqual([{ name: "a" }]);
    expect(query.fill({ name: "a", value: "2" }).parameters).toEqual(["a", "2", "2"]);
    const missing = { name: "a" } as { name: string; value: string };
    expect(() => query.fill(missing)).toThrow(TypeError);
  }));

Deno.test("queries that run at once share one commit, through the dialect too", () =>
  withRecords(async (db) => {
    const { stats } = fileEngineOf(db);
    const before = stats.commits;
    await Promise.all(Array.from({ length: 32 }, (_, n) => db.settings.set(`name ${n}`, "v")));
    expect(stats.commits - before).toBe(1);
  }));
