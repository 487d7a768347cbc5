/** How a server begins, ends and begins again: signals, ports, folders, and what outlives it. */
import { join } from "../../base/std.ts";
import { ask, expectStatus, Operator, put, toLink } from "../helpers/api.ts";
import { until, within } from "../helpers/deadline.ts";
import { expect } from "../helpers/expect.ts";
import { withFolder } from "../helpers/folder.ts";
import { runString, serve, type Serving } from "../helpers/program.ts";
import { toLatin1 } from "../helpers/raw.ts";

const MIB = 2 ** 20;

async function grantFor(server: Serving): Promise<string> {
  const operator = await Operator.of(server);
  await operator.pair();
  return (await operator.mint()).secret;
}

async function send(server: Serving, text: string): Promise<Deno.TcpConn> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  const bytes = toLatin1(text);
  for (let sent = 0; sent < bytes.length;) sent += await connection.write(bytes.subarray(sent));
  return connection;
}

async function refusesConnections(server: Serving): Promise<boolean> {
  try {
    (await Deno.connect({ hostname: "127.0.0.1", port: server.port })).close();
    return false;
  } catch {
    return true; // nobody listens any more
  }
}

/** Begins an upload that never ends, and waits until the server has begun to take it. */
async function stallUpload(server: Serving, secret: string): Promise<Deno.TcpConn> {
  const head =
    `PUT /fs/stalled HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secret}\r\nContent-Length: 99\r\n\r\n`;
  const connection = await send(server, head + "so far");
  const staging = join(server.dataFolder, "workspaces/eve/.string/staging");
  await until(
    "the upload has begun",
    async () => (await Array.fromAsync(Deno.readDir(staging))).length === 1,
  );
  return connection;
}

Deno.test("SIGTERM lets a running download finish, refuses new connections, and ends with 0", async () => {
  await using server = await serve({ env: { STRING_GRACE: "60s" } });
  const secret = await grantFor(server);
  const size = 64 * MIB;
  expectStatus(await put(toLink(server.url, "large.bin", secret), new Uint8Array(size)), 201);
  using download = await send(
    server,
    `GET /fs/large.bin HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secret}\r\nConnection: close\r\n\r\n`,
  );
  const buffer = new Uint8Array(64 * 1024);
  const first = await download.read(buffer);
  const headLength = new TextDecoder().decode(buffer.subarray(0, first ?? 0)).indexOf("\r\n\r\n") + 4;
  server.kill("SIGTERM");
  await until("nobody listens any more", () => refusesConnections(server));
  let received = (first ?? 0) - headLength;
  for (let count = await download.read(buffer); count !== null; count = await download.read(buffer)) {
    received += count;
  }
  expect(received).toBe(size);
  const { code, err } = await within("the server ends", server.ended);
  expect(code, err).toBe(0);
  expect(err).not.toContain('"level":"error"');
});

Deno.test("SIGTERM ends within the grace period while an upload stalls, and the stalled bytes are gone", async () => {
  await using server = await serve({ env: { STRING_GRACE: "500ms" } });
  using _upload = await stallUpload(server, await grantFor(server));
  const { code, tookMs } = await server.stop();
  expect(code).toBe(0);
  expect(tookMs).toBeLessThan(15_000);
  await using again = await serve({ dataFolder: server.dataFolder });
  const staging = join(again.dataFolder, "workspaces/eve/.string/staging");
  expect(await Array.fromAsync(Deno.readDir(staging))).toEqual([]);
});

for (const [signal, expected] of [["SIGTERM", 143], ["SIGINT", 130]] as const) {
  Deno.test(`a second ${signal} ends at once with ${expected}`, async () => {
    await using server = await serve({ env: { STRING_GRACE: "10m" } });
    using _upload = await stallUpload(server, await grantFor(server));
    server.kill(signal);
    await until("the drain has begun", () => server.err().includes('"stopping"'));
    expect((await server.stop(signal)).code).toBe(expected);
  });
}

Deno.test("a port that is in use is named, and so is a folder that another server owns", () =>
  withFolder(async (folder) => {
    await using server = await serve();
    const port = await runString(["serve", "--port", String(server.port), "--data", join(folder, "data")]);
    expect([port.code, port.out]).toEqual([1, ""]);
    expect(port.err).toContain(`port ${server.port}: the port is in use`);
    expect(port.err).toContain("--port");
    for (const shared of [[], ["--shared"]]) {
      const owned = await runString(["serve", "--port", "0", "--data", server.dataFolder, ...shared]);
      expect([owned.code, owned.out]).toEqual([1, ""]);
      expect(owned.err).toContain(server.url);
      expect(owned.err).toContain("--shared");
    }
    expect((await ask(server.url + "/health")).status, "the owner serves on").toBe(200);
  }));

Deno.test("report 59: a server that was killed leaves no lock: the next one starts at once", () =>
  withFolder(async (dataFolder) => {
    for (let life = 0; life < 3; life++) {
      await using server = await serve({ dataFolder });
      await server.stop("SIGKILL");
    }
    await using server = await serve({ dataFolder });
    expect((await ask(server.url + "/health")).body["ok"]).toBe(true);
    expect((await runString(["agent", "list"], { env: { STRING_DATA: dataFolder } })).code).toBe(0);
  }));

Deno.test("a restart keeps the admin token, keys, capabilities, webhooks, events and files", () =>
  withFolder(async (dataFolder) => {
    const facts = async (server: Serving) => {
      const operator = await Operator.of(server);
      const shown = await operator.call("GET", "/agents/eve/webhook");
      const listed = await operator.call("GET", "/capabilities");
      return {
        token: operator.token,
        webhook: new URL(String(shown.body["webhook_url"])).pathname,
        capabilities: listed.body["capabilities"],
      };
    };
    const use = async (server: Serving, secret: string, key: string) => {
      const inbox = await ask(`${server.url}/events`, { headers: { authorization: `Bearer ${key}` } });
      return {
        file: (await ask(toLink(server.url, "a.txt", secret))).text,
        events: (inbox.body["events"] as { text: string }[]).map(({ text }) => text),
      };
    };
    const first = await serve({ dataFolder });
    const operator = await Operator.of(first);
    const paired = await operator.pair("eve", { key: true, webhook: true });
    const { secret } = await operator.mint();
    const key = String(paired["agent_key"]);
    expectStatus(await put(toLink(first.url, "a.txt", secret), "kept"), 201);
    await ask(String(paired["webhook_url"]), {
      method: "POST",
      headers: { "content-type": "text/plain" },
      body: "a word",
    });
    const before = { ...await facts(first), ...await use(first, secret, key) };
    expect(before).toMatchObject({ file: "kept", events: ["a word"] });
    expect((await first.stop()).code).toBe(0);
    await using second = await serve({ dataFolder });
    expect({ ...await facts(second), ...await use(second, secret, key) }).toEqual(before);
    expect(second.out()).not.toContain("made now");
  }));
