/** A workspace's home and String's own folders in it. */
import { type CanonicalPath, RESERVED_SEGMENT, ROOT_PATH } from "../../base/paths.ts";
import { dirname } from "../../base/std.ts";
import { diskCodeOf } from "./disk_errors.ts";
import type { HeldFolder, Opener } from "./opener.ts";

const STAGING = "staging";
const STAGING_PATH = `${RESERVED_SEGMENT}/${STAGING}` as CanonicalPath;
/** Nobody but the server's user. */
const PRIVATE = 0o700;

/** Makes the folder of a workspace, 0700; the folders above must exist. False when there is one. */
export function makeHome(home: string): boolean {
  try {
    Deno.mkdirSync(home, { mode: PRIVATE });
    return true;
  } catch (error) {
    if (diskCodeOf(error) !== "EEXIST") throw error;
    return false;
  }
}

/** Makes the folders above a home that are missing. */
export function makeHomesFolder(home: string): void {
  Deno.mkdirSync(dirname(home), { recursive: true, mode: 0o711 });
}

/** Makes the entries of a home's own parent durable. */
export async function syncParent(home: string): Promise<void> {
  using folder = await Deno.open(dirname(home), { read: true });
  await folder.sync();
}

/** Opens a folder of String's own in `parent`, making it if it is missing. */
function ownFolder(parent: HeldFolder, name: string, options: { make: boolean }): HeldFolder {
  try {
    return parent.folder(name);
  } catch (error) {
    if (!options.make || diskCodeOf(error) !== "ENOENT") throw error;
    parent.make(name, PRIVATE);
    return parent.folder(name);
  }
}

/** Opens the staging folder of a home, making what is missing; a link in its place is refused, not followed. */
export function openStaging(opener: Opener, home: string, options: { make: boolean }): HeldFolder {
  try {
    return opener.folder(home, STAGING_PATH);
  } catch (error) {
    if (!options.make || diskCodeOf(error) !== "ENOENT") throw error;
  }
  const root = opener.folder(home, ROOT_PATH);
  try {
    const reserved = ownFolder(root, RESERVED_SEGMENT, options);
    try {
      return ownFolder(reserved, STAGING, options);
    } finally {
      reserved.close();
    }
  } finally {
    root.close();
  }
}

/** Removes a home that holds nothing but String's own empty folders; leaves any other as it is. */
export function removeEmptyHome(opener: Opener, home: string): void {
  let root: HeldFolder;
  try {
    root = opener.folder(home, ROOT_PATH);
  } catch (error) {
    if (diskCodeOf(error) === "ENOENT") return;
    throw error;
  }
  try {
    if (root.names().some((name) => name !== RESERVED_SEGMENT)) return;
    if (root.entry(RESERVED_SEGMENT) !== undefined) {
      const reserved = root.folder(RESERVED_SEGMENT);
      try {
        if (reserved.entry(STAGING) !== undefined) reserved.removeFolder(STAGING);
      } finally {
        reserved.close();
      }
      root.removeFolder(RESERVED_SEGMENT);
    }
    Deno.removeSync(home);
  } catch (error) {
    // Something is in it after all: it stays.
    if (diskCodeOf(error) !== "ENOTEMPTY") throw error;
  } finally {
    root.close();
  }
}
