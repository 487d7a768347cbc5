/** Folders and staged files held by descriptors: every operation is relative to what the check returned. */
import { DiskError, diskError } from "./disk_errors.ts";
import type { Facts } from "./facts.ts";
import type { Libc } from "./libc.ts";
import { AT_REMOVEDIR, O, RENAME_NOREPLACE } from "./libc_layout.ts";
import { folderRefusalOf, type HeldFolder, type StagedFile } from "./opener.ts";

function check(result: number, operation: string): number {
  if (result < 0) throw diskError(result, operation);
  return result;
}

/** Returns the facts of a descriptor. */
export function factsOf(libc: Libc, fd: number): Facts {
  check(libc.stat(fd), "statx");
  return libc.facts();
}

/** Opens what is at `path` below a descriptor and requires it to be a folder. Returns its descriptor. */
export function openFolderAt(libc: Libc, parent: number, path: string): number {
  const fd = check(libc.openPlace(parent, path === "" ? "." : path), "openat2");
  const result = libc.stat(fd);
  const refusal = result < 0 ? undefined : folderRefusalOf(libc.facts());
  if (result === 0 && refusal === undefined) return fd;
  libc.close(fd);
  throw refusal === undefined ? diskError(result, "statx") : new DiskError(refusal, "openat2");
}

class KernelStaged implements StagedFile {
  readonly content: Deno.FsFile;

  constructor(private readonly libc: Libc, private readonly fd: number) {
    this.content = Deno.openSync(`/proc/self/fd/${fd}`, { write: true });
  }

  facts(): Facts {
    return factsOf(this.libc, this.fd);
  }

  setMode(permissions: number): void {
    check(this.libc.setMode(this.fd, permissions), "fchmod");
  }

  setMtime(ns: bigint): void {
    check(this.libc.setMtime(this.fd, ns), "futimens");
  }

  setMark(): boolean {
    const result = this.libc.setMark(this.fd);
    if (result < 0 && diskError(result, "").code === "EOPNOTSUPP") return false;
    check(result, "fsetxattr");
    return true;
  }

  close(): void {
    this.libc.close(this.fd);
    this.content.close();
  }
}

/** A folder behind an O_PATH descriptor of its own. */
export class KernelFolder implements HeldFolder {
  /** A second descriptor, open for reading: fsync refuses the first. */
  #readable = -1;

  constructor(private readonly libc: Libc, private fd: number) {}

  entry(name: string): Facts | undefined {
    const result = this.libc.statName(this.fd, name);
    if (result === 0) return this.libc.facts();
    const error = diskError(result, "statx");
    if (error.code === "ENOENT") return undefined;
    throw error;
  }

  folder(name: string): KernelFolder {
    return new KernelFolder(this.libc, openFolderAt(this.libc, this.fd, name));
  }

  make(name: string, permissions: number): boolean {
    const result = this.libc.makeFolder(this.fd, name, permissions);
    if (result < 0 && diskError(result, "").code === "EEXIST") return false;
    check(result, "mkdirat");
    return true;
  }

  create(name: string): StagedFile {
    const flags = O.CREAT | O.EXCL | O.RDWR | O.NOFOLLOW;
    const fd = check(this.libc.openBeneath(this.fd, name, flags, 0o600), "openat2");
    try {
      return new KernelStaged(this.libc, fd);
    } catch (error) {
      this.libc.close(fd);
      this.libc.unlink(this.fd, name);
      throw error;
    }
  }

  unlink(name: string): void {
    check(this.libc.unlink(this.fd, name), "unlinkat");
  }

  removeFolder(name: string): void {
    check(this.libc.unlink(this.fd, name, AT_REMOVEDIR), "unlinkat");
  }

  async move(
    name: string,
    target: HeldFolder,
    newName: string,
    options: { replace: boolean },
  ): Promise<void> {
    if (!(target instanceof KernelFolder)) throw new TypeError("a folder of another opener");
    const { libc, fd } = this;
    const flags = options.replace ? 0 : RENAME_NOREPLACE;
    const result = await libc.renameWaiting(fd, name, target.fd, newName, flags);
    if (result < 0 && !options.replace && diskError(result, "").code === "EINVAL") {
      // Its file system cannot refuse atomically: look, then move.
      if (target.entry(newName) !== undefined) throw new DiskError("EEXIST", "renameat2");
      check(libc.rename(fd, name, target.fd, newName, 0), "renameat2");
      return;
    }
    check(result, "renameat2");
  }

  names(): string[] {
    return Array.from(Deno.readDirSync(`/proc/self/fd/${this.fd}`), (entry) => entry.name);
  }

  freeBytes(): number {
    return check(this.libc.freeBytes(this.fd), "fstatfs");
  }

  #openReadable(): number {
    if (this.#readable < 0) {
      this.#readable = check(this.libc.openBeneath(this.fd, ".", O.RDONLY | O.DIRECTORY), "openat2");
    }
    return this.#readable;
  }

  checkWritable(): void {
    check(this.libc.checkWritable(this.fd), "access");
    this.#openReadable();
  }

  async sync(): Promise<void> {
    if (await this.libc.sync(this.#openReadable()) !== 0) {
      throw new Error("Cannot make a folder durable: fsync failed");
    }
  }

  close(): void {
    // Twice must do no harm: the number may belong to another file by then.
    for (const fd of [this.#readable, this.fd]) if (fd >= 0) this.libc.close(fd);
    this.#readable = this.fd = -1;
  }
}
