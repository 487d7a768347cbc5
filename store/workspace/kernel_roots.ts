/** Descriptors of workspaces' homes, kept open between requests and believed for a second. */
import { diskError } from "./disk_errors.ts";
import { type Facts, isSameThing } from "./facts.ts";
import { folderRefusalOf } from "./opener.ts";
import { DiskError } from "./disk_errors.ts";
import type { Libc } from "./libc.ts";
import { O } from "./libc_layout.ts";

/** How long a home that was moved away may still be served, in milliseconds. */
const BELIEVED_MS = 1000;
/** Most homes kept open. */
const MAX_ROOTS = 256;

interface Root {
  readonly fd: number;
  readonly facts: Facts;
  checkedMs: number;
}

/** The homes that are open. A descriptor from here is valid until the next call or await: never keep one. */
export class KernelRoots {
  readonly #roots = new Map<string, Root>();
  #lastHome: string | undefined;
  #last: Root | undefined;

  constructor(private readonly libc: Libc) {}

  /** Returns a descriptor of `home`; throws where it is missing, a link or no folder. */
  get(home: string): number {
    const now = Date.now();
    let root = home === this.#lastHome ? this.#last : this.#roots.get(home);
    // Also when the clock went back.
    if (root === undefined || Math.abs(now - root.checkedMs) > BELIEVED_MS) {
      this.refresh(home);
      root = this.#roots.get(home);
      if (root === undefined) throw new TypeError("a home that was just opened is gone");
    }
    this.#lastHome = home;
    this.#last = root;
    return root.fd;
  }

  /** Looks at `home` again; returns whether it is another folder than it was believed to be. */
  refresh(home: string): boolean {
    const { libc } = this;
    const known = this.#roots.get(home);
    // The folders above may be links of the operator's; the home itself may not: an agent could have put it there.
    const fd = libc.openHost(home, O.PATH | O.NOFOLLOW);
    if (fd < 0) {
      this.#forget(home);
      throw diskError(fd, "open");
    }
    const result = libc.stat(fd);
    const facts = libc.facts();
    const refusal = result < 0 ? undefined : folderRefusalOf(facts);
    if (result < 0 || refusal !== undefined) {
      libc.close(fd);
      this.#forget(home);
      throw refusal === undefined ? diskError(result, "statx") : new DiskError(refusal, "open");
    }
    if (known !== undefined && isSameThing(known.facts, facts)) {
      libc.close(fd);
      known.checkedMs = Date.now();
      this.#roots.delete(home);
      this.#roots.set(home, known);
      return false;
    }
    this.#forget(home);
    this.#roots.set(home, { fd, facts, checkedMs: Date.now() });
    const oldest = this.#roots.keys().next();
    if (this.#roots.size > MAX_ROOTS && !oldest.done) this.#forget(oldest.value);
    return true;
  }

  #forget(home: string): void {
    const root = this.#roots.get(home);
    if (root !== undefined) this.libc.close(root.fd);
    this.#roots.delete(home);
    this.#lastHome = this.#last = undefined;
  }

  /** Closes every descriptor. */
  close(): void {
    for (const home of [...this.#roots.keys()]) this.#forget(home);
  }
}
