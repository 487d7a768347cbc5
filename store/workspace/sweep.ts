/** Removing what dead processes left in staging. */
import type { StoreContext } from "./context.ts";
import { diskCodeOf } from "./disk_errors.ts";
import { openStaging } from "./home.ts";
import { makerOf } from "./makers.ts";
import type { HeldFolder } from "./opener.ts";
import type { WorkspaceRef } from "./types.ts";

function sweepFolder(staging: HeldFolder, isDead: (maker: string) => boolean): number {
  let removed = 0;
  for (const name of staging.names()) {
    const maker = makerOf(name);
    if (maker === undefined || !isDead(maker)) continue;
    try {
      staging.unlink(name);
      removed++;
    } catch (error) {
      // Another process sweeps too, or an agent put a folder or an immutable file there: the others go all the same.
      if (diskCodeOf(error) === undefined) throw error;
    }
  }
  return removed;
}

/** Removes the staging files of dead makers in the given workspaces, then the dead makers' lock files. Returns how many. */
export function sweepStaging(context: StoreContext, workspaces: readonly WorkspaceRef[]): number {
  const { maker, opener, options } = context;
  if (!maker.canTell) {
    options.log.warn("staging files were not swept: this system cannot tell living makers from dead ones");
    return 0;
  }
  const known = new Map<string, boolean>();
  const isDead = (id: string): boolean => {
    const dead = known.get(id) ?? maker.isDead(id);
    known.set(id, dead);
    return dead;
  };
  let removed = 0;
  for (const workspace of workspaces) {
    let staging: HeldFolder | undefined;
    try {
      staging = openStaging(opener, workspace.home, { make: false });
      removed += sweepFolder(staging, isDead);
    } catch (error) {
      const code = diskCodeOf(error);
      if (code === undefined) throw error;
      // A workspace that cannot be swept must not keep the server from starting.
      if (code !== "ENOENT") {
        options.log.warn("a workspace was not swept", { agent: workspace.agentId, code });
      }
    } finally {
      staging?.close();
    }
  }
  maker.removeDead();
  return removed;
}
