/** Contents of small files in memory, each good for exactly the version that the disk says is there now. */
import { ctimeMs, type Facts, isSameVersion } from "./facts.ts";
import type { OpenedFile } from "./types.ts";

/** Largest file that is read whole, in bytes. */
export const MAX_SMALL_BYTES = 64 * 1024;
/** What all contents together may take, in bytes. */
const MAX_TOTAL_BYTES = 64 * 1024 * 1024;
/** What an entry takes beside its content, roughly. */
const ENTRY_BYTES = 512;
/**
 * A file that was changed less than this long ago is not kept, in milliseconds. A second change within one tick of the
 * kernel's clock (up to 10 ms, or 2 s where times are whole seconds) would leave the same times; and a program that has
 * the file mapped changes a page as often as it likes without a new time, until the kernel has written the page back:
 * that takes about half a minute.
 */
export const SETTLED_MS = 60_000;

interface Entry {
  readonly facts: Facts;
  readonly opened: OpenedFile;
  readonly cost: number;
  /** Spares an entry once when room is made. */
  used: boolean;
}

/** Two files of one key only push each other out: an entry is believed by all its facts, not by its key. */
function keyOf(facts: Facts): number {
  return facts.inodeLow + ((facts.device ^ facts.inodeHigh) & 0xfffff) * 2 ** 32;
}

/** A bounded memory of small files. */
export class ContentCache {
  readonly #entries = new Map<number, Entry>();
  #total = 0;

  constructor(private readonly maxBytes = MAX_TOTAL_BYTES, private readonly settledMs = SETTLED_MS) {}

  /** Returns the content of the file if it is known in this very version. */
  find(facts: Facts): OpenedFile | undefined {
    const entry = this.#entries.get(keyOf(facts));
    if (entry === undefined || !isSameVersion(entry.facts, facts)) return undefined;
    entry.used = true;
    return entry.opened;
  }

  /** Remembers a content that was read between two looks which both found `facts`. */
  keep(facts: Facts, opened: OpenedFile): void {
    // The kernel's clock, not the store's: it is compared with a time that the kernel wrote.
    if (Date.now() - ctimeMs(facts) < this.settledMs) return;
    const key = keyOf(facts);
    const cost = facts.size + ENTRY_BYTES;
    if (cost > this.maxBytes) return;
    this.#drop(key);
    this.#entries.set(key, { facts, opened, cost, used: false });
    this.#total += cost;
    while (this.#total > this.maxBytes) this.#dropOldest();
  }

  #drop(key: number): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#total -= entry.cost;
    this.#entries.delete(key);
  }

  #dropOldest(): void {
    for (const [key, entry] of this.#entries) {
      if (!entry.used) return this.#drop(key);
      entry.used = false;
      this.#entries.delete(key);
      this.#entries.set(key, entry);
    }
  }
}
