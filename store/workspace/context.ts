/** What the parts of a local store share. */
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { AppError } from "../../base/errors.ts";
import type { Stamps } from "./etag.ts";
import type { FreshFolders } from "./fresh_folders.ts";
import type { Maker } from "./makers.ts";
import type { Marks } from "./marks.ts";
import type { HeldFolder, Opener } from "./opener.ts";
import type { PathLocks } from "./path_locks.ts";
import type { MarkRecords } from "./types.ts";

/** How a local store is made. */
export interface LocalStoreOptions {
  /** Absolute folder, 0700, on a disk of this machine: one lock file per process that writes. Made if missing. */
  readonly makersFolder: string;
  /** Absolute folder for the workspaces' lock files; used only when `shared`. Made if missing. */
  readonly locksFolder: string;
  readonly marks: MarkRecords;
  /** Whether other processes write to the same workspaces. */
  readonly shared: boolean;
  /** `portable` forces the way without openat2. */
  readonly containment: "auto" | "portable";
  /** `rows` never uses extended attributes, for file systems or backups that lose them. `auto` if absent. */
  readonly marksIn?: "auto" | "rows";
  /** What must stay free on the disk, in bytes. */
  readonly diskReserveBytes: number;
  /** How long an upload may stand still. */
  readonly idleTimeoutMs: number;
  /** How long a small file must have been unchanged to be kept in memory, in milliseconds. One minute if absent. */
  readonly settledMs?: number;
  readonly log: Log;
  readonly clock: Clock;
}

/** The parts of one store. */
export interface StoreContext {
  readonly options: LocalStoreOptions;
  readonly opener: Opener;
  readonly maker: Maker;
  readonly marks: Marks;
  readonly locks: PathLocks;
  readonly stamps: Stamps;
  readonly freshFolders: FreshFolders;
}

/** Throws AppError `disk_full` unless `comingBytes` more leave the reserve free. */
export function checkReserve(folder: HeldFolder, reserveBytes: number, comingBytes: number): void {
  if (folder.freeBytes() - comingBytes >= reserveBytes) return;
  throw new AppError("disk_full", "Cannot take this body: it would use up the disk's reserve");
}
