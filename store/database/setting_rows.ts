/** Facts about the whole installation, by name. */
import type { Kysely } from "kysely";
import { batch } from "./batch.ts";
import type { Engine } from "./engine.ts";
import type { Schema } from "./schema.ts";

/** The table `settings`. */
export class SettingRows {
  readonly #engine: Engine;
  readonly #kysely: Kysely<Schema>;

  constructor(engine: Engine, kysely: Kysely<Schema>) {
    this.#engine = engine;
    this.#kysely = kysely;
  }

  /** Returns the value of a setting. */
  async get(name: string): Promise<string | undefined> {
    return (await this.#select(name).executeTakeFirst())?.value;
  }

  /** Stores a value unless there is one, and returns the one in force: of two processes both get the first's. */
  async setIfAbsent(name: string, value: string): Promise<string> {
    const [, present] = await batch(
      this.#engine,
      this.#kysely.insertInto("settings").values({ name, value })
        .onConflict((conflict) => conflict.column("name").doNothing()),
      this.#select(name),
    );
    return present[0]?.value ?? value;
  }

  /** Stores a value in place of any other. */
  async set(name: string, value: string): Promise<void> {
    await this.#kysely.insertInto("settings").values({ name, value })
      .onConflict((conflict) => conflict.column("name").doUpdateSet({ value })).execute();
  }

  #select(name: string) {
    return this.#kysely.selectFrom("settings").select("value").where("name", "=", name);
  }
}
