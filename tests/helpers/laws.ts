/** Laws over generated input: the seed is printed, so that a run can be repeated. */
import fc from "fast-check";

const given = Number(Deno.env.get("STRING_TEST_SEED") ?? Number.NaN);
const seed = Number.isSafeInteger(given) ? given : crypto.getRandomValues(new Int32Array(1))[0] ?? 0;

/** Registers a test that fails when `property` can be broken; `STRING_TEST_SEED` repeats a run. */
export function law<Inputs>(name: string, property: fc.IProperty<Inputs>, numRuns = 2000): void {
  Deno.test(`${name} (seed ${seed})`, () => {
    fc.assert(property, { seed, numRuns });
  });
}

export { fc };
