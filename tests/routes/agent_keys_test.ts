/** What an agent's key opens, and what it does not (architecture.md "Planes"). */
import { expect } from "../helpers/expect.ts";
import { startServer, type TestServer } from "../helpers/server.ts";

interface Keyed {
  readonly server: TestServer;
  /** Calls as the agent `eve`. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Called>;
}

interface Called {
  readonly status: number;
  readonly reason: unknown;
  readonly body: Record<string, unknown>;
}

const grant = { path_prefix: "in", verbs: ["PUT"], ttl_ms: 60_000 };

async function withKey(run: (keyed: Keyed) => Promise<void>): Promise<void> {
  await using server = await startServer({ flags: { trustLoopback: "false" } });
  const { body } = await server.admin("POST", "/agents", { agent_id: "eve", key: true });
  await server.admin("POST", "/agents", { agent_id: "bob" });
  await run({
    server,
    async call(method, path, sent, headers = {}) {
      const response = await server.fetch(path, {
        method,
        headers: {
          authorization: `Bearer ${body.agent_key}`,
          "content-type": "application/json",
          ...headers,
        },
        ...(sent === undefined ? {} : { body: JSON.stringify(sent) }),
      });
      const answer = await response.json();
      return { status: response.status, reason: answer.reason, body: answer };
    },
  });
}

Deno.test("an agent's key mints, lists and revokes capabilities of its own workspace", () =>
  withKey(async ({ server, call }) => {
    await server.mint({ agent_id: "bob" });
    const minted = await call("POST", "/capabilities", { agent_id: "eve", ...grant });
    expect(minted.status).toBe(201);
    const id = minted.body.token_id;
    for (const path of ["/capabilities", "/capabilities?agent_id=eve"]) {
      const listed = await call("GET", path);
      expect((listed.body.capabilities as { token_id: string }[]).map((one) => one.token_id)).toEqual([id]);
    }
    expect((await call("DELETE", `/capabilities/${id}`)).body).toEqual({ token_id: id, revoked: true });
  }));

Deno.test("an agent's key gets 403 not_your_agent for another agent's capabilities", () =>
  withKey(async ({ server, call }) => {
    const bobs = await server.mint({ agent_id: "bob" });
    for (
      const [method, path, body] of [
        ["POST", "/capabilities", { agent_id: "bob", ...grant }],
        ["POST", "/capabilities", { agent_id: "nobody", ...grant }],
        ["GET", "/capabilities?agent_id=bob"],
        ["GET", "/capabilities?agent_id=nobody"],
        ["DELETE", `/capabilities/${bobs.token_id}`],
      ] as const
    ) {
      const { status, reason } = await call(method, path, body);
      expect([method, path, status, reason]).toEqual([method, path, 403, "not_your_agent"]);
    }
    const row = await server.context.database.capabilities.findByTokenId(bobs.token_id);
    expect(row?.revoked_at).toBe(null);
    expect((await server.context.capabilities.list({ agentId: "bob" })).capabilities.length).toBe(1);
  }));

Deno.test("an agent's key gets 401 admin_required for what is the operator's", () =>
  withKey(async ({ server, call }) => {
    for (
      const [method, path, body] of [
        ["POST", "/agents", { agent_id: "eve" }],
        ["GET", "/agents"],
        ["GET", "/agents/eve"],
        ["DELETE", "/agents/eve"],
        ["POST", "/agents/eve/key"],
        ["GET", "/agents/eve/webhook"],
        ["POST", "/agents/eve/webhook"],
        ["POST", "/capabilities", { agent_id: "eve", ...grant, author: "agent" }],
      ] as const
    ) {
      const { status, reason } = await call(method, path, body);
      expect([method, path, status, reason]).toEqual([method, path, 401, "admin_required"]);
    }
    expect((await server.admin("GET", "/agents/eve")).status).toBe(200);
  }));

Deno.test("an agent's key names the agent; another name in X-Agent-Id is 403", () =>
  withKey(async ({ call }) => {
    expect((await call("GET", "/events")).status).toBe(200);
    expect((await call("GET", "/events", undefined, { "x-agent-id": "eve" })).status).toBe(200);
    const other = await call("GET", "/events", undefined, { "x-agent-id": "bob" });
    expect([other.status, other.reason]).toEqual([403, "not_your_agent"]);
  }));

Deno.test("X-Agent-Id names the agent for the operator alone", async () => {
  await using trusting = await startServer();
  await trusting.admin("POST", "/agents", { agent_id: "eve" });
  const ask = async (server: TestServer, headers: Record<string, string>) => {
    const response = await server.fetch("/events", { headers });
    return [response.status, (await response.json()).reason];
  };
  expect(await ask(trusting, { "x-agent-id": "eve" })).toEqual([200, undefined]);
  expect(await ask(trusting, {})).toEqual([400, "invalid_request"]);
  expect(await ask(trusting, { "x-agent-id": "" })).toEqual([400, "invalid_request"]);
  expect(await ask(trusting, { "x-agent-id": "nobody" })).toEqual([401, "unknown_token"]);
  await using strict = await startServer({ flags: { trustLoopback: "false" } });
  await strict.admin("POST", "/agents", { agent_id: "eve" });
  expect(await ask(strict, { "x-agent-id": "eve" })).toEqual([401, "admin_required"]);
  const operator = { authorization: `Bearer ${strict.adminToken}` };
  expect(await ask(strict, { ...operator, "x-agent-id": "eve" })).toEqual([200, undefined]);
});

Deno.test("POST /agents/{id}/key kills the key before it; pairing with key does too", () =>
  withKey(async ({ server, call }) => {
    const works = async (key: unknown) => {
      const response = await server.fetch("/events", { headers: { authorization: `Bearer ${key}` } });
      await response.body?.cancel();
      return response.status;
    };
    const rotated = (await server.admin("POST", "/agents/eve/key")).body.agent_key;
    expect((await call("GET", "/events")).reason).toBe("unknown_token");
    expect(await works(rotated)).toBe(200);
    await server.admin("POST", "/agents", { agent_id: "eve" });
    expect(await works(rotated), "pairing without key leaves it").toBe(200);
    const paired = (await server.admin("POST", "/agents", { agent_id: "eve", key: true })).body.agent_key;
    expect([await works(rotated), await works(paired)]).toEqual([401, 200]);
  }));
