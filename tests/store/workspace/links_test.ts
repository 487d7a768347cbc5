import { expect } from "../../helpers/expect.ts";
import { bodyOf, bytes, type Fixture, path, refusal, testBoth } from "./fixture.ts";

/** Tries every operation on a path and returns how each is refused. */
async function tryAll({ store, workspace }: Fixture, relative: string): Promise<string[]> {
  const at = path(relative);
  return [
    await refusal(() => store.stat(workspace, at)),
    await refusal(() => store.open(workspace, at)),
    await refusal(() => store.beginUpload(workspace, at, { maxBytes: 100, fromOutside: true })),
    await refusal(() => store.remove(workspace, at)),
    await refusal(() => store.isFromOutside(workspace, at)),
  ];
}

testBoth(
  "a link anywhere is refused by every operation, also one that stays inside (report 17)",
  async (fixture) => {
    const { root, at, put } = fixture;
    const outside = `${root}/outside`;
    await Deno.mkdir(`${outside}/folder`, { recursive: true });
    await Deno.writeTextFile(`${outside}/canary`, "untouched");
    await put("in/real/file", "inside");
    await Deno.symlink(outside, at("in/l"));
    await Deno.symlink(`${outside}/canary`, at("in/lfile"));
    await Deno.symlink("real", at("in/inner"));
    await Deno.symlink("real/file", at("in/innerfile"));
    await Deno.symlink("nowhere", at("in/dangling"));
    await Deno.symlink("loop", at("in/loop"));
    const links = [
      "in/l",
      "in/l/canary",
      "in/l/folder/new",
      "in/l/new/deep",
      "in/lfile",
      "in/lfile/x",
      "in/inner",
    ];
    for (
      const relative of [...links, "in/inner/file", "in/innerfile", "in/dangling", "in/dangling/x", "in/loop"]
    ) {
      expect(await tryAll(fixture, relative), relative).toEqual(Array(5).fill("symlink"));
    }
    expect(await Deno.readTextFile(`${outside}/canary`)).toBe("untouched");
    expect([...Deno.readDirSync(outside)].map((entry) => entry.name).sort()).toEqual(["canary", "folder"]);
    expect((await Deno.lstat(at("in/lfile"))).isSymlink).toBe(true);
    expect(fixture.staged()).toEqual([]);
  },
);

testBoth(
  "commit() refuses a link that came after the upload began (report 17)",
  async ({ store, workspace, root, at, staged }) => {
    const outside = `${root}/outside`;
    await Deno.mkdir(outside);
    for (const relative of ["new/file", "file"]) {
      const upload = await store.beginUpload(workspace, path(relative), {
        maxBytes: 100,
        fromOutside: false,
      });
      await upload.receive(bodyOf(bytes("evil")));
      await Deno.symlink(outside, at(relative.split("/")[0] ?? ""));
      let called = false;
      const commit = () => upload.commit({ beforeVisible: () => void (called = true) });
      expect(await refusal(commit)).toBe("symlink");
      expect(called).toBe(false);
    }
    expect([...Deno.readDirSync(outside)]).toEqual([]);
    expect(staged()).toEqual([]);
  },
);

for (const part of [".string", ".string/staging"]) {
  testBoth(
    `beginUpload() refuses a link at ${part} and writes nothing through it`,
    async ({ store, workspace, root, at }) => {
      const outside = `${root}/outside`;
      await Deno.mkdir(`${outside}/staging`, { recursive: true });
      await Deno.remove(at(part), { recursive: true });
      await Deno.symlink(outside, at(part));
      const begin = () => store.beginUpload(workspace, path("x"), { maxBytes: 100, fromOutside: true });
      expect(await refusal(begin)).toBe("symlink");
      expect(await store.sweep([workspace])).toBe(0);
      expect([...Deno.readDirSync(outside)].map((entry) => entry.name)).toEqual(["staging"]);
    },
  );
}

testBoth(
  "a home that is a link is refused, also within the second in which the old one is believed",
  async (fixture) => {
    const { store, workspace, root, home, put } = fixture;
    await put("a", "mine");
    await store.stat(workspace, path("a"));
    await Deno.mkdir(`${root}/outside`);
    await Deno.writeTextFile(`${root}/outside/b`, "not yours");
    await Deno.rename(home, `${home}-moved`);
    await Deno.symlink(`${root}/outside`, home);
    for (const refused of await tryAll(fixture, "b")) expect(["symlink", "not_found"]).toContain(refused);
    expect(await refusal(() => store.createWorkspace(workspace))).toBe("symlink");
    expect([...Deno.readDirSync(`${root}/outside`)].map((entry) => entry.name)).toEqual(["b"]);
  },
);
