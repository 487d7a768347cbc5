/** Reports 10, 11, 16: an upload is whole or it never was, its refusal can be read, and its version is its own. */
import { systemClock } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import { parsePlainPath } from "../../base/paths.ts";
import { join } from "../../base/std.ts";
import { createLocalStore } from "../../store/workspace/local_store.ts";
import { expect } from "../helpers/expect.ts";
import type { TestServer } from "../helpers/server.ts";
import { testIf } from "../helpers/skip.ts";
import {
  bearer,
  CONTAINMENTS,
  fs,
  namesIn,
  pattern,
  RawRequest,
  reasonOf,
  snapshot,
  stagedBytes,
  stagingOf,
  startServerProcess,
  until,
  withFolder,
  withServer,
} from "./support.ts";

const MIB = 1024 * 1024;
const LENGTHS = ["a length", "chunks"] as const;

function lengthHeader(how: typeof LENGTHS[number], bytes: number): Record<string, string> {
  return how === "a length" ? { "content-length": String(bytes) } : { "transfer-encoding": "chunked" };
}

/** Frames bytes as one chunk of a chunked body. */
function toChunk(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = new TextEncoder().encode(`${bytes.length.toString(16)}\r\n`);
  const chunk = new Uint8Array(head.length + bytes.length + 2);
  chunk.set(head);
  chunk.set(bytes, head.length);
  chunk.set([13, 10], head.length + bytes.length);
  return chunk;
}

for (const containment of CONTAINMENTS) {
  for (const how of LENGTHS) {
    for (const sent of [40_000, 90_000]) {
      Deno.test(`report 10: an upload with ${how} cut off after ${sent} bytes leaves the old file (${containment})`, () =>
        withServer(async (server) => {
          const { secret } = await server.mint({});
          const home = server.home("eve");
          const good = pattern(5000);
          await fs(server, "PUT", "report.bin", secret, { body: good });
          const before = await fs(server, "HEAD", "report.bin", secret);
          const disk = await Deno.stat(join(home, "report.bin"));

          using upload = await RawRequest.open(server.port, "PUT", "/fs/report.bin", {
            ...bearer(secret),
            ...lengthHeader(how, 100_000),
          });
          const part = pattern(sent, 2);
          await upload.send(how === "chunks" ? toChunk(part) : part);
          // The staging file stands as soon as the upload is admitted.
          await until(async () => (await namesIn(stagingOf(home))).length > 0);
          expect((await server.fetch(`/fs/report.bin?cap=${secret}`)).status).toBe(200);
          upload.close();
          await until(async () => (await namesIn(stagingOf(home))).length === 0);

          const after = await fs(server, "HEAD", "report.bin", secret);
          expect(after.headers.get("etag")).toBe(before.headers.get("etag"));
          expect(after.headers.get("last-modified")).toBe(before.headers.get("last-modified"));
          const now = await Deno.stat(join(home, "report.bin"));
          expect([now.mtime, now.ino, now.size]).toEqual([disk.mtime, disk.ino, 5000]);
          expect(await Deno.readFile(join(home, "report.bin"))).toEqual(good);
          expect(await namesIn(home)).toEqual([".string", "report.bin"]);
        }, { env: { STRING_CONTAINMENT: containment } }));
    }
  }
}

Deno.test("report 10: a cut-off upload to a new path makes neither the file nor its folders", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({ single_use: true });
    const home = server.home("eve");
    using upload = await RawRequest.open(server.port, "PUT", "/fs/new/folder/x.bin", {
      ...bearer(secret),
      "content-length": "100000",
    });
    await upload.send(pattern(40_000));
    await until(async () => (await namesIn(stagingOf(home))).length > 0);
    upload.close();
    await until(async () => (await namesIn(stagingOf(home))).length === 0);
    expect(await namesIn(home)).toEqual([".string"]);
    // It spent nothing, and it left no turn taken.
    expect((await fs(server, "PUT", "new/folder/x.bin", secret, { body: "whole" })).status).toBe(201);
  }));

const LIMIT = { flags: { maxBytes: "1MiB" } };
const BODY_MIB = 64;

async function withLimit(
  body: (server: TestServer, secret: string, unchanged: () => Promise<void>) => Promise<void>,
): Promise<void> {
  await withServer(async (server) => {
    const { secret } = await server.mint({});
    const home = server.home("eve");
    await fs(server, "PUT", "big.bin", secret, { body: "small and good" });
    const before = await snapshot(home, { except: ".string" });
    await body(server, secret, async () => {
      await until(async () => (await namesIn(stagingOf(home))).length === 0);
      expect(await snapshot(home, { except: ".string" })).toEqual(before);
    });
  }, LIMIT);
}

for (const how of LENGTHS) {
  Deno.test(`report 11: ${BODY_MIB} MiB with ${how} over a limit of 1 MiB is a 413 that a plain client reads`, () =>
    withLimit(async (server, secret, unchanged) => {
      using upload = await RawRequest.open(server.port, "PUT", "/fs/big.bin", {
        ...bearer(secret),
        connection: "close",
        ...lengthHeader(how, BODY_MIB * MIB),
      });
      const part = pattern(MIB);
      for (let sent = 0; sent < BODY_MIB; sent++) await upload.send(how === "chunks" ? toChunk(part) : part);
      if (how === "chunks") await upload.send(new TextEncoder().encode("0\r\n\r\n"));
      const answer = await upload.answer();
      expect([answer.status, reasonOf(answer.body)]).toEqual([413, "too_large"]);
      upload.close();
      await unchanged();
    }));

  Deno.test(`report 11: fetch reads the 413 to ${BODY_MIB} MiB with ${how}`, () =>
    withLimit(async (server, secret, unchanged) => {
      const part = pattern(MIB);
      let left = BODY_MIB;
      const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
        pull(controller) {
          if (left-- > 0) controller.enqueue(part.slice());
          else controller.close();
        },
      });
      const body = how === "chunks" ? stream : new Uint8Array(BODY_MIB * MIB);
      if (how === "a length") await stream.cancel();
      for (let attempt = 0; attempt < 3; attempt++) {
        const answer = await fs(server, "PUT", "big.bin", secret, { body });
        expect([answer.status, answer.reason]).toEqual([413, "too_large"]);
        if (how === "chunks") break; // a stream can be sent once
      }
      await unchanged();
    }));
}

Deno.test("report 11: a client that waits for 100 Continue has its 413 at once, without sending the body", () =>
  withLimit(async (server, secret, unchanged) => {
    using upload = await RawRequest.open(server.port, "PUT", "/fs/big.bin", {
      ...bearer(secret),
      "content-length": String(BODY_MIB * MIB),
      expect: "100-continue",
      connection: "close",
    });
    // Some versions of the runtime say 100 first; what counts is that the refusal comes without the body.
    expect(await upload.readUntil("too_large")).toContain("HTTP/1.1 413");
    upload.close();
    await unchanged();
  }));

Deno.test("report 11: a JSON body over its limit is a 413 that the client reads", () =>
  withServer(async (server) => {
    for (const how of LENGTHS) {
      using request = await RawRequest.open(server.port, "POST", "/capabilities", {
        ...bearer(server.adminToken),
        "content-type": "application/json",
        connection: "close",
        ...lengthHeader(how, 8 * MIB),
      });
      const part = new Uint8Array(MIB).fill(0x20);
      for (let sent = 0; sent < 8; sent++) await request.send(how === "chunks" ? toChunk(part) : part);
      if (how === "chunks") await request.send(new TextEncoder().encode("0\r\n\r\n"));
      const answer = await request.answer();
      expect([how, answer.status, reasonOf(answer.body)]).toEqual([how, 413, "too_large"]);
      request.close();
    }
  }));

testIf(
  Deno.build.os === "linux",
  "the memory of another process is read from /proc",
  "report 11: a body that is refused costs no memory, however long it is",
  () =>
    withFolder(async (folder) => {
      await using server = await startServerProcess(folder, { maxBytes: "1MiB" });
      const secret = await server.pair("eve");
      const peakMiB = async () => {
        const status = await Deno.readTextFile(`/proc/${server.pid}/status`);
        return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
      };
      const part = pattern(256 * 1024);
      const send = async (how: typeof LENGTHS[number], mib: number) => {
        using upload = await RawRequest.open(server.port, "PUT", "/fs/big.bin", {
          ...bearer(secret),
          connection: "close",
          ...lengthHeader(how, mib * MIB),
        });
        for (let sent = 0; sent < mib * MIB; sent += part.length) {
          await upload.send(how === "chunks" ? toChunk(part) : part);
        }
        if (how === "chunks") await upload.send(new TextEncoder().encode("0\r\n\r\n"));
        expect((await upload.answer()).status).toBe(413);
        upload.close();
      };
      for (const how of LENGTHS) await send(how, 64);
      const before = await peakMiB();
      for (const how of LENGTHS) await send(how, 256);
      expect(await peakMiB() - before).toBeLessThan(96);
    }),
);

Deno.test("report 11: a stored body may have exactly the limit, and one byte more is 413", () =>
  withLimit(async (server, secret) => {
    for (const [bytes, status] of [[MIB, 200], [MIB + 1, 413]] as const) {
      const whole = await fs(server, "PUT", "big.bin", secret, { body: pattern(bytes) });
      const streamed = await fs(server, "PUT", "big.bin", secret, {
        body: new Blob([pattern(bytes)]).stream(),
      });
      expect([whole.status, streamed.status]).toEqual([status, status]);
    }
    expect((await Deno.stat(join(server.home("eve"), "big.bin"))).size).toBe(MIB);
    expect(await stagedBytes(server.home("eve"))).toBe(0);
  }));

for (const containment of CONTAINMENTS) {
  Deno.test(`report 16: writes in quick succession have strong tags of their own (${containment})`, () =>
    withServer(async (server) => {
      const { secret } = await server.mint({});
      const put = (body: string, headers: Record<string, string> = {}) =>
        fs(server, "PUT", "a.txt", secret, { body, headers });
      const tags: string[] = [];
      for (const body of ["aaaa", "bbbb", "cccc"]) tags.push((await put(body)).headers.get("etag") ?? "");
      const many = await Promise.all(Array.from({ length: 40 }, (_, n) => put(String(n).padStart(4, "0"))));
      expect(many.map(({ status }) => status)).toEqual(Array(40).fill(200));
      tags.push(...many.map(({ headers }) => headers.get("etag") ?? ""));
      expect(new Set(tags).size).toBe(43);
      for (const tag of tags) expect(tag).toMatch(/^"[^"]+"$/);

      const current = await fs(server, "GET", "a.txt", secret);
      expect(tags).toContain(current.headers.get("etag"));
      for (const tag of tags) {
        if (tag === current.headers.get("etag")) continue;
        const stale = await put("lost", { "if-match": tag });
        expect([stale.status, stale.reason]).toEqual([412, "precondition_failed"]);
      }
      expect((await fs(server, "GET", "a.txt", secret)).text).toBe(current.text);
      expect((await put("next", { "if-match": current.headers.get("etag") ?? "" })).status).toBe(200);
    }, { env: { STRING_CONTAINMENT: containment } }));

  Deno.test(`report 16: even a clock that stands still gives each write its own tag (${containment})`, async () => {
    const folder = await Deno.makeTempDir();
    const nowMs = systemClock.now();
    const marks = { set: async () => {}, clear: async () => {}, has: () => Promise.resolve(false) };
    const store = createLocalStore({
      makersFolder: join(folder, "makers"),
      locksFolder: join(folder, "locks"),
      marks,
      shared: false,
      containment,
      diskReserveBytes: 0,
      idleTimeoutMs: 10_000,
      log: silentLog,
      clock: { now: () => nowMs },
    });
    const workspace = { agentId: "eve", key: "agent:eve", home: join(folder, "eve") };
    await store.createWorkspace(workspace);
    const parsed = parsePlainPath("a.txt");
    if (!parsed.ok) throw new Error(parsed.message);
    const tags = new Set<string>();
    for (const [round, text] of ["aaaa", "bbbb", "cccc", "dddd"].entries()) {
      // Gone and made again is a new version, too, though the disk may give the same inode.
      if (round === 3) await store.remove(workspace, parsed.path);
      const upload = await store.beginUpload(workspace, parsed.path, { maxBytes: 10, fromOutside: false });
      await upload.receive(new Blob([text]).stream());
      tags.add((await upload.commit()).version.etag);
    }
    store.close();
    await Deno.remove(folder, { recursive: true });
    expect(tags.size).toBe(4);
  });
}

Deno.test("report 16: of parallel writers that saw the same version exactly one replaces it", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({});
    await fs(server, "PUT", "a.txt", secret, { body: "seen by all" });
    const tag = (await fs(server, "HEAD", "a.txt", secret)).headers.get("etag") ?? "";
    const answers = await Promise.all(
      Array.from(
        { length: 20 },
        (_, n) => fs(server, "PUT", "a.txt", secret, { body: `writer ${n}`, headers: { "if-match": tag } }),
      ),
    );
    const winners = answers.flatMap(({ status }, n) => status === 200 ? [n] : []);
    expect(winners.length).toBe(1);
    expect(answers.filter(({ status }) => status === 412).length).toBe(19);
    expect((await fs(server, "GET", "a.txt", secret)).text).toBe(`writer ${winners[0]}`);
  }));
