/**
 * Slows down guessing: counts credentials that nobody knows, by client address.
 *
 * Asked only after a credential turned out to be unknown, so a valid one is never locked out. A client on this
 * machine is never slowed, and neither is a secret that is known but dead. Source: SYS-ERR-05; report 55.
 */
import { isIpLiteral, isLoopbackAddress, toClientKey, tryParseHost } from "../base/addresses.ts";

/** Failures that one address may have at once. */
const BURST = 20;
/** Time in which one more failure is forgiven. */
const REFILL_MS = 3_000;
/** Addresses remembered; the longest unseen is forgotten first. */
const MAX_ADDRESSES = 10_000;

interface Bucket {
  failures: number;
  updatedAtMs: number;
}

/** Counts failures per address in bounded memory. */
export class FailedCredentials {
  #buckets = new Map<string, Bucket>();

  /** Records one failure of a client and returns the seconds it must wait: 0 while it is within its allowance. */
  record(address: string, nowMs: number): number {
    if (isLoopbackAddress(address)) return 0;
    const key = toClientKey(address);
    const before = this.#buckets.get(key);
    const forgiven = before === undefined ? 0 : Math.max(0, nowMs - before.updatedAtMs) / REFILL_MS;
    const failures = Math.min(Math.max((before?.failures ?? 0) - forgiven, 0) + 1, BURST + 1);
    this.#buckets.delete(key);
    this.#buckets.set(key, { failures, updatedAtMs: nowMs });
    if (this.#buckets.size > MAX_ADDRESSES) {
      for (const oldest of this.#buckets.keys()) {
        this.#buckets.delete(oldest);
        break;
      }
    }
    return failures > BURST ? Math.ceil((failures - BURST) * REFILL_MS / 1000) : 0;
  }

  /** How many addresses are remembered. */
  get size(): number {
    return this.#buckets.size;
  }
}

/**
 * Returns the address of the effective client: the socket's own, or the entry that the outermost trusted proxy added.
 *
 * Hops are counted from the right, because everything left of the last trusted proxy was written by the client.
 */
export function effectiveClient(
  socketAddress: string,
  forwardedFor: string | null,
  trustedHops: number,
): string {
  if (trustedHops === 0 || forwardedFor === null) return socketAddress;
  const entries = forwardedFor.split(",").map((entry) => entry.trim()).filter((entry) => entry !== "");
  const entry = entries[entries.length - trustedHops] ?? "";
  // Some proxies add the client's port, which is a new one for every connection.
  const address = isIpLiteral(entry) ? entry : tryParseHost(entry)?.name ?? "";
  return isIpLiteral(address) ? address : socketAddress;
}
