/** Removing one file. */
import { type CanonicalPath, splitPath } from "../../base/paths.ts";
import { checkWriteConditions } from "./conditions.ts";
import type { StoreContext } from "./context.ts";
import { diskCodeOf, DiskError } from "./disk_errors.ts";
import { versionOf } from "./etag.ts";
import { changeRefusalOf, type HeldFolder } from "./opener.ts";
import type { CommitOptions, WorkspaceRef } from "./types.ts";

/** Opens a folder, or returns undefined where it, or a parent of it, does not exist. */
function tryFolder(context: StoreContext, home: string, path: CanonicalPath): HeldFolder | undefined {
  try {
    return context.opener.folder(home, path);
  } catch (error) {
    if (diskCodeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Removes the file at `path`, durably, if there is one that meets the conditions. To be called under the path's lock.
 *
 * Throws for a folder, a link (never removes the link itself; report 17) and what is no regular file.
 */
export async function removeFile(
  context: StoreContext,
  workspace: WorkspaceRef,
  path: CanonicalPath,
  options: CommitOptions,
): Promise<{ existed: boolean }> {
  if (path === "") throw new DiskError("EISDIR", "unlink");
  const { parent, name } = splitPath(path);
  const folder = tryFolder(context, workspace.home, parent);
  try {
    const facts = folder?.entry(name);
    const refusal = facts === undefined ? undefined : changeRefusalOf(facts);
    if (refusal !== undefined) throw new DiskError(refusal, "unlink");
    checkWriteConditions(options.conditions, facts === undefined ? undefined : versionOf(facts));
    if (folder === undefined || facts === undefined) return { existed: false };
    folder.checkWritable();
    await options.beforeVisible?.();
    try {
      folder.unlink(name);
    } catch (error) {
      // Somebody on the host was faster: it is gone, as asked.
      if (diskCodeOf(error) !== "ENOENT") throw error;
    }
    await context.marks.clear(workspace, path);
    await folder.sync();
    return { existed: true };
  } finally {
    folder?.close();
  }
}
