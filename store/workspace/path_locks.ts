/** One change at a time per path in this process, and per workspace among the processes that share it. */
import { encodeBase64Url } from "../../base/base64url.ts";
import { AppError } from "../../base/errors.ts";
import { KeyedLock } from "../../base/keyed_lock.ts";
import { type FileLock, tryLockFile } from "./locks.ts";
import type { WorkspaceRef } from "./types.ts";

/** Longest wait for another process, in milliseconds; its commits take a few. */
const MAX_WAIT_MS = 5000;
const FIRST_PAUSE_MS = 1;
const LONGEST_PAUSE_MS = 50;

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function hashOf(key: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key));
  return encodeBase64Url(new Uint8Array(digest));
}

/** Locks of all paths of all workspaces. */
export class PathLocks {
  readonly #keys = new KeyedLock();

  /** @param locksFolder Absolute folder for the lock files of workspaces; undefined where no other process writes. */
  constructor(private readonly locksFolder: string | undefined) {}

  /** Runs `change` while nobody else changes this path. Refuses with AppError `unavailable` after five seconds. */
  async hold<T>(workspace: WorkspaceRef, path: string, change: () => Promise<T>): Promise<T> {
    const shared = this.locksFolder !== undefined;
    // From the arrival: waits of one after another must not add up.
    const deadline = performance.now() + MAX_WAIT_MS;
    // Among processes the lock is the workspace's: then ours must be too, or we would wait for ourselves by polling.
    return await this.#keys.run(shared ? workspace.key : `${workspace.key}\0${path}`, async () => {
      const lock = this.locksFolder === undefined
        ? undefined
        : await this.#lock(this.locksFolder, workspace.key, deadline);
      try {
        return await change();
      } finally {
        lock?.release();
      }
    });
  }

  async #lock(folder: string, key: string, deadline: number): Promise<FileLock> {
    const file = `${folder}/${await hashOf(key)}.lock`;
    for (let ms = FIRST_PAUSE_MS;; ms = Math.min(ms * 2, LONGEST_PAUSE_MS)) {
      const lock = tryLockFile(file, { create: true });
      if (lock !== undefined) return lock;
      if (performance.now() > deadline) {
        throw new AppError(
          "unavailable",
          "Cannot change this file: another process is busy with this workspace",
          {
            retryAfterSeconds: 1,
          },
        );
      }
      await pause(ms);
    }
  }
}
