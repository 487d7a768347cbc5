/**
 * Where workspaces lie on the host, and which folders an older client may choose for one.
 *
 * Source: SYS-AG-02, SYS-AG-08.
 */
import { AppError } from "../base/errors.ts";
import { isAbsolute, join, resolve } from "../base/std.ts";
import type { WorkspaceRef } from "../store/workspace/types.ts";

/** Returns whether one folder equals, contains or lies in the other. Both absolute and resolved. */
export function overlap(a: string, b: string): boolean {
  return a === b || a.startsWith(`${b}/`) || b.startsWith(`${a}/`) || a === "/" || b === "/";
}

/** The folders that hold workspaces. */
export class Homes {
  readonly #dataFolder: string;
  readonly #allowed: readonly string[];

  /** `allowed` are the folders of `--homes`, absolute. */
  constructor(dataFolder: string, allowed: readonly string[]) {
    this.#dataFolder = dataFolder;
    this.#allowed = allowed;
  }

  /** Returns the workspace of an agent; `home` is its own folder, or null for the usual one. */
  workspaceOf(agentId: string, home: string | null): WorkspaceRef {
    return home === null
      ? { agentId, key: `agent:${agentId}`, home: join(this.#dataFolder, "workspaces", agentId) }
      : { agentId, key: `home:${home}`, home };
  }

  /**
   * Returns the folder that a client chose, resolved, if the operator allows it; `taken` are the other agents' homes.
   *
   * Throws `invalid_request`. The sentence names no folder of the host but the client's own.
   */
  async choose(home: string, taken: readonly string[]): Promise<string> {
    const advice = { hint: "Leave 'home' out, or start the server with --homes <folder that holds it>." };
    if (!isAbsolute(home) || home.includes("\0") || !home.isWellFormed()) {
      throw new AppError("invalid_request", "Cannot create agent: home must be an absolute path", advice);
    }
    const chosen = resolve(home);
    for (const folder of this.#allowed) {
      const root = await realPath(folder);
      const inside = [folder, root].find((base) => chosen.startsWith(`${base}/`));
      if (root === undefined || inside === undefined) continue;
      const real = join(root, chosen.slice(inside.length));
      await this.#refuseOverlap(real, taken);
      return real;
    }
    throw new AppError(
      "invalid_request",
      "Cannot create agent: home is in no folder that the operator listed",
      advice,
    );
  }

  async #refuseOverlap(home: string, taken: readonly string[]): Promise<void> {
    // Links below the listed folder could make two names one folder.
    let existing = home;
    while (await realPath(existing) === undefined) existing = resolve(existing, "..");
    if (await realPath(existing) !== existing) {
      throw new AppError("invalid_request", "Cannot create agent: home must not lead through a link");
    }
    const data = await realPath(this.#dataFolder) ?? this.#dataFolder;
    if (overlap(home, data) || taken.some((other) => overlap(home, other))) {
      throw new AppError(
        "invalid_request",
        "Cannot create agent: home overlaps another home or the data folder",
      );
    }
  }
}

async function realPath(path: string): Promise<string | undefined> {
  try {
    return await Deno.realPath(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return undefined;
    throw error;
  }
}
