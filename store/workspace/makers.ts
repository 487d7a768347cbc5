/**
 * Who made a staging file, and whether that process still lives.
 *
 * Each store holds a lock on a file of its own for as long as it lives; its staging files carry that file's name. Where
 * the lock can be taken, the maker is gone, by whatever death (report 13).
 */
import { createId } from "../../base/ids.ts";
import { diskCodeOf } from "./disk_errors.ts";
import { canLockFiles, type FileLock, tryLockFile } from "./locks.ts";

const SUFFIX = ".lock";
/** A staging file: the maker's id, a dot, a random part. Neither part can hold a dot. */
const STAGING_NAME = /^(mk_[A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+$/;

/** Returns the maker of a staging file by its name, or undefined for a name that is none of ours. */
export function makerOf(name: string): string | undefined {
  return STAGING_NAME.exec(name)?.[1];
}

/** This process's place among the makers. */
export class Maker {
  readonly id: string;
  readonly #lock: FileLock | undefined;

  /** @param folder Absolute folder of the makers' lock files; must exist. */
  constructor(private readonly folder: string) {
    for (;;) {
      const id = createId("mk_");
      const lock = canLockFiles() ? tryLockFile(this.#file(id), { create: true }) : undefined;
      if (lock !== undefined && Deno.lstatSync(this.#file(id)).ino !== lock.inode) {
        // A sweep took the new file for a dead one between its making and its locking.
        lock.release();
        continue;
      }
      this.id = id;
      this.#lock = lock;
      return;
    }
  }

  #file(id: string): string {
    return `${this.folder}/${id}${SUFFIX}`;
  }

  /** Whether dead makers can be told from living ones here. */
  get canTell(): boolean {
    return this.#lock !== undefined;
  }

  /** Returns whether the maker of that id is gone. False where in doubt. */
  isDead(id: string): boolean {
    if (id === this.id || !this.canTell) return false;
    try {
      const lock = tryLockFile(this.#file(id), { create: false });
      lock?.release();
      return lock !== undefined;
    } catch (error) {
      return diskCodeOf(error) === "ENOENT";
    }
  }

  /** Removes the lock files of the dead. Their staging files are known as dead by the missing lock file. */
  removeDead(): void {
    for (const entry of this.canTell ? Deno.readDirSync(this.folder) : []) {
      const id = entry.name.endsWith(SUFFIX) ? entry.name.slice(0, -SUFFIX.length) : "";
      if (id === this.id || !id.startsWith("mk_")) continue;
      let lock: FileLock | undefined;
      try {
        lock = tryLockFile(this.#file(id), { create: false });
        if (lock !== undefined) Deno.removeSync(this.#file(id));
      } catch (error) {
        // Another process swept at the same time.
        if (diskCodeOf(error) !== "ENOENT") throw error;
      } finally {
        lock?.release();
      }
    }
  }

  /** Lets go: what this maker left in staging is dead from now on. */
  release(): void {
    if (this.#lock === undefined) return;
    try {
      Deno.removeSync(this.#file(this.id));
    } catch {
      // The folder is gone already; the lock ends with the descriptor anyway.
    }
    this.#lock.release();
  }
}
