import { silentLog } from "../../base/log.ts";
import { OperatorError } from "../../base/operator_error.ts";
import { fromFileUrl, TextLineStream } from "../../base/std.ts";
import { runServer, toLocalUrl } from "../../runtime/server.ts";
import { expect } from "../helpers/expect.ts";
import { testIf } from "../helpers/skip.ts";

const IS_UNIX = Deno.build.os !== "windows";
const NEEDS_SIGNALS = "SIGTERM is a Unix matter";

interface Running {
  readonly url: string;
  readonly port: number;
  /** Resolves when a line with this text has been printed. */
  printed(text: string): Promise<string>;
  signal(signal: Deno.Signal): void;
  /** Exit code, and how long after the last signal it came, in milliseconds. */
  ended(): Promise<{ code: number; afterMs: number }>;
}

async function withServer(graceMs: number, run: (server: Running) => Promise<void>): Promise<void> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      "--no-check",
      fromFileUrl(new URL("./server_process.ts", import.meta.url)),
      String(graceMs),
    ],
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream())
    .getReader();
  const seen: string[] = [];
  const next = async () => {
    const { value, done } = await reader.read();
    if (done) throw new Error(`The server ended early: ${seen.join(" | ")}`);
    seen.push(value);
    return value;
  };
  const url = await next();
  let signalledAt = 0;
  try {
    await run({
      url,
      port: Number(new URL(url).port),
      async printed(text) {
        let line = seen.find((each) => each.includes(text));
        while (line === undefined) {
          const fresh = await next();
          if (fresh.includes(text)) line = fresh;
        }
        return line;
      },
      signal(signal) {
        signalledAt = performance.now();
        child.kill(signal);
      },
      async ended() {
        const { code } = await child.status;
        return { code, afterMs: performance.now() - signalledAt };
      },
    });
  } finally {
    try {
      child.kill("SIGKILL");
    } catch {
      // it has ended already, as it should
    }
    await child.status;
    while (!(await reader.read()).done) { /* read to the end, so that the pipe is closed */ }
  }
}

async function stalledUpload(port: number): Promise<Deno.TcpConn> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const head = "PUT /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nonly this";
  await connection.write(new TextEncoder().encode(head));
  return connection;
}

testIf(
  IS_UNIX,
  NEEDS_SIGNALS,
  "runServer() ends within its grace period under a stalled upload",
  () =>
    withServer(400, async (server) => {
      using _connection = await stalledUpload(server.port);
      expect(await (await fetch(server.url)).text()).toBe("ok");
      server.signal("SIGTERM");
      await server.printed("drain");
      const { code, afterMs } = await server.ended();
      expect(code).toBe(0);
      expect(afterMs).toBeGreaterThan(300);
      expect(afterMs).toBeLessThan(3000);
    }),
);

testIf(
  IS_UNIX,
  NEEDS_SIGNALS,
  "runServer() answers what is running and refuses new connections in a drain",
  () =>
    withServer(20_000, async (server) => {
      const slow = fetch(server.url + "/slow").then((response) => response.text());
      await server.printed("slow began");
      server.signal("SIGINT");
      expect(await slow).toBe("slow answer");
      const { code, afterMs } = await server.ended();
      expect(code).toBe(0);
      expect(afterMs).toBeLessThan(10_000);
      await expect(Deno.connect({ hostname: "127.0.0.1", port: server.port })).rejects.toThrow();
    }),
);

testIf(
  IS_UNIX,
  NEEDS_SIGNALS,
  "runServer() ends at once on a second signal",
  () =>
    withServer(60_000, async (server) => {
      using _connection = await stalledUpload(server.port);
      await (await fetch(server.url)).text();
      server.signal("SIGTERM");
      await server.printed("drain");
      server.signal("SIGINT");
      const { code, afterMs } = await server.ended();
      expect(code).toBe(130);
      expect(afterMs).toBeLessThan(5000);
    }),
);

testIf(IS_UNIX, NEEDS_SIGNALS, "runServer() goes on after SIGHUP", () =>
  withServer(1000, async (server) => {
    server.signal("SIGHUP");
    expect(await (await fetch(server.url)).text()).toBe("ok");
    server.signal("SIGTERM");
    expect((await server.ended()).code).toBe(0);
  }));

testIf(
  IS_UNIX,
  NEEDS_SIGNALS,
  "runServer() survives faults of handlers, promises and streams (report 40)",
  () =>
    withServer(1000, async (server) => {
      const failed = await fetch(server.url + "/throw");
      expect(failed.status).toBe(500);
      expect(await failed.json()).toMatchObject({ reason: "internal" });
      const logged = await server.printed("request failed outside its route");
      for (const secret of ["secretsecret", "/var/lib", "cap="]) expect(logged).not.toContain(secret);

      expect(await (await fetch(server.url + "/reject")).text()).toBe("answered");
      await server.printed("lost on the way");
      await server.printed("thrown by a timer");

      for (let round = 0; round < 100; round++) {
        // A version of the runtime may send the part it has or nothing: only the server's survival counts.
        await fetch(server.url + "/broken").then((response) => response.text()).catch(() => "cut");
      }
      expect(await (await fetch(server.url)).text()).toBe("ok");
      server.signal("SIGTERM");
      expect((await server.ended()).code).toBe(0);
    }),
);

async function refusal(host: string, port: number): Promise<OperatorError> {
  try {
    await runServer({ handler: () => new Response(), host, port, graceMs: 1, log: silentLog });
  } catch (error) {
    if (error instanceof OperatorError) return error;
    throw error;
  }
  throw new Error("Expected the address to be refused");
}

Deno.test("runServer() says that a port is in use and what to do", async () => {
  using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const error = await refusal("127.0.0.1", taken.addr.port);
  expect(error.message).toContain(`port ${taken.addr.port}: the port is in use`);
  expect(error.hint).toContain("--port");
});

Deno.test("runServer() refuses an address that is none of this host's", async () => {
  expect((await refusal("192.0.2.1", 0)).hint).toContain("--host");
});

Deno.test("runServer() stops and passes on what went wrong when onListen() fails", async () => {
  let port = 0;
  const running = runServer({
    handler: () => new Response(),
    host: "127.0.0.1",
    port: 0,
    graceMs: 1,
    log: silentLog,
    onListen(listening) {
      port = listening.port;
      throw new Error("no banner");
    },
  });
  await expect(running).rejects.toThrow("no banner");
  await expect(Deno.connect({ hostname: "127.0.0.1", port })).rejects.toThrow();
});

Deno.test("toLocalUrl() writes an address that a client on this host can use", () => {
  expect(toLocalUrl("127.0.0.1", 3923)).toBe("http://127.0.0.1:3923");
  expect(toLocalUrl("0.0.0.0", 1)).toBe("http://127.0.0.1:1");
  expect(toLocalUrl("::", 1)).toBe("http://[::1]:1");
  expect(toLocalUrl("fd00::1", 1)).toBe("http://[fd00::1]:1");
});
