/**
 * Versions of files: from what the disk says, never from a hash of the body.
 *
 * A tag repeats only if inode, size, mtime and ctime all do; the server's own writes make that impossible, because
 * each gets an mtime that is greater than that of the file it replaces and than any it set before (report 16).
 */
import { type Facts, mtimeNs } from "./facts.ts";
import type { FileVersion } from "./types.ts";

function base36(high: number, low: number): string {
  return high === 0 ? low.toString(36) : `${high.toString(36)}_${low.toString(36)}`;
}

/** Returns the version that the facts of a regular file stand for; the tag is strong and quoted. */
export function versionOf(facts: Facts): FileVersion {
  const inode = base36(facts.inodeHigh, facts.inodeLow);
  const mtime = base36(facts.mtimeSeconds, facts.mtimeNanos);
  const ctime = base36(facts.ctimeSeconds, facts.ctimeNanos);
  return {
    sizeBytes: facts.size,
    mtimeMs: facts.mtimeSeconds * 1000 + Math.floor(facts.mtimeNanos / 1e6),
    etag: `"${inode}.${facts.size.toString(36)}.${mtime}.${ctime}"`,
  };
}

/** Sets the mtime of a file that is not yet visible, and says what the disk made of it. */
export interface Stampable {
  setMtime(ns: bigint): void;
  facts(): Facts;
}

/** Gives each write of one store an mtime of its own. */
export class Stamps {
  #last = 0n;

  /** @param tickNs The least difference of mtime that the opener reads back, in nanoseconds. */
  constructor(private readonly tickNs: bigint, private readonly now: () => number) {}

  /**
   * Gives `staged` the time of now, but later than every stamp before.
   *
   * The part below a millisecond is random: two processes that write, delete and write a path within one millisecond,
   * with the same inode, still differ.
   */
  stamp(staged: Stampable): void {
    let ns = BigInt(Math.floor(this.now())) * 1_000_000n;
    if (this.tickNs < 1_000_000n) ns += BigInt(Math.floor(Math.random() * 1e6));
    if (ns <= this.#last) ns = this.#last + this.tickNs;
    this.#last = ns;
    staged.setMtime(ns);
  }

  /** Makes `staged` later than the file it replaces, if it is not; a disk that keeps whole seconds gets whole seconds. */
  stampAfter(staged: Stampable, replaced: Facts): void {
    const floor = mtimeNs(replaced);
    for (const step of [this.tickNs, 1_000n, 1_000_000n, 1_000_000_000n, 2_000_000_000n]) {
      if (mtimeNs(staged.facts()) > floor) return;
      staged.setMtime(floor + step);
    }
  }
}
