/** A token that is replaced while a body is on its way, and a body that never comes. */
import { expect } from "../helpers/expect.ts";
import { parseRawResponse, readAll, toLatin1 } from "../helpers/raw.ts";
import { startServer, type TestServer } from "../helpers/server.ts";

/** Sends a request in two parts, and does something in between. */
async function inTwo(
  server: TestServer,
  head: string,
  body: string,
  meanwhile: () => Promise<unknown>,
): Promise<{ status: number; body: string }> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  const full = `${head}\r\nHost: 127.0.0.1:${server.port}\r\nConnection: close\r\n` +
    `Content-Length: ${body.length}\r\n\r\n${body}`;
  await connection.write(toLatin1(full.slice(0, -20)));
  // The server has begun once it has answered another request that was sent later.
  await (await server.fetch("/health")).body?.cancel();
  await (await server.fetch("/health")).body?.cancel();
  await meanwhile();
  await connection.write(toLatin1(full.slice(-20)));
  const answer = parseRawResponse(await readAll(connection));
  try {
    connection.close();
  } catch {
    // Closed with the answer.
  }
  return { status: answer.status, body: answer.body };
}

Deno.test("an agent's key that is replaced while the body comes mints nothing", async () => {
  await using server = await startServer();
  const { body } = await server.admin("POST", "/agents", { agent_id: "eve", key: true });
  const grant = JSON.stringify({ agent_id: "eve", path_prefix: "", verbs: ["GET"], ttl_ms: 60_000 });
  const head = `POST /capabilities HTTP/1.1\r\nAuthorization: Bearer ${body.agent_key}`;
  const answer = await inTwo(server, head, grant, () => server.admin("POST", "/agents/eve/key"));
  expect(answer.status).toBe(401);
  expect((await server.admin("GET", "/capabilities")).body.capabilities).toEqual([]);
});

Deno.test("a webhook token that is replaced while the text comes delivers nothing", async () => {
  await using server = await startServer();
  const { body } = await server.admin("POST", "/agents", { agent_id: "eve", webhook: true });
  const path = new URL(String(body.webhook_url)).pathname;
  const head = `POST ${path} HTTP/1.1\r\nContent-Type: text/plain`;
  const answer = await inTwo(
    server,
    head,
    "a text of some length, more than twenty",
    () => server.admin("POST", "/agents/eve/webhook"),
  );
  expect(answer.status).toBe(401);
  const agent = await server.context.agents.get("eve");
  expect((await server.context.events.list(agent, { afterSeq: 0, limit: 10 })).events).toEqual([]);
});

Deno.test("a stream ends with the key that opened it, and what comes later is not for it", async () => {
  await using server = await startServer();
  const { body } = await server.admin("POST", "/agents", { agent_id: "eve", key: true });
  const response = await server.fetch("/events/stream", {
    headers: { authorization: `Bearer ${body.agent_key}` },
  });
  const text = response.text();
  await server.admin("POST", "/agents/eve/key");
  await server.context.events.append(await server.context.agents.get("eve"), "for the new key");
  expect(await text).not.toContain("for the new key");
});

Deno.test("a new incarnation's key neither lists nor revokes what an earlier one had", async () => {
  await using server = await startServer();
  const { token_id } = await server.mint({ path_prefix: "private" });
  await server.admin("DELETE", "/agents/eve");
  const { body } = await server.admin("POST", "/agents", { agent_id: "eve", key: true });
  const headers = { authorization: `Bearer ${body.agent_key}` };
  expect(await (await server.fetch("/capabilities", { headers })).json()).toEqual({ capabilities: [] });
  const revoked = await server.fetch(`/capabilities/${token_id}`, { method: "DELETE", headers });
  expect([revoked.status, (await revoked.json()).reason]).toEqual([403, "not_your_agent"]);
});

Deno.test("PUT of a part, with two lengths, or with an empty condition writes nothing", async () => {
  await using server = await startServer();
  const { secret } = await server.mint({});
  const put = (headers: Record<string, string>) =>
    server.fetch(`/fs/a?cap=${secret}`, { method: "PUT", body: "new", headers });
  await (await put({})).body?.cancel();
  for (const headers of [{ "content-range": "bytes 0-2/9" }, { "if-match": "" }, { "if-none-match": "" }]) {
    const response = await put(headers);
    expect([response.status, (await response.json()).reason], JSON.stringify(headers)).toEqual([
      400,
      "invalid_request",
    ]);
  }
});

for (
  const [method, status] of [["PUT", "201"], ["GET", "200"], ["DELETE", "200"], ["POST", "405"]] as const
) {
  Deno.test(`a ${method} with a transfer coding is the last of its connection (report 23)`, () =>
    isLast(method, status));
}

async function isLast(method: string, status: string): Promise<void> {
  await using server = await startServer();
  const { secret } = await server.mint({});
  if (method !== "PUT") {
    await (await server.fetch(`/fs/a?cap=${secret}`, { method: "PUT", body: "abc" })).body?.cancel();
  }
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  await connection.write(toLatin1(
    `${method} /fs/a?cap=${secret} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n` +
      `GET /health HTTP/1.1\r\nHost: x\r\n\r\n`,
  ));
  const text = await readAll(connection, 5000);
  try {
    connection.close();
  } catch {
    // Closed by the server, as it must be.
  }
  expect(text).toContain(` ${status} `);
  expect(text.toLowerCase().split("\r\n\r\n")[0]).toContain("connection: close");
  // Newer runtimes read both lengths themselves, refuse them, and need not close.
  if (Deno.version.deno.startsWith("2.6.")) expect(text).not.toContain('"ok":true');
}
