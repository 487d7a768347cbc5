/** Chance that can be repeated: `STRING_TEST_SEED` gives the same numbers again. */

const given = Number(Deno.env.get("STRING_TEST_SEED") ?? Number.NaN);

/** The seed of this run; print it where chance decides. */
export const SEED: number = Number.isSafeInteger(given)
  ? given
  : crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;

/** Returns a source of integers from `least` to `most`, both included. */
export function createRandom(seed: number): (least: number, most: number) => number {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return (least, most) => least + Math.floor(next() * (most - least + 1));
}
