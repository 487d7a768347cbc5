/**
 * A whole server inside the test process: real folder, real database, real socket.
 *
 * What a test asks of it goes over the network; what it checks behind it goes to the folder and the database.
 */
import { silentLog } from "../../base/log.ts";
import { join } from "../../base/std.ts";
import { createHandler } from "../../routes/app.ts";
import { type FlagValues, parseServerConfig } from "../../runtime/config.ts";
import { type Context, createContext } from "../../runtime/context.ts";
import { openDataFolder } from "../../store/data_folder/open.ts";
import { loadLibc } from "../../store/workspace/libc.ts";

// Loaded once and for good: before the first test, which an older runtime would blame for it.
loadLibc();

/** How a test's server is made. */
export interface TestServerOptions {
  /** Flags of `string serve`, by their camelCase names. */
  readonly flags?: FlagValues;
  readonly env?: Record<string, string>;
  /** A data folder of an earlier server; a fresh one otherwise. */
  readonly dataFolder?: string;
}

/** A running server. */
export interface TestServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly context: Context;
  readonly dataFolder: string;
  readonly adminToken: string;
  /** Folder of an agent's workspace on disk. */
  home(agentId: string): string;
  /** Fetches a path of this server. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** Calls an admin route with the admin token and returns its JSON. */
  admin(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; body: Record<string, unknown> }>;
  /** Makes an agent and mints a capability; returns the answer to the mint. */
  mint(grant: Partial<GrantBody> & { agent_id?: string }): Promise<Minted>;
  /** Stops the server and keeps its folder. */
  stop(): Promise<void>;
}

/** What a test may set of a grant. */
export interface GrantBody {
  path_prefix: string;
  verbs: string[];
  ttl_ms: number;
  single_use: boolean;
  author: string;
}

/** The answer to a mint. */
export interface Minted {
  token_id: string;
  secret: string;
  agent_id: string;
  path_prefix: string;
  verbs: string[];
  expires_at: string;
  single_use: boolean;
  created_at: string;
}

/** Starts a server on a free port. Dispose of it: that stops it and removes its folder. */
export async function startServer(options: TestServerOptions = {}): Promise<TestServer> {
  const dataFolder = options.dataFolder ?? await Deno.makeTempDir({ prefix: "string-test-" });
  const config = parseServerConfig(
    { port: "0", data: dataFolder, diskReserve: "1", ...options.flags },
    options.env ?? {},
  );
  const folder = await openDataFolder(dataFolder, { shared: config.shared });
  const context = await createContext(config, folder, silentLog);
  const server = Deno.serve({
    hostname: config.host,
    port: config.port,
    onListen() {},
    onError: () => new Response(null, { status: 500 }),
  }, createHandler(context));
  const { port, hostname } = server.addr;
  const url = `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
  context.setListening({ url, hostname, port });
  const adminToken = await folder.readAdminToken() ?? "";

  let stopped = false;
  const stop = async () => {
    if (stopped) return;
    stopped = true;
    context.beginDrain();
    await server.shutdown();
    await context.close();
    folder.close();
  };
  const admin: TestServer["admin"] = async (method, path, body) => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${adminToken}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json() };
  };
  return {
    url,
    port,
    context,
    dataFolder,
    adminToken,
    home: (agentId) => join(dataFolder, "workspaces", agentId),
    fetch: (path, init) => fetch(url + path, init),
    admin,
    async mint({ agent_id = "eve", ...grant }) {
      await admin("POST", "/agents", { agent_id });
      const { status, body } = await admin("POST", "/capabilities", {
        agent_id,
        path_prefix: "",
        verbs: ["PUT", "GET", "DELETE", "STAT"],
        ttl_ms: 600_000,
        ...grant,
      });
      if (status !== 201) throw new Error(`mint answered ${status}: ${JSON.stringify(body)}`);
      return body as unknown as Minted;
    },
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
      await Deno.remove(dataFolder, { recursive: true });
    },
  };
}
