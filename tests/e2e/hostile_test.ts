/** What ordinary clients would never send, and clients that give up half-way: the program as it is shipped. */
import { join } from "../../base/std.ts";
import { ask, expectStatus, Operator, put, toLink } from "../helpers/api.ts";
import { curl } from "../helpers/curl.ts";
import { until } from "../helpers/deadline.ts";
import { expect } from "../helpers/expect.ts";
import { CAN_READ_MEMORY, NEEDS_PROC, peakGrowthMiB } from "../helpers/memory.ts";
import { serve, type Serving } from "../helpers/program.ts";
import { sendTarget, toLatin1 } from "../helpers/raw.ts";
import { testIf } from "../helpers/skip.ts";
import { HAS_CURL, NEEDS_CURL } from "../helpers/tools.ts";

const MIB = 2 ** 20;

async function withGrant(
  args: readonly string[],
  use: (server: Serving, secret: string, operator: Operator) => Promise<void>,
): Promise<void> {
  await using server = await serve({ args });
  const operator = await Operator.of(server);
  await operator.pair();
  await use(server, (await operator.mint({ path_prefix: "in" })).secret, operator);
}

/** Targets as they are sent, and what may be answered. */
const TARGETS: readonly (readonly [target: string, ...statuses: number[]])[] = [
  ["/fs/in/%2e%2e/%2e%2e/etc/passwd", 400],
  ["/fs/in/../../etc/passwd", 400],
  ["/fs/in/..%2f..%2fetc/passwd", 400],
  ["/fs/in/..%5c..%5cx", 400],
  ["/fs/in/..\\..\\x", 400],
  ["/fs/a%00b", 400],
  ["/fs/%", 400],
  ["/fs/%zz", 400],
  ["/fs/%C0%80", 400],
  ["/fs/%E0%A4%A", 400],
  ["/fs/in/%ff", 400],
  ["/fs/in/%2e%2e%2f%2e%2e", 400],
  ["/fs/in_evil/x", 403],
  ["/fs/in./x", 403],
  ["/fs/.string/staging/x", 403],
  ["/fs/in/%252e%252e", 404],
  ["/fs/in//./missing/", 404],
  ["/fs/in/" + "x".repeat(256), 400],
  ["/fs/in/" + "x/".repeat(3000), 400],
  ["/fs", 404],
  ["/%66s/in/x", 404],
  ["//fs/in/x", 404],
  ["/./fs/in/x", 404],
  ["/FS/in/x", 404],
  ["http://other.example/fs/in/x", 400],
  // Which of the two it is depends on whether the runtime hands the fragment over.
  ["/fs/in/x#y", 404, 400],
];

Deno.test("reports 20, 23, 52: hostile targets are refused, and the server lives", () =>
  withGrant([], async (server, secret) => {
    await put(toLink(server.url, "in/kept.txt", secret), "kept");
    const authorization = `Bearer ${secret}`;
    for (const [target, ...statuses] of TARGETS) {
      for (const method of ["GET", "PUT", "DELETE", "HEAD"]) {
        // What only reading refuses, a write may well be allowed to do; it must not be here.
        if (statuses[0] === 404 && method !== "GET" && method !== "HEAD") continue;
        const answer = await sendTarget(server.port, method, target, {
          authorization,
          "content-length": "0",
        });
        const shown = `${method} ${target.slice(0, 80)}: ${answer.head.split("\r\n")[0]}`;
        expect(statuses, shown).toContain(answer.status);
        expect(answer.body, shown).not.toContain(server.dataFolder);
        expect(answer.body, shown).not.toContain(secret);
      }
    }
    for (const spelling of ["//agents", "/agents/", "/AGENTS", "/./agents", "/%61gents"]) {
      const { status } = await sendTarget(server.port, "DELETE", spelling);
      expect([404, 405], spelling).toContain(status);
    }
    for (const other of ["eve.", "eve%20", "Eve"]) {
      const { body } = await sendTarget(server.port, "DELETE", `/agents/${other}`);
      expect(body, `${other} is not eve`).not.toContain('"deleted":true');
    }
    expect((await ask(toLink(server.url, "in/kept.txt", secret))).text).toBe("kept");
    expect((await ask(server.url + "/health")).body).toMatchObject({ ok: true, agents: 1 });
    expect(server.err(), "no fault of the server's own").not.toContain('"level":"error"');
  }));

Deno.test("report 26: HEAD has the length and validators of GET", () =>
  withGrant([], async (server, secret) => {
    for (const size of [0, 1, 5_000_000]) {
      const link = toLink(server.url, `in/${size}.md`, secret);
      await put(link, new Uint8Array(size));
      const { headers } = expectStatus(await ask(link), 200);
      const head = await fetch(link, { method: "HEAD" });
      expect([head.status, head.headers.get("content-length")]).toEqual([200, String(size)]);
      for (const name of ["etag", "last-modified", "content-type", "content-length", "vary"]) {
        expect(head.headers.get(name), `${name} of ${size} bytes`).toBe(headers.get(name));
      }
    }
  }));

Deno.test("report 10: an upload that breaks off leaves the old file, its version and no staging file", () =>
  withGrant([], async (server, secret) => {
    const link = toLink(server.url, "in/good.bin", secret);
    const old = expectStatus(await put(link, "the good one"), 201).headers.get("etag");
    const file = join(server.dataFolder, "workspaces/eve/in/good.bin");
    const { mtime } = await Deno.stat(file);
    for (const framing of ["Content-Length: 100000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n186a0\r\n"]) {
      const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
      const head = `PUT /fs/in/good.bin HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secret}\r\n${framing}`;
      const torso = toLatin1(head + "x".repeat(40_000));
      for (let sent = 0; sent < torso.length;) sent += await connection.write(torso.subarray(sent));
      const staging = join(server.dataFolder, "workspaces/eve/.string/staging");
      const staged = async () => (await Array.fromAsync(Deno.readDir(staging))).length;
      await until("the upload has begun", async () => await staged() === 1);
      connection.close();
      await until("the torso is thrown away", async () => await staged() === 0);
    }
    const answer = expectStatus(await ask(link), 200);
    expect([answer.text, answer.headers.get("etag")]).toEqual(["the good one", old]);
    expect((await Deno.stat(file)).mtime).toEqual(mtime);
  }));

testIf(
  HAS_CURL && CAN_READ_MEMORY,
  HAS_CURL ? NEEDS_PROC : NEEDS_CURL,
  "report 11: a refusal of a long body can be read, whatever way it is sent",
  () =>
    withGrant(["--max-bytes", "1MiB"], async (server, secret, operator) => {
      const body = await Deno.makeTempFile();
      try {
        await Deno.truncate(body, 64 * MIB);
        await put(toLink(server.url, "in/small.txt", secret), "small");
        const readOnly = await operator.mint({ path_prefix: "in", verbs: ["GET"] });
        const rows = [
          [secret, 413, "too_large"],
          [readOnly.secret, 403, "verb_not_allowed"],
          ["caps_" + "x".repeat(43), 401, "unknown_token"],
        ] as const;
        const ways = {
          "with its length": ["-H", "Expect:"],
          "in chunks": ["-H", "Expect:", "-H", "Transfer-Encoding: chunked"],
          "asking first": ["-H", "Expect: 100-continue"],
          "in chunks, asking first": ["-H", "Expect: 100-continue", "-H", "Transfer-Encoding: chunked"],
        };
        const grownMiB = await peakGrowthMiB(server.pid, async () => {
          for (const [used, status, reason] of rows) {
            for (const [way, flags] of Object.entries(ways)) {
              const answer = await curl(...flags, "-T", body, toLink(server.url, "in/small.txt", used));
              const shown = `${reason}, ${way}: ${JSON.stringify(answer)}`;
              expect(answer.exit, shown).toBe(0);
              expect(answer.status, shown).toBe(status);
              expect(answer.body, shown).toContain(`"reason":"${reason}"`);
            }
          }
        });
        expect(grownMiB, "memory is flat over twelve bodies").toBeLessThan(2 * 64);
        expect((await ask(toLink(server.url, "in/small.txt", secret))).text).toBe("small");
      } finally {
        await Deno.remove(body);
      }
    }),
);
