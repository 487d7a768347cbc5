/** Reports 25, 26, M3, M5: parts of a file, and headers that are those of the whole answer. */
import { join } from "../../base/std.ts";
import { expect } from "../helpers/expect.ts";
import { sendTarget } from "../helpers/raw.ts";
import { testIf } from "../helpers/skip.ts";
import { bearer, isSame, namesIn, pattern, until, withServer } from "./support.ts";

/** Range header, file size → status, Content-Range, and the bytes from and to (not included). */
const ROWS: [string, number, number, string | null, number, number][] = [
  ["bytes=-10", 100, 206, "bytes 90-99/100", 90, 100],
  ["bytes=90-110", 100, 206, "bytes 90-99/100", 90, 100],
  ["bytes=0-0", 100, 206, "bytes 0-0/100", 0, 1],
  ["bytes=99-99", 100, 206, "bytes 99-99/100", 99, 100],
  ["bytes=0-", 100, 206, "bytes 0-99/100", 0, 100],
  ["bytes=100-", 100, 416, "bytes */100", 0, 0],
  ["bytes=100-200", 100, 416, "bytes */100", 0, 0],
  ["bytes=99999999999999999999999-", 100, 416, "bytes */100", 0, 0],
  ["bytes=5-99999999999999999999999", 100, 206, "bytes 5-99/100", 5, 100],
  ["bytes=-200", 100, 206, "bytes 0-99/100", 0, 100],
  ["bytes=-0", 100, 416, "bytes */100", 0, 0],
  ["bytes=5-2", 100, 200, null, 0, 100],
  ["bytes=0-0,5-6", 100, 200, null, 0, 100],
  ["items=0-1", 100, 200, null, 0, 100],
  ["bytes=", 100, 200, null, 0, 100],
  ["bytes=-", 100, 200, null, 0, 100],
  ["bytes=a-b", 100, 200, null, 0, 100],
  ["bytes=1e1-", 100, 200, null, 0, 100],
  ["bytes=--5", 100, 200, null, 0, 100],
  ["bytes=0-", 0, 200, null, 0, 0],
  ["bytes=-5", 0, 200, null, 0, 0],
  ["bytes=1-", 0, 416, "bytes */0", 0, 0],
  ["bytes=-10", 300_000, 206, "bytes 299990-299999/300000", 299_990, 300_000],
  ["bytes=100000-199999", 300_000, 206, "bytes 100000-199999/300000", 100_000, 200_000],
  ["bytes=300000-", 300_000, 416, "bytes */300000", 0, 0],
  ["bytes=5-2", 300_000, 200, null, 0, 300_000],
];

Deno.test("report 25: suffixes, overlong and unreadable ranges, on small, large and empty files", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({});
    const files = new Map([0, 100, 300_000].map((size) => [size, pattern(size)]));
    for (const [size, bytes] of files) await Deno.writeFile(join(server.home("eve"), `${size}.bin`), bytes);
    for (const [range, size, status, contentRange, from, to] of ROWS) {
      const response = await server.fetch(`/fs/${size}.bin`, { headers: { ...bearer(secret), range } });
      const body = new Uint8Array(await response.arrayBuffer());
      expect([range, size, response.status, response.headers.get("content-range")]).toEqual([
        range,
        size,
        status,
        contentRange,
      ]);
      if (status === 416) continue;
      expect([range, response.headers.get("content-length")]).toEqual([range, String(to - from)]);
      expect([range, isSame(body, files.get(size)?.subarray(from, to) ?? new Uint8Array())]).toEqual([
        range,
        true,
      ]);
    }
  }));

Deno.test("report 25: a range holds only for the version that If-Range names", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({});
    await Deno.writeFile(join(server.home("eve"), "a.bin"), pattern(100));
    const get = (headers: Record<string, string>) =>
      sendTarget(server.port, "GET", "/fs/a.bin", { ...bearer(secret), range: "bytes=0-9", ...headers });
    const tag = (await get({})).header("etag") ?? "";
    const modified = (await get({})).header("last-modified") ?? "";
    expect((await get({ "if-range": tag })).status).toBe(206);
    expect((await get({ "if-range": modified })).status).toBe(206);
    for (const stale of ['"other"', `W/${tag}`, "Thu, 01 Jan 1970 00:00:00 GMT", "junk"]) {
      expect([stale, (await get({ "if-range": stale })).status]).toEqual([stale, 200]);
    }
  }));

/** Headers of an answer but for those of its moment. */
function headersOf(head: string): string[] {
  return head.split("\r\n").slice(1).filter((line) => !/^date:/i.test(line)).map((line) => line.toLowerCase())
    .sort();
}

Deno.test("report 26: HEAD has exactly the headers of GET, for empty, small and large files and every open page", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({});
    for (const size of [0, 1, 65_536, 65_537, 5_000_000]) {
      await Deno.writeFile(join(server.home("eve"), `${size}.bin`), pattern(size));
      const target = `/fs/${size}.bin?cap=${secret}`;
      const [get, head] = [
        await sendTarget(server.port, "GET", target),
        await sendTarget(server.port, "HEAD", target),
      ];
      expect([size, head.status, head.body]).toEqual([size, 200, ""]);
      expect(get.body.length).toBe(size);
      expect(headersOf(head.head)).toEqual(headersOf(get.head));
      expect(head.header("content-length")).toBe(String(size));
      for (const name of ["etag", "last-modified", "content-type"]) expect(head.header(name)).toBeDefined();
    }
    for (const path of ["/describe", "/openapi.json", "/", "/health"]) {
      const [get, head] = [
        await sendTarget(server.port, "GET", path),
        await sendTarget(server.port, "HEAD", path),
      ];
      expect([path, head.status, head.body]).toEqual([path, 200, ""]);
      expect(get.body.length).toBe(Number(get.header("content-length")));
      expect([path, headersOf(head.head)]).toEqual([path, headersOf(get.head)]);
    }
  }));

Deno.test("report 26: a refused HEAD has the status of GET and no body", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({});
    await Deno.mkdir(join(server.home("eve"), "folder"));
    for (const path of ["missing", "folder", "folder/..", ".string/x"]) {
      const target = `/fs/${path}?cap=${secret}`;
      const get = await sendTarget(server.port, "GET", target);
      const head = await sendTarget(server.port, "HEAD", target);
      expect([path, head.status, head.body]).toEqual([path, get.status, ""]);
    }
  }));

testIf(
  Deno.build.os === "linux",
  "open descriptors are counted in /proc",
  "report M3: HEAD, refusals and abandoned GETs of a large file leave no descriptor open",
  () =>
    withServer(async (server) => {
      const { secret } = await server.mint({});
      await Deno.writeFile(join(server.home("eve"), "large.bin"), pattern(3_000_000));
      const opened = async () => {
        let count = 0;
        for (const name of await namesIn("/proc/self/fd")) {
          try {
            if ((await Deno.readLink(`/proc/self/fd/${name}`)).includes("large.bin")) count++;
          } catch {
            // Closed since it was listed.
          }
        }
        return count;
      };
      const tag = (await sendTarget(server.port, "HEAD", "/fs/large.bin", bearer(secret))).header("etag") ??
        "";
      const requests: [string, Record<string, string>][] = [
        ["HEAD", {}],
        ["HEAD", { range: "bytes=0-1" }],
        ["GET", { range: "bytes=3000000-" }],
        ["GET", { "if-none-match": tag }],
        ["GET", { "if-match": '"other"' }],
        ["GET", { range: "bytes=5-9" }],
      ];
      for (let round = 0; round < 50; round++) {
        for (const [method, headers] of requests) {
          await sendTarget(server.port, method, "/fs/large.bin", { ...bearer(secret), ...headers });
        }
        const abandoned = await server.fetch("/fs/large.bin", { headers: bearer(secret) });
        await abandoned.body?.cancel();
      }
      await until(async () => await opened() === 0, 10_000, "the files to close");
    }),
);

Deno.test("report M5: no answer is compressed or has its tag weakened, whatever the client accepts", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({});
    await Deno.writeTextFile(join(server.home("eve"), "a.txt"), "compressible ".repeat(1000));
    await Deno.writeTextFile(join(server.home("eve"), "b.txt"), "compressible ".repeat(100_000));
    const accept = { "accept-encoding": "gzip, br, deflate, zstd" };
    for (const path of ["/fs/a.txt", "/fs/b.txt", "/describe", "/openapi.json", "/"]) {
      const plain = await sendTarget(server.port, "GET", path, bearer(secret));
      const asked = await sendTarget(server.port, "GET", path, { ...bearer(secret), ...accept });
      expect([path, asked.header("content-encoding")]).toEqual([path, undefined]);
      expect(asked.header("content-length")).toBe(plain.header("content-length"));
      expect(asked.header("etag")).toBe(plain.header("etag"));
      expect(asked.body).toBe(plain.body);
      expect(asked.header("cache-control")).toContain("no-transform");
    }
  }));
