/**
 * The seam behind which an agent's files lie: operations and declared abilities, never descriptors.
 *
 * Everything takes a `CanonicalPath`, and every implementation refuses what is not a regular file with an AppError:
 * `not_found`, `is_directory`, `parent_is_file`, `symlink`, `not_a_file`, `permission_denied`, `disk_full`,
 * `unavailable`. Source: architecture.md "Workspaces".
 */
import type { WriteConditions } from "../../base/conditions.ts";
import type { CanonicalPath } from "../../base/paths.ts";

export type { WriteConditions };

/** Bytes that own their memory. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** A value now, or later where the store has to wait. */
export type MaybePromise<T> = T | Promise<T>;

/** Which workspace is meant. */
export interface WorkspaceRef {
  readonly agentId: string;
  /** Names the workspace in records: stable over deletion and re-creation of its agent. */
  readonly key: string;
  /** Absolute folder of the workspace on the host. Never shown on the system plane. */
  readonly home: string;
}

/** What one file was at one moment. */
export interface FileVersion {
  readonly sizeBytes: number;
  /** Unix milliseconds. */
  readonly mtimeMs: number;
  /** A strong entity tag with its quotes. No two versions of a path share one. */
  readonly etag: string;
}

/** A file that is open for reading: use `bytes` or `stream` once, or `close` it. */
export interface OpenedFile {
  readonly version: FileVersion;
  /** The whole content, where the store has it in memory; then nothing is open and `close` does nothing. */
  readonly bytes?: Bytes;
  /** Streams `length` bytes from `start` and closes the file at the end or on cancel. */
  stream(start: number, length: number): MaybePromise<ReadableStream<Bytes>>;
  close(): void;
}

/** Runs when success is certain and before anyone can see it; what it throws undoes the operation. */
export type BeforeVisible = () => MaybePromise<void>;

/** Bounds of one upload. */
export interface UploadOptions {
  /** Longest body, in bytes; one more is `too_large`. */
  readonly maxBytes: number;
  /** The declared length in bytes, where there is one. */
  readonly declaredBytes?: number;
  /** Whether the bytes come from outside and get the mark of provenance. */
  readonly fromOutside: boolean;
}

/** How an upload becomes visible. */
export interface CommitOptions {
  readonly conditions?: WriteConditions;
  readonly beforeVisible?: BeforeVisible;
}

/** An upload in staging: `receive` once, then `commit` or `abort`. After either it is over. */
export interface Upload {
  /**
   * Takes the body and makes it durable in staging. Returns the number of bytes.
   *
   * Throws AppError `too_large`, `disk_full` or `request_timeout` with the body still readable, so that the caller can
   * drain it; a body that breaks off throws `invalid_request`. Nothing is visible yet.
   */
  receive(body: ReadableStream<Bytes> | null): Promise<number>;
  /**
   * Checks the conditions, calls `beforeVisible`, and puts the file in place, all under the path's own lock.
   *
   * Durable when it resolves. Throws `precondition_failed`, or the refusals of the path; then the old file is untouched.
   */
  commit(options?: CommitOptions): Promise<{ created: boolean; version: FileVersion }>;
  /** Throws the staged bytes away. Safe to call at any time, also twice. */
  abort(): Promise<void>;
}

/** What a store can do; what is absent is absent from `/describe` and 501 when asked for. */
export interface StoreAbilities {
  /** `kernel`: openat2; `portable`: checked component by component. */
  readonly containment: "kernel" | "portable";
  readonly ranges: boolean;
  readonly conditionalRequests: boolean;
}

/** Files of all workspaces. */
export interface WorkspaceStore {
  readonly abilities: StoreAbilities;
  /** Makes the workspace's folder. Idempotent; returns whether it was made now. */
  createWorkspace(workspace: WorkspaceRef): Promise<boolean>;
  /** Removes the workspace's folder if it holds nothing of the agent's. For undoing `createWorkspace` only. */
  removeEmptyWorkspace(workspace: WorkspaceRef): Promise<void>;
  /** The current version of a file, without opening its body. */
  stat(workspace: WorkspaceRef, path: CanonicalPath): MaybePromise<FileVersion>;
  /** Opens a file for reading. */
  open(workspace: WorkspaceRef, path: CanonicalPath): MaybePromise<OpenedFile>;
  /**
   * Begins an upload: checks the path as far as it exists, the declared length and the disk reserve, before a byte lands.
   */
  beginUpload(workspace: WorkspaceRef, path: CanonicalPath, options: UploadOptions): Promise<Upload>;
  /** Removes a file. `beforeVisible` is called only when there is one. Durable when it resolves. */
  remove(
    workspace: WorkspaceRef,
    path: CanonicalPath,
    options?: CommitOptions,
  ): Promise<{ existed: boolean }>;
  /** Returns whether the bytes of a file came from outside. */
  isFromOutside(workspace: WorkspaceRef, path: CanonicalPath): Promise<boolean>;
  /** Removes staging files whose makers are gone, in the given workspaces. Returns how many. */
  sweep(workspaces: readonly WorkspaceRef[]): Promise<number>;
  /** Releases descriptors and the maker's lock. */
  close(): void;
}

/** Where marks of provenance are kept for files that cannot carry them. */
export interface MarkRecords {
  set(workspace: string, path: string): Promise<void>;
  clear(workspace: string, path: string): Promise<void>;
  has(workspace: string, path: string): Promise<boolean>;
}
