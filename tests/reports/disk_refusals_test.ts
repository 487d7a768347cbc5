/** Report M8: what a disk says has its own refusal, for every verb, and uploads are staged on the workspace's own disk. */
import { join } from "../../base/std.ts";
import { expect } from "../helpers/expect.ts";
import { testIf } from "../helpers/skip.ts";
import { CONTAINMENTS, fs, namesIn, snapshot, stagingOf, withServer } from "./support.ts";

/** Path, then what PUT, GET, HEAD and DELETE answer. */
const ROWS: [string, number, number, number, number, string][] = [
  ["file/below", 409, 409, 409, 409, "parent_is_file"],
  ["file/below/deeper", 409, 409, 409, 409, "parent_is_file"],
  ["folder", 409, 409, 409, 409, "is_directory"],
  ["folder/", 409, 409, 409, 409, "is_directory"],
  ["", 409, 409, 409, 409, "is_directory"],
  ["pipe", 409, 409, 409, 409, "not_a_file"],
  ["pipe/below", 409, 409, 409, 409, "parent_is_file"],
  ["socket", 409, 409, 409, 409, "not_a_file"],
  ["a%00b", 400, 400, 400, 400, "invalid_path"],
  ["x".repeat(300), 400, 400, 400, 400, "invalid_path"],
];

for (const containment of CONTAINMENTS) {
  testIf(
    Deno.build.os === "linux",
    "pipes and sockets are made as on Linux",
    `report M8: folders, files as folders, pipes, sockets and long names are refused by name (${containment})`,
    () =>
      withServer(async (server) => {
        const { secret } = await server.mint({});
        const home = server.home("eve");
        await Deno.mkdir(join(home, "folder"));
        await Deno.writeTextFile(join(home, "file"), "kept");
        await new Deno.Command("mkfifo", { args: [join(home, "pipe")] }).output();
        using _listener = Deno.listen({ transport: "unix", path: join(home, "socket") });
        const names = await namesIn(home);
        for (const [path, put, get, head, remove, reason] of ROWS) {
          for (const [method, status] of Object.entries({ PUT: put, GET: get, HEAD: head, DELETE: remove })) {
            const answer = await fs(server, method, path, secret, method === "PUT" ? { body: "x" } : {});
            expect([path, method, answer.status]).toEqual([path, method, status]);
            if (method !== "HEAD") expect([path, method, answer.reason]).toEqual([path, method, reason]);
            expect(answer.text).not.toContain(server.dataFolder);
            expect(answer.text).not.toContain("os error");
          }
        }
        expect(await namesIn(home)).toEqual(names);
        expect(await namesIn(stagingOf(home))).toEqual([]);
        expect(await Deno.readTextFile(join(home, "file"))).toBe("kept");
      }, { env: { STRING_CONTAINMENT: containment } }),
  );
}

/** A folder on another file system than the temp folder's, where there is one. */
async function otherDisk(): Promise<string | undefined> {
  const temp = await Deno.makeTempDir();
  try {
    const { dev } = await Deno.stat(temp);
    return (await Deno.stat("/dev/shm")).dev === dev
      ? undefined
      : await Deno.makeTempDir({ dir: "/dev/shm" });
  } catch {
    return undefined; // no such folder, or not ours to write in
  } finally {
    await Deno.remove(temp);
  }
}

const other = await otherDisk();

testIf(
  other !== undefined,
  "there is no second file system at /dev/shm",
  "report M8: a workspace on another disk than the data folder takes uploads, staged on its own disk",
  async () => {
    const homes = other ?? "";
    await withServer(async (server) => {
      const home = join(homes, "eve");
      const paired = await server.admin("POST", "/agents", { agent_id: "eve", home });
      expect([paired.status, paired.body.home]).toEqual([200, home]);
      const { secret } = await server.mint({});
      for (const [body, status] of [["small", 201], ["x".repeat(300_000), 200]] as const) {
        const put = await fs(server, "PUT", "in/a.txt", secret, { body });
        expect(put.status).toBe(status);
        expect((await fs(server, "GET", "in/a.txt", secret)).text).toBe(body);
      }
      const [disk, data] = [await Deno.stat(stagingOf(home)), await Deno.stat(server.dataFolder)];
      expect(disk.dev).toBe((await Deno.stat(home)).dev);
      expect(disk.dev === data.dev).toBe(false);
      expect(Object.keys(await snapshot(home))).toEqual([".string", ".string/staging", "in", "in/a.txt"]);
    }, { flags: { homes: [homes] } });
    await Deno.remove(homes, { recursive: true });
  },
);
