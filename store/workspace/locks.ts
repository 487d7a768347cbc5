/** Locks on files: taken by one process, freed by the system when it dies. */
import { DiskError, diskError } from "./disk_errors.ts";
import { loadLibc } from "./libc.ts";
import { O } from "./libc_layout.ts";

/** A lock that is held. */
export interface FileLock {
  /** The inode that is locked, to compare with what its name stands for now. */
  readonly inode: number;
  release(): void;
}

/** Deno 2.7 and later; absent in 2.6. */
interface TryLock {
  tryLockSync(exclusive: boolean): boolean;
}

function hasTryLock(file: Deno.FsFile): file is Deno.FsFile & TryLock {
  return "tryLockSync" in file && typeof file.tryLockSync === "function";
}

/** Opens (or makes, 0600) a lock file and locks it; undefined when another holds it. Throws where neither way exists. */
export function tryLockFile(path: string, options: { create: boolean }): FileLock | undefined {
  const libc = loadLibc();
  if (libc !== undefined) {
    const fd = libc.openHost(path, O.RDWR | O.NOFOLLOW | (options.create ? O.CREAT : 0), 0o600);
    if (fd < 0) throw diskError(fd, "open");
    const result = libc.lock(fd);
    libc.stat(fd);
    const { inodeLow, inodeHigh } = libc.facts();
    if (result === 0) return { inode: inodeLow + inodeHigh * 2 ** 32, release: () => libc.close(fd) };
    libc.close(fd);
    if (diskError(result, "").code === "EAGAIN") return undefined;
    throw diskError(result, "flock");
  }
  const file = Deno.openSync(path, { read: true, write: true, create: options.create, mode: 0o600 });
  if (hasTryLock(file) && file.tryLockSync(true)) {
    return { inode: file.statSync().ino ?? 0, release: () => file.close() };
  }
  file.close();
  if (!hasTryLock(file)) throw new DiskError("ENOSYS", "flock");
  return undefined;
}

/** Returns whether `tryLockFile` works here. */
export function canLockFiles(): boolean {
  return loadLibc() !== undefined || "tryLockSync" in Deno.FsFile.prototype;
}
