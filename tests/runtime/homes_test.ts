import { AppError } from "../../base/errors.ts";
import { join } from "../../base/std.ts";
import { Homes, overlap } from "../../runtime/homes.ts";
import { expect } from "../helpers/expect.ts";
import { startServer } from "../helpers/server.ts";

/** Runs `body` with a folder that holds `data` and `homes`, resolved. */
async function withFolders(body: (root: string, homes: Homes) => Promise<void>): Promise<void> {
  const root = await Deno.realPath(await Deno.makeTempDir());
  try {
    for (const name of ["data/workspaces", "homes", "elsewhere"]) {
      await Deno.mkdir(join(root, name), { recursive: true });
    }
    await body(root, new Homes(join(root, "data"), [join(root, "homes")]));
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

/** Returns the chosen home, or the code and sentence of the refusal. */
async function choose(homes: Homes, home: string, taken: string[] = []): Promise<string> {
  try {
    return await homes.choose(home, taken);
  } catch (error) {
    if (error instanceof AppError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

Deno.test("choose() takes a folder inside a listed one, also one that is not there yet (SYS-AG-08)", () =>
  withFolders(async (root, homes) => {
    expect(await choose(homes, join(root, "homes/eve"))).toBe(join(root, "homes/eve"));
    expect(await choose(homes, join(root, "homes/team/eve"))).toBe(join(root, "homes/team/eve"));
    expect(await choose(homes, join(root, "homes/x/../eve/"))).toBe(join(root, "homes/eve"));
  }));

Deno.test("choose() refuses what is in no listed folder, the folder itself, and what climbs out (SYS-AG-08)", () =>
  withFolders(async (root, homes) => {
    for (
      const home of [
        join(root, "elsewhere/eve"),
        join(root, "homes"),
        join(root, "homes-evil/eve"),
        `${root}/homes/../elsewhere/eve`,
        `${root}/homes/../data/workspaces/x`,
        "/",
        "relative/eve",
        "",
        `${root}/homes/a\0b`,
        `${root}/homes/\ud800`,
      ]
    ) expect(await choose(homes, home), home).toMatch(/^invalid_request: /);
    expect(await choose(new Homes(join(root, "data"), []), join(root, "homes/eve"))).toMatch(
      /^invalid_request/,
    );
    expect(await choose(new Homes(join(root, "data"), [join(root, "none")]), join(root, "none/eve")))
      .toMatch(/^invalid_request/);
  }));

Deno.test("choose() refuses what equals, contains or lies in another home or the data folder (SYS-AG-08)", () =>
  withFolders(async (root, homes) => {
    const taken = [join(root, "homes/team/bob")];
    for (const name of ["team/bob", "team", "team/bob/inner"]) {
      expect(await choose(homes, join(root, "homes", name), taken), name).toMatch(/overlaps/);
    }
    expect(await choose(homes, join(root, "homes/team/bobby"), taken)).toBe(join(root, "homes/team/bobby"));
    const wide = new Homes(join(root, "data"), [root]);
    for (const name of ["data", "data/workspaces/eve", "data/x"]) {
      expect(await choose(wide, join(root, name)), name).toMatch(/overlaps/);
    }
  }));

Deno.test("choose() refuses a way through a link, and names no folder that the client did not", () =>
  withFolders(async (root, homes) => {
    await Deno.symlink(join(root, "elsewhere"), join(root, "homes/link"));
    await Deno.symlink(join(root, "none"), join(root, "homes/dangling"));
    for (const name of ["link", "link/eve", "dangling", "dangling/eve"]) {
      const refusal = await choose(homes, join(root, "homes", name));
      expect(refusal, name).toMatch(/^invalid_request: .*link/);
      expect(refusal).not.toContain(root);
    }
  }));

Deno.test("choose() refuses what the file system will not look at", () =>
  withFolders(async (root, homes) => {
    await Deno.symlink(join(root, "homes/b"), join(root, "homes/a"));
    await Deno.symlink(join(root, "homes/a"), join(root, "homes/b"));
    for (const name of ["x".repeat(300), "a", "a/eve", "d/".repeat(3000)]) {
      expect(await choose(homes, join(root, "homes", name)), name.slice(0, 10)).toMatch(/^invalid_request/);
    }
  }));

Deno.test("choose() takes a listed folder that is itself a link, by its real name", () =>
  withFolders(async (root) => {
    await Deno.symlink(join(root, "homes"), join(root, "alias"));
    const homes = new Homes(join(root, "data"), [join(root, "alias")]);
    expect(await choose(homes, join(root, "alias/eve"))).toBe(join(root, "homes/eve"));
    expect(await choose(homes, join(root, "homes/eve"))).toBe(join(root, "homes/eve"));
  }));

Deno.test("choose() refuses a file in the home's place or on its way", () =>
  withFolders(async (root, homes) => {
    await Deno.writeTextFile(join(root, "homes/file"), "x");
    for (const name of ["file", "file/eve"]) {
      expect(await choose(homes, join(root, "homes", name)), name).toMatch(/^invalid_request/);
    }
  }));

Deno.test("overlap() compares whole segments", () => {
  const rows: [string, string, boolean][] = [
    ["/a", "/a", true],
    ["/a/b", "/a", true],
    ["/a", "/a/b", true],
    ["/a", "/ab", false],
    ["/", "/a", true],
    ["/a", "/", true],
    ["/a/b", "/a/c", false],
  ];
  for (const [a, b, expected] of rows) expect([a, b, overlap(a, b)]).toEqual([a, b, expected]);
});

Deno.test("POST /agents puts an agent into its own home, moves no one, and keeps it (SYS-AG-08)", async () => {
  const listed = await Deno.realPath(await Deno.makeTempDir());
  try {
    await using server = await startServer({ flags: { homes: [listed] } });
    const pair = (body: Record<string, unknown>) => server.admin("POST", "/agents", body);
    const eve = await pair({ agent_id: "eve", home: `${listed}/eve` });
    expect(eve.body).toMatchObject({ home: `${listed}/eve`, created: true });
    const { secret } = await server.mint({});
    const put = await server.fetch(`/fs/a.txt?cap=${secret}`, { method: "PUT", body: "x" });
    expect((await put.json()).created).toBe(true);
    expect(await Deno.readTextFile(`${listed}/eve/a.txt`)).toBe("x");

    expect((await pair({ agent_id: "eve" })).body.home).toBe(`${listed}/eve`);
    expect((await pair({ agent_id: "eve", home: `${listed}/eve` })).status).toBe(200);
    for (const home of [`${listed}/other`, server.home("eve")]) {
      expect((await pair({ agent_id: "eve", home })).status, home).toBe(400);
    }
    for (const home of [`${listed}/eve`, `${listed}/eve/inner`, listed, server.home("eve")]) {
      const { status, body } = await pair({ agent_id: "bob", home });
      expect([home, status, body.reason]).toEqual([home, 400, "invalid_request"]);
    }
    expect((await server.admin("GET", "/agents/bob")).status).toBe(404);
    expect([...Deno.readDirSync(listed)].map(({ name }) => name)).toEqual(["eve"]);
  } finally {
    await Deno.remove(listed, { recursive: true });
  }
});
