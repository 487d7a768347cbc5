import { type AmbientTrust, decideAmbientTrust } from "../../runtime/identity.ts";
import { expect } from "../helpers/expect.ts";
import { ask, Operator } from "../helpers/api.ts";
import { serve } from "../helpers/program.ts";
import { startServer } from "../helpers/server.ts";
import { testIf } from "../helpers/skip.ts";
import { canRun } from "../helpers/tools.ts";
import { asNobody, NEEDS_OTHER_USERS, nobodyCanRun } from "../trust/support.ts";

/** `--trust-loopback`, whether a public URL is set, whether the peer's user can be told, and what follows. */
const MATRIX: readonly ["auto" | boolean, boolean, boolean, AmbientTrust][] = [
  ["auto", false, true, "on"],
  ["auto", false, false, "off"],
  ["auto", true, true, "off"],
  ["auto", true, false, "off"],
  [true, false, true, "on"],
  [true, false, false, "on-unchecked"],
  [true, true, true, "on"],
  [true, true, false, "on-unchecked"],
  [false, false, true, "off"],
  [false, false, false, "off"],
  [false, true, true, "off"],
  [false, true, false, "off"],
];

Deno.test("decideAmbientTrust() lets true lift conditions, never the check of the peer's user", () => {
  for (const [trustLoopback, exposed, checkable, outcome] of MATRIX) {
    const row = [trustLoopback, exposed, checkable];
    expect([...row, decideAmbientTrust({ trustLoopback, exposed }, checkable)]).toEqual([...row, outcome]);
  }
});

const isLinux = Deno.build.os === "linux";
const READY = await nobodyCanRun("curl", "--version");
const WHY = NEEDS_OTHER_USERS;
const PUBLIC = { publicUrl: "https://public.example" };

async function statusForNobody(url: string): Promise<number> {
  return Number((await asNobody("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", url)).out);
}

testIf(READY, WHY, "a server trusts by place as its flags say, and tells it in its banner", async (t) => {
  for (const [trustLoopback, exposed, checkable, outcome] of MATRIX) {
    if (!checkable) continue;
    await t.step(
      `--trust-loopback=${trustLoopback}${exposed ? " --public-url" : ""} is ${outcome}`,
      async () => {
        const flags = { trustLoopback: String(trustLoopback), ...(exposed ? PUBLIC : {}) };
        await using server = await startServer({ flags });
        expect(server.context.identity.ambientTrust).toBe(outcome);
        const own = await ask(`${server.url}/agents`);
        expect([own.status, await statusForNobody(`${server.url}/agents`)]).toEqual([
          outcome === "on" ? 200 : 401,
          401,
        ]);
        const words = outcome === "on" ? "this server's own user" : "nobody is trusted by place";
        expect(server.context.banner(server.url).join("\n")).toContain(words);
      },
    );
  }
});

const HIDE = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" "/proc/$$/net" && exec "$@"'];
const empty = await Deno.makeTempDir();
const canHide = isLinux && Deno.uid() === 0 &&
  await canRun(...HIDE, empty, "sh", "-c", "! test -e /proc/net/tcp");
await Deno.remove(empty);

testIf(
  canHide && READY,
  "hiding /proc/net needs root on Linux",
  "where the peer's user cannot be told nobody is trusted unless the operator insists",
  async (t) => {
    for (const [trustLoopback, exposed, checkable, outcome] of MATRIX) {
      if (checkable) continue;
      await t.step(
        `--trust-loopback=${trustLoopback}${exposed ? " --public-url" : ""} is ${outcome}`,
        async () => {
          const nothing = await Deno.makeTempDir();
          await using server = await serve({
            wrapper: [...HIDE, nothing],
            args: [
              `--trust-loopback=${trustLoopback}`,
              ...(exposed ? ["--public-url", PUBLIC.publicUrl] : []),
            ],
          });
          const url = `http://127.0.0.1:${server.port}/agents`;
          const expected = outcome === "on-unchecked" ? 200 : 401;
          expect([(await ask(url)).status, await statusForNobody(url)]).toEqual([expected, expected]);
          expect(
            (await (await Operator.of({
              url: `http://127.0.0.1:${server.port}`,
              dataFolder: server.dataFolder,
            })).call("GET", "/agents")).status,
          ).toBe(200);
          const words = outcome === "on-unchecked"
            ? "every program on this machine"
            : "nobody is trusted by place";
          expect(server.out()).toContain(words);
          await server.stop();
          await Deno.remove(nothing);
        },
      );
    }
  },
);

testIf(READY, WHY, "nothing is remembered: a connection is asked about with each request", async () => {
  await using server = await startServer();
  const statuses = async (args: readonly string[]) =>
    (await asNobody("curl", "-sS", "-o", "/dev/null", "-o", "/dev/null", "-w", "%{http_code} ", ...args)).out
      .trim();
  const url = `${server.url}/agents`;
  // Root's own request before and after, on other connections, gives nobody's kept connection nothing.
  expect((await ask(url)).status).toBe(200);
  expect(await statuses([url, url])).toBe("401 401");
  expect((await ask(url)).status).toBe(200);
});
