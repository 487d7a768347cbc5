/**
 * The few functions of the C library that the kernel's way of opening needs, through Deno's FFI.
 *
 * Each returns what C returns, or the negative errno. Scratch memory is shared between calls and never crosses an
 * await; a result that outlives the call is copied. A call costs 0.2 to 2 µs.
 */
import { type Facts, kindOf } from "./facts.ts";
import {
  AT_EMPTY_PATH,
  AT_SYMLINK_NOFOLLOW,
  LOCK_EX_NB,
  O,
  RESOLVE_CONTAINED,
  RWF_NOWAIT,
  STATFS,
  STATX,
  STATX_ATTR_FIXED,
  STATX_BASIC,
  SYMBOLS,
  SYS_OPENAT2,
  UTIME_OMIT,
  W_OK_X_OK,
} from "./libc_layout.ts";
import type { Bytes } from "./types.ts";

/** Longest read that `readNow` takes, in bytes. */
export const MAX_READ_NOW = 64 * 1024;

const PATH_BYTES = 4096 + 16;
const TWO_32 = 2 ** 32;
const OPEN_HOW_BYTES = 24n;
const encoder = new TextEncoder();
const MARK_NAME = encoder.encode("user.string.origin\0");
const MARK_VALUE = encoder.encode("outside");

type Library = Deno.DynamicLibrary<typeof SYMBOLS>;

/** Copies `text` with a final NUL into `buffer`. A longer path than the kernel takes is cut and refused there. */
function put(buffer: Uint8Array, text: string): void {
  const { written } = encoder.encodeInto(text, buffer.subarray(0, PATH_BYTES - 1));
  buffer[written] = 0;
}

/** An open C library. One per thread: errno belongs to the thread. */
export class Libc {
  readonly #c: Library["symbols"];
  readonly #errno: Int32Array;
  readonly #path = new Uint8Array(PATH_BYTES);
  readonly #path2 = new Uint8Array(PATH_BYTES);
  readonly #empty = new Uint8Array(1);
  // struct open_how { u64 flags, mode, resolve }
  readonly #howPath = new BigUint64Array([
    BigInt(O.PATH | O.NOFOLLOW | O.CLOEXEC),
    0n,
    BigInt(RESOLVE_CONTAINED),
  ]);
  readonly #how = new BigUint64Array([0n, 0n, BigInt(RESOLVE_CONTAINED)]);
  readonly #statx32 = new Uint32Array(STATX.bytes / 4);
  readonly #statx16 = new Uint16Array(this.#statx32.buffer);
  readonly #statxSigned = new Int32Array(this.#statx32.buffer);
  readonly #statxBytes = new Uint8Array(this.#statx32.buffer);
  readonly #statfs = new BigUint64Array(STATFS.bytes / 8);
  readonly #times = new BigInt64Array(4);
  readonly #read = new Uint8Array(MAX_READ_NOW);
  // struct iovec { void *base; size_t length }
  readonly #iovec = new BigUint64Array(2);

  constructor(library: Library) {
    this.#c = library.symbols;
    const errno = this.#c.__errno_location();
    if (errno === null) throw new TypeError("errno has no place");
    // Read as memory, not by a call: nothing of the runtime runs between the failure and the reading.
    this.#errno = new Int32Array(Deno.UnsafePointerView.getArrayBuffer(errno, 4));
    this.#iovec[0] = BigInt(Deno.UnsafePointer.value(Deno.UnsafePointer.of(this.#read)));
  }

  #result(result: number): number {
    return result < 0 ? -(this.#errno[0] ?? 0) : result;
  }

  /** Opens what is at `path` below `folder` as a mere place: no content, no blocking, the link itself at the end. */
  openPlace(folder: number, path: string): number {
    put(this.#path, path);
    return this.#result(this.#c.syscall(SYS_OPENAT2, folder, this.#path, this.#howPath, OPEN_HOW_BYTES));
  }

  /** openat2 below `folder` with any flags; `mode` only with O_CREAT. */
  openBeneath(folder: number, path: string, flags: number, mode = 0): number {
    put(this.#path, path);
    this.#how[0] = BigInt(flags | O.CLOEXEC);
    this.#how[1] = BigInt(mode);
    return this.#result(this.#c.syscall(SYS_OPENAT2, folder, this.#path, this.#how, OPEN_HOW_BYTES));
  }

  /** open of a path of the host that is no caller's. */
  openHost(path: string, flags: number, mode = 0): number {
    put(this.#path, path);
    return this.#result(this.#c.open(this.#path, flags | O.CLOEXEC, mode));
  }

  close(fd: number): void {
    this.#c.close(fd);
  }

  /** Fills the facts of an open descriptor for `facts`. */
  stat(fd: number): number {
    return this.#result(this.#c.statx(fd, this.#empty, AT_EMPTY_PATH, STATX_BASIC, this.#statxBytes));
  }

  /** Fills the facts of one name in a folder, a link's own, for `facts`. */
  statName(folder: number, name: string): number {
    put(this.#path, name);
    return this.#result(
      this.#c.statx(folder, this.#path, AT_SYMLINK_NOFOLLOW, STATX_BASIC, this.#statxBytes),
    );
  }

  /** Returns a copy of what the last `stat` or `statName` found. */
  facts(): Facts {
    const words = this.#statx32;
    const mode = this.#statx16[STATX.mode]!;
    return {
      kind: kindOf(mode),
      permissions: mode & 0o7777,
      fixed: (words[STATX.attributes]! & STATX_ATTR_FIXED) !== 0,
      device: words[STATX.deviceMajor]! * 0x100000 + words[STATX.deviceMinor]!,
      inodeLow: words[STATX.inode]!,
      inodeHigh: words[STATX.inode + 1]!,
      size: words[STATX.size]! + words[STATX.size + 1]! * TWO_32,
      mtimeSeconds: words[STATX.mtime]! + this.#statxSigned[STATX.mtime + 1]! * TWO_32,
      mtimeNanos: words[STATX.mtime + 2]!,
      ctimeSeconds: words[STATX.ctime]! + this.#statxSigned[STATX.ctime + 1]! * TWO_32,
      ctimeNanos: words[STATX.ctime + 2]!,
    };
  }

  /** Reads up to `length` bytes from the start, from memory only: -EAGAIN where the disk would have to be asked. */
  readNow(fd: number, length: number): Bytes | number {
    this.#iovec[1] = BigInt(Math.min(length, MAX_READ_NOW));
    const count = this.#result(this.#c.preadv2(fd, this.#iovec, 1, 0n, RWF_NOWAIT));
    return count < 0 ? count : this.#read.slice(0, count);
  }

  /** Bytes that this user may still write to the file system of a descriptor, or negative errno. */
  freeBytes(fd: number): number {
    const result = this.#result(this.#c.fstatfs(fd, this.#statfs));
    if (result < 0) return result;
    const unit = this.#statfs[STATFS.fragmentSize] || this.#statfs[STATFS.blockSize] || 0n;
    return Number((this.#statfs[STATFS.available] ?? 0n) * unit);
  }

  /** Checks that this user may make and remove names in a folder. */
  checkWritable(fd: number): number {
    put(this.#path, `/proc/self/fd/${fd}`);
    return this.#result(this.#c.access(this.#path, W_OK_X_OK));
  }

  makeFolder(folder: number, name: string, mode: number): number {
    put(this.#path, name);
    return this.#result(this.#c.mkdirat(folder, this.#path, mode));
  }

  unlink(folder: number, name: string, flags = 0): number {
    put(this.#path, name);
    return this.#result(this.#c.unlinkat(folder, this.#path, flags));
  }

  rename(from: number, name: string, to: number, newName: string, flags: number): number {
    put(this.#path, name);
    put(this.#path2, newName);
    return this.#result(this.#c.renameat2(from, this.#path, to, this.#path2, flags));
  }

  /**
   * Renames off the event loop: it may wait until the journal has written what another commit began.
   *
   * Its errno stays on that thread; so what failed is done again at once, which fails alike or repairs it.
   */
  async renameWaiting(
    from: number,
    name: string,
    to: number,
    newName: string,
    flags: number,
  ): Promise<number> {
    // Memory of its own: scratch must not cross an await.
    const [old, fresh] = [encoder.encode(`${name}\0`), encoder.encode(`${newName}\0`)];
    const result = await this.#c.renameat2Waiting(from, old, to, fresh, flags);
    return result === 0 ? 0 : this.rename(from, name, to, newName, flags);
  }

  setMode(fd: number, mode: number): number {
    return this.#result(this.#c.fchmod(fd, mode));
  }

  /** Sets the mtime, in nanoseconds since 1970, and leaves the atime. */
  setMtime(fd: number, ns: bigint): number {
    const nanos = ((ns % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
    this.#times[1] = UTIME_OMIT;
    this.#times[2] = (ns - nanos) / 1_000_000_000n;
    this.#times[3] = nanos;
    return this.#result(this.#c.futimens(fd, this.#times));
  }

  /** Puts the mark of provenance on an open file. */
  setMark(fd: number): number {
    return this.#result(this.#c.fsetxattr(fd, MARK_NAME, MARK_VALUE, BigInt(MARK_VALUE.length), 0));
  }

  /** Length of the mark of the file behind a descriptor of any kind, or negative errno (ENODATA: none). */
  getMark(fd: number): number {
    put(this.#path, `/proc/self/fd/${fd}`);
    return this.#result(this.#c.getxattr(this.#path, MARK_NAME, this.#empty, 0n));
  }

  /** Takes an exclusive flock without waiting. */
  lock(fd: number): number {
    return this.#result(this.#c.flock(fd, LOCK_EX_NB));
  }

  /** Makes a descriptor's content and names durable, off the event loop. 0, or -1 (its errno stays on that thread). */
  sync(fd: number): Promise<number> {
    return this.#c.fsync(fd);
  }
}

let loaded: Libc | null | undefined;

/** Returns this thread's C library, or undefined where there is none that fits (other systems, no FFI permission). */
export function loadLibc(): Libc | undefined {
  if (loaded === undefined) {
    loaded = null;
    if (Deno.build.os === "linux" && (Deno.build.arch === "x86_64" || Deno.build.arch === "aarch64")) {
      try {
        loaded = new Libc(Deno.dlopen("libc.so.6", SYMBOLS));
      } catch {
        // Another C library, or no permission: the portable way works without, and /describe says so.
      }
    }
  }
  return loaded ?? undefined;
}

/** Returns whether openat2 and `/proc/self/fd` work here; a sandbox may forbid either. */
export function hasContainedOpen(libc: Libc): boolean {
  const root = libc.openHost("/", O.PATH | O.DIRECTORY);
  if (root < 0) return false;
  const here = libc.openPlace(root, ".");
  if (here >= 0) libc.close(here);
  const again = libc.openHost(`/proc/self/fd/${root}`, O.PATH | O.DIRECTORY);
  if (again >= 0) libc.close(again);
  libc.close(root);
  return here >= 0 && again >= 0;
}
