/** What the tests of this folder share: requests with a secret, waiting for a condition, snapshots of folders. */
import { Buffer } from "node:buffer";
import { join, TextLineStream } from "../../base/std.ts";
import { parseRawResponse, type RawResponse, readAll, toLatin1 } from "../helpers/raw.ts";
import { startServer, type TestServer, type TestServerOptions } from "../helpers/server.ts";

/** Both ways of containment; what touches paths on disk runs with each. */
export const CONTAINMENTS = ["auto", "portable"] as const;

/** Runs `body` with a fresh server that is stopped afterwards. */
export async function withServer(
  body: (server: TestServer) => Promise<void>,
  options: TestServerOptions = {},
): Promise<void> {
  await using server = await startServer(options);
  await body(server);
}

/** The header that presents a secret. */
export function bearer(secret: string): { authorization: string } {
  return { authorization: `Bearer ${secret}` };
}

/** What an answer says in short: its status, its reason where it has one, and its body as text. */
export interface Answer {
  readonly status: number;
  readonly reason: string | undefined;
  readonly text: string;
  readonly headers: Headers;
}

/** Sends one request with a secret to `/fs/` and reads the answer; `path` is percent-encoded already. */
export async function fs(
  server: TestServer,
  method: string,
  path: string,
  secret: string,
  init: { headers?: Record<string, string>; body?: BodyInit } = {},
): Promise<Answer> {
  const response = await server.fetch(`/fs/${path}`, {
    method,
    headers: { ...bearer(secret), ...init.headers },
    ...(init.body === undefined ? {} : { body: init.body }),
  });
  const text = await response.text();
  return { status: response.status, reason: reasonOf(text), text, headers: response.headers };
}

/** Returns the `reason` of a problem, or undefined for any other body. */
export function reasonOf(text: string): string | undefined {
  try {
    const reason: unknown = (JSON.parse(text) as { reason?: unknown } | null)?.reason;
    return typeof reason === "string" ? reason : undefined;
  } catch {
    return undefined; // the bytes of a file, or nothing
  }
}

/** Waits until `condition` holds; fails after `deadlineMs`. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  deadlineMs = 10_000,
  what = "a condition",
): Promise<void> {
  const giveUpAt = performance.now() + deadlineMs;
  while (!(await condition())) {
    if (performance.now() > giveUpAt) throw new Error(`Waited ${deadlineMs} ms in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Returns `length` bytes that differ from place to place and from `seed` to `seed`. */
export function pattern(length: number, seed = 1): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let state = (seed * 2654435761 + 1) >>> 0;
  for (let index = 0; index < length; index++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[index] = state >>> 24;
  }
  return bytes;
}

/** Returns whether two runs of bytes are the same; a deep comparison takes minutes for megabytes. */
export function isSame(left: Uint8Array, right: Uint8Array): boolean {
  return Buffer.from(left.buffer, left.byteOffset, left.byteLength).equals(right);
}

/** Returns the names in a folder, sorted; none for a folder that is not there. */
export async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await Array.fromAsync(Deno.readDir(folder), (entry) => entry.name)).sort();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

/** Returns everything below a folder by its path: mode, time, and content or link target. */
export async function snapshot(
  folder: string,
  options: { except?: string } = {},
  prefix = "",
): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const name of await namesIn(folder)) {
    if (name === options.except) continue;
    const path = join(folder, name);
    const { isDirectory, isSymlink, mode, mtime } = await Deno.lstat(path);
    const content = isSymlink ? await Deno.readLink(path) : isDirectory ? "" : await Deno.readTextFile(path);
    found[prefix + name] = `${mode} ${mtime?.getTime()} ${content}`;
    if (isDirectory) Object.assign(found, await snapshot(path, options, `${prefix}${name}/`));
  }
  return found;
}

/** The folder of unfinished uploads in a workspace. */
export function stagingOf(home: string): string {
  return join(home, ".string", "staging");
}

/** Returns how many bytes lie in staging. */
export async function stagedBytes(home: string): Promise<number> {
  let total = 0;
  for (const name of await namesIn(stagingOf(home))) {
    try {
      total += (await Deno.lstat(join(stagingOf(home), name))).size;
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error; // finished meanwhile
    }
  }
  return total;
}

/** A request whose body is sent piece by piece, over a plain socket. */
export class RawRequest implements Disposable {
  private constructor(readonly connection: Deno.Conn) {}

  /** Connects and sends the request line and headers. */
  static async open(
    port: number,
    method: string,
    target: string,
    headers: Record<string, string>,
  ): Promise<RawRequest> {
    const request = new RawRequest(await Deno.connect({ hostname: "127.0.0.1", port }));
    const lines = Object.entries({ host: `127.0.0.1:${port}`, ...headers })
      .map(([name, value]) => `${name}: ${value}\r\n`).join("");
    await request.send(toLatin1(`${method} ${target} HTTP/1.1\r\n${lines}\r\n`));
    return request;
  }

  async send(bytes: Uint8Array): Promise<void> {
    for (let sent = 0; sent < bytes.length;) sent += await this.connection.write(bytes.subarray(sent));
  }

  /** Reads until `text` has come; returns all that came. Fails when the server closes before, or after 10 seconds. */
  async readUntil(text: string): Promise<string> {
    const timer = setTimeout(() => this.close(), 10_000);
    const buffer = new Uint8Array(65_536);
    let seen = "";
    try {
      while (!seen.includes(text)) {
        const count = await this.connection.read(buffer);
        if (count === null) throw new Error(`The server closed before "${text}": ${seen}`);
        for (const byte of buffer.subarray(0, count)) seen += String.fromCharCode(byte);
      }
      return seen;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Reads the answer until the server closes, or for `deadlineMs`. */
  async answer(deadlineMs = 10_000): Promise<RawResponse> {
    return parseRawResponse(await readAll(this.connection, deadlineMs));
  }

  /** Breaks the connection off. Safe to call twice. */
  close(): void {
    try {
      this.connection.close();
    } catch {
      // Closed already, by the server's end or a deadline.
    }
  }

  /** So that a test that fails leaves no open upload for its server to wait for. */
  [Symbol.dispose](): void {
    this.close();
  }
}

/** A program of `programs/` in a process of its own. */
export interface Program extends AsyncDisposable {
  /** Waits for the next line on its standard output; fails when it ends instead. */
  line(): Promise<string>;
  /** All that it wrote to standard error until now. */
  errors(): string;
  /** Ends it: SIGKILL unless another signal is named. Returns its exit code. */
  kill(signal?: Deno.Signal): Promise<number>;
  readonly running: () => boolean;
}

/** Starts a command whose standard output is read by lines. */
export function startCommand(
  command: readonly string[],
  env: Record<string, string> = {},
): Program {
  const child = new Deno.Command(command[0] ?? "", {
    args: command.slice(1),
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    env: { DENO_NO_UPDATE_CHECK: "1", NO_COLOR: "1", ...env },
  }).spawn();
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream())
    .getReader();
  let errors = "";
  const errorsRead = (async () => {
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) errors += text;
  })();
  let running = true;
  const ended = child.status.then((status) => {
    running = false;
    return status;
  });
  const kill = async (signal: Deno.Signal = "SIGKILL") => {
    if (running) child.kill(signal);
    while (!(await lines.read()).done);
    await errorsRead;
    return (await ended).code;
  };
  return {
    async line() {
      const { value, done } = await lines.read();
      if (done) throw new Error(`The program ended without a word: ${errors}`);
      return value;
    },
    errors: () => errors,
    kill,
    running: () => running,
    async [Symbol.asyncDispose]() {
      await kill();
    },
  };
}

/** Starts a program of `programs/` with Deno, under `wrapper` where one is given. */
export function startProgram(
  name: string,
  args: readonly string[],
  options: { wrapper?: readonly string[]; env?: Record<string, string> } = {},
): Program {
  const file = join(import.meta.dirname ?? "", "programs", name);
  return startCommand(
    [...options.wrapper ?? [], Deno.execPath(), "run", "-A", "--no-check", file, ...args],
    options.env,
  );
}

/** A server in a process of its own, and calls on it. */
export interface ServerProcess extends AsyncDisposable {
  readonly port: number;
  readonly pid: number;
  readonly program: Program;
  /** Makes an agent with one capability and returns its secret. */
  pair(agentId: string, grant?: Record<string, unknown>): Promise<string>;
  admin(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>;
}

/** Starts `programs/server.ts` on a data folder. Disposing of it kills it; the folder stays. */
export async function startServerProcess(
  dataFolder: string,
  flags: Record<string, string> = {},
  options: { name?: string; wrapper?: readonly string[]; env?: Record<string, string> } = {},
): Promise<ServerProcess> {
  const program = startProgram(options.name ?? "server.ts", [dataFolder, JSON.stringify(flags)], options);
  const { port, pid, adminToken } = JSON.parse(await program.line());
  const admin = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { ...bearer(adminToken), "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, ...await response.json() };
  };
  return {
    port,
    pid,
    program,
    admin,
    async pair(agentId, grant = {}) {
      const verbs = ["PUT", "GET", "DELETE", "STAT"];
      const capability = { path_prefix: "", verbs, ttl_ms: 600_000, ...grant };
      const { capability: minted } = await admin("POST", "/agents", { agent_id: agentId, capability });
      return (minted as { secret: string }).secret;
    },
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  };
}

/** Runs `body` with a temp folder that is removed afterwards, unless a server on it was faster. */
export async function withFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "string-test-" });
  try {
    await body(folder);
  } finally {
    if ((await namesIn(folder)).length > 0) await Deno.remove(folder, { recursive: true });
  }
}
