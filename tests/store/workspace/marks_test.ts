import { expect } from "../../helpers/expect.ts";
import { hasKernelWay, path, refusal, testBoth, withStore } from "./fixture.ts";
import { testIf } from "../../helpers/skip.ts";
import type { Fixture } from "./fixture.ts";

async function marksFollowTheBytes({ store, workspace, put }: Fixture): Promise<void> {
  const isMarked = (relative: string) => store.isFromOutside(workspace, path(relative));
  await put("a/x", "1", { fromOutside: true });
  expect(await isMarked("a/x")).toBe(true);
  await put("a/x", "2", { fromOutside: true });
  expect(await isMarked("a/x")).toBe(true);
  await put("a/x", "3", { fromOutside: false });
  expect(await isMarked("a/x")).toBe(false);
  await put("a/x", "4", { fromOutside: true });
  await store.remove(workspace, path("a/x"));
  expect(await refusal(() => isMarked("a/x"))).toBe("not_found");
  await put("a/x", "5", { fromOutside: false });
  expect(await isMarked("a/x")).toBe(false);
}

testBoth("the mark of provenance comes and goes with the bytes", marksFollowTheBytes);
testBoth("the mark of provenance comes and goes with the bytes, in rows", marksFollowTheBytes, {
  marksIn: "rows",
});

testIf(
  hasKernelWay,
  "no openat2 here",
  "the mark travels with a file that the agent moves, and needs no row",
  () => {
    return withStore("kernel", async ({ store, workspace, put, at, rows }) => {
      await put("a", "1", { fromOutside: true });
      expect(rows.kept.size).toBe(0);
      await Deno.rename(at("a"), at("b"));
      expect(await store.isFromOutside(workspace, path("b"))).toBe(true);
      await Deno.writeTextFile(at("c"), "own");
      expect(await store.isFromOutside(workspace, path("c"))).toBe(false);
    });
  },
);

testBoth("a row is there before the bytes, and goes when they do not come", async ({ put, rows }) => {
  const seen: number[] = [];
  await put("x", "1", { fromOutside: true, beforeVisible: () => void seen.push(rows.kept.size) });
  expect(seen).toEqual([1]);
  const late = () => {
    throw new TypeError("revoked meanwhile");
  };
  await expect(put("y", "1", { fromOutside: true, beforeVisible: late })).rejects.toThrow("revoked");
  expect([...rows.kept]).toEqual(["eve:x"]);
  // What was marked before stays marked when its replacement fails.
  await expect(put("x", "2", { fromOutside: true, beforeVisible: late })).rejects.toThrow("revoked");
  expect([...rows.kept]).toEqual(["eve:x"]);
}, { marksIn: "rows" });

testBoth(
  "a mark that cannot be stored keeps the bytes away; one that cannot be cleared does not",
  async (fixture) => {
    const { store, workspace, put, rows } = fixture;
    await put("x", "1", { fromOutside: true });
    rows.clear = rows.set = () => Promise.reject(new TypeError("the database is gone"));
    await expect(put("y", "1", { fromOutside: true })).rejects.toThrow("the database is gone");
    expect(await refusal(() => store.stat(workspace, path("y")))).toBe("not_found");
    expect((await put("x", "2", { fromOutside: false })).created).toBe(false);
    expect(await store.isFromOutside(workspace, path("x"))).toBe(true);
  },
  { marksIn: "rows" },
);

testBoth(
  "remove() takes the row with the file, so that the agent's next file there is its own",
  async (fixture) => {
    const { store, workspace, put, rows, at } = fixture;
    await put("x", "1", { fromOutside: true });
    await store.remove(workspace, path("x"));
    expect(rows.kept.size).toBe(0);
    await Deno.writeTextFile(at("x"), "the agent's own");
    expect(await store.isFromOutside(workspace, path("x"))).toBe(false);
  },
  { marksIn: "rows" },
);
