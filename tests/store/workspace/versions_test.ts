import { Stamps, versionOf } from "../../../store/workspace/etag.ts";
import { type Facts, mtimeNs } from "../../../store/workspace/facts.ts";
import { expect } from "../../helpers/expect.ts";
import { path, refusal, testBoth } from "./fixture.ts";

const facts: Facts = {
  kind: "file",
  fixed: false,
  permissions: 0o644,
  device: 1,
  inodeLow: 7,
  inodeHigh: 0,
  size: 4,
  mtimeSeconds: 1_700_000_000,
  mtimeNanos: 5,
  ctimeSeconds: 1_700_000_000,
  ctimeNanos: 6,
};

/** A file whose disk keeps times in steps of `keepNs`. */
function disk(keepNs: bigint) {
  let ns = 0n;
  return {
    setMtime: (to: bigint) => void (ns = to - (to % keepNs)),
    facts: () => ({
      ...facts,
      mtimeSeconds: Number(ns / 1_000_000_000n),
      mtimeNanos: Number(ns % 1_000_000_000n),
    }),
  };
}

Deno.test("versionOf() differs by each of inode, size, mtime and ctime", () => {
  const others: Partial<Facts>[] = [
    { inodeLow: 8 },
    { inodeHigh: 1 },
    { size: 5 },
    { mtimeNanos: 6 },
    { mtimeSeconds: 1_700_000_001 },
    { ctimeNanos: 7 },
    { ctimeSeconds: 1_700_000_001 },
  ];
  const tags = [facts, ...others.map((other) => ({ ...facts, ...other }))].map((each) =>
    versionOf(each).etag
  );
  expect(new Set(tags).size).toBe(tags.length);
  for (const tag of tags) expect(tag).toMatch(/^"[a-z0-9._]+"$/);
});

Deno.test("Stamps.stamp() is later than the replaced file on every disk, whatever the clock says (report 16)", () => {
  for (const tick of [1n, 1_000_000n]) {
    for (const keep of [1n, 1_000n, 1_000_000n, 1_000_000_000n, 2_000_000_000n]) {
      for (const now of [0, 1_700_000_000_000, 1_800_000_000_000]) {
        const staged = disk(keep < tick ? tick : keep);
        const stamps = new Stamps(tick, () => now);
        stamps.stamp(staged);
        stamps.stampAfter(staged, facts);
        expect(mtimeNs(staged.facts()) > mtimeNs(facts), `${tick} ${keep} ${now}`).toBe(true);
      }
    }
  }
});

Deno.test("Stamps.stamp() never gives two writes one time, also without a file to replace (report 16)", () => {
  for (const tick of [1n, 1_000_000n]) {
    const stamps = new Stamps(tick, () => 1_700_000_000_000);
    const times = Array.from({ length: 100 }, () => {
      const staged = disk(tick);
      stamps.stamp(staged);
      return mtimeNs(staged.facts());
    });
    expect(new Set(times).size).toBe(100);
  }
});

testBoth(
  "three PUTs of one size at once have three tags, and only the last is current (report 16)",
  async ({ store, workspace, put }) => {
    const tags: string[] = [];
    for (const content of ["aaaa", "bbbb", "cccc"]) tags.push((await put("v", content)).version.etag);
    expect(new Set(tags).size).toBe(3);
    expect((await store.stat(workspace, path("v"))).etag).toBe(tags[2]);
    const stale = { conditions: { ifMatch: [tags[0] ?? ""] } };
    expect(await refusal(() => put("v", "dddd", stale))).toBe("precondition_failed");
    expect(await refusal(() => store.remove(workspace, path("v"), stale))).toBe("precondition_failed");
    expect((await put("v", "dddd", { conditions: { ifMatch: [tags[2] ?? ""] } })).created).toBe(false);
  },
  { clock: { now: () => 1_700_000_000_000 } },
);

testBoth(
  "PUT, DELETE and PUT again never bring a tag back (report 16)",
  async ({ store, workspace, put }) => {
    const tags: string[] = [];
    for (let round = 0; round < 20; round++) {
      tags.push((await put("v", "same")).version.etag);
      await store.remove(workspace, path("v"));
    }
    expect(new Set(tags).size).toBe(20);
  },
);

testBoth(
  "a PUT over a file from the future still gets a later time",
  async ({ store, workspace, put, at }) => {
    await put("v", "old");
    const future = new Date("2090-01-01T00:00:00.250Z");
    await Deno.utime(at("v"), future, future);
    const before = await store.stat(workspace, path("v"));
    const { version } = await put("v", "new");
    expect(version.mtimeMs).toBeGreaterThanOrEqual(before.mtimeMs);
    expect(version.etag).not.toBe(before.etag);
    expect(await store.stat(workspace, path("v"))).toEqual(version);
    expect((await put("w", "x")).version.mtimeMs).toBeLessThan(future.getTime());
  },
);

testBoth(
  "the version that commit() returns is that of stat() and open()",
  async ({ store, workspace, put }) => {
    for (const [name, size] of [["small", 10], ["large", 200_000]] as const) {
      const { version } = await put(name, new Uint8Array(size));
      expect(version.sizeBytes).toBe(size);
      expect(await store.stat(workspace, path(name))).toEqual(version);
      const file = await store.open(workspace, path(name));
      expect(file.version).toEqual(version);
      file.close();
    }
  },
);
