/**
 * Which server a command talks to, and which token it may show it.
 *
 * The token of the data folder goes only to that folder's own server, or to a loopback address that the operator named
 * together with the folder: never to a `STRING_URL` elsewhere, and never to whoever happens to listen on the usual port.
 */
import { join, resolve } from "../base/std.ts";
import type { Environment } from "../runtime/config.ts";
import { withSecretFiles } from "../runtime/secret_env.ts";
import { readServerRecord, type ServerRecord } from "../store/data_folder/server_record.ts";
import { CliFailure, EXIT, usageFailure } from "./failure.ts";

/** Where a server listens when nothing says otherwise. */
export const DEFAULT_URL = "http://127.0.0.1:3923";

/** A server to talk to. */
export interface ServerLocation {
  /** Without a slash at its end. */
  readonly url: string;
  /** Sent as a bearer; absent where the server trusts its own user's programs. */
  readonly token?: string;
}

function tryParseServerUrl(text: string): URL | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const isPlain = url.username === "" && url.password === "" && url.search === "" && url.hash === "";
  return isPlain && /^https?:$/.test(url.protocol) ? url : undefined;
}

function toBase(url: URL): string {
  return url.origin + url.pathname.replace(/\/+$/, "");
}

/** Returns whether a URL's host is this machine's own loopback. */
export function isLoopback(url: URL): boolean {
  return /^(?:localhost|.+\.localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(url.hostname);
}

/** Whether the process of a record still runs, as far as that can be told. */
async function isAlive(record: ServerRecord): Promise<boolean> {
  if (Deno.build.os !== "linux") return true;
  try {
    return (await Deno.stat(`/proc/${record.pid}`)).isDirectory;
  } catch (error) {
    return !(error instanceof Deno.errors.NotFound);
  }
}

function isSameServer(one: URL, record: ServerRecord): boolean {
  const other = tryParseServerUrl(record.url);
  if (other === undefined) return false;
  return toBase(one) === toBase(other) || (isLoopback(one) && isLoopback(other) && one.port === other.port);
}

/**
 * Reads the record of the data folder. One in a folder that nobody named counts only when it is this user's: whoever
 * made the current folder must not choose where an admin token goes.
 */
async function readRecord(dataFolder: string, isNamed: boolean): Promise<ServerRecord | undefined> {
  const path = join(dataFolder, "server.json");
  if (!isNamed && Deno.build.os !== "windows") {
    try {
      if ((await Deno.stat(path)).uid !== Deno.uid()) return undefined;
    } catch {
      return undefined; // there is none, or none that this user may see
    }
  }
  return await readServerRecord(path);
}

async function readLocalToken(dataFolder: string): Promise<string | undefined> {
  try {
    return (await Deno.readTextFile(join(dataFolder, "admin.token"))).trim() || undefined;
  } catch {
    return undefined; // missing, or another user's: the server may trust this user without it
  }
}

/** Returns a token that a header can carry. Refuses another, without repeating it. */
function requireToken(token: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw usageFailure(
    "Cannot use STRING_ADMIN_TOKEN: a token has no spaces, line breaks or letters beyond ASCII",
  );
}

/**
 * Finds the server: `STRING_URL`, else what `<data>/server.json` says, else the usual address; and the token for it:
 * `STRING_ADMIN_TOKEN` or `_FILE`, else the data folder's own where that is safe, else none.
 *
 * @param dataFlag The `--data` flag; else `STRING_DATA`, else `./string-data`.
 */
export async function locateServer(
  given: Environment,
  dataFlag: string | undefined,
): Promise<ServerLocation> {
  const env = await withSecretFiles(given, ["STRING_ADMIN_TOKEN"]);
  const namedFolder = dataFlag ?? (env["STRING_DATA"] || undefined);
  const dataFolder = resolve(namedFolder ?? "string-data");
  const record = await readRecord(dataFolder, namedFolder !== undefined);
  const named = env["STRING_URL"] || undefined;
  if (named === undefined && record === undefined && namedFolder !== undefined) {
    // Never the usual address instead: a command for one server must not reach another one.
    throw new CliFailure(
      EXIT.unreachable,
      `Cannot find the server of the data folder "${dataFolder}": it has no server.json`,
      "Start it with: string serve --data <folder>; or name another server with STRING_URL",
    );
  }
  const url = tryParseServerUrl(named ?? record?.url ?? DEFAULT_URL);
  if (url === undefined) {
    throw named === undefined
      ? usageFailure("Cannot read the server's address in server.json", "Set STRING_URL")
      : usageFailure(
        "Cannot use STRING_URL: it must be an http or https URL without user, query and fragment",
      );
  }
  const explicit = env["STRING_ADMIN_TOKEN"] || undefined;
  if (explicit !== undefined) return { url: toBase(url), token: requireToken(explicit) };
  const isOwn = record !== undefined && isSameServer(url, record) && await isAlive(record);
  const isNamed = named !== undefined && namedFolder !== undefined && isLoopback(url);
  if (!isOwn && !isNamed) return { url: toBase(url) };
  const token = await readLocalToken(dataFolder);
  return { url: toBase(url), ...(token === undefined ? {} : { token: requireToken(token) }) };
}
