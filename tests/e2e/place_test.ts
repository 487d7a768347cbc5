/** Where the program runs: other addresses, no home, folders that cannot be written, wrong command lines. */
import { join } from "../../base/std.ts";
import { ask, expectStatus, Operator, put, toLink } from "../helpers/api.ts";
import { expect } from "../helpers/expect.ts";
import { withFolder } from "../helpers/folder.ts";
import { BINARY, runString, serve } from "../helpers/program.ts";
import { testIf } from "../helpers/skip.ts";
import { NAMESPACE, NEEDS_NAMESPACE } from "../helpers/small_disk.ts";

function hasIpv6Loopback(): boolean {
  try {
    Deno.listen({ hostname: "::1", port: 0 }).close();
    return true;
  } catch {
    return false; // switched off on this machine
  }
}

testIf(
  hasIpv6Loopback(),
  "there is no ::1 here",
  "serve listens on ::1 and gives its address in brackets",
  async () => {
    await using server = await serve({ args: ["--host", "::1"] });
    expect(server.url).toMatch(/^http:\/\/\[::1\]:\d+$/);
    const operator = await Operator.of(server);
    await operator.pair();
    const { secret } = await operator.mint();
    expectStatus(await put(toLink(server.url, "a.txt", secret), "six"), 201);
    expect((await ask(toLink(server.url, "a.txt", secret))).text).toBe("six");
    expectStatus(await new Operator(server.url).call("GET", "/agents"), 200); // trusted by its user, over IPv6 too
  },
);

Deno.test("the program runs without HOME", () =>
  withFolder(async (cwd) => {
    const surroundings = { cwd, env: { HOME: undefined, XDG_CONFIG_HOME: undefined } };
    await using server = await serve({ ...surroundings, dataFolder: "" });
    expect((await runString(["agent", "create", "eve"], surroundings)).code).toBe(0);
    const chosen = await runString(["agent", "use", "eve"], surroundings);
    expect(chosen.code).toBe(1);
    expect(chosen.err).toContain("STRING_AGENT_ID");
    expect((await ask(server.url + "/health")).body["agents"]).toBe(1);
  }));

Deno.test("a command line that is wrong ends with 2 and says what is there", async () => {
  for (const args of [["serve", "--prot", "1"], ["serve", "--port", "x"], ["agent", "fly"], ["nothing"]]) {
    const ran = await runString(args);
    expect([ran.code, ran.out], args.join(" ")).toEqual([2, ""]);
    expect(ran.err).toMatch(/^error: /);
  }
});

Deno.test("string version names itself and what it runs on", async () => {
  const plain = await runString(["version"]);
  expect(plain.out).toMatch(/^string \d+\.\d+\.\d+ \(deno \d+\.\d+\.\d+, [\w-]+\)\n$/);
  const { out } = await runString(["version", "--json"]);
  expect(JSON.parse(out)).toMatchObject({ name: "string", version: /^string (\S+)/.exec(plain.out)?.[1] });
  expect((await runString(["--version"])).code).toBe(0);
});

testIf(
  NAMESPACE !== undefined,
  NEEDS_NAMESPACE,
  "a data folder that cannot be written is named, without a stack",
  () =>
    withFolder(async (folder) => {
      const mount =
        `mount --bind '${folder}' '${folder}' && mount -o remount,bind,ro '${folder}' && exec "$@"`;
      const wrapper = [...NAMESPACE ?? [], "sh", "-c", mount, "sh"];
      const made = join(folder, "made");
      await (await serve({ dataFolder: made })).stop();
      for (const data of [join(folder, "new"), made]) {
        const ran = await runString(["serve", "--port", "0", "--data", data], { wrapper });
        expect([ran.code, ran.out]).toEqual([1, ""]);
        expect(ran.err).toContain(`Cannot use the data folder "${data}"`);
        expect(ran.err).toContain("--data");
        expect(ran.err).not.toMatch(/\bat .*\.ts/);
      }
    }),
);

// The sources need Deno's cache, which such a root does not let them use.
if (BINARY !== undefined) {
  testIf(
    NAMESPACE !== undefined,
    NEEDS_NAMESPACE,
    "the executable serves from a root that cannot be written, with a folder for data and one for temporary files",
    () =>
      withFolder(async (folder) => {
        const mount = `mount -t tmpfs none '${folder}' && mkdir '${folder}/tmp' && ` +
          `mount -o remount,bind,ro / && exec "$@"`;
        const wrapper = [...NAMESPACE ?? [], "sh", "-c", mount, "sh"];
        const env = { TMPDIR: join(folder, "tmp"), HOME: "/nonexistent" };
        await using server = await serve({ wrapper, env, dataFolder: join(folder, "data") });
        const dataFolder = `/proc/${server.pid}/root${folder}/data`;
        const operator = await Operator.of({ url: server.url, dataFolder });
        await operator.pair();
        const link = toLink(server.url, "a.txt", (await operator.mint()).secret);
        expectStatus(await put(link, "written"), 201);
        expect((await ask(link)).text).toBe("written");
        expect((await server.stop()).code).toBe(0);
      }),
  );
}
