import { join } from "../../base/std.ts";
import { hashSecret } from "../../caps/secret.ts";
import { readAdminTokenHash } from "../../runtime/admin_token.ts";
import { openDataFolder } from "../../store/data_folder/open.ts";
import { Operator } from "../helpers/api.ts";
import { expect } from "../helpers/expect.ts";
import { runString, serve } from "../helpers/program.ts";
import { startServer, type TestServer } from "../helpers/server.ts";

async function withFolder(body: (dataFolder: string, file: string) => Promise<void>): Promise<void> {
  const dataFolder = await Deno.makeTempDir();
  try {
    await body(dataFolder, join(dataFolder, "admin.token"));
  } finally {
    await Deno.remove(dataFolder, { recursive: true });
  }
}

async function statusWith(server: TestServer, token: string): Promise<number> {
  return (await new Operator(server.url, token).call("GET", "/agents")).status;
}

/** Everything the data folder holds beside the token's own file, as text. */
async function restOf(dataFolder: string): Promise<string> {
  let text = "";
  for await (const { name, isFile } of Deno.readDir(dataFolder)) {
    if (isFile && name !== "admin.token") {
      text += new TextDecoder("latin1").decode(await Deno.readFile(join(dataFolder, name)));
    }
  }
  return text;
}

Deno.test("the first start makes a token for its user's eyes alone; the database holds its hash only", () =>
  withFolder(async (dataFolder, file) => {
    const server = await startServer({ dataFolder });
    const token = (await Deno.readTextFile(file)).trim();
    expect(token).toMatch(/^adm_[A-Za-z0-9_-]{43}$/);
    if (Deno.build.os !== "windows") expect(((await Deno.stat(file)).mode ?? 0) & 0o777).toBe(0o600);
    expect(await readAdminTokenHash(server.context.database.settings)).toBe(hashSecret(token));
    expect(await statusWith(server, token)).toBe(200);
    expect(server.context.banner(server.url).join("\n")).toContain("made now");
    await server.stop();
    const rest = await restOf(dataFolder);
    expect(rest).toContain(String(hashSecret(token)));
    expect(rest).not.toContain(token);
    expect(rest).not.toContain(token.slice(4));
  }));

Deno.test("a second start keeps the token, whether or not its file is still there", () =>
  withFolder(async (dataFolder, file) => {
    const first = await startServer({ dataFolder });
    const token = first.adminToken;
    await first.stop();
    const second = await startServer({ dataFolder });
    expect([second.adminToken, await statusWith(second, token)]).toEqual([token, 200]);
    expect(second.context.banner(second.url).join("\n")).not.toContain("made now");
    await second.stop();
    await Deno.remove(file);
    const third = await startServer({ dataFolder });
    expect([third.adminToken, await statusWith(third, token)], "nothing is rotated").toEqual(["", 200]);
    await third.stop();
    // A forged file counts for nothing: the hash decides.
    const forged = `adm_${"f".repeat(43)}`;
    await Deno.writeTextFile(file, forged);
    const fourth = await startServer({ dataFolder });
    expect([await statusWith(fourth, forged), await statusWith(fourth, token)]).toEqual([401, 200]);
    await fourth.stop();
  }));

Deno.test("a crash between the file and the hash is mended by the next start", () =>
  withFolder(async (dataFolder, file) => {
    const folder = await openDataFolder(dataFolder, { shared: false });
    const token = `adm_${"k".repeat(43)}`;
    await folder.writeAdminToken(token);
    folder.close();
    const server = await startServer({ dataFolder });
    expect((await Deno.readTextFile(file)).trim()).toBe(token);
    expect(await statusWith(server, token)).toBe(200);
    await server.stop();
  }));

Deno.test("two processes that start at once with --shared agree on the token", async () => {
  for (let round = 0; round < 3; round++) {
    await withFolder(async (dataFolder, file) => {
      const servers = await Promise.all([1, 2].map(() => serve({ dataFolder, args: ["--shared"] })));
      try {
        const token = (await Deno.readTextFile(file)).trim();
        const answers = servers.map(({ url }) => new Operator(url, token).call("GET", "/agents"));
        expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200]);
      } finally {
        for (const server of servers) await server.stop();
      }
    });
  }
});

Deno.test("the first start refuses a file that holds no token, or one that could be guessed", async () => {
  for (const content of ["adm_secret", "adm_", "hello", `caps_${"x".repeat(43)}`, `adm_${"x".repeat(44)}`]) {
    await withFolder(async (dataFolder, file) => {
      await Deno.writeTextFile(file, content);
      const refused = await runString(["serve", "--port", "0", "--data", dataFolder]);
      expect([content, refused.code === 0]).toEqual([content, false]);
      expect(refused.err).toContain("admin.token in the data folder holds no admin token");
      expect(refused.out + refused.err).not.toContain(`"${content}"`);
      await Deno.remove(file);
      await (await startServer({ dataFolder })).stop();
    });
  }
});
