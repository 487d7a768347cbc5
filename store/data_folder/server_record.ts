/** `<data>/server.json`: where the running server is, for the command line on the same host. */
import { writeFileAtomic } from "../../base/atomic_file.ts";

/** Where a server listens and which process it is. */
export interface ServerRecord {
  /** The address a client on this host can use, without a trailing slash. */
  readonly url: string;
  readonly pid: number;
  /** Unix milliseconds. */
  readonly startedAtMs: number;
}

/** Returns the record in `path`, or undefined when there is none or it cannot be read as one. */
export async function readServerRecord(path: string): Promise<ServerRecord | undefined> {
  let value: unknown;
  try {
    value = JSON.parse(await Deno.readTextFile(path));
  } catch {
    return undefined; // missing, of another user, or from something else: there is nobody to be found by it
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { url, pid, started_at: startedAt } = value as Record<string, unknown>;
  if (typeof url !== "string" || typeof pid !== "number" || !Number.isSafeInteger(pid)) return undefined;
  const startedAtMs = typeof startedAt === "string" ? Date.parse(startedAt) : Number.NaN;
  return { url, pid, startedAtMs };
}

/** Writes the record (0600), replacing another server's. */
export function writeServerRecord(path: string, record: ServerRecord): void {
  const { url, pid, startedAtMs } = record;
  const text = JSON.stringify({ url, pid, started_at: new Date(startedAtMs).toISOString() }) + "\n";
  writeFileAtomic(path, text, { mode: 0o600 });
}

/** Removes the record if it is still the one of this process and address: a later server's stays. */
export async function removeServerRecord(path: string, own: ServerRecord): Promise<void> {
  const present = await readServerRecord(path);
  if (present?.pid !== own.pid || present.url !== own.url) return;
  try {
    await Deno.remove(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
