/**
 * A sender that is gone when the server asks whose the connection is.
 *
 * The kernel shows a socket that nobody holds any more under user 0, and shows none for a connection that was reset; the
 * server runs as root here.
 */
import { fromFileUrl } from "../../base/std.ts";
import { ask } from "../helpers/api.ts";
import { expect } from "../helpers/expect.ts";
import { startServer } from "../helpers/server.ts";
import { testIf } from "../helpers/skip.ts";
import { agentIds, NEEDS_OTHER_USERS, NOBODY, nobodyCanRun } from "./support.ts";

const READY = await nobodyCanRun("node", "--version");
const WHY = NEEDS_OTHER_USERS;
const SENDER = await Deno.readTextFile(fromFileUrl(new URL("./programs/sender.mjs", import.meta.url)));

/** Starts the sender as a user; the program is passed as text, because other users may not read this folder. */
function startSender(uid: number, options: Record<string, unknown>): Deno.ChildProcess {
  return new Deno.Command("node", {
    args: [
      "--input-type=module",
      "-e",
      SENDER.replace("process.argv[2]", "process.argv[1]"),
      JSON.stringify(options),
    ],
    uid,
    gid: uid,
    cwd: "/",
    stdin: "null",
    stdout: "piped",
  }).spawn();
}

async function runSender(options: Record<string, unknown>, uid = NOBODY): Promise<number> {
  const { stdout } = await startSender(uid, options).output();
  return Number(new TextDecoder().decode(stdout));
}

/** A request that makes an agent, its body blown up to `size` bytes. */
function pairing(size = 0): string {
  const body = JSON.stringify({ agent_id: "evil" }).padEnd(size);
  return `POST /agents HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

// Bodies of three sizes: the runtime has read all of it, some or nothing of it when it calls the handler.
const SIZES = [0, 5_000, 60_000];

for (const end of ["close", "half", "reset"]) {
  testIf(READY, WHY, `another user's request gets nothing when its sender's end is: ${end}`, async () => {
    await using server = await startServer();
    for (const size of SIZES) {
      for (const pauseMs of [0, 2]) {
        const options = {
          host: "127.0.0.1",
          port: server.port,
          count: 35,
          pauseMs,
          end,
          request: pairing(size),
        };
        expect(await runSender(options)).toBe(35);
      }
    }
    // It asks last and passes the same check: all that was asked before has been answered.
    const own = await ask(`${server.url}/agents`);
    expect(own.status, "the server's own user still gets in").toBe(200);
    expect(await agentIds(server)).toEqual([]);
  });
}

testIf(READY, WHY, "a request whose sender reset it is not taken for its port's other owner", async (t) => {
  await using server = await startServer({ flags: { host: "0.0.0.0" } });
  // Both clients bind the same port with SO_REUSEADDR, towards two addresses of the same server.
  const localPort = await freePort();
  const owner = startSender(0, { host: "127.0.0.1", port: server.port, localPort, end: "hold" });
  const output = owner.stdout.getReader();
  try {
    expect(Number(new TextDecoder().decode((await output.read()).value))).toBe(localPort);
    for (const size of SIZES) {
      for (const end of ["reset", "close", "half"]) {
        await t.step(`${end}, ${size} bytes`, async () => {
          const options = {
            host: "127.0.0.2",
            port: server.port,
            localPort,
            pauseMs: 10,
            end,
            request: pairing(size),
          };
          let connected = 0;
          for (let turn = 0; turn < 3; turn++) {
            connected += await runSender({ ...options, count: end === "reset" ? 10 : 1 });
          }
          expect(connected).toBeGreaterThan(end === "reset" ? 24 : 0);
          expect(await agentIds(server)).toEqual([]);
        });
      }
    }
  } finally {
    owner.kill("SIGKILL");
    await output.cancel();
    await owner.status;
  }
});

/** Returns a port that nobody uses now. */
function freePort(): Promise<number> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return Promise.resolve(listener.addr.port);
}
