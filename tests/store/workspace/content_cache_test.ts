import { ContentCache, SETTLED_MS } from "../../../store/workspace/content_cache.ts";
import { versionOf } from "../../../store/workspace/etag.ts";
import { ctimeMs, type Facts } from "../../../store/workspace/facts.ts";
import { factsAt } from "../../../store/workspace/portable_folder.ts";
import type { OpenedFile } from "../../../store/workspace/types.ts";
import { expect } from "../../helpers/expect.ts";
import { testIf } from "../../helpers/skip.ts";
import { bytes, testBoth, withStore } from "./fixture.ts";
import { hasMaps, SharedMap } from "./shared_map.ts";

function opened(facts: Facts): OpenedFile {
  return {
    version: versionOf(facts),
    bytes: new Uint8Array(facts.size),
    stream: () => new ReadableStream(),
    close() {},
  };
}

/** The facts of a file that was changed so long ago, in milliseconds. */
async function factsOfAge(ageMs: number): Promise<Facts> {
  const file = await Deno.makeTempFile();
  const facts = factsAt(file);
  await Deno.remove(file);
  return { ...facts, ctimeSeconds: Math.floor((Date.now() - ageMs) / 1000), ctimeNanos: 0 };
}

Deno.test("keep() passes over a file that was changed less than the given time ago", async () => {
  const cache = new ContentCache(1 << 20, 5000);
  const [young, old] = [await factsOfAge(3000), await factsOfAge(6000)];
  expect(Date.now() - ctimeMs(young)).toBeLessThan(5000);
  for (const facts of [young, old]) cache.keep(facts, opened(facts));
  expect(cache.find(young)).toBeUndefined();
  expect(cache.find(old)).toBeDefined();
});

Deno.test("keep() usually waits for as long as the kernel may take to write a mapped page back", async () => {
  expect(SETTLED_MS).toBeGreaterThanOrEqual(60_000);
  const cache = new ContentCache();
  const [young, old] = [await factsOfAge(SETTLED_MS - 5000), await factsOfAge(SETTLED_MS + 5000)];
  for (const facts of [young, old]) cache.keep(facts, opened(facts));
  expect(cache.find(young)).toBeUndefined();
  expect(cache.find(old)).toBeDefined();
});

testBoth(
  "open() reads a young file anew, whatever its times say",
  async ({ at, read }) => {
    const longAgo = new Date(1_500_000_000_000);
    for (let round = 100; round < 300; round++) {
      // In place, of one size and with the old time: two rounds may lie in one tick of the kernel's clock.
      Deno.writeFileSync(at("same"), bytes(`round ${round}`));
      Deno.utimeSync(at("same"), longAgo, longAgo);
      expect(await read("same")).toBe(`round ${round}`);
    }
  },
  { settledMs: SETTLED_MS },
);

for (const containment of ["kernel", "portable"] as const) {
  testIf(
    hasMaps,
    "no file can be mapped here",
    `open() sees each change of a young file through a shared map, which sets no time (${containment})`,
    () =>
      withStore(containment, async ({ at, read }) => {
        await Deno.writeFile(at("mapped"), bytes("round 0"));
        using map = new SharedMap(at("mapped"), 7);
        // The first write makes the page dirty and sets the times; the next ones set none until it is written back.
        map.bytes.set(bytes("round 1"));
        for (const text of ["round 2", "round 3", "round 4"]) {
          map.bytes.set(bytes(text));
          expect(await read("mapped")).toBe(text);
        }
      }, { settledMs: SETTLED_MS }),
  );
}
