/**
 * What the disk says of one thing at one moment, in plain numbers.
 *
 * Both openers fill it, so that caching, tags and refusals are decided once and do not know where it came from.
 */

/** The kinds that the store tells apart; `other` is a FIFO, a socket or a device. */
export type Kind = "file" | "folder" | "link" | "other";

/** One thing on disk. Seconds and nanoseconds are apart because a double cannot hold nanoseconds since 1970. */
export interface Facts {
  readonly kind: Kind;
  /** The twelve permission bits. */
  readonly permissions: number;
  readonly device: number;
  /** The inode in two halves of 32 bits: overlay file systems use the upper bits. */
  readonly inodeLow: number;
  readonly inodeHigh: number;
  /** Whether its name cannot be given to another file: immutable, append-only, or something is mounted on it. */
  readonly fixed: boolean;
  /** Size in bytes. */
  readonly size: number;
  readonly mtimeSeconds: number;
  readonly mtimeNanos: number;
  readonly ctimeSeconds: number;
  readonly ctimeNanos: number;
}

const TYPE_MASK = 0o170000;

/** Returns the kind that a `st_mode` names. */
export function kindOf(mode: number): Kind {
  const type = mode & TYPE_MASK;
  return type === 0o100000 ? "file" : type === 0o040000 ? "folder" : type === 0o120000 ? "link" : "other";
}

/** Returns whether both are the same thing on disk, whatever its content. */
export function isSameThing(a: Facts, b: Facts): boolean {
  return a.inodeLow === b.inodeLow && a.inodeHigh === b.inodeHigh && a.device === b.device;
}

/** Returns whether both are the same version of the same thing. */
export function isSameVersion(a: Facts, b: Facts): boolean {
  return a.inodeLow === b.inodeLow && a.mtimeNanos === b.mtimeNanos && a.ctimeNanos === b.ctimeNanos &&
    a.mtimeSeconds === b.mtimeSeconds && a.ctimeSeconds === b.ctimeSeconds && a.size === b.size &&
    a.inodeHigh === b.inodeHigh && a.device === b.device;
}

/** Returns the time of the last change of content, in nanoseconds since 1970. */
export function mtimeNs(facts: Facts): bigint {
  return BigInt(facts.mtimeSeconds) * 1_000_000_000n + BigInt(facts.mtimeNanos);
}

/** Returns the time of the last change of content or attributes, in Unix milliseconds. */
export function ctimeMs(facts: Facts): number {
  return facts.ctimeSeconds * 1000 + Math.floor(facts.ctimeNanos / 1e6);
}
