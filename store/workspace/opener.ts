/**
 * What the store asks of a way to open files: places that are held, not paths that are trusted.
 *
 * There are two ways: the kernel's (`kernel_opener.ts`) and the portable one (`portable_opener.ts`). Both throw errors
 * with the system's name of the reason as `code`; `disk_errors.ts` turns those into refusals. Never leaves this folder.
 */
import type { CanonicalPath } from "../../base/paths.ts";
import type { Facts } from "./facts.ts";
import type { Bytes, MaybePromise } from "./types.ts";

/** A regular file that is held. Close it once. */
export interface HeldFile {
  /** What it was when it was found. */
  readonly facts: Facts;
  /** What it is now. */
  again(): Facts;
  /** Reads `length` bytes from the start, or fewer where it has become shorter; at most 64 KiB. */
  read(length: number): MaybePromise<Bytes>;
  /** Opens its content for streaming; the result outlives `close`. */
  content(): Deno.FsFile;
  /** Returns whether it carries the mark of provenance itself. */
  hasMark(): boolean;
  close(): void;
}

/** A file in staging: open for writing, visible to nobody. */
export interface StagedFile {
  /** Where its bytes go. */
  readonly content: Deno.FsFile;
  facts(): Facts;
  setMode(permissions: number): void;
  /** Sets the time of the last change, in nanoseconds; the opener's tick is what it can hold. */
  setMtime(ns: bigint): void;
  /** Puts the mark on it; false where its file system has no attributes for that. */
  setMark(): boolean;
  close(): void;
}

/** A folder that is held. Names are single segments; no name is ever followed as a link. */
export interface HeldFolder {
  /** Returns the facts of what has this name, a link's own, or undefined. */
  entry(name: string): Facts | undefined;
  /** Opens a folder in it. */
  folder(name: string): HeldFolder;
  /** Makes a folder; false when the name is taken, by whatever. */
  make(name: string, permissions: number): boolean;
  /** Makes a file that must not exist. */
  create(name: string): StagedFile;
  /** Removes what is not a folder. */
  unlink(name: string): void;
  /** Removes an empty folder. */
  removeFolder(name: string): void;
  /** Moves `name` into `target` as `newName`; without `replace` it throws EEXIST when that is taken. */
  move(name: string, target: HeldFolder, newName: string, options: { replace: boolean }): MaybePromise<void>;
  /** Lists the names in it. */
  names(): string[];
  /** Bytes that this user may still write here. */
  freeBytes(): number;
  /** Throws unless names can be made and removed here and made durable with `sync`. */
  checkWritable(): void;
  /** Makes its names durable. */
  sync(): Promise<void>;
  close(): void;
}

/** A way to open what lies below a workspace's home. */
export interface Opener {
  readonly kind: "kernel" | "portable";
  /** The least difference between two mtimes that it can read back, in nanoseconds. */
  readonly tickNs: bigint;
  /** Returns the facts of a regular file; throws for everything else. */
  stat(home: string, path: CanonicalPath): Facts;
  /** Opens a regular file; throws for everything else. */
  open(home: string, path: CanonicalPath): HeldFile;
  /** Opens a folder; "" is the home itself. */
  folder(home: string, path: CanonicalPath): HeldFolder;
  /** Releases what is kept open between calls. */
  close(): void;
}

/** Returns the code by which what is no regular file is refused. */
export function refusalOf(facts: Facts): "ELOOP" | "EISDIR" | "ENOTREG" | undefined {
  if (facts.kind === "file") return undefined;
  return facts.kind === "link" ? "ELOOP" : facts.kind === "folder" ? "EISDIR" : "ENOTREG";
}

/** Returns the code by which a file is refused whose name cannot be given to another one, or be taken away. */
export function changeRefusalOf(facts: Facts): ReturnType<typeof refusalOf> | "EPERM" {
  return refusalOf(facts) ?? (facts.fixed ? "EPERM" : undefined);
}

/** Returns the code by which what is no folder is refused on the way to something else. */
export function folderRefusalOf(facts: Facts): "ELOOP" | "ENOTDIR" | undefined {
  if (facts.kind === "folder") return undefined;
  return facts.kind === "link" ? "ELOOP" : "ENOTDIR";
}
