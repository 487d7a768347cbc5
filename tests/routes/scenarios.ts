/**
 * How to make each route answer each of its statuses: one request that succeeds for every route, and one way to break
 * it for every reason of a refusal.
 */
import type { ErrorCode } from "../../base/errors.ts";
import type { AgentRow } from "../../store/database/agent_rows.ts";
import type { OperationId } from "../../routes/table.ts";
import type { GrantBody } from "../helpers/server.ts";
import { readAnswer } from "./bodies.ts";
import { type Answer, placeFiles, type RowRequest, type World } from "./rows.ts";

/** A request of one route. */
export type Maker = (world: World) => RowRequest | Promise<RowRequest>;

const NOBODY_KNOWS = "n".repeat(43);
const grant = { path_prefix: "in", verbs: ["PUT"], ttl_ms: 60_000 };

function agentOf({ server, agentId }: World): Promise<AgentRow> {
  return server.context.agents.get(agentId);
}

async function webhookPath(world: World): Promise<string> {
  return `/webhook/${await world.server.context.agents.webhookToken(await agentOf(world))}`;
}

/** For each route a request that succeeds; the workspace has a file `f`. */
export const VALID: Readonly<Record<OperationId, Maker>> = {
  putFile: () => ({ method: "PUT", path: "/fs/new", body: "x" }),
  getFile: () => ({ method: "GET", path: "/fs/f" }),
  statFile: () => ({ method: "HEAD", path: "/fs/f" }),
  deleteFile: () => ({ method: "DELETE", path: "/fs/f" }),
  mintCapability: ({ agentId }) => ({
    method: "POST",
    path: "/capabilities",
    json: { agent_id: agentId, ...grant },
  }),
  listCapabilities: ({ agentId }) => ({ method: "GET", path: `/capabilities?agent_id=${agentId}` }),
  revokeCapability: ({ capability }) => ({ method: "DELETE", path: `/capabilities/${capability.token_id}` }),
  pairAgent: ({ agentId }) => ({
    method: "POST",
    path: "/agents",
    json: { agent_id: `${agentId}-new`, webhook: true, key: true, capability: grant },
  }),
  listAgents: () => ({ method: "GET", path: "/agents" }),
  getAgent: ({ agentId }) => ({ method: "GET", path: `/agents/${agentId}` }),
  deleteAgent: ({ agentId }) => ({ method: "DELETE", path: `/agents/${agentId}` }),
  rotateAgentKey: ({ agentId }) => ({ method: "POST", path: `/agents/${agentId}/key` }),
  showWebhook: ({ agentId }) => ({ method: "GET", path: `/agents/${agentId}/webhook` }),
  rotateWebhook: ({ agentId }) => ({ method: "POST", path: `/agents/${agentId}/webhook` }),
  receiveWebhook: async (world) => ({
    method: "POST",
    path: await webhookPath(world),
    body: "hello",
    headers: { "content-type": "text/plain" },
    as: "nobody",
  }),
  listEvents: ({ agentId }) => ({ method: "GET", path: "/events", headers: { "x-agent-id": agentId } }),
  acknowledgeEvent: async (world) => {
    const id = await world.server.context.events.append(await agentOf(world), "hello");
    return { method: "POST", path: `/events/${id}/ack`, headers: { "x-agent-id": world.agentId } };
  },
  streamEvents: ({ agentId }) => ({
    method: "GET",
    path: "/events/stream",
    headers: { "x-agent-id": agentId },
  }),
  describe: () => ({ method: "GET", path: "/describe" }),
  health: () => ({ method: "GET", path: "/health" }),
  openapi: () => ({ method: "GET", path: "/openapi.json" }),
  landing: () => ({ method: "GET", path: "/" }),
};

/** Changes a request so that it is refused. */
type Breaker = (request: RowRequest, world: World) => RowRequest | Promise<RowRequest>;

function withHeaders(request: RowRequest, headers: Record<string, string>): RowRequest {
  return { ...request, headers: { ...request.headers, ...headers } };
}

function toPath(path: string): Breaker {
  return (request) => ({ ...request, path });
}

/** Sends the request with another capability than the world's own. */
function withGrant(
  changes: Partial<GrantBody>,
  then?: (world: World, secret: string) => Promise<unknown>,
): Breaker {
  return async (request, world) => {
    const { secret } = await world.server.mint({ agent_id: world.agentId, ...changes });
    await then?.(world, secret);
    return withHeaders({ ...request, as: "nobody" }, { authorization: `Bearer ${secret}` });
  };
}

async function later(): Promise<void> {
  const begun = Date.now();
  while (Date.now() < begun + 3) await new Promise((done) => setTimeout(done, 1));
}

const allButPut = ["GET", "DELETE", "STAT"];

/** For each reason the way to it, where it is the same for all routes. */
export const BREAKERS: Readonly<Partial<Record<ErrorCode, Breaker>>> = {
  bad_host: (request) => {
    const { path, body: _body, json: _json, ...rest } = request;
    const sent = request.json ?? request.body;
    return withHeaders({ ...rest, target: path ?? "" }, {
      host: "two names",
      ...(sent === undefined ? {} : { "content-length": "0" }),
    });
  },
  missing_capability: (request) => ({ ...request, as: "nobody" }),
  admin_required: (request) => ({ ...request, as: "nobody" }),
  unknown_token: (request) =>
    withHeaders({ ...request, as: "nobody" }, {
      authorization: `Bearer ${request.path?.startsWith("/fs/") ? "caps_" : "adm_"}${NOBODY_KNOWS}`,
    }),
  host_not_allowed: (request) => {
    const { path, body: _body, json: _json, ...rest } = request;
    return withHeaders({ ...rest, target: path ?? "", as: "nobody" }, {
      host: "evil.example",
      "content-length": "0",
    });
  },
  cross_site: (request) => withHeaders(request, { "sec-fetch-site": "cross-site" }),
  expired: withGrant({ ttl_ms: 1 }, later),
  revoked: withGrant({ path_prefix: "f" }, async ({ server, agentId }) => {
    const { capabilities } = await server.context.capabilities.list({ agentId, limit: 1 });
    await server.context.capabilities.revoke(capabilities[0]?.token_id ?? "");
  }),
  already_used: withGrant({ single_use: true }, async ({ server }, secret) => {
    await (await server.fetch(`/fs/f?cap=${secret}`)).body?.cancel();
  }),
  conflicting_credentials: (request) => ({ ...request, path: `${request.path}?cap=caps_${NOBODY_KNOWS}` }),
  invalid_path: ({ path: _path, body: _body, ...request }) => ({ ...request, target: "/fs/a%00" }),
  verb_not_allowed: (request, world) =>
    withGrant({
      verbs: [...allButPut, "PUT"].filter((verb) =>
        verb !== (request.method === "HEAD" ? "STAT" : request.method)
      ),
    })(request, world),
  path_outside_scope: toPath("/fs/.string/x"),
  symlink: async (request, { home }) => {
    await Deno.symlink("f", `${home}/link`);
    return { ...request, path: "/fs/link" };
  },
  permission_denied: async (request, { home }) => {
    placeFiles(home, { "closed/x": "1" });
    await Deno.chmod(`${home}/closed`, 0);
    return { ...request, path: "/fs/closed/x" };
  },
  is_directory: (request, { home }) => {
    placeFiles(home, { "folder/x": "1" });
    return { ...request, path: "/fs/folder" };
  },
  parent_is_file: toPath("/fs/f/x"),
  not_a_file: async (request, { home }) => {
    await new Deno.Command("mkfifo", { args: [`${home}/pipe`] }).output();
    return { ...request, path: "/fs/pipe" };
  },
  prefetch: async (request, world) =>
    withHeaders(await withGrant({ single_use: true })(request, world), { "sec-purpose": "prefetch" }),
  precondition_failed: (request) => withHeaders({ ...request, path: "/fs/f" }, { "if-match": '"other"' }),
  range_not_satisfiable: (request) => withHeaders(request, { range: "bytes=1000-" }),
  not_your_agent: async (request, { server }) => {
    const { agentKey } = await server.context.agents.rotateKey("other");
    return withHeaders({ ...request, as: "nobody" }, { authorization: `Bearer ${agentKey}` });
  },
  agent_not_found: (request, { agentId }) =>
    request.json === undefined
      ? { ...request, path: request.path?.replace(agentId, "nobody") ?? "" }
      : { ...request, json: { ...request.json, agent_id: "nobody" } },
  capability_not_found: toPath("/capabilities/cap_none"),
  unsupported_media_type: (request) => withHeaders(request, { "content-type": "image/png" }),
  too_large: ({ json, ...request }) =>
    withHeaders(
      { ...request, body: "x".repeat(70_000) },
      json === undefined ? {} : { "content-type": "application/json" },
    ),
};

/** Where one route needs a way of its own. */
export const SPECIAL: Readonly<Record<string, Breaker>> = {
  "getFile not_found": toPath("/fs/none"),
  "statFile not_found": toPath("/fs/none"),
  "acknowledgeEvent not_found": toPath("/events/evt_none/ack"),
  "mintCapability invalid_request": (request) => ({ ...request, json: [] }),
  "pairAgent invalid_request": (request) => ({ ...request, json: { agent_id: ".." } }),
  "listCapabilities invalid_request": toPath("/capabilities?limit=0"),
  "listEvents invalid_request": toPath("/events?status=x"),
  "acknowledgeEvent invalid_request": (request) => withHeaders(request, { "x-agent-id": "" }),
  "streamEvents invalid_request": (request) => withHeaders(request, { "x-agent-id": "" }),
  "receiveWebhook invalid_request": ({ body: _body, ...request }) => request,
  "receiveWebhook unknown_token": toPath(`/webhook/${NOBODY_KNOWS}`),
};

for (const route of ["putFile", "getFile", "statFile", "deleteFile"]) {
  (SPECIAL as Record<string, Breaker>)[`${route} invalid_request`] = (
    { path, body: _body, ...request },
  ) => ({ ...request, target: `${path}?cap=%zz`, as: "nobody" });
}

/** Sends a request; of a stream that does not end only the first part is read. */
export async function exchange(world: World, request: RowRequest): Promise<Answer> {
  if (request.path !== "/events/stream") return await world.send(request);
  const headers = new Headers(request.headers);
  if (request.as !== "nobody") headers.set("authorization", `Bearer ${world.server.adminToken}`);
  const response = await world.server.fetch(request.path, { headers });
  const reader = response.body?.getReader();
  const { value = new Uint8Array() } = await reader?.read() ?? {};
  await reader?.cancel();
  return {
    status: response.status,
    headers: response.headers,
    bytes: value,
    text: new TextDecoder().decode(value),
  };
}

/** Fails with unknown credentials from one outside address until the server slows it down. */
export async function exhaust(world: World, request: RowRequest, address: string): Promise<Answer> {
  for (let attempt = 0; attempt < 40; attempt++) {
    const answer = await exchange(world, withHeaders(request, { "x-forwarded-for": address }));
    if (answer.status === 429) return answer;
  }
  throw new Error("Forty unknown credentials were not slowed down");
}

/** Begins to send the body of a request and says no more. */
export async function stall({ server, capability }: World, request: RowRequest): Promise<Answer> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  const token = request.path?.startsWith("/fs/") ? capability.secret : server.adminToken;
  const head = `${request.method} ${request.path} HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\n` +
    `Authorization: Bearer ${token}\r\nConnection: close\r\nContent-Length: 10\r\n\r\nhello`;
  await connection.write(new TextEncoder().encode(head));
  const raw = await readAnswer(connection);
  connection.close();
  return { status: raw.status, headers: new Headers(), bytes: new Uint8Array(), text: raw.body };
}
