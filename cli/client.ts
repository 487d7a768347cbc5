/** Talks to a server's admin plane over HTTP; turns its refusals into failures with an exit code. */
import { CliFailure, EXIT, exitCodeForStatus } from "./failure.ts";
import { isLoopback, type ServerLocation } from "./locate.ts";

const TIMEOUT_MS = 30_000;

/** What a command needs of a server. */
export interface Client extends Disposable {
  /** The server's address without a slash at its end. */
  readonly url: string;
  /** Sends one request and returns the answer's JSON object. Throws CliFailure for everything else. */
  request(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>;
}

function unreachable(url: string): CliFailure {
  return new CliFailure(
    EXIT.unreachable,
    `Cannot reach a server at ${url}`,
    "Is it running? Start it with: string serve; or name another one with --data or STRING_URL",
  );
}

async function readObject(response: Response): Promise<Record<string, unknown> | undefined> {
  try {
    const value: unknown = await response.json();
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? value as Record<string, unknown>
      : undefined;
  } catch {
    return undefined; // not JSON: somebody else answers there, and the caller says so
  }
}

/** What to do next in words of the command line, where the server's own hint speaks of requests. */
const HINTS: Readonly<Record<string, string>> = {
  admin_required:
    "Set STRING_ADMIN_TOKEN or STRING_ADMIN_TOKEN_FILE, or name the server's data folder with --data",
  agent_not_found: "See: string agent list",
  capability_not_found: "See: string agent capability list",
};

function toFailure(status: number, body: Record<string, unknown> | undefined, url: string): CliFailure {
  const { error, reason, hint } = body ?? {};
  const message = typeof error === "string" ? error : `The server at ${url} answered ${status}`;
  const own = typeof reason === "string" && Object.hasOwn(HINTS, reason) ? HINTS[reason] : undefined;
  return new CliFailure(
    exitCodeForStatus(status),
    message,
    own ?? (typeof hint === "string" ? hint : undefined),
  );
}

/** A connection that goes straight to a loopback server, whatever proxies the environment names. */
function directConnection(url: URL): Deno.HttpClient | undefined {
  if (!isLoopback(url)) return undefined;
  const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
  const hostname = url.hostname.replace(/^\[|\]$/g, "");
  return Deno.createHttpClient({ proxy: { transport: "tcp", hostname, port } });
}

/** Returns a client of one server; dispose of it after the last request. */
export function createClient({ url, token }: ServerLocation): Client {
  const connection = directConnection(new URL(url));
  return {
    url,
    async request(method, path, body) {
      let response: Response;
      try {
        response = await fetch(url + path, {
          method,
          headers: {
            accept: "application/json",
            ...(body === undefined ? {} : { "content-type": "application/json" }),
            ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          ...(connection === undefined ? {} : { client: connection }),
          // A redirect could lead the token somewhere else.
          redirect: "manual",
          signal: AbortSignal.timeout(TIMEOUT_MS),
        });
      } catch {
        throw unreachable(url); // refused, reset, timed out or unknown name: the runtime's words differ by version
      }
      const answer = await readObject(response);
      if (!response.ok) throw toFailure(response.status, answer, url);
      if (answer !== undefined) return answer;
      throw new CliFailure(EXIT.failed, `What answers at ${url} is not a String server`, "Check STRING_URL");
    },
    [Symbol.dispose]: () => connection?.close(),
  };
}
