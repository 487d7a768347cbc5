/**
 * Opening by the kernel's own containment: one openat2 decides, and the descriptor it returned is used from then on.
 *
 * Whoever swaps a folder for a link meanwhile gains nothing: either the old place is held, or the link is refused.
 * Source: architecture.md "Workspaces"; report 17.
 */
import type { CanonicalPath } from "../../base/paths.ts";
import { DiskError, diskError } from "./disk_errors.ts";
import type { Facts } from "./facts.ts";
import { factsOf, KernelFolder, openFolderAt } from "./kernel_folder.ts";
import { KernelRoots } from "./kernel_roots.ts";
import type { Libc } from "./libc.ts";
import { O } from "./libc_layout.ts";
import { type HeldFile, type HeldFolder, type Opener, refusalOf } from "./opener.ts";
import { readFully } from "./read_fully.ts";
import type { Bytes, MaybePromise } from "./types.ts";

const ENOENT = -2;

class KernelFile implements HeldFile {
  constructor(private readonly libc: Libc, private readonly fd: number, readonly facts: Facts) {}

  again(): Facts {
    return factsOf(this.libc, this.fd);
  }

  read(length: number): MaybePromise<Bytes> {
    // The type is known, so this neither blocks on a FIFO nor touches a device; it is the same inode by construction.
    const fd = this.libc.openHost(`/proc/self/fd/${this.fd}`, O.RDONLY | O.NONBLOCK);
    if (fd < 0) throw diskError(fd, "open");
    const bytes = this.libc.readNow(fd, length);
    this.libc.close(fd);
    if (typeof bytes !== "number" && bytes.length === length) return bytes;
    // Not in memory, or shorter than it was: let a thread wait for the disk.
    return this.#readWaiting(length);
  }

  async #readWaiting(length: number): Promise<Bytes> {
    using file = this.content();
    return await readFully(file, length);
  }

  content(): Deno.FsFile {
    const path = `/proc/self/fd/${this.fd}`;
    // Opened without waiting first: an agent that holds a lease on its file would otherwise stop the server for as long
    // as the kernel lets it. While this descriptor is open nobody can take one, so the next open does not wait.
    const guard = this.libc.openHost(path, O.RDONLY | O.NONBLOCK);
    if (guard < 0) throw diskError(guard, "open");
    try {
      return Deno.openSync(path, { read: true });
    } finally {
      this.libc.close(guard);
    }
  }

  hasMark(): boolean {
    const result = this.libc.getMark(this.fd);
    if (result >= 0) return true;
    const error = diskError(result, "getxattr");
    if (error.code === "ENODATA" || error.code === "EOPNOTSUPP") return false;
    // ERANGE and what else there may be: something is there, so do not call it clean.
    if (error.code === "EACCES" || error.code === "EPERM") throw error;
    return true;
  }

  close(): void {
    this.libc.close(this.fd);
  }
}

/** The kernel's way. */
export class KernelOpener implements Opener {
  readonly kind = "kernel";
  readonly tickNs = 1n;
  readonly #roots: KernelRoots;

  constructor(private readonly libc: Libc) {
    this.#roots = new KernelRoots(libc);
  }

  /** Opens the place of a regular file; its facts are in the library's scratch when this returns. */
  #place(home: string, path: CanonicalPath): number {
    if (path === "") throw new DiskError("EISDIR", "openat2");
    const { libc } = this;
    let fd = libc.openPlace(this.#roots.get(home), path);
    // Perhaps only because the home was replaced within the last second.
    if (fd === ENOENT && this.#roots.refresh(home)) fd = libc.openPlace(this.#roots.get(home), path);
    if (fd < 0) throw diskError(fd, "openat2");
    const result = libc.stat(fd);
    if (result === 0) return fd;
    libc.close(fd);
    throw diskError(result, "statx");
  }

  stat(home: string, path: CanonicalPath): Facts {
    const fd = this.#place(home, path);
    const facts = this.libc.facts();
    this.libc.close(fd);
    const refusal = refusalOf(facts);
    if (refusal !== undefined) throw new DiskError(refusal, "openat2");
    return facts;
  }

  open(home: string, path: CanonicalPath): HeldFile {
    const fd = this.#place(home, path);
    const facts = this.libc.facts();
    const refusal = refusalOf(facts);
    if (refusal === undefined) return new KernelFile(this.libc, fd, facts);
    this.libc.close(fd);
    throw new DiskError(refusal, "openat2");
  }

  folder(home: string, path: CanonicalPath): HeldFolder {
    this.#roots.refresh(home);
    return new KernelFolder(this.libc, openFolderAt(this.libc, this.#roots.get(home), path));
  }

  close(): void {
    this.#roots.close();
  }
}
