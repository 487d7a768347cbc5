/** Single use, and uploads that outlive their capability (architecture.md "Capabilities"). */
import { expect } from "../helpers/expect.ts";
import { parseRawResponse, type RawResponse, readAll, toLatin1 } from "../helpers/raw.ts";
import { startServer, type TestServer } from "../helpers/server.ts";
import { placeFiles, type Row, staged, testRows } from "../routes/rows.ts";
import { until } from "../store/database/helpers.ts";

const unspent = { consumed_at: null, lease_id: null } as const;

function kept(name: string, row: Partial<Row> & Pick<Row, "request" | "expect">): Row {
  return {
    name: `a single use survives ${name}`,
    rules: ["design: single use", "S1"],
    database: unspent,
    ...row,
    grant: { single_use: true, ...row.grant },
  };
}

function spent(name: string, row: Partial<Row> & Pick<Row, "request" | "expect">): Row {
  return {
    name: `a single use is spent by ${name}`,
    rules: ["design: single use"],
    ...row,
    grant: { single_use: true, ...row.grant },
    async after(world) {
      const stored = await world.server.context.database.capabilities.findByTokenId(
        world.capability.token_id,
      );
      expect(stored?.consumed_at).not.toBe(null);
      const again = await world.send({ method: "GET", path: "/fs/f" });
      expect([again.status, JSON.parse(again.text).reason]).toEqual([401, "already_used"]);
    },
  };
}

const files = { f: "the bytes", "d/x": "1" };

const rows: Row[] = [
  kept("a GET of nothing", {
    request: { method: "GET", path: "/fs/none" },
    expect: { status: 404, reason: "not_found" },
    async after({ send, home }) {
      placeFiles(home, { none: "now" });
      expect((await send({ method: "GET", path: "/fs/none" })).text).toBe("now");
    },
  }),
  kept("a GET of a folder", {
    files,
    request: { method: "GET", path: "/fs/d" },
    expect: { status: 409, reason: "is_directory" },
  }),
  kept("a refused verb", {
    files,
    grant: { verbs: ["GET"] },
    request: { method: "DELETE", path: "/fs/f" },
    expect: { status: 403, reason: "verb_not_allowed" },
  }),
  kept("a DELETE of nothing", {
    request: { method: "DELETE", path: "/fs/none" },
    expect: { status: 200, json: { existed: false } },
  }),
  kept("a PUT into a folder's place", {
    files,
    request: { method: "PUT", path: "/fs/d", body: "x" },
    expect: { status: 409, reason: "is_directory" },
  }),
  kept("a PUT that is too long", {
    request: { method: "PUT", path: "/fs/f", body: "x".repeat(2000) },
    expect: { status: 413, reason: "too_large" },
  }),
  kept("a HEAD beside other verbs (report 1)", {
    files,
    request: { method: "HEAD", path: "/fs/f" },
    expect: { status: 200 },
  }),
  kept("a HEAD of nothing where STAT is its sole verb", {
    grant: { verbs: ["STAT"] },
    request: { method: "HEAD", path: "/fs/none" },
    expect: { status: 404, reason: "not_found" },
  }),
  ...[
    { "sec-purpose": "prefetch" },
    { "sec-purpose": "prefetch;prerender" },
    { purpose: "prefetch" },
    { purpose: "Preview" },
  ].map((headers) =>
    kept(`a GET marked ${JSON.stringify(headers)}`, {
      files,
      request: { method: "GET", path: "/fs/f", headers },
      expect: { status: 403, reason: "prefetch", lacks: ["the bytes"] },
    })
  ),
  spent("a GET that hands over the bytes", {
    files,
    request: { method: "GET", path: "/fs/f" },
    expect: { status: 200, body: "the bytes" },
  }),
  spent("a PUT that lands", {
    request: { method: "PUT", path: "/fs/f", body: "new" },
    expect: { status: 201 },
    disk: { f: "new" },
  }),
  spent("a DELETE that removes", {
    files,
    request: { method: "DELETE", path: "/fs/f" },
    expect: { status: 200, json: { existed: true } },
    disk: { f: null },
  }),
  spent("a HEAD where STAT is its sole verb", {
    files,
    grant: { verbs: ["STAT"] },
    request: { method: "HEAD", path: "/fs/f" },
    expect: { status: 200 },
  }),
  {
    name: "a prefetch through a capability for many uses is served",
    rules: ["design: single use"],
    files,
    request: { method: "GET", path: "/fs/f", headers: { "sec-purpose": "prefetch" } },
    expect: { status: 200 },
  },
];

testRows("single use", rows, { flags: { maxBytes: "1000" } });

Deno.test("fifty GETs at once on a single use have one winner (report 2)", async () => {
  await using server = await startServer();
  const { secret } = await server.mint({ single_use: true });
  placeFiles(server.home("eve"), { f: "content" });
  const statuses = await Promise.all(Array.from({ length: 50 }, async () => {
    const response = await server.fetch(`/fs/f?cap=${secret}`);
    await response.body?.cancel();
    return response.status;
  }));
  expect(statuses.filter((status) => status === 200).length).toBe(1);
  expect(statuses.filter((status) => status === 401).length).toBe(49);
});

/** An upload whose bytes come when the test says so. */
class SlowUpload {
  private constructor(readonly connection: Deno.TcpConn) {}

  static async begin(server: TestServer, path: string, secret: string): Promise<SlowUpload> {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
    const head = `PUT ${path}?cap=${secret} HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\n` +
      `Connection: close\r\nContent-Length: 10\r\n\r\nfirst`;
    await connection.write(toLatin1(head));
    return new SlowUpload(connection);
  }

  async finish(): Promise<RawResponse> {
    await this.connection.write(toLatin1("-last"));
    const answer = parseRawResponse(await readAll(this.connection));
    this.connection.close();
    return answer;
  }
}

async function withSlowUpload(
  grant: Parameters<TestServer["mint"]>[0],
  run: (
    server: TestServer,
    upload: SlowUpload,
    capability: { secret: string; token_id: string },
  ) => Promise<void>,
): Promise<void> {
  await using server = await startServer();
  const capability = await server.mint(grant);
  placeFiles(server.home("eve"), { f: "old" });
  const upload = await SlowUpload.begin(server, "/fs/f", capability.secret);
  await until(() => staged(server.home("eve")).length === 1);
  await run(server, upload, capability);
  expect(staged(server.home("eve"))).toEqual([]);
}

Deno.test("a slow PUT does not outlast a revocation (design: capabilities)", () =>
  withSlowUpload({}, async (server, upload, { token_id }) => {
    await server.admin("DELETE", `/capabilities/${token_id}`);
    const answer = await upload.finish();
    expect([answer.status, JSON.parse(answer.body).reason]).toEqual([401, "revoked"]);
    expect(await Deno.readTextFile(`${server.home("eve")}/f`)).toBe("old");
  }));

Deno.test("a slow PUT does not outlast its agent, even when the name comes back (report 5)", () =>
  withSlowUpload({}, async (server, upload) => {
    await server.admin("DELETE", "/agents/eve");
    await server.admin("POST", "/agents", { agent_id: "eve" });
    const answer = await upload.finish();
    expect([answer.status, JSON.parse(answer.body).reason]).toEqual([401, "revoked"]);
    expect(await Deno.readTextFile(`${server.home("eve")}/f`)).toBe("old");
  }));

for (const single_use of [false, true]) {
  Deno.test(`a slow PUT that began in time lands after its expiry (single use: ${single_use})`, () =>
    withSlowUpload({ ttl_ms: 400, single_use }, async (server, upload, { secret }) => {
      await until(async () => {
        const response = await server.fetch(`/fs/f?cap=${secret}`, { method: "HEAD" });
        return response.status === 401;
      });
      const answer = await upload.finish();
      expect(answer.status).toBe(200);
      expect(await Deno.readTextFile(`${server.home("eve")}/f`)).toBe("first-last");
    }));
}

Deno.test("of two PUTs on one single use the second waits, unread, and is refused when the first lands", () =>
  withSlowUpload({ single_use: true }, async (server, first, { secret }) => {
    const second = server.fetch(`/fs/g?cap=${secret}`, { method: "PUT", body: "second" });
    let answered = false;
    second.then(() => answered = true);
    for (let n = 0; n < 30; n++) await (await server.fetch("/health")).body?.cancel();
    expect(answered).toBe(false);
    expect(staged(server.home("eve")).length, "the second body is not taken").toBe(1);
    expect((await first.finish()).status).toBe(200);
    const refused = await second;
    expect([refused.status, (await refused.json()).reason]).toEqual([401, "already_used"]);
  }));

Deno.test("of two PUTs on one single use the second lands when the first breaks off", () =>
  withSlowUpload({ single_use: true }, async (server, first, { secret, token_id }) => {
    const second = server.fetch(`/fs/f?cap=${secret}`, { method: "PUT", body: "second" });
    first.connection.close();
    const answer = await second;
    expect([answer.status, (await answer.json()).created]).toEqual([200, false]);
    expect(await Deno.readTextFile(`${server.home("eve")}/f`)).toBe("second");
    const row = await server.context.database.capabilities.findByTokenId(token_id);
    expect(row?.consumed_at).not.toBe(null);
  }));

Deno.test("a GET that streams goes on with the old bytes while a PUT replaces the file (report 59)", async () => {
  await using server = await startServer();
  const { secret } = await server.mint({});
  const size = 8 * 2 ** 20;
  placeFiles(server.home("eve"), { f: new Uint8Array(size).fill(1) });
  const reading = await server.fetch(`/fs/f?cap=${secret}`);
  const put = await server.fetch(`/fs/f?cap=${secret}`, { method: "PUT", body: "new" });
  expect((await put.json()).created).toBe(false);
  const old = new Uint8Array(await reading.arrayBuffer());
  expect(old.length).toBe(size);
  expect(old.every((byte) => byte === 1)).toBe(true);
  expect(await (await server.fetch(`/fs/f?cap=${secret}`)).text()).toBe("new");
});

Deno.test("three versions within a moment have three ETags, and the first one is stale (report 16)", async () => {
  await using server = await startServer();
  const { secret } = await server.mint({});
  const tags: string[] = [];
  for (const body of ["aaaa", "bbbb", "cccc"]) {
    const response = await server.fetch(`/fs/f?cap=${secret}`, { method: "PUT", body });
    tags.push(response.headers.get("etag") ?? "");
    await response.body?.cancel();
  }
  expect(new Set(tags).size).toBe(3);
  expect(tags.every((tag) => /^"[^"]+"$/.test(tag))).toBe(true);
  const stale = await server.fetch(`/fs/f?cap=${secret}`, {
    method: "PUT",
    body: "lost",
    headers: { "if-match": tags[0] ?? "" },
  });
  expect(stale.status).toBe(412);
  await stale.body?.cancel();
  expect(await (await server.fetch(`/fs/f?cap=${secret}`)).text()).toBe("cccc");
});
