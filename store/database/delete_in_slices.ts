/** Dropping many old rows without one long transaction. */
import type { Engine, Statement } from "./engine.ts";

/** Rows per write: a slice blocks the loop and holds the write lock for a millisecond or two. */
const SLICE_ROWS = 500;

/** Writes `slice(limit)`, a DELETE … RETURNING of at most `limit` rows, until one finds fewer. Returns the sum. */
export async function deleteInSlices(engine: Engine, slice: (limit: number) => Statement): Promise<number> {
  const statement = slice(SLICE_ROWS);
  for (let dropped = 0;;) {
    const [rows] = await engine.write([statement]);
    const count = rows?.length ?? 0;
    dropped += count;
    if (count < SLICE_ROWS) return dropped;
  }
}
