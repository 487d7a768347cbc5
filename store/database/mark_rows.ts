/** Marks of provenance for files on a file system that cannot carry them itself. */
import type { Kysely } from "kysely";
import type { Clock } from "../../base/clock.ts";
import type { MarkRecords } from "../workspace/types.ts";
import type { Engine } from "./engine.ts";
import { prepare } from "./prepared.ts";
import type { Schema } from "./schema.ts";

type MarkKey = { workspace: string; path: string };

function buildQueries(kysely: Kysely<Schema>) {
  return {
    set: prepare<MarkKey & { now: number }, unknown>((value) =>
      kysely.insertInto("marks")
        .values({ workspace: value("workspace"), path: value("path"), marked_at: value("now") })
        .onConflict((conflict) => conflict.columns(["workspace", "path"]).doNothing())
    ),
    clear: prepare<MarkKey, unknown>((value) =>
      kysely.deleteFrom("marks")
        .where("workspace", "=", value("workspace")).where("path", "=", value("path"))
    ),
    has: prepare<MarkKey, MarkKey>((value) =>
      kysely.selectFrom("marks").select(["workspace", "path"])
        .where("workspace", "=", value("workspace")).where("path", "=", value("path"))
    ),
  };
}

/** The table `marks`. */
export class MarkRows implements MarkRecords {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #queries: ReturnType<typeof buildQueries>;

  constructor(engine: Engine, kysely: Kysely<Schema>, clock: Clock) {
    this.#engine = engine;
    this.#clock = clock;
    this.#queries = buildQueries(kysely);
  }

  async set(workspace: string, path: string): Promise<void> {
    await this.#queries.set.write(this.#engine, { workspace, path, now: this.#clock.now() });
  }

  async clear(workspace: string, path: string): Promise<void> {
    await this.#queries.clear.write(this.#engine, { workspace, path });
  }

  async has(workspace: string, path: string): Promise<boolean> {
    return (await this.#queries.has.read(this.#engine, { workspace, path })).length === 1;
  }
}
