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
      try {
        await this.#refuseOverlap(real, taken);
      } catch (error) {
        if (error instanceof AppError) throw error;
        // A name that is too long, a circle of links, a folder that this user may not enter.
        throw new AppError("invalid_request", "Cannot create agent: home cannot be looked at", advice, error);
      }
      return real;
    }
    throw new AppError(
      "invalid_request",
      "Cannot create agent: home is in no folder that the operator listed",
      advice,
    );
  }

  async #refuseOverlap(home: string, taken: readonly string[]): Promise<void> {
    // Links below the listed folder could make two names one folder; one that leads nowhere yet may do so later.
    let existing = home;
    let info = await entryAt(existing);
    while (info === undefined) {
      existing = resolve(existing, "..");
      info = await entryAt(existing);
    }
    if (info.isSymlink || await realPath(existing) !== existing) {
      throw new AppError("invalid_request", "Cannot create agent: home must not lead through a link");
    }
    if (!info.isDirectory) {
      throw new AppError("invalid_request", "Cannot create agent: home must be a folder, not a file");
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

/** Returns what `look` finds, or undefined where there is nothing. */
async function ifPresent<T>(look: Promise<T>): Promise<T | undefined> {
  try {
    return await look;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return undefined;
    throw error;
  }
}

function realPath(path: string): Promise<string | undefined> {
  return ifPresent(Deno.realPath(path));
}

function entryAt(path: string): Promise<Deno.FileInfo | undefined> {
  return ifPresent(Deno.lstat(path));
}
