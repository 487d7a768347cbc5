import { fromFileUrl, join, TextLineStream } from "../../base/std.ts";
import { expect } from "../helpers/expect.ts";
import { testIf } from "../helpers/skip.ts";
import { run, withTempFolder } from "./harness.ts";

const MAIN = fromFileUrl(new URL("../../main.ts", import.meta.url));
const IS_UNIX = Deno.build.os !== "windows";
const NEEDS_SIGNALS = "SIGTERM is a Unix matter";

function command(args: readonly string[], env: Record<string, string>): Deno.Command {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", MAIN, ...args],
    env,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
}

/** Runs a server that is expected not to start. */
async function refused(args: readonly string[], env: Record<string, string> = {}) {
  const { code, stdout, stderr } = await command(["serve", ...args], env).output();
  return { code, out: new TextDecoder().decode(stdout), err: new TextDecoder().decode(stderr) };
}

interface Serving {
  readonly url: string;
  readonly port: number;
  /** Sends a signal and returns how the process ended. */
  stop(signal: Deno.Signal): Promise<{ code: number; tookMs: number; err: string }>;
}

async function withServing(
  args: readonly string[],
  env: Record<string, string>,
  use: (serving: Serving) => Promise<void>,
): Promise<void> {
  const child = command(["serve", "--port", "0", ...args], env).spawn();
  const err = new Response(child.stderr).text();
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream())
    .getReader();
  const first = await lines.read();
  const url = /http:\/\/\S+/.exec(first.value ?? "")?.[0];
  const rest = (async () => {
    while (!(await lines.read()).done) { /* read on, so that the server never waits for us */ }
  })();
  try {
    if (url === undefined) throw new Error(`The server did not start: ${await err}`);
    await use({
      url,
      port: Number(new URL(url).port),
      async stop(signal) {
        const startMs = performance.now();
        child.kill(signal);
        const { code } = await child.status;
        return { code, tookMs: performance.now() - startMs, err: await err };
      },
    });
  } finally {
    try {
      child.kill("SIGKILL");
    } catch {
      // it has ended already
    }
    await Promise.all([child.status, err, rest]);
  }
}

testIf(
  IS_UNIX,
  NEEDS_SIGNALS,
  "serve prints its address, is found through the data folder, and stops cleanly",
  () =>
    withTempFolder((folder) => {
      const data = join(folder, "data");
      return withServing(["--data", data], {}, async (serving) => {
        expect((await fetch(serving.url + "/health").then((response) => response.json())).ok).toBe(true);
        const record = JSON.parse(await Deno.readTextFile(join(data, "server.json")));
        expect(record.url).toBe(serving.url);
        expect((await run(["agent", "create", "eve", "--data", data])).code).toBe(0);
        const minted = await run([
          ...["agent", "capability", "mint", "--path", "out/a.txt", "--verbs", "put,get", "--ttl", "15m"],
          ...["--data", data, "--json"],
        ]);
        const { secret } = JSON.parse(minted.out);
        const link = `${serving.url}/fs/out/a.txt?cap=${secret}`;
        expect(await fetch(link, { method: "PUT", body: "hello" }).then((put) => put.json())).toMatchObject({
          bytes: 5,
        });
        expect(await fetch(link).then((got) => got.text())).toBe("hello");

        const ended = await serving.stop("SIGTERM");
        expect(ended.code).toBe(0);
        expect(ended.err).not.toContain(secret);
        await expect(Deno.stat(join(data, "server.json"))).rejects.toThrow(Deno.errors.NotFound);
      });
    }),
);

testIf(
  IS_UNIX,
  NEEDS_SIGNALS,
  "serve ends within its grace period while an upload stalls",
  () =>
    withTempFolder((folder) =>
      withServing(["--data", folder], { STRING_GRACE: "300ms" }, async (serving) => {
        expect((await run(["agent", "create", "eve", "--data", folder])).code).toBe(0);
        const flags = ["--path", "a", "--verbs", "put", "--ttl", "1h", "--data", folder, "--json"];
        const { secret } = JSON.parse((await run(["agent", "capability", "mint", ...flags])).out);
        using upload = await Deno.connect({ hostname: "127.0.0.1", port: serving.port });
        const head = `PUT /fs/a HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${secret}\r\n`;
        await upload.write(new TextEncoder().encode(`${head}Content-Length: 1000\r\n\r\nonly this`));
        await fetch(serving.url + "/health").then((response) => response.body?.cancel());
        const ended = await serving.stop("SIGTERM");
        expect(ended.code).toBe(0);
        expect(ended.tookMs).toBeLessThan(5000);
      })
    ),
);

testIf(
  IS_UNIX,
  NEEDS_SIGNALS,
  "serve refuses a folder that another server owns, and both with --shared run",
  () =>
    withTempFolder(async (folder) => {
      await withServing(["--data", folder], {}, async (serving) => {
        for (const args of [[], ["--shared"]]) {
          const second = await refused(["--port", "0", "--data", folder, ...args]);
          expect([second.code, second.out]).toEqual([1, ""]);
          expect(second.err).toContain(serving.url);
          expect(second.err).toContain("--shared");
        }
        // Killed, it leaves its record behind; the next server must start all the same.
        await serving.stop("SIGKILL");
      });
      await withServing(
        ["--data", folder, "--shared"],
        {},
        (one) =>
          withServing(["--data", folder], { STRING_SHARED: "true" }, async (two) => {
            expect(one.port).not.toBe(two.port);
            expect((await run(["agent", "create", "eve", "--data", folder])).code).toBe(0);
            const listed = await run(["agent", "list"], { STRING_URL: one.url });
            expect(listed.out).toContain("Agents (1):");
          }),
      );
    }),
);

Deno.test("serve names what is wrong with how it was started, and repeats no secret", () =>
  withTempFolder(async (folder) => {
    using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const file = join(folder, "file");
    await Deno.writeTextFile(file, "");
    const data = ["--data", join(folder, "data")];
    const rows: [string[], Record<string, string>, number, string][] = [
      [["--port", "x"], {}, 2, "--port"],
      [["--db", "libsql://u:hunter2@x"], {}, 2, "STRING_DB_TOKEN"],
      [["--db", "libsql://x?authToken=hunter2"], {}, 2, "STRING_DB_TOKEN"],
      [[...data], { STRING_SECRET_KEY: "hunter2" }, 2, "STRING_SECRET_KEY"],
      [["--data", file], {}, 1, "not a directory"],
      [[...data, "--port", String(taken.addr.port)], {}, 1, "in use"],
    ];
    for (const [args, env, code, message] of rows) {
      const ended = await refused(args, env);
      expect([ended.code, ended.out], args.join(" ")).toEqual([code, ""]);
      expect(ended.err).toContain(message);
      expect(ended.err).not.toContain("hunter2");
    }
  }));
