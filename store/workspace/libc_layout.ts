/** Numbers of the Linux ABI that the store uses: flags, offsets, signatures. No logic. */

const arm = Deno.build.arch === "aarch64";

/** Flags of open, in the values of this architecture. */
export const O = {
  RDONLY: 0,
  RDWR: 2,
  CREAT: 0o100,
  EXCL: 0o200,
  NONBLOCK: 0o4000,
  DIRECTORY: arm ? 0o40000 : 0o200000,
  NOFOLLOW: arm ? 0o100000 : 0o400000,
  CLOEXEC: 0o2000000,
  PATH: 0o10000000,
} as const;

/**
 * RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH. Not across mounts either: a file
 * system that an agent mounted in its home could keep every call waiting, and nothing can be renamed into it.
 */
export const RESOLVE_CONTAINED = 0x01 | 0x02 | 0x04 | 0x08;
/** The number of openat2, the same on both architectures. */
export const SYS_OPENAT2 = 437n;
/** The present folder, where a descriptor of a folder is wanted. */
export const AT_FDCWD = -100;
/** The descriptor itself, with an empty path. */
export const AT_EMPTY_PATH = 0x1000;
/** The link, not what it names. */
export const AT_SYMLINK_NOFOLLOW = 0x100;
/** unlinkat removes a folder. */
export const AT_REMOVEDIR = 0x200;
/** renameat2 refuses to replace. */
export const RENAME_NOREPLACE = 1;
/** preadv2 answers EAGAIN instead of waiting for the disk. */
export const RWF_NOWAIT = 8;
/** flock: exclusive, without waiting. */
export const LOCK_EX_NB = 2 | 4;
/** futimens leaves this time as it is. */
export const UTIME_OMIT = 0x3ffffffen;
/** access: write and search. */
export const W_OK_X_OK = 2 | 1;
/** STATX_BASIC_STATS. */
export const STATX_BASIC = 0x7ff;

/** STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND | STATX_ATTR_MOUNT_ROOT: not to be replaced or removed. */
export const STATX_ATTR_FIXED = 0x10 | 0x20 | 0x2000;

/** Where in `struct statx` a field lies, counted in 32-bit words (`mode`: 16-bit words). */
export const STATX = {
  bytes: 256,
  attributes: 2,
  mode: 14,
  inode: 8,
  size: 10,
  ctime: 24,
  mtime: 28,
  deviceMajor: 34,
  deviceMinor: 35,
} as const;

/** Where in `struct statfs` a field lies, counted in 64-bit words. */
export const STATFS = { bytes: 120, blockSize: 1, available: 4, fragmentSize: 9 } as const;

/** The functions of libc by their C signatures. Results that fit are i32: a BigInt per call would be the dearest part. */
export const SYMBOLS = {
  // The number, a folder, a path, a struct open_how and its size: openat2 has no function of its own in glibc.
  syscall: { parameters: ["i64", "i32", "buffer", "buffer", "usize"], result: "i32" },
  open: { parameters: ["buffer", "i32", "i32"], result: "i32" },
  close: { parameters: ["i32"], result: "i32" },
  statx: { parameters: ["i32", "buffer", "i32", "u32", "buffer"], result: "i32" },
  fstatfs: { parameters: ["i32", "buffer"], result: "i32" },
  access: { parameters: ["buffer", "i32"], result: "i32" },
  preadv2: { parameters: ["i32", "buffer", "i32", "i64", "i32"], result: "i32" },
  mkdirat: { parameters: ["i32", "buffer", "u32"], result: "i32" },
  unlinkat: { parameters: ["i32", "buffer", "i32"], result: "i32" },
  renameat2: { parameters: ["i32", "buffer", "i32", "buffer", "u32"], result: "i32" },
  renameat2Waiting: {
    name: "renameat2",
    parameters: ["i32", "buffer", "i32", "buffer", "u32"],
    result: "i32",
    nonblocking: true,
  },
  fchmod: { parameters: ["i32", "u32"], result: "i32" },
  futimens: { parameters: ["i32", "buffer"], result: "i32" },
  fsetxattr: { parameters: ["i32", "buffer", "buffer", "usize", "i32"], result: "i32" },
  getxattr: { parameters: ["buffer", "buffer", "buffer", "usize"], result: "i32" },
  flock: { parameters: ["i32", "i32"], result: "i32" },
  fsync: { parameters: ["i32"], result: "i32", nonblocking: true },
  __errno_location: { parameters: [], result: "pointer" },
} as const;
