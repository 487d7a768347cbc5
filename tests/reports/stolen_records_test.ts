/** Report S2: whoever steals the records has no secret, and a mint that could not be stored shows none. */
import { join } from "../../base/std.ts";
import { expect } from "../helpers/expect.ts";
import { startServer } from "../helpers/server.ts";
import { testIf } from "../helpers/skip.ts";
import { bearer, fs, namesIn, reasonOf, startServerProcess, withFolder } from "./support.ts";

/** Where the operator's own secrets lie, by design, readable by the server's user alone. */
const KEPT_IN_CLEAR = ["admin.token", "secret.key"];

async function readRecords(dataFolder: string): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const name of await namesIn(dataFolder)) {
    const path = join(dataFolder, name);
    if (KEPT_IN_CLEAR.includes(name) || !(await Deno.stat(path)).isFile) continue;
    files[name] = new TextDecoder("latin1").decode(await Deno.readFile(path));
  }
  return files;
}

Deno.test("report S2: the database and its log hold no secret, neither while the server runs nor afterwards", async () => {
  const dataFolder = await Deno.makeTempDir({ prefix: "string-test-" });
  await using server = await startServer({ dataFolder });
  const paired = await server.admin("POST", "/agents", {
    agent_id: "eve",
    key: true,
    webhook: true,
    capability: { path_prefix: "", verbs: ["GET"], ttl_ms: 60_000 },
  });
  const minted = await server.mint({});
  const once = await server.mint({ single_use: true });
  await fs(server, "PUT", "a.txt", minted.secret, { body: "used" });
  await fs(server, "GET", "a.txt", once.secret);
  await fs(server, "GET", `x-${minted.secret}`, minted.secret); // in a path, and so perhaps in the audit
  const hook = String(paired.body.webhook_url);
  await (await fetch(hook, { method: "POST", body: "hello" })).body?.cancel();
  await (await server.fetch("/agents", { headers: bearer(`adm_${"w".repeat(43)}`) })).body?.cancel();
  await server.context.audit.flush();

  const secrets: Record<string, string> = {
    "a capability's": minted.secret,
    "a single-use capability's": once.secret,
    "a pairing's capability's": (paired.body.capability as { secret: string }).secret,
    "an agent's key": String(paired.body.agent_key),
    "the admin token": server.adminToken,
    "a webhook's token": hook.slice(hook.lastIndexOf("/") + 1),
    "a wrong token": "w".repeat(43),
  };
  const requireNone = (files: Record<string, string>) => {
    for (const [file, content] of Object.entries(files)) {
      for (const [what, secret] of Object.entries(secrets)) {
        const bare = secret.replace(/^[a-z]+_/, "");
        expect([file, what, content.includes(bare)]).toEqual([file, what, false]);
      }
    }
  };
  const live = await readRecords(dataFolder);
  // The right files were read: what is no secret is in them.
  expect((live["string.db-wal"] ?? "") + live["string.db"]).toContain(minted.token_id);
  requireNone(live);
  if (Deno.build.os !== "windows") {
    for (const name of [...Object.keys(live), ...KEPT_IN_CLEAR]) {
      if (name.endsWith(".lock")) continue;
      const { mode } = await Deno.stat(join(dataFolder, name));
      expect([name, (mode ?? 0o777) & 0o777]).toEqual([name, 0o600]);
    }
  }
  await server.stop();
  requireNone(await readRecords(dataFolder));
});

async function canMount(): Promise<boolean> {
  try {
    const script = 'd=$(mktemp -d) && mount -t tmpfs none "$d" && umount "$d"; s=$?; rmdir "$d"; exit $s';
    const command = new Deno.Command("unshare", {
      args: ["-Urm", "sh", "-c", script],
      stdout: "null",
      stderr: "null",
    });
    return (await command.output()).success;
  } catch {
    return false; // no such program here
  }
}

testIf(
  await canMount(),
  "a tmpfs cannot be mounted here with unshare -Urm",
  "report S2: on a full disk a mint is 507 or 503 without a secret, old secrets work, and space heals it",
  () =>
    withFolder(async (folder) => {
      const script = 'mount -t tmpfs -o size=16m none "$0" && exec "$@"';
      await using server = await startServerProcess(folder, {}, {
        wrapper: ["unshare", "-Urm", "sh", "-c", script, folder],
      });
      const url = `http://127.0.0.1:${server.port}`;
      const secret = await server.pair("eve");
      const old = bearer(secret);
      const put = await fetch(`${url}/fs/a.txt`, { method: "PUT", headers: old, body: "kept" });
      expect([put.status, await put.text()]).toEqual([201, '{"path":"a.txt","bytes":4,"created":true}\n']);

      // The file system of the other process, as it sees it.
      const inside = `/proc/${server.pid}/root${folder}`;
      const filler = Deno.openSync(`${inside}/filler`, { write: true, createNew: true });
      try {
        for (const block = new Uint8Array(4096);;) filler.writeSync(block);
      } catch {
        filler.close(); // full, as it should be
      }
      const mint = { agent_id: "eve", path_prefix: "", verbs: ["GET"], ttl_ms: 60_000 };
      const statuses = new Set<unknown>();
      for (let round = 0; round < 20; round++) {
        const refused = await server.admin("POST", "/capabilities", mint);
        statuses.add(refused.status);
        expect(JSON.stringify(refused)).not.toContain("caps_");
        const paired = await server.admin("POST", "/agents", {
          agent_id: `new${round}`,
          key: true,
          capability: {
            path_prefix: "",
            verbs: ["GET"],
            ttl_ms: 60_000,
          },
        }); // deno-fmt-ignore
        statuses.add(paired.status);
        expect(JSON.stringify(paired)).not.toMatch(/caps_|agk_/);
      }
      expect([...statuses].every((status) => status === 507 || status === 503)).toBe(true);
      const refusedPut = await fetch(`${url}/fs/b.txt`, {
        method: "PUT",
        headers: old,
        body: "x".repeat(9000),
      });
      expect([refusedPut.status, reasonOf(await refusedPut.text())]).toEqual([507, "disk_full"]);
      const got = await fetch(`${url}/fs/a.txt`, { headers: old });
      expect([got.status, await got.text()]).toEqual([200, "kept"]);

      Deno.removeSync(`${inside}/filler`);
      const healed = await server.admin("POST", "/capabilities", mint);
      expect([healed.status, String(healed.secret).startsWith("caps_")]).toEqual([201, true]);
      const used = await fetch(`${url}/fs/a.txt`, { headers: bearer(String(healed.secret)) });
      expect([used.status, await used.text()]).toEqual([200, "kept"]);
      const listed = await server.admin("GET", "/capabilities");
      expect((listed.capabilities as unknown[]).length).toBe(2);
      expect(((await server.admin("GET", "/agents")).agents as unknown[]).length).toBe(1);
      await server.program.kill();
    }),
);
