/** Report 17: a link is never followed and never touched, whatever it is, wherever it stands, wherever it leads. */
import { dirname, join } from "../../base/std.ts";
import { expect } from "../helpers/expect.ts";
import { testIf } from "../helpers/skip.ts";
import { CONTAINMENTS, fs, namesIn, snapshot, withFolder, withServer } from "./support.ts";

const CAN_LINK = Deno.build.os !== "windows";
const WHY_NOT = "links need a privilege here";

/** Links by their place in the workspace; `OUT` is the folder outside. */
const LINKS: Record<string, string> = {
  "in/to_folder": "OUT",
  "in/to_file": "OUT/secret.txt",
  "in/relative": "../../../../OUT_NAME/secret.txt",
  "in/dangling": "OUT/not_yet.txt",
  "in/dangling_folder": "OUT/not_yet",
  "in/loop": "loop",
  "in/chain": "to_folder",
  "in/chain_to_file": "chain/secret.txt",
  "in/inside_folder": "real",
  "in/inside_file": "real/a.txt",
  "in/to_self": ".",
  "in/to_root": "/",
  "in/proc_root": "/proc/self/root",
  "in/proc_cwd": "/proc/self/cwd",
  "in/own_data": "../../..",
  "in/to_reserved": "../.string",
};

const TARGETS = [
  ...Object.keys(LINKS),
  "in/to_folder/secret.txt",
  "in/to_folder/new.txt",
  "in/to_folder/sub/new.txt",
  "in/chain/secret.txt",
  "in/inside_folder/a.txt",
  "in/inside_folder/new.txt",
  "in/inside_folder/link_in_real/secret.txt",
  "in/real/link_in_real/secret.txt",
  "in/real/link_in_real/new.txt",
  "in/to_self/to_folder/secret.txt",
  "in/to_self/real/a.txt",
  "in/dangling_folder/new.txt",
  "in/proc_root/etc/hostname",
  "in/own_data/admin.token",
  "in/own_data/secret.key",
  "in/own_data/workspaces/adam/a.txt",
  "in/to_reserved/staging",
  "in/to_folder/",
  "in/./to_folder//secret.txt",
];

for (const containment of CONTAINMENTS) {
  const options = { env: { STRING_CONTAINMENT: containment } };

  testIf(
    CAN_LINK,
    WHY_NOT,
    `report 17: every verb on and through every link is 403 (${containment})`,
    () =>
      withFolder((outside) =>
        withServer(async (server) => {
          await Deno.writeTextFile(join(outside, "secret.txt"), "private bytes");
          await Deno.mkdir(join(outside, "sub"));
          await server.admin("POST", "/agents", { agent_id: "adam" });
          await Deno.writeTextFile(join(server.home("adam"), "a.txt"), "private bytes");
          const { secret } = await server.mint({});
          const home = server.home("eve");
          await Deno.mkdir(join(home, "in", "real"), { recursive: true });
          await Deno.writeTextFile(join(home, "in/real/a.txt"), "of the agent");
          await Deno.symlink(outside, join(home, "in/real/link_in_real"));
          for (const [path, target] of Object.entries(LINKS)) {
            const name = outside.slice(outside.lastIndexOf("/") + 1);
            await Deno.symlink(target.replace("OUT_NAME", name).replace("OUT", outside), join(home, path));
          }
          const before = [await snapshot(outside), await snapshot(home, { except: ".string" })];
          expect((await fs(server, "GET", "in/real/a.txt", secret)).text).toBe("of the agent");

          for (const path of TARGETS) {
            for (const method of ["GET", "PUT", "DELETE", "HEAD"]) {
              const init = method === "PUT" ? { body: "written through a link" } : {};
              const answer = await fs(server, method, path, secret, init);
              expect([path, method, answer.status]).toEqual([path, method, 403]);
              if (method !== "HEAD") expect([path, method, answer.reason]).toEqual([path, method, "symlink"]);
              expect(answer.text).not.toContain("private");
              expect(answer.text).not.toContain(outside);
              expect(answer.text).not.toContain(dirname(home));
            }
          }
          const narrow = await server.mint({ path_prefix: "in/to_folder" });
          for (const path of ["in/to_folder", "in/to_folder/secret.txt"]) {
            expect((await fs(server, "GET", path, narrow.secret)).status).toBe(403);
          }
          expect([await snapshot(outside), await snapshot(home, { except: ".string" })]).toEqual(before);
          expect(await Deno.readTextFile(join(server.home("adam"), "a.txt"))).toBe("private bytes");
        }, options)
      ),
  );

  testIf(
    CAN_LINK,
    WHY_NOT,
    `report 17: an agent that turns .string into a link gains nothing (${containment})`,
    () =>
      withFolder((outside) =>
        withServer(async (server) => {
          const { secret } = await server.mint({});
          const home = server.home("eve");
          await Deno.writeTextFile(join(home, "a.txt"), "kept");
          await Deno.mkdir(join(outside, "staging"));
          const before = await snapshot(outside);
          for (const place of [".string", ".string/staging"]) {
            const path = join(home, place);
            await Deno.remove(path, { recursive: true });
            await Deno.symlink(place === ".string" ? outside : join(outside, "staging"), path);
            const put = await fs(server, "PUT", "a.txt", secret, { body: "x".repeat(100) });
            expect([place, put.status]).toEqual([place, 403]);
            expect(await snapshot(outside)).toEqual(before);
            expect((await fs(server, "GET", "a.txt", secret)).text).toBe("kept");
            await Deno.remove(path);
            if (place === ".string") await Deno.mkdir(join(home, ".string/staging"), { recursive: true });
          }
          expect((await fs(server, "PUT", "a.txt", secret, { body: "healed" })).status).toBe(200);
        }, options)
      ),
  );

  testIf(
    CAN_LINK,
    WHY_NOT,
    `report 17: a link among the parents of a new file makes no folder (${containment})`,
    () =>
      withFolder((outside) =>
        withServer(async (server) => {
          const { secret } = await server.mint({});
          await Deno.symlink(outside, join(server.home("eve"), "l"));
          const put = await fs(server, "PUT", "l/a/b/c.txt", secret, { body: "x" });
          expect([put.status, put.reason]).toEqual([403, "symlink"]);
          expect(await namesIn(outside)).toEqual([]);
          expect(await namesIn(server.home("eve"))).toEqual([".string", "l"]);
        }, options)
      ),
  );
}
