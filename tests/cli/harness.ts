/** Runs command lines in this process against a server of the test's own, and records what reached it. */
import { join } from "../../base/std.ts";
import { runCli } from "../../cli/main.ts";

/** What one command line did. */
export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs one command line with only these variables around it. */
export async function run(args: readonly string[], env: Record<string, string> = {}): Promise<Ran> {
  let out = "";
  let err = "";
  const output = {
    out: (text: string) => void (out += text),
    err: (text: string) => void (err += text),
    isTerminal: false,
  };
  const code = await runCli(args, { env, output });
  return { code, out, err };
}

/** One request as the server saw it. */
export interface Seen {
  readonly method: string;
  /** Path with query. */
  readonly target: string;
  readonly authorization: string | null;
  readonly body: unknown;
}

/** A server that answers what `routes` says: `METHOD /path` to status and JSON (text is sent as it is). */
export interface FakeServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly seen: Seen[];
}

/** Answers of a fake server, by method and target. */
export type Routes = Record<string, readonly [status: number, body: unknown]>;

/** Starts a server on loopback that knows exactly `routes`. */
export function startServer(routes: Routes): FakeServer {
  const seen: Seen[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const url = new URL(request.url);
    const target = url.pathname + url.search;
    const text = await request.text();
    const body: unknown = text === "" ? undefined : JSON.parse(text);
    seen.push({ method: request.method, target, authorization: request.headers.get("authorization"), body });
    const [status, answer] = routes[`${request.method} ${target}`] ??
      [404, { error: "Nothing here", reason: "not_found" }];
    return new Response(typeof answer === "string" ? answer : JSON.stringify(answer), { status });
  });
  const { port } = server.addr;
  return { url: `http://127.0.0.1:${port}`, port, seen, [Symbol.asyncDispose]: () => server.shutdown() };
}

/** A folder for one test, removed after it. */
export async function withTempFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Makes a folder look like the data folder of a running server. */
export async function writeDataFolder(
  folder: string,
  url: string,
  options: { pid?: number } = {},
): Promise<void> {
  const record = { url, pid: options.pid ?? Deno.pid, started_at: "2026-01-01T00:00:00.000Z" };
  await Deno.writeTextFile(join(folder, "server.json"), JSON.stringify(record));
  await Deno.writeTextFile(join(folder, "admin.token"), "adm_local\n");
}
