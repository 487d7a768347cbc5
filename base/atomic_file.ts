/**
 * Small files that a reader finds whole, old or new, also after a crash.
 *
 * For the server's and the CLI's own records only; the files of a workspace have their own, contained way.
 */
import { encodeBase64Url } from "./base64url.ts";
import { basename, dirname, join } from "./std.ts";

/** How a small file is put in place. */
export interface AtomicFileOptions {
  /** Permission bits, whatever the umask says. */
  readonly mode: number;
  /** Keeps a file that is there already instead of replacing it. */
  readonly keepExisting?: boolean;
}

/** The names of unfinished files, so that what a crash left behind can be swept. */
export const STAGED_NAME = /^\..+\.[A-Za-z0-9_-]{12}\.tmp$/;

/** Makes the entries of a folder durable. */
function syncFolder(path: string): void {
  // A folder cannot be opened as a file there, and a rename is journalled.
  if (Deno.build.os === "windows") return;
  using folder = Deno.openSync(path, { read: true });
  folder.syncSync();
}

function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Gives the staged file its name; returns whether it did, and not another's file that was there first. */
function publish(staged: string, path: string, keepExisting: boolean): boolean {
  if (keepExisting) {
    try {
      Deno.linkSync(staged, path);
      return true;
    } catch {
      // Either somebody was first, or this file system has no hard links: then looking first must do.
      if (exists(path)) return false;
    }
  }
  Deno.renameSync(staged, path);
  return true;
}

/**
 * Writes a small text file so that no reader sees a part of it, and makes it durable.
 *
 * @returns Whether this call's text is what the file now holds; false only when `keepExisting` found another one.
 */
export function writeFileAtomic(path: string, text: string, options: AtomicFileOptions): boolean {
  const folder = dirname(path);
  const random = encodeBase64Url(crypto.getRandomValues(new Uint8Array(9)));
  const staged = join(folder, `.${basename(path)}.${random}.tmp`);
  try {
    {
      using file = Deno.openSync(staged, { write: true, createNew: true, mode: options.mode });
      if (Deno.build.os !== "windows") Deno.chmodSync(staged, options.mode);
      const bytes = new TextEncoder().encode(text);
      for (let written = 0; written < bytes.length;) written += file.writeSync(bytes.subarray(written));
      file.syncSync();
    }
    const published = publish(staged, path, options.keepExisting ?? false);
    syncFolder(folder);
    return published;
  } finally {
    if (exists(staged)) Deno.removeSync(staged);
  }
}
