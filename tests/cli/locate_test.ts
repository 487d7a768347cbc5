import { fromFileUrl, join } from "../../base/std.ts";
import { locateServer } from "../../cli/locate.ts";
import { expect } from "../helpers/expect.ts";
import { testIf } from "../helpers/skip.ts";
import { run, startServer, withTempFolder, writeDataFolder } from "./harness.ts";

const AGENTS = { "GET /agents": [200, { agents: [] }] } as const;
const MAIN = fromFileUrl(new URL("../../main.ts", import.meta.url));

Deno.test("locateServer() finds STRING_URL, else server.json, else the usual address", () =>
  withTempFolder(async (data) => {
    await expect(locateServer({}, data), "a named folder never means another server").rejects.toMatchObject({
      exitCode: 6,
    });
    await expect(locateServer({ STRING_DATA: data }, undefined)).rejects.toMatchObject({ exitCode: 6 });
    await writeDataFolder(data, "http://127.0.0.1:4000");
    expect(await locateServer({}, data)).toEqual({ url: "http://127.0.0.1:4000", token: "adm_local" });
    expect(await locateServer({ STRING_DATA: data }, undefined)).toMatchObject({
      url: "http://127.0.0.1:4000",
    });
    expect((await locateServer({ STRING_URL: "https://s.example.org/x/" }, data)).url).toBe(
      "https://s.example.org/x",
    );
    expect((await locateServer({ STRING_URL: "" }, data)).url).toBe("http://127.0.0.1:4000");
  }));

Deno.test("locateServer() shows the data folder's token only to its own server or to a named loopback address", () =>
  withTempFolder(async (data) => {
    await writeDataFolder(data, "http://192.0.2.7:4000");
    const tokenAt = async (env: Record<string, string>) => (await locateServer(env, data)).token;
    expect(await tokenAt({})).toBe("adm_local");
    expect(await tokenAt({ STRING_URL: "http://192.0.2.7:4000/" })).toBe("adm_local");
    expect(await tokenAt({ STRING_URL: "http://localhost:9" })).toBe("adm_local");
    expect(await tokenAt({ STRING_URL: "http://[::1]:9" })).toBe("adm_local");
    for (
      const url of [
        "https://s.example.org",
        "http://192.0.2.7:4001",
        "http://192.0.2.8:4000",
        "https://192.0.2.7:4000",
        "http://127.0.0.1.example.org",
        "http://localhost.example.org",
        "http://128.0.0.1",
      ]
    ) {
      expect(await tokenAt({ STRING_URL: url }), url).toBeUndefined();
      expect(await tokenAt({ STRING_URL: url, STRING_ADMIN_TOKEN: "adm_given" }), url).toBe("adm_given");
    }
    await Deno.remove(join(data, "server.json"));
    await expect(tokenAt({}), "nobody says who listens on the usual port").rejects.toMatchObject({
      exitCode: 6,
    });
  }));

/** What `locateServer()` finds for each environment in a program that was started in `cwd`. */
async function locateIn(cwd: string, ...environments: Record<string, string>[]): Promise<unknown[]> {
  const program = `
    import { locateServer } from ${JSON.stringify(new URL("../../cli/locate.ts", import.meta.url).href)};
    const found = [];
    for (const env of ${JSON.stringify(environments)}) found.push(await locateServer(env, undefined));
    console.log(JSON.stringify(found));`;
  const config = fromFileUrl(new URL("../../deno.json", import.meta.url));
  const ran = await new Deno.Command(Deno.execPath(), { args: ["eval", "--config", config, program], cwd })
    .output();
  return JSON.parse(new TextDecoder().decode(ran.stdout));
}

Deno.test("locateServer() keeps the token of a folder that nobody named from a STRING_URL that is not its server", () =>
  withTempFolder(async (folder) => {
    expect(await locateIn(folder, {})).toEqual([{ url: "http://127.0.0.1:3923" }]);
    const data = join(folder, "string-data");
    await Deno.mkdir(data);
    await writeDataFolder(data, "http://127.0.0.1:4000");
    const [own, other] = ["http://127.0.0.1:4000", "http://127.0.0.1:4001"] as const;
    expect(await locateIn(folder, { STRING_URL: own }, { STRING_URL: other })).toEqual([
      { url: own, token: "adm_local" },
      { url: other },
    ]);
  }));

testIf(
  Deno.build.os === "linux",
  "needs /proc",
  "locateServer() shows no token to whoever took the port of a server that is gone",
  () =>
    withTempFolder(async (data) => {
      await writeDataFolder(data, "http://127.0.0.1:4000", { pid: 2 ** 22 + 1 });
      expect(await locateServer({}, data)).toEqual({ url: "http://127.0.0.1:4000" });
    }),
);

Deno.test("locateServer() takes the token from STRING_ADMIN_TOKEN_FILE and refuses what no header can carry", () =>
  withTempFolder(async (data) => {
    const file = join(data, "token");
    await Deno.writeTextFile(file, "adm_file\n");
    const env = { STRING_URL: "https://s.example.org", STRING_ADMIN_TOKEN_FILE: file };
    expect((await locateServer(env, data)).token).toBe("adm_file");
    await Deno.writeTextFile(file, "adm_x\r\nX-Evil: hunter2");
    const refused = await run(["agent", "list"], env);
    expect(refused.code).toBe(2);
    expect(refused.err).not.toContain("hunter2");
  }));

Deno.test("locateServer() refuses a STRING_URL that is none, without repeating it", async () => {
  for (const url of ["ftp://x", "x:1", "http://u:hunter2@x", "http://x/?a=hunter2", "http://"]) {
    const ran = await run(["agent", "list"], { STRING_URL: url });
    expect(ran.code, url).toBe(2);
    expect(ran.err).not.toContain("hunter2");
  }
});

Deno.test("a command sends the token it found, and none to a redirect's target", () =>
  withTempFolder(async (data) => {
    await using elsewhere = startServer(AGENTS);
    await using server = startServer(AGENTS);
    await writeDataFolder(data, server.url);
    expect((await run(["agent", "list", "--data", data])).code).toBe(0);
    expect(server.seen[0]?.authorization).toBe("Bearer adm_local");

    const redirecting = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {} },
      () => Response.redirect(elsewhere.url + "/agents", 307),
    );
    const url = `http://127.0.0.1:${redirecting.addr.port}`;
    expect((await run(["agent", "list"], { STRING_URL: url, STRING_ADMIN_TOKEN: "adm_x" })).code).toBe(1);
    expect(elsewhere.seen).toEqual([]);
    await redirecting.shutdown();
  }));

Deno.test("a server that does not answer is exit code 6 and says how to start one", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  const ran = await run(["agent", "list", "--json"], { STRING_URL: `http://127.0.0.1:${port}` });
  expect([ran.code, ran.out]).toEqual([6, ""]);
  expect(ran.err).toContain("Is it running? Start it with: string serve");
});

Deno.test("a loopback server is reached past the proxies of the environment", async () => {
  await using server = startServer(AGENTS);
  await using proxy = startServer({});
  const env: Record<string, string> = { NO_PROXY: "", no_proxy: "" };
  for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]) {
    env[name] = env[name.toLowerCase()] = proxy.url;
  }
  for (const host of ["127.0.0.1", "localhost"]) {
    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", MAIN, "agent", "list"],
      env: { ...env, STRING_URL: `http://${host}:${server.port}` },
    }).output();
    expect([code, new TextDecoder().decode(stderr)], host).toEqual([0, ""]);
  }
  expect(server.seen).toHaveLength(2);
  expect(proxy.seen).toEqual([]);
});
