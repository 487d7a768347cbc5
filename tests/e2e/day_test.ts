/** A stranger's day: pair, upload a large file by a link, read it back, revoke, tear down. Only curl and JSON. */
import { createHash } from "node:crypto";
import { join } from "../../base/std.ts";
import { ask, expectStatus, Operator, put, toLink } from "../helpers/api.ts";
import { curl } from "../helpers/curl.ts";
import { expect } from "../helpers/expect.ts";
import { withFolder } from "../helpers/folder.ts";
import { CAN_READ_MEMORY, NEEDS_PROC, peakGrowthMiB } from "../helpers/memory.ts";
import { rounds, serve } from "../helpers/program.ts";
import { testIf } from "../helpers/skip.ts";
import { HAS_CURL, NEEDS_CURL, runTool } from "../helpers/tools.ts";

const MIB = 2 ** 20;
const SIZE = rounds(1024, 128) * MIB;
/** Held to what a shared machine shows at its worst; what is usual is printed. */
const PUT_BOUND_MIB = 128;
const GET_BOUND_MIB = 64;
/** A disk, where there is one: a temp folder in memory would hold the file three times. */
const DISK = await Deno.stat("/var/tmp").then(() => "/var/tmp", () => undefined);

async function freeBytes(folder: string): Promise<number> {
  const { out } = await runTool(["df", "-Pk", folder]);
  return Number(out.trim().split("\n")[1]?.split(/\s+/)[3] ?? 0) * 1024;
}

/** Writes a file of which no two MiB are alike, and returns its SHA-256. */
async function writePattern(path: string, size: number): Promise<string> {
  const hash = createHash("sha256");
  const chunk = new Uint8Array(MIB);
  const words = new Uint32Array(chunk.buffer);
  using file = await Deno.open(path, { write: true, createNew: true });
  for (let written = 0; written < size; written += MIB) {
    for (let word = 0; word < words.length; word++) words[word] = Math.imul(word + written, 2_654_435_761);
    hash.update(chunk);
    for (let done = 0; done < MIB;) done += await file.write(chunk.subarray(done));
  }
  return hash.digest("hex");
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  using file = await Deno.open(path);
  const buffer = new Uint8Array(MIB);
  for (let count = await file.read(buffer); count !== null; count = await file.read(buffer)) {
    hash.update(buffer.subarray(0, count));
  }
  return hash.digest("hex");
}

const hasSpace = await freeBytes(DISK ?? "/tmp").catch(() => 0) > 3 * SIZE + 2 ** 30;
const needs = !HAS_CURL
  ? NEEDS_CURL
  : !CAN_READ_MEMORY
  ? NEEDS_PROC
  : "the disk has no room for three copies";

testIf(
  HAS_CURL && CAN_READ_MEMORY && hasSpace,
  needs,
  "a stranger pairs, uploads a large file by its link, reads it back, revokes and tears down",
  async () => {
    await withFolder(async (folder) => {
      await using server = await serve({ dataFolder: join(folder, "data") });
      const operator = await Operator.of(server);
      const paired = await operator.pair("eve", {
        webhook: true,
        capability: { path_prefix: "inbox", verbs: ["PUT", "GET", "STAT"], ttl_ms: 3_600_000 },
      });
      const { secret, token_id } = paired["capability"] as { secret: string; token_id: string };
      const [source, copy] = [join(folder, "source"), join(folder, "copy")];
      const sum = await writePattern(source, SIZE);
      const link = toLink(server.url, "inbox/large.bin", secret);
      // The first requests of a process make room for the program itself.
      const warm = toLink(server.url, "inbox/warm.bin", secret);
      for (let n = 0; n < 3; n++) {
        await put(warm, new Uint8Array(8 * MIB));
        await ask(warm);
      }

      let startMs = performance.now();
      const putMiB = await peakGrowthMiB(server.pid, async () => {
        const sent = await curl("-T", source, link);
        expect(sent).toMatchObject({ exit: 0, status: 201 });
        expect(JSON.parse(sent.body)).toEqual({ path: "inbox/large.bin", bytes: SIZE, created: true });
      });
      const putMs = performance.now() - startMs;
      startMs = performance.now();
      const getMiB = await peakGrowthMiB(server.pid, async () => {
        expect(await curl("-o", copy, link)).toMatchObject({ exit: 0, status: 200 });
      });
      const getMs = performance.now() - startMs;
      const rate = (ms: number) => `${Math.round(SIZE / MIB / (ms / 1000))} MiB/s`;
      console.log(
        `${SIZE / MIB} MiB: PUT +${putMiB.toFixed(1)} MiB at ${rate(putMs)}, ` +
          `GET +${getMiB.toFixed(1)} MiB at ${rate(getMs)}`,
      );
      expect(putMiB).toBeLessThan(PUT_BOUND_MIB);
      expect(getMiB).toBeLessThan(GET_BOUND_MIB);
      expect(await hashFile(copy)).toBe(sum);

      const headers = { range: `bytes=${SIZE - 4 * MIB}-` };
      const tail = await fetch(link, { headers });
      expect([tail.status, tail.headers.get("content-range")])
        .toEqual([206, `bytes ${SIZE - 4 * MIB}-${SIZE - 1}/${SIZE}`]);
      const bytes = await tail.bytes();
      using end = await Deno.open(source);
      await end.seek(-4 * MIB, Deno.SeekMode.End);
      const expected = await new Response(end.readable).bytes();
      expect(createHash("sha256").update(bytes).digest("hex"))
        .toBe(createHash("sha256").update(expected).digest("hex"));

      await operator.revoke(token_id);
      expect(expectStatus(await ask(link), 401).body["reason"]).toBe("revoked");
      expect((await operator.call("DELETE", "/agents/eve")).body["deleted"]).toBe(true);
      expect((await ask(link)).status).toBe(401);
      const kept = await Deno.stat(join(server.dataFolder, "workspaces/eve/inbox/large.bin"));
      expect(kept.size).toBe(SIZE);
    }, DISK);
  },
);
