/**
 * Locks between processes that end with their holder, however it ends: flock(2) on a file of its own.
 *
 * The lock is asked for without waiting, which Deno's own `lock()` cannot do on every supported version: through
 * FFI where the C library is found, else by Deno. Both are flock(2), so processes of either kind see each other.
 */

const LOCK_SH = 1;
const LOCK_EX = 2;
const LOCK_NB = 4;
const O_RDWR = 2;

const PLATFORMS: Partial<
  Record<typeof Deno.build.os, { library: string; errno: string; cloexec: number; wouldBlock: number }>
> = {
  linux: { library: "libc.so.6", errno: "__errno_location", cloexec: 0o2000000, wouldBlock: 11 },
  darwin: { library: "libSystem.B.dylib", errno: "__error", cloexec: 0x1000000, wouldBlock: 35 },
};

/** How long Deno's own lock may take before it counts as held elsewhere, in milliseconds. */
const FALLBACK_WAIT_MS = 300;

/** A lock that is held; it ends with `release` or with the process. */
export interface HeldLock {
  release(): void;
}

/** Which lock is asked for. */
export interface LockOptions {
  /** Shared with others who ask for shared; else exclusive. */
  readonly shared: boolean;
  /** Takes the way without FFI. For tests, and for systems whose C library is not where it is expected. */
  readonly withoutFfi?: boolean;
}

interface NativeFlock {
  open(path: string): number;
  flock(descriptor: number, operation: number): number;
  close(descriptor: number): void;
  errno(): number;
  readonly wouldBlock: number;
  unload(): void;
}

function tryLoadNative(): NativeFlock | undefined {
  const platform = PLATFORMS[Deno.build.os];
  if (platform === undefined) return undefined;
  try {
    const library = Deno.dlopen(platform.library, {
      open: { parameters: ["buffer", "i32"], result: "i32" },
      flock: { parameters: ["i32", "i32"], result: "i32" },
      close: { parameters: ["i32"], result: "i32" },
      errno: { name: platform.errno, parameters: [], result: "pointer" },
    });
    const { symbols } = library;
    return {
      // O_CLOEXEC: a child process must not keep the lock after this one is gone.
      open: (path) => symbols.open(new TextEncoder().encode(path + "\0"), O_RDWR | platform.cloexec),
      flock: (descriptor, operation) => symbols.flock(descriptor, operation),
      close: (descriptor) => void symbols.close(descriptor),
      errno: () => {
        const pointer = symbols.errno();
        return pointer === null ? 0 : new Deno.UnsafePointerView(pointer).getInt32();
      },
      wouldBlock: platform.wouldBlock,
      unload: () => library.close(),
    };
  } catch {
    return undefined; // another C library, or no permission for FFI: Deno's own lock takes its place
  }
}

function lockNatively(libc: NativeFlock, path: string, shared: boolean): HeldLock | undefined {
  const descriptor = libc.open(path);
  if (descriptor < 0) throw new Error(`the lock file cannot be opened: errno ${libc.errno()}`);
  if (libc.flock(descriptor, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) === 0) {
    let held = true;
    return {
      release() {
        if (!held) return;
        held = false;
        libc.close(descriptor);
        libc.unload();
      },
    };
  }
  const errno = libc.errno();
  libc.close(descriptor);
  if (errno === libc.wouldBlock) return undefined;
  throw new Error(`the file system refused a lock: errno ${errno}`);
}

async function lockByDeno(path: string, shared: boolean): Promise<HeldLock | undefined> {
  const file = await Deno.open(path, { read: true, write: true });
  let isOpen = true;
  const close = () => {
    if (isOpen) file.close();
    isOpen = false;
  };
  let timer: ReturnType<typeof setTimeout> | undefined;
  const given = file.lock(!shared).then(() => true);
  const late = new Promise<boolean>((resolve) => timer = setTimeout(() => resolve(false), FALLBACK_WAIT_MS));
  try {
    if (await Promise.race([given, late])) return { release: close };
  } catch (error) {
    close();
    throw error;
  } finally {
    clearTimeout(timer);
  }
  // The waiting call cannot be taken back; should it be granted after all, the lock is given up at once.
  given.then(close, close);
  return undefined;
}

/**
 * Takes the lock on `path` (made with mode 0600 when missing), or returns undefined when another process holds it.
 *
 * Two calls in one process count as two holders. Throws when the file cannot be opened or the file system has no locks.
 */
export async function tryLockFile(path: string, options: LockOptions): Promise<HeldLock | undefined> {
  (await Deno.open(path, { create: true, read: true, write: true, mode: 0o600 })).close();
  const native = options.withoutFfi ? undefined : tryLoadNative();
  if (native === undefined) return await lockByDeno(path, options.shared);
  let held: HeldLock | undefined;
  try {
    return held = lockNatively(native, path, options.shared);
  } finally {
    if (held === undefined) native.unload();
  }
}
