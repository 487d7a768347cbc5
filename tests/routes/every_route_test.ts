/**
 * Every route answers every status that the table lists, and says it as its schema promises.
 *
 * The list of what to try is the table itself: a route or reason that is added there without a way to cause it here
 * fails. Source: SYS-DESC-02.
 */
import * as v from "valibot";
import { AppError, type ErrorCode, ERRORS } from "../../base/errors.ts";
import { MAX_PENDING_EVENTS } from "../../runtime/events.ts";
import { COMMON_ERRORS } from "../../routes/refusals.ts";
import type { RouteSpec } from "../../routes/route_spec.ts";
import { problem } from "../../routes/schemas.ts";
import { type OperationId, ROUTES } from "../../routes/table.ts";
import { expect } from "../helpers/expect.ts";
import { startServer, type TestServer } from "../helpers/server.ts";
import { type Answer, createWorld, type World } from "./rows.ts";
import { BREAKERS, exchange, exhaust, SPECIAL, stall, VALID } from "./scenarios.ts";

/** What cannot be caused from outside, and why. */
const CANNOT_HAPPEN: Readonly<Record<string, string>> = {
  "describe unavailable": "it asks neither the database nor the disk",
  "openapi unavailable": "it asks neither the database nor the disk",
  "landing unavailable": "it asks neither the database nor the disk",
  "putFile not_supported": "the local store can do everything",
  "getFile not_supported": "the local store can do everything",
  "statFile not_supported": "the local store can do everything",
  "deleteFile not_supported": "the local store can do everything",
  ...(Deno.uid() !== 0 ? {} : {
    "putFile permission_denied": "the kernel refuses root nothing",
    "getFile permission_denied": "the kernel refuses root nothing",
    "statFile permission_denied": "the kernel refuses root nothing",
    "deleteFile permission_denied": "the kernel refuses root nothing",
  }),
};

interface Servers {
  readonly main: TestServer;
  /** Its disk counts as full for uploads. */
  readonly reserve: TestServer;
  /** Its database can take no more page. */
  readonly full: TestServer;
  /** Its database is closed; the world was made before. */
  readonly gone: World;
}

async function fillDatabase(server: TestServer): Promise<void> {
  const { engine } = server.context.database;
  for (let n = 0; n < 30; n++) await server.admin("POST", "/agents", { agent_id: `filler-${n}` });
  const [pages] = await engine.read({ sql: "PRAGMA page_count", parameters: [] });
  await engine.read({ sql: `PRAGMA max_page_count = ${Number(pages?.page_count)}`, parameters: [] });
}

/** Repeats a request under changing names until the database has no room for it in the pages that it has. */
async function untilFull(server: TestServer, id: OperationId): Promise<Answer> {
  for (let attempt = 0; attempt < 500; attempt++) {
    const world: World = {
      server,
      agentId: id === "pairAgent" ? `more-${attempt}` : `filler-${attempt % 30}`,
      home: "",
      capability: { secret: "" } as never,
      notes: {},
      send: async (request) => {
        const response = await server.fetch(request.path ?? "", {
          method: request.method,
          headers: {
            authorization: `Bearer ${server.adminToken}`,
            "content-type": "application/json",
            ...request.headers,
          },
          ...(request.json === undefined ? {} : { body: JSON.stringify(request.json) }),
          ...(request.body === undefined ? {} : { body: request.body }),
        });
        const text = await response.text();
        return { status: response.status, headers: response.headers, bytes: new Uint8Array(), text };
      },
    };
    const answer = await world.send(await VALID[id](world));
    if (answer.status === 507) return answer;
  }
  throw new Error("Five hundred requests did not fill the database");
}

async function fillInbox(world: World): Promise<void> {
  const { server, agentId } = world;
  const { incarnation } = await server.context.agents.get(agentId);
  await server.context.database.engine.write([{
    sql: `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${MAX_PENDING_EVENTS})
      INSERT INTO events (id, incarnation, agent_id, received_at, source, text, status)
      SELECT 'evt_full' || i, ?, ?, 0, 'local-webhook', 'x', 'pending' FROM n`,
    parameters: [incarnation, agentId],
  }]);
}

let serial = 0;

async function newWorld(server: TestServer): Promise<World> {
  return await createWorld(server, `agent-${++serial}`, { files: { f: "content" } });
}

async function breakIt(
  route: RouteSpec & { id: OperationId },
  code: ErrorCode,
  servers: Servers,
): Promise<Answer> {
  const { id } = route;
  if (code === "unavailable") return await exchange(servers.gone, await VALID[id](servers.gone));
  if (code === "disk_full") {
    if (id !== "putFile") return await untilFull(servers.full, id);
    const world = await newWorld(servers.reserve);
    return await exchange(world, await VALID[id](world));
  }
  const world = await newWorld(servers.main);
  const valid = await VALID[id](world);
  if (code === "request_timeout") return await stall(world, valid);
  if (code === "rate_limited" && id === "receiveWebhook") {
    await fillInbox(world);
    return await exchange(world, valid);
  }
  const special = SPECIAL[`${id} ${code === "rate_limited" ? "unknown_token" : code}`];
  const breaker = special ?? BREAKERS[code === "rate_limited" ? "unknown_token" : code];
  if (breaker === undefined) throw new Error(`No scenario makes ${id} answer ${code}`);
  const broken = await breaker(valid, world);
  if (code === "rate_limited") return await exhaust(world, broken, `203.0.113.${serial % 250}`);
  return await exchange(world, broken);
}

const SUCCESSES: Readonly<Record<string, (servers: Servers) => Promise<Answer>>> = {
  "putFile 200": async ({ main }) => {
    const world = await newWorld(main);
    return await world.send({ method: "PUT", path: "/fs/f", body: "newer" });
  },
  "getFile 206": async ({ main }) => {
    const world = await newWorld(main);
    return await world.send({ method: "GET", path: "/fs/f", headers: { range: "bytes=1-2" } });
  },
  "getFile 304": async ({ main }) => {
    const world = await newWorld(main);
    return await world.send({ method: "GET", path: "/fs/f", headers: { "if-none-match": "*" } });
  },
  "statFile 304": async ({ main }) => {
    const world = await newWorld(main);
    return await world.send({ method: "HEAD", path: "/fs/f", headers: { "if-none-match": "*" } });
  },
  "health 503": ({ gone }) => gone.send({ method: "GET", path: "/health" }),
};

function checkSuccess(route: RouteSpec, status: number, answer: Answer): void {
  const success = route.success[status];
  expect(answer.status, answer.text.slice(0, 300)).toBe(status);
  if (success?.schema !== undefined) v.parse(success.schema, JSON.parse(answer.text));
  const types = [success?.mediaType ?? (success?.schema === undefined ? [] : "application/json")].flat();
  if (types.length === 0) return;
  expect(types).toContain((answer.headers.get("content-type") ?? "").split(";")[0]);
}

function checkRefusal(route: RouteSpec, code: ErrorCode, answer: Answer): void {
  expect(answer.status, answer.text.slice(0, 300)).toBe(ERRORS[code].status);
  if (route.method === "HEAD") return expect(answer.text).toBe("");
  expect(v.parse(problem, JSON.parse(answer.text)).reason).toBe(code);
}

async function withServers(run: (servers: Servers) => Promise<void>): Promise<void> {
  const flags = { trustLoopback: "false", trustedHops: "1" };
  await using main = await startServer({
    flags: { ...flags, maxBytes: "1000" },
    env: { STRING_IDLE_TIMEOUT: "100ms" },
  });
  await using reserve = await startServer({ flags: { ...flags, diskReserve: "1000TiB" } });
  await using full = await startServer({ flags });
  await using goneServer = await startServer({ flags });
  await main.admin("POST", "/agents", { agent_id: "other" });
  await fillDatabase(full);
  const gone = await createWorld(goneServer, "gone", { files: { f: "content" } });
  // What a request needs to know beforehand is asked while the database is there.
  const { context } = goneServer;
  const agent = await context.agents.get("gone");
  const eventId = await context.events.append(agent, "hello");
  const lasting: World = {
    ...gone,
    server: {
      ...goneServer,
      context: {
        ...context,
        agents: { get: () => Promise.resolve(agent), webhookToken: () => context.agents.webhookToken(agent) },
        events: { append: () => Promise.resolve(eventId) },
      } as never,
    },
  };
  await context.audit.flush();
  await context.database.close();
  await run({ main, reserve, full, gone: lasting });
}

Deno.test("every route answers every status of the table as its schema says (SYS-DESC-02, SYS-ERR-02)", async (t) => {
  const routes: readonly (RouteSpec & { id: OperationId })[] = ROUTES;
  const tried = new Set<string>();
  await withServers(async (servers) => {
    for (const route of routes) {
      for (const status of Object.keys(route.success).map(Number)) {
        await t.step(`${route.id} ${status}`, async () => {
          const own = SUCCESSES[`${route.id} ${status}`];
          const world = own === undefined ? await newWorld(servers.main) : undefined;
          const answer = world === undefined
            ? await own!(servers)
            : await exchange(world, await VALID[route.id](world));
          checkSuccess(route, status, answer);
        });
        tried.add(`${route.id} ${status}`);
      }
      for (const code of new Set<ErrorCode>([...route.errors, ...COMMON_ERRORS])) {
        const what = `${route.id} ${code}`;
        if (what in CANNOT_HAPPEN) continue;
        // The 503 of health is its own answer, not a problem.
        if (what === "health unavailable") continue;
        await t.step(what, async () => checkRefusal(route, code, await breakIt(route, code, servers)));
        tried.add(what);
      }
    }
  });
  for (const name of [...Object.keys(SUCCESSES), ...Object.keys(SPECIAL)]) {
    expect(tried.has(name), `${name} is in the table`).toBe(true);
  }
  for (const name of Object.keys(CANNOT_HAPPEN)) {
    const [id = "", code = ""] = name.split(" ");
    const route = routes.find((candidate) => candidate.id === id);
    expect([...route?.errors ?? [], ...COMMON_ERRORS], name).toContain(code);
  }
});

Deno.test("every code of a refusal is an error of the closed list with its status (SYS-ERR-02)", () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    expect(new AppError(code, "x").status).toBe(ERRORS[code].status);
    expect(ERRORS[code].hint).not.toBe("");
  }
});
