/** Reports 40, M6: a disk that fails in the middle of an answer costs that answer alone. */
import { join } from "../../base/std.ts";
import { expect } from "../helpers/expect.ts";
import {
  bearer,
  isSame,
  pattern,
  RawRequest,
  type ServerProcess,
  startServerProcess,
  withFolder,
} from "./support.ts";

/** More than the sockets of both ends can hold, so that the disk is read while the client waits. */
const SIZE = 16_000_000;
const FAULTS: Record<string, (path: string) => Promise<void>> = {
  truncate: (path) => Deno.truncate(path, 1000),
  remove: (path) => Deno.remove(path),
  replace: async (path) => {
    await Deno.writeFile(`${path}.new`, new Uint8Array(5));
    await Deno.rename(`${path}.new`, path);
  },
  eio: () => Promise.resolve(),
};
/** The descriptor outlives the name: these answers are whole. */
const HARMLESS = ["remove", "replace"];

/** Begins a GET, lets `fault` happen after its first bytes, and returns what came and how it ended. */
async function getWithFault(
  server: ServerProcess,
  secret: string,
  name: string,
  fault: () => Promise<void>,
): Promise<{ status: number; declared: number; body: Uint8Array; ended: boolean }> {
  using request = await RawRequest.open(server.port, "GET", `/fs/${name}`, {
    ...bearer(secret),
    connection: "close",
  });
  let ended = true;
  const timer = setTimeout(() => {
    ended = false;
    request.close();
  }, 20_000);
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  const buffer = new Uint8Array(65_536);
  try {
    for (let count: number | null = 0; count !== null;) {
      count = await request.connection.read(buffer);
      if (count !== null) chunks.push(buffer.slice(0, count));
      if (chunks.length === 1) await fault();
    }
  } catch {
    // Reset by the server: an end, too.
  }
  clearTimeout(timer);
  request.close();
  const all = new Uint8Array(await new Blob(chunks).arrayBuffer());
  const head = /^[^]*?\r\n\r\n/.exec(new TextDecoder("latin1").decode(all.subarray(0, 4096)))?.[0] ?? "";
  return {
    status: Number(head.split(" ")[1] ?? 0),
    declared: Number(/content-length: (\d+)/i.exec(head)?.[1] ?? -1),
    body: all.subarray(head.length),
    ended,
  };
}

Deno.test("report 40: a hundred disks that fail in the middle of a GET end those answers and no other", () =>
  withFolder(async (folder) => {
    await using server = await startServerProcess(folder, {}, { name: "faulty_disk_server.ts" });
    const secret = await server.pair("eve");
    const home = join(folder, "workspaces", "eve");
    const bytes = pattern(SIZE);
    await Deno.writeFile(join(home, "steady.bin"), bytes);

    let goOn = true;
    let steady = 0;
    const others = Array.from({ length: 2 }, async () => {
      while (goOn) {
        const response = await fetch(`http://127.0.0.1:${server.port}/fs/steady.bin`, {
          headers: bearer(secret),
        });
        expect([response.status, isSame(new Uint8Array(await response.arrayBuffer()), bytes)]).toEqual([
          200,
          true,
        ]);
        steady++;
      }
    });
    try {
      for (let round = 0; round < 25; round++) {
        await Promise.all(
          Object.entries(FAULTS).map(async ([fault, happen]) => {
            const path = join(home, `${fault}${round}.bin`);
            await Deno.writeFile(path, bytes);
            const answer = await getWithFault(server, secret, `${fault}${round}.bin`, () => happen(path));
            expect([fault, answer.ended, answer.status, answer.declared]).toEqual([fault, true, 200, SIZE]);
            // A part is never passed off as the whole: what is missing is missing.
            if (HARMLESS.includes(fault)) expect([fault, isSame(answer.body, bytes)]).toEqual([fault, true]);
            else expect(answer.body.length).toBeLessThan(SIZE);
            if (fault === "eio" || fault === "truncate") await Deno.remove(path);
          }),
        );
      }
    } finally {
      goOn = false;
      await Promise.all(others);
    }
    expect(steady).toBeGreaterThan(0);
    expect(server.program.running()).toBe(true);
    expect((await server.admin("GET", "/agents")).status).toBe(200);
    // Linux: no descriptor of a broken answer stays open.
    if (Deno.build.os === "linux") {
      const names = await Array.fromAsync(Deno.readDir(`/proc/${server.pid}/fd`), ({ name }) => name);
      const targets = await Promise.all(
        names.map((name) => Deno.readLink(`/proc/${server.pid}/fd/${name}`).catch(() => "closed meanwhile")),
      );
      expect(targets.filter((target) => target.includes(home) && target.includes(".bin"))).toEqual([]);
    }
    const log = server.program.errors();
    expect(log).not.toContain(secret);
    expect(log).not.toContain(folder);
  }));

for (const size of [50_000, SIZE]) {
  Deno.test(`report M6: a file of ${size} bytes cut between the look and the reading is never a whole answer of another length`, () =>
    withFolder(async (folder) => {
      await using server = await startServerProcess(folder, {}, { name: "faulty_disk_server.ts" });
      const secret = await server.pair("eve");
      const path = join(folder, "workspaces", "eve", "cut.bin");
      const bytes = pattern(size);
      for (let round = 0; round < 5; round++) {
        await Deno.writeFile(path, bytes);
        const answer = await getWithFault(server, secret, "cut.bin", () => Promise.resolve());
        expect(answer.ended).toBe(true);
        // Small ones are read before the answer begins, so they are whole; of large ones the rest is missing.
        if (size < 65_536) expect(isSame(answer.body, bytes)).toBe(true);
        else expect([0, 10]).toContain(answer.body.length);
        const now = await fetch(`http://127.0.0.1:${server.port}/fs/cut.bin`, { headers: bearer(secret) });
        expect([now.status, (await now.arrayBuffer()).byteLength]).toEqual([200, 10]);
      }
      expect(server.program.running()).toBe(true);
    }));
}
