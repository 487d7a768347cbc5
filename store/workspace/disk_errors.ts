/**
 * The one place where what a disk says becomes what a caller is told.
 *
 * Messages name the caller's own path, never the host's, and never repeat a system message. What a caller cannot cause
 * stays a plain Error: a bug, or a disk that fails. Source: architecture.md "Errors"; M8.
 */
import { AppError, type ErrorCode, type ErrorDetails } from "../../base/errors.ts";

/** The numbers of Linux (the same on x86-64 and arm64) that the store tells apart. */
export const ERRNO: Readonly<Record<number, string>> = {
  1: "EPERM",
  2: "ENOENT",
  4: "EINTR",
  5: "EIO",
  9: "EBADF",
  11: "EAGAIN",
  12: "ENOMEM",
  13: "EACCES",
  16: "EBUSY",
  17: "EEXIST",
  18: "EXDEV",
  20: "ENOTDIR",
  21: "EISDIR",
  22: "EINVAL",
  23: "ENFILE",
  24: "EMFILE",
  26: "ETXTBSY",
  27: "EFBIG",
  28: "ENOSPC",
  30: "EROFS",
  36: "ENAMETOOLONG",
  38: "ENOSYS",
  39: "ENOTEMPTY",
  40: "ELOOP",
  61: "ENODATA",
  95: "EOPNOTSUPP",
  116: "ESTALE",
  122: "EDQUOT",
};

/** The code for what is neither file nor folder nor link; no system has one. */
export const NOT_A_FILE = "ENOTREG";

/** A disk operation that failed, by the system's name of the reason and the operation. Holds no path. */
export class DiskError extends Error {
  override readonly name = "DiskError";

  constructor(readonly code: string, readonly operation: string) {
    super(`${operation} failed with ${code}`);
  }
}

/** Returns the error for a negative result of a system call. */
export function diskError(result: number, operation: string): DiskError {
  return new DiskError(ERRNO[-result] ?? `errno ${-result}`, operation);
}

/** Returns the system's name of the reason why a disk operation failed, or undefined for any other error. */
export function diskCodeOf(error: unknown): string | undefined {
  if (error instanceof AppError || !(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" && /^E[A-Z]+$|^errno /.test(error.code) ? error.code : undefined;
}

interface Refusal {
  readonly code: ErrorCode;
  readonly why: string;
  readonly details?: ErrorDetails;
}

const FULL: Refusal = { code: "disk_full", why: "the disk is full" };
const DENIED: Refusal = { code: "permission_denied", why: "the server may not do that to this file" };
const MOUNTED: Refusal = {
  code: "permission_denied",
  why: "another file system is mounted there",
  details: { hint: "A workspace is one file system; mount the other one elsewhere on the host." },
};
const NAME: Refusal = { code: "invalid_path", why: "the file system does not take this name" };
const BUSY: Refusal = {
  code: "unavailable",
  why: "too many files are open",
  details: { retryAfterSeconds: 1 },
};

const REFUSALS: Readonly<Record<string, Refusal>> = {
  ENOENT: { code: "not_found", why: "there is no such file" },
  ELOOP: { code: "symlink", why: "it is a link, or a link is on the way to it" },
  ENOTDIR: { code: "parent_is_file", why: "a parent of it is not a folder" },
  EISDIR: { code: "is_directory", why: "it is a folder" },
  [NOT_A_FILE]: { code: "not_a_file", why: "it is not a regular file" },
  ENXIO: { code: "not_a_file", why: "it is not a regular file" },
  EACCES: DENIED,
  EPERM: DENIED,
  EROFS: { ...DENIED, details: { hint: "The file system is read-only; mount it writable on the host." } },
  ETXTBSY: { ...DENIED, details: { hint: "The file is a program that is running; stop it first." } },
  EXDEV: MOUNTED,
  EBUSY: MOUNTED,
  ENAMETOOLONG: NAME,
  EINVAL: NAME,
  EILSEQ: NAME,
  ENOSPC: FULL,
  EDQUOT: FULL,
  EFBIG: { code: "too_large", why: "the file system does not take a file of this size" },
  EMFILE: BUSY,
  ENFILE: BUSY,
  ENOMEM: { ...BUSY, why: "the server is out of memory" },
  EAGAIN: { ...BUSY, why: "the file was busy" },
  ESTALE: { ...BUSY, why: "the file server lost track of it" },
};

/**
 * Returns what to throw to the caller of an operation on `path`.
 *
 * @param doing The operation as a verb: `read`, `write`, `remove`.
 */
export function toRefusal(error: unknown, doing: string, path: string): unknown {
  const code = diskCodeOf(error);
  if (code === undefined) return error;
  const refusal = REFUSALS[code];
  const kept = error instanceof DiskError ? error : new DiskError(code, "file operation");
  if (refusal === undefined) {
    return new Error(`Cannot ${doing} a file: unexpected disk error ${code}`, { cause: kept });
  }
  return new AppError(refusal.code, `Cannot ${doing} "${path}": ${refusal.why}`, refusal.details ?? {}, kept);
}
