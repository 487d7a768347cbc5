/**
 * HTTP tests as data: what is sent, what must come back, and what the disk and the records hold afterwards.
 *
 * Every row has an agent, a workspace and a capability of its own on a server that the table shares. Beside what a row
 * says, some things hold for all of them, and are checked here once: no answer repeats a secret or a folder of the
 * host, every refusal is a problem that the table of routes lists, and nothing unfinished stays in staging.
 */
import * as v from "valibot";
import { type ErrorCode, ERRORS } from "../../base/errors.ts";
import { join } from "../../base/std.ts";
import { COMMON_ERRORS } from "../../routes/refusals.ts";
import type { RouteSpec } from "../../routes/route_spec.ts";
import { problem } from "../../routes/schemas.ts";
import { ROUTES } from "../../routes/table.ts";
import type { CapabilityRow } from "../../store/database/capability_sql.ts";
import { expect } from "../helpers/expect.ts";
import { sendTarget, toLatin1 } from "../helpers/raw.ts";
import {
  type GrantBody,
  type Minted,
  startServer,
  type TestServer,
  type TestServerOptions,
} from "../helpers/server.ts";

/** Who sends a request: the bearer of the row's capability, in either form, the operator by token, or nobody. */
export type Sender = "bearer" | "presigned" | "operator" | "nobody";

/** One request. `path` is fetched; `target` goes over the wire byte for byte. */
export interface RowRequest {
  readonly method: string;
  readonly path?: string;
  readonly target?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  /** An object is sent as JSON. */
  readonly json?: unknown;
  /** The bearer on `/fs/`, the operator elsewhere, unless given. */
  readonly as?: Sender;
}

/** What a row can refer to. */
export interface World {
  readonly server: TestServer;
  readonly agentId: string;
  /** The agent's folder on disk. */
  readonly home: string;
  /** The row's capability. */
  readonly capability: Minted;
  /** What a step before the request found out, for the request to use. */
  readonly notes: Record<string, string>;
  /** Sends a request as the row's own would be sent. */
  send(request: RowRequest): Promise<Answer>;
}

/** What came back. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
  readonly text: string;
}

/** What must come back. */
export interface RowExpectation {
  readonly status: number;
  /** The reason of a refusal; with HEAD it is only looked up in the table. */
  readonly reason?: ErrorCode;
  /** Exact, by pattern, or null for a header that must be absent. */
  readonly headers?: Readonly<Record<string, string | RegExp | null>>;
  readonly body?: string | Uint8Array;
  readonly json?: unknown;
  readonly contains?: readonly string[];
  readonly lacks?: readonly string[];
  /** Set where the answer is the one place for a secret, or names the agent's home to the operator. */
  readonly mayShow?: "secret" | "home" | "both";
}

/** One row. */
export interface Row {
  /** What it does when; begins with what is asked. */
  readonly name: string;
  /** Where the rule is from. */
  readonly rules: readonly string[];
  /** Files of the workspace before the request. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  readonly grant?: Partial<GrantBody>;
  /** Runs before the request, after the files. */
  before?(world: World): void | Promise<void>;
  readonly request: RowRequest | ((world: World) => RowRequest);
  readonly expect: RowExpectation | ((world: World) => RowExpectation);
  /** Files afterwards: the content, or null for what must not be there. */
  readonly disk?: Readonly<Record<string, string | Uint8Array | null>>;
  /** The capability's row afterwards, in part. */
  readonly database?: Partial<CapabilityRow>;
  /** Runs after everything else was checked. */
  after?(world: World, answer: Answer): void | Promise<void>;
}

const utf8 = new TextDecoder();

function withCap(path: string, secret: string): string {
  return `${path}${path.includes("?") ? "&" : "?"}cap=${secret}`;
}

/** Sends one request of a row. */
async function send(server: TestServer, secret: string, request: RowRequest): Promise<Answer> {
  const address = request.target ?? request.path ?? "/";
  const as = request.as ?? (/^[^?]*\/fs\//.test(address) ? "bearer" : "operator");
  const headers = new Headers(request.headers);
  if (as === "bearer") headers.set("authorization", `Bearer ${secret}`);
  if (as === "operator") headers.set("authorization", `Bearer ${server.adminToken}`);
  if (request.json !== undefined && !headers.has("content-type")) {
    headers.set("content-type", "application/json");
  }
  const body = request.json === undefined ? request.body : JSON.stringify(request.json);
  const sent = as === "presigned" ? withCap(address, secret) : address;
  if (request.target !== undefined) {
    const raw = await sendTarget(server.port, request.method, sent, Object.fromEntries(headers));
    const lines = raw.head.split("\r\n").slice(1);
    const bytes = toLatin1(raw.body);
    return {
      status: raw.status,
      headers: new Headers(lines.map((line): [string, string] => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon), line.slice(colon + 1).trim()];
      })),
      bytes,
      text: utf8.decode(bytes),
    };
  }
  const response = await server.fetch(sent, {
    method: request.method,
    headers,
    redirect: "manual",
    ...(body === undefined ? {} : { body }),
  });
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { status: response.status, headers: response.headers, bytes, text: utf8.decode(bytes) };
}

/** Finds the operation of a request in the table of routes. */
export function routeOf(method: string, address: string): RouteSpec | undefined {
  const path = address.split("?")[0] ?? "";
  const routes: readonly RouteSpec[] = ROUTES;
  const matches = routes.filter((route) => {
    const pattern = route.path.replaceAll("{path}", ".*").replaceAll(/\{\w+\}/g, "[^/]+");
    return new RegExp(`^${pattern}$`).test(path);
  });
  return matches.find((route) => route.method === method) ??
    (method === "HEAD" ? matches.find((route) => route.method === "GET") : undefined);
}

/** Fails when the table of routes does not list a reason for the route of a request. */
export function expectListed(method: string, address: string, reason: ErrorCode): void {
  const route = routeOf(method, address);
  if (route === undefined || reason === "method_not_allowed") return;
  expect([...route.errors, ...COMMON_ERRORS], `table.ts lists ${reason} for ${route.id}`).toContain(reason);
}

/** What holds for every refusal, whatever the row says (SYS-ERR-01, SYS-ERR-02). */
function checkRefusal(request: RowRequest, answer: Answer, reason: ErrorCode | undefined): void {
  if (answer.status === 401) expect(answer.headers.get("www-authenticate")).toBe("Bearer");
  if (answer.status === 405) expect(answer.headers.get("allow")).toMatch(/^[A-Z]+(, [A-Z]+)*$/);
  if (answer.status === 503 || answer.status === 429) {
    expect(answer.headers.get("retry-after")).toMatch(/^\d+$/);
  }
  let told = reason;
  if (request.method === "HEAD") {
    expect(answer.text, "a refusal of HEAD is its status alone").toBe("");
  } else if (request.path !== "/health") {
    const body = v.parse(problem, JSON.parse(answer.text));
    told = body.reason as ErrorCode;
    if (reason !== undefined) expect(told).toBe(reason);
    expect(answer.headers.get("content-type")).toBe("application/json");
  }
  if (told !== undefined) {
    expect(ERRORS[told].status).toBe(answer.status);
    expectListed(request.method, request.target ?? request.path ?? "/", told);
  }
}

function checkHeaders(headers: Headers, expected: Readonly<Record<string, string | RegExp | null>>): void {
  for (const [name, value] of Object.entries(expected)) {
    const actual = headers.get(name);
    if (value instanceof RegExp) expect(actual ?? "(absent)", name).toMatch(value);
    else expect(actual, name).toBe(value);
  }
}

function checkSilence(world: World, answer: Answer, expected: RowExpectation): void {
  const whole = `${[...answer.headers].map((pair) => pair.join(": ")).join("\n")}\n\n${answer.text}`;
  const { server, capability } = world;
  const shows = expected.mayShow;
  const forbidden = [server.adminToken, capability.secret.slice(5, 25), ...expected.lacks ?? []];
  if (shows !== "home" && shows !== "both") forbidden.push(server.dataFolder);
  for (const text of forbidden) expect(whole.includes(text), `the answer shows ${text}`).toBe(false);
  if (shows === undefined || shows === "home") expect(whole).not.toMatch(/(caps|agk|adm)_[A-Za-z0-9_-]{20,}/);
}

async function checkDisk(home: string, files: NonNullable<Row["disk"]>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    const file = join(home, path);
    if (content === null) {
      await expect(Deno.lstat(file), `${path} must not exist`).rejects.toThrow(Deno.errors.NotFound);
    } else if (typeof content === "string") expect(await Deno.readTextFile(file), path).toBe(content);
    else expect(equalBytes(await Deno.readFile(file), content), `bytes of ${path}`).toBe(true);
  }
}

/** Compares without printing megabytes when it fails. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

/** Returns the names of unfinished uploads in a workspace. */
export function staged(home: string): string[] {
  try {
    return [...Deno.readDirSync(join(home, ".string", "staging"))].map((entry) => entry.name);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

/** Writes the files that a row begins with, past the server. */
export function placeFiles(home: string, files: NonNullable<Row["files"]>): void {
  for (const [path, content] of Object.entries(files)) {
    Deno.mkdirSync(join(home, path, ".."), { recursive: true });
    if (typeof content === "string") Deno.writeTextFileSync(join(home, path), content);
    else Deno.writeFileSync(join(home, path), content);
  }
}

/** Makes the world of one row: an agent, its workspace and its capability. */
export async function createWorld(server: TestServer, agentId: string, row: Pick<Row, "files" | "grant">) {
  const capability = await server.mint({ agent_id: agentId, ...row.grant });
  const home = server.home(agentId);
  placeFiles(home, row.files ?? {});
  const world: World = {
    server,
    agentId,
    home,
    capability,
    notes: {},
    send: (request) => send(server, capability.secret, request),
  };
  return world;
}

/** Runs one row and checks everything about it. */
export async function runRow(server: TestServer, agentId: string, row: Row): Promise<void> {
  const world = await createWorld(server, agentId, row);
  await row.before?.(world);
  const request = typeof row.request === "function" ? row.request(world) : row.request;
  const answer = await world.send(request);
  const expected = typeof row.expect === "function" ? row.expect(world) : row.expect;
  expect(answer.status, `status, with body ${answer.text.slice(0, 300)}`).toBe(expected.status);
  if (expected.status >= 400) checkRefusal(request, answer, expected.reason);
  checkHeaders(answer.headers, expected.headers ?? {});
  if (typeof expected.body === "string") expect(answer.text).toBe(expected.body);
  else if (expected.body !== undefined) expect(equalBytes(answer.bytes, expected.body), "bytes").toBe(true);
  if (expected.json !== undefined) expect(JSON.parse(answer.text)).toMatchObject(expected.json);
  for (const text of expected.contains ?? []) expect(answer.text).toContain(text);
  checkSilence(world, answer, expected);
  await checkDisk(world.home, row.disk ?? {});
  expect(staged(world.home), "unfinished uploads").toEqual([]);
  if (row.database !== undefined) {
    const stored = await server.context.database.capabilities.findByTokenId(world.capability.token_id);
    expect(stored).toMatchObject(row.database);
  }
  await row.after?.(world, answer);
}

/** Registers a test that runs rows against one server, where nobody is trusted by place unless `options` say so. */
export function testRows(name: string, rows: readonly Row[], options: TestServerOptions = {}): void {
  Deno.test(name, async (t) => {
    await using server = await startServer({
      ...options,
      flags: { trustLoopback: "false", ...options.flags },
    });
    for (const [index, row] of rows.entries()) {
      await t.step(`${row.name} (${row.rules.join(", ")})`, () => runRow(server, `row-${index}`, row));
    }
  });
}
