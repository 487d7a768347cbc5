/** Bodies that are refused: the client can read why, the target stays, and memory stays flat (report 11). */
import type { ErrorCode } from "../../base/errors.ts";
import { expect } from "../helpers/expect.ts";
import { startServer, type TestServer } from "../helpers/server.ts";
import { FRAMINGS, readAnswer, upload } from "./bodies.ts";
import { expectListed, placeFiles, staged } from "./rows.ts";

const FIVE_MB = 5_000_000;
const MIB = 2 ** 20;

interface Refusal {
  readonly status: number;
  readonly reason: ErrorCode;
  readonly target: string;
  readonly maxBytes?: string;
  secret(server: TestServer): Promise<string | undefined>;
}

const whole = async (server: TestServer) => (await server.mint({})).secret;

const REFUSALS: readonly Refusal[] = [
  { status: 401, reason: "missing_capability", target: "/fs/old", secret: () => Promise.resolve(undefined) },
  {
    status: 403,
    reason: "verb_not_allowed",
    target: "/fs/old",
    secret: async (server) => (await server.mint({ verbs: ["GET"] })).secret,
  },
  {
    status: 403,
    reason: "path_outside_scope",
    target: "/fs/old",
    secret: async (server) => (await server.mint({ path_prefix: "in" })).secret,
  },
  { status: 400, reason: "invalid_path", target: "/fs/a%00", secret: whole },
  { status: 405, reason: "method_not_allowed", target: "/describe", secret: whole },
  { status: 409, reason: "is_directory", target: "/fs/folder", secret: whole },
  { status: 413, reason: "too_large", target: "/fs/old", maxBytes: "1MiB", secret: whole },
];

for (const refusal of REFUSALS) {
  for (const framing of FRAMINGS) {
    const { status, reason, target } = refusal;
    Deno.test(`PUT ${target} of 5 MB (${framing}) answers a readable ${status} ${reason} (report 11)`, async () => {
      await using server = await startServer({ flags: { maxBytes: refusal.maxBytes ?? "1GiB" } });
      const secret = await refusal.secret(server);
      await server.mint({});
      placeFiles(server.home("eve"), { old: "old", "folder/x": "1" });
      for (let round = 0; round < 3; round++) {
        const answer = await upload({
          port: server.port,
          target,
          framing,
          bytes: FIVE_MB,
          ...(secret === undefined ? {} : { secret }),
        });
        expect(answer.status).toBe(status);
        expect(JSON.parse(answer.body)).toMatchObject({ reason });
        expectListed("PUT", target, reason);
        // Some versions of the runtime say "100 Continue" by themselves, before any handler runs.
        if (framing === "expect" && !answer.continued) expect(answer.sentBytes).toBe(0);
      }
      expect(await Deno.readTextFile(`${server.home("eve")}/old`)).toBe("old");
      expect(staged(server.home("eve"))).toEqual([]);
    });
  }
}

Deno.test("PUT of 5 MB lands in every framing (SYS-FS-01)", async () => {
  await using server = await startServer();
  const { secret } = await server.mint({});
  for (const framing of FRAMINGS) {
    const answer = await upload({
      port: server.port,
      target: `/fs/${framing}`,
      secret,
      framing,
      bytes: FIVE_MB,
    });
    expect([framing, answer.status]).toEqual([framing, 201]);
    expect((await Deno.stat(`${server.home("eve")}/${framing}`)).size).toBe(FIVE_MB);
  }
});

for (const framing of ["length", "chunked"] as const) {
  Deno.test(`PUT of 64 MiB (${framing}) above max_bytes is 413 in flat memory, target untouched (report 11)`, async () => {
    await using server = await startServer({ flags: { maxBytes: "1MiB" } });
    const { secret } = await server.mint({});
    placeFiles(server.home("eve"), { old: "old" });
    const send = () => upload({ port: server.port, target: "/fs/old", secret, framing, bytes: 64 * MIB });
    expect((await send()).status).toBe(413);
    const before = Deno.memoryUsage().rss;
    for (let round = 0; round < 2; round++) {
      const answer = await send();
      expect(answer.status).toBe(413);
      expect(JSON.parse(answer.body)).toMatchObject({ reason: "too_large" });
    }
    expect(Deno.memoryUsage().rss - before).toBeLessThan(48 * MIB);
    expect(await Deno.readTextFile(`${server.home("eve")}/old`)).toBe("old");
    expect(staged(server.home("eve"))).toEqual([]);
  });
}

Deno.test("PUT of 64 MiB through fetch without a length is a readable 413 (report 11)", async () => {
  await using server = await startServer({ flags: { maxBytes: "1MiB" } });
  const { secret } = await server.mint({});
  const piece = new Uint8Array(MIB);
  for (let round = 0; round < 3; round++) {
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent++ === 64) controller.close();
        else controller.enqueue(piece);
      },
    });
    const response = await server.fetch(`/fs/new?cap=${secret}`, { method: "PUT", body });
    expect([response.status, (await response.json()).reason]).toEqual([413, "too_large"]);
  }
  await expect(Deno.lstat(`${server.home("eve")}/new`)).rejects.toThrow(Deno.errors.NotFound);
});

Deno.test("PUT that breaks off leaves bytes, version and time of the old file (report 10)", async () => {
  await using server = await startServer();
  const { secret } = await server.mint({});
  await (await server.fetch(`/fs/f?cap=${secret}`, { method: "PUT", body: "good" })).body?.cancel();
  const version = async () => {
    const { headers } = await server.fetch(`/fs/f?cap=${secret}`, { method: "HEAD" });
    return [headers.get("etag"), headers.get("last-modified"), headers.get("content-length")];
  };
  const before = await version();
  for (const head of ["Content-Length: 100000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n9c40\r\n"]) {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
    const text = `PUT /fs/f?cap=${secret} HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\n${head}` +
      "x".repeat(39_000);
    await connection.write(new TextEncoder().encode(text));
    connection.close();
  }
  const deadline = performance.now() + 10_000;
  while (staged(server.home("eve")).length > 0 && performance.now() < deadline) {
    await new Promise((done) => setTimeout(done, 5));
  }
  expect(staged(server.home("eve"))).toEqual([]);
  expect(await version()).toEqual(before);
  expect(await (await server.fetch(`/fs/f?cap=${secret}`)).text()).toBe("good");
});

Deno.test("PUT that goes silent is 408 after the idle time (design: slow clients)", async () => {
  await using server = await startServer({ env: { STRING_IDLE_TIMEOUT: "100ms" } });
  const { secret } = await server.mint({});
  for (const framing of ["Content-Length: 100", "Content-Length: 1000000", "Transfer-Encoding: chunked"]) {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
    const head =
      `PUT /fs/f?cap=${secret} HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nConnection: close\r\n${framing}`;
    const begun = framing.includes("chunked") ? "5\r\nhello\r\n" : "hello";
    await connection.write(new TextEncoder().encode(`${head}\r\n\r\n${begun}`));
    const answer = await readAnswer(connection);
    expect([framing, answer.status]).toEqual([framing, 408]);
    expectListed("PUT", "/fs/f", JSON.parse(answer.body).reason);
    expect(staged(server.home("eve")), framing).toEqual([]);
    connection.close();
  }
  await expect(Deno.lstat(`${server.home("eve")}/f`)).rejects.toThrow(Deno.errors.NotFound);
});

Deno.test("PUT is 507 below the disk reserve, and nothing lands (design: workspaces)", async () => {
  await using server = await startServer({ flags: { diskReserve: "1000TiB" } });
  const { secret } = await server.mint({});
  placeFiles(server.home("eve"), { old: "old" });
  for (const framing of FRAMINGS) {
    const answer = await upload({ port: server.port, target: "/fs/old", secret, framing, bytes: 100_000 });
    expect([framing, answer.status]).toEqual([framing, 507]);
    expect(JSON.parse(answer.body)).toMatchObject({ reason: "disk_full" });
    expectListed("PUT", "/fs/old", "disk_full");
    expect(answer.body).not.toContain(server.dataFolder);
  }
  expect(await Deno.readTextFile(`${server.home("eve")}/old`)).toBe("old");
  const minted = await server.mint({ path_prefix: "x" });
  const revoked = await server.admin("DELETE", `/capabilities/${minted.token_id}`);
  expect(revoked.body.revoked, "revoking is always possible").toBe(true);
  const removed = await server.fetch(`/fs/old?cap=${secret}`, { method: "DELETE" });
  expect(await removed.json()).toMatchObject({ existed: true });
});
