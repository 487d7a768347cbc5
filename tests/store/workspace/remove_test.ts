import { expect } from "../../helpers/expect.ts";
import { path, refusal, testBoth } from "./fixture.ts";

testBoth(
  "remove() removes a file and says whether there was one (SYS-FS-04)",
  async ({ store, workspace, put, at }) => {
    await put("a/x", "x");
    let called = 0;
    const beforeVisible = () => void called++;
    expect(await store.remove(workspace, path("a/x"), { beforeVisible })).toEqual({ existed: true });
    expect(called).toBe(1);
    for (const missing of ["a/x", "a/y", "nope/x/y"]) {
      expect(await store.remove(workspace, path(missing), { beforeVisible })).toEqual({ existed: false });
    }
    expect(called).toBe(1);
    expect((await Deno.stat(at("a"))).isDirectory).toBe(true);
  },
);

testBoth("remove() refuses folders and what lies below files", async ({ store, workspace, put }) => {
  await put("a/x", "x");
  const rows: [string, string][] = [["", "is_directory"], ["a", "is_directory"], ["a/x/y", "parent_is_file"]];
  for (const [relative, reason] of rows) {
    expect(await refusal(() => store.remove(workspace, path(relative))), relative).toBe(reason);
  }
});

testBoth(
  "remove() keeps the file when its conditions or the last moment refuse",
  async ({ store, workspace, put, read }) => {
    const { version } = await put("x", "x");
    const remove = (conditions: Record<string, unknown>) =>
      store.remove(workspace, path("x"), { conditions });
    expect(await refusal(() => remove({ ifMatch: ['"other"'] }))).toBe("precondition_failed");
    expect(await refusal(() => remove({ ifUnmodifiedSinceMs: 0 }))).toBe("precondition_failed");
    const missing = () => store.remove(workspace, path("y"), { conditions: { ifMatch: "*" } });
    expect(await refusal(missing)).toBe("precondition_failed");
    const late = () => {
      throw new TypeError("revoked meanwhile");
    };
    await expect(store.remove(workspace, path("x"), { beforeVisible: late })).rejects.toThrow(
      "revoked meanwhile",
    );
    expect(await read("x")).toBe("x");
    expect(await remove({ ifMatch: [version.etag] })).toEqual({ existed: true });
  },
);

testBoth("remove() during a read lets the reader finish", async ({ store, workspace, put }) => {
  await put("x", new Uint8Array(200_000));
  const file = await store.open(workspace, path("x"));
  await store.remove(workspace, path("x"));
  expect((await new Response(await file.stream(0, 200_000)).bytes()).length).toBe(200_000);
});
