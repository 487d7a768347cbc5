/**
 * The data folder: its layout, its owner's lock, and the server's own small files in it.
 *
 * Nothing here knows HTTP or the database's content. Source: architecture.md "Records", "Who is the operator".
 */
import { STAGED_NAME, writeFileAtomic } from "../../base/atomic_file.ts";
import { OperatorError } from "../../base/operator_error.ts";
import { join } from "../../base/std.ts";
import { type HeldLock, tryLockFile } from "./flock.ts";
import { loadSecretKey } from "./secret_key.ts";
import {
  readServerRecord,
  removeServerRecord,
  type ServerRecord,
  writeServerRecord,
} from "./server_record.ts";

/** How a data folder is opened. */
export interface DataFolderOptions {
  /** Shares the folder with other servers that say the same. */
  readonly shared: boolean;
  /** The operator's own key (`STRING_SECRET_KEY`), instead of `<data>/secret.key`. */
  readonly secretKey?: string | undefined;
}

/** An open data folder, locked until `close`. All paths are absolute. */
export interface DataFolder {
  readonly path: string;
  /** Homes of agents (0711: each home has its own mode). */
  readonly workspaces: string;
  /** Lock files of those who stage uploads (0700). */
  readonly makers: string;
  /** Locks between processes that share the folder (0700). */
  readonly locks: string;
  /** Where a file database lies. */
  readonly databaseFile: string;
  readonly shared: boolean;
  /** 32 bytes. Never printed. */
  readonly secretKey: Uint8Array<ArrayBuffer>;
  /** Returns the admin token in `admin.token`, or undefined when there is none. */
  readAdminToken(): Promise<string | undefined>;
  /** Puts the admin token where the command line of the same user finds it (0600), or keeps the one that is there. */
  writeAdminToken(token: string, options?: { keepExisting?: boolean }): Promise<void>;
  /** Tells the command line on this host where the server listens. */
  writeServerRecord(record: ServerRecord): Promise<void>;
  /** Takes that back at a clean stop, unless another server has written its own since. */
  removeServerRecord(): Promise<void>;
  /** Gives the lock up. Safe to call twice. */
  close(): void;
}

const OWNER_LOCK = "owner.lock";
const SECRET_KEY = "secret.key";
const ADMIN_TOKEN = "admin.token";
const SERVER_RECORD = "server.json";

function refuse(path: string, why: string, hint: string, cause?: unknown): OperatorError {
  return new OperatorError("failed", `Cannot use the data folder "${path}": ${why}`, hint, cause);
}

async function makeFolder(path: string, mode: number): Promise<void> {
  try {
    await Deno.mkdir(path, { mode, recursive: false });
    // The umask has cut the mode; a folder that was there already keeps the mode its owner gave it.
    if (Deno.build.os !== "windows") await Deno.chmod(path, mode);
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    if (!(await Deno.stat(path)).isDirectory) {
      throw refuse(path, "it is not a directory", "Choose another folder with --data, or move the file away");
    }
  }
}

async function makeLayout(path: string): Promise<void> {
  try {
    await Deno.mkdir(join(path, ".."), { recursive: true });
    await makeFolder(path, 0o711);
    await makeFolder(join(path, "workspaces"), 0o711);
    await makeFolder(join(path, "makers"), 0o700);
    await makeFolder(join(path, "locks"), 0o700);
  } catch (error) {
    throw toOperatorError(path, error);
  }
}

/** Turns what the file system said into a sentence for the operator. */
function toOperatorError(path: string, error: unknown): OperatorError {
  if (error instanceof OperatorError) return error;
  if (error instanceof Deno.errors.PermissionDenied) {
    const hint = "Give the server's user write access to it, or choose another folder with --data";
    return refuse(path, "this user may not read and write it", hint, error);
  }
  if (error instanceof Deno.errors.NotADirectory || error instanceof Deno.errors.AlreadyExists) {
    return refuse(path, "a part of the path is not a directory", "Choose another folder with --data", error);
  }
  const why = error instanceof Error ? error.message : String(error);
  return refuse(path, `it cannot be made or opened (${why})`, "Choose another folder with --data", error);
}

async function describeOwner(path: string): Promise<string> {
  const record = await readServerRecord(join(path, SERVER_RECORD));
  return record === undefined ? "another server" : `another server (pid ${record.pid}, ${record.url})`;
}

async function takeOwnership(path: string, shared: boolean): Promise<HeldLock> {
  let lock: HeldLock | undefined;
  try {
    lock = await tryLockFile(join(path, OWNER_LOCK), { shared });
  } catch (error) {
    throw toOperatorError(path, error);
  }
  if (lock !== undefined) return lock;
  const owner = await describeOwner(path);
  throw shared
    ? refuse(
      path,
      `${owner} owns it and was started without --shared`,
      "All servers on one data folder must be started with --shared: stop that one and start it again with it",
    )
    : refuse(
      path,
      `${owner} owns it`,
      "Stop that server or choose another folder with --data; to run several on one folder, start all of them with --shared",
    );
}

/** Removes unfinished small files that a crash left. Only for the sole owner: nobody else can be writing one. */
async function sweepStaged(path: string): Promise<void> {
  for await (const entry of Deno.readDir(path)) {
    if (entry.isFile && STAGED_NAME.test(entry.name)) await Deno.remove(join(path, entry.name));
  }
}

async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return (await Deno.readTextFile(path)).trim() || undefined;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/**
 * Opens the data folder at the absolute `path`: makes what is missing, takes the owner's lock, reads the secret key.
 *
 * Refuses (OperatorError) a path that is not a directory or not writable, a folder that another server owns, and a
 * key that is none.
 */
export async function openDataFolder(path: string, options: DataFolderOptions): Promise<DataFolder> {
  await makeLayout(path);
  const lock = await takeOwnership(path, options.shared);
  let record: ServerRecord | undefined;
  try {
    if (!options.shared) await sweepStaged(path);
    const secretKey = await loadSecretKey(join(path, SECRET_KEY), options.secretKey);
    return {
      path,
      workspaces: join(path, "workspaces"),
      makers: join(path, "makers"),
      locks: join(path, "locks"),
      databaseFile: join(path, "string.db"),
      shared: options.shared,
      secretKey,
      readAdminToken: () => readIfPresent(join(path, ADMIN_TOKEN)),
      // deno-lint-ignore require-await -- a promise, so that no caller learns that small files are written at once
      async writeAdminToken(token, { keepExisting = false } = {}) {
        writeFileAtomic(join(path, ADMIN_TOKEN), token + "\n", { mode: 0o600, keepExisting });
      },
      // deno-lint-ignore require-await -- as above
      async writeServerRecord(own) {
        record = own;
        writeServerRecord(join(path, SERVER_RECORD), own);
      },
      async removeServerRecord() {
        if (record !== undefined) await removeServerRecord(join(path, SERVER_RECORD), record);
      },
      close: () => lock.release(),
    };
  } catch (error) {
    lock.release();
    throw toOperatorError(path, error);
  }
}
