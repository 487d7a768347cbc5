/**
 * Capabilities that were looked up already, by the hash of their secret.
 *
 * The danger is a lookup that reads a live row, is overtaken by a revocation, and then remembers the row for good. So
 * whoever fills the memory says which epoch it was when the database was asked, and every drop begins another one: a
 * row that was read before a drop is never remembered after it, whichever capability the drop was about.
 * Source: architecture.md "Capabilities".
 */
import type { Capability } from "./model.ts";

/** Most capabilities that are remembered unless told otherwise; the oldest goes first. */
export const DEFAULT_MEMORY_LIMIT = 100_000;

/** A bounded memory of stored capabilities. It never remembers that a secret is unknown. */
export class CapabilityMemory {
  readonly #limit: number;
  readonly #byHash = new Map<string, Capability>();
  readonly #hashes = new Map<string, string>();
  #epoch = 0;

  constructor(limit: number = DEFAULT_MEMORY_LIMIT) {
    this.#limit = limit;
  }

  /** How many capabilities are remembered. */
  get size(): number {
    return this.#byHash.size;
  }

  /** Names the time between two drops: read it before asking the database, and hand it to `remember`. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Returns the capability whose secret has this hash, if it is remembered. */
  get(secretHash: string): Capability | undefined {
    return this.#byHash.get(secretHash);
  }

  /**
   * Remembers what the database said, unless anything was dropped since `epoch`. Returns the remembered object.
   *
   * The object that was there first stays: `get` gives the same one as long as nothing was dropped.
   */
  remember(capability: Capability, epoch: number): Capability {
    if (epoch !== this.#epoch) return capability;
    const known = this.#byHash.get(capability.secretHash);
    if (known !== undefined) return known;
    if (this.#byHash.size >= this.#limit) this.#forgetOldest();
    this.#byHash.set(capability.secretHash, capability);
    this.#hashes.set(capability.tokenId, capability.secretHash);
    return capability;
  }

  /** Forgets one capability, also one that is being read from the database at this moment. */
  drop(tokenId: string): void {
    this.#epoch++;
    const hash = this.#hashes.get(tokenId);
    if (hash === undefined) return;
    this.#hashes.delete(tokenId);
    this.#byHash.delete(hash);
  }

  /** Forgets all capabilities of one incarnation of an agent. */
  dropAgent(incarnation: string): void {
    this.#epoch++;
    for (const [hash, capability] of this.#byHash) {
      if (capability.incarnation !== incarnation) continue;
      this.#byHash.delete(hash);
      this.#hashes.delete(capability.tokenId);
    }
  }

  /** Forgets everything. */
  clear(): void {
    this.#epoch++;
    this.#byHash.clear();
    this.#hashes.clear();
  }

  #forgetOldest(): void {
    for (const [hash, { tokenId }] of this.#byHash) {
      this.#byHash.delete(hash);
      this.#hashes.delete(tokenId);
      return;
    }
  }
}
