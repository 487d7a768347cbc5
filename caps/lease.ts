/**
 * The lease of a single-use PUT: one open upload at a time, in this process and in all others.
 *
 * Whoever comes later waits for the outcome of the first without its body being read: the grant is used up then, or the
 * lease is free because the upload broke. Inside this process waiters stand in line and are woken at once; only the
 * first of the line asks the database again and again, for the uploads of other processes. A lease that is not renewed
 * runs out by itself, so that a killed process blocks nobody for long. Source: architecture.md "Capabilities".
 */
import type { Clock } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import { createId, PREFIX } from "../base/ids.ts";
import type { CapabilityRows } from "../store/database/capability_rows.ts";
import type { Capability } from "./model.ts";
import { type PassOn, Turns } from "./turns.ts";

/** The right to be the one open upload of a capability. */
export interface UploadLease {
  /** What `spend` must be given: a lease that is lost by then spends nothing. */
  readonly id: string;
  /** Whether it is known to be lost: another upload may be open. */
  readonly lost: boolean;
  /** Ends it and lets the next waiter in. Never fails for a busy database; safe to call twice. */
  release(): Promise<void>;
}

/** How long an upload waits for its turn. */
export interface LeaseWait {
  /** Ends the waiting with the signal's reason: the client is gone. */
  readonly signal?: AbortSignal;
  /** Longest wait in milliseconds, 30 seconds unless given; then AppError `unavailable`. */
  readonly waitMs?: number;
}

/** The rhythm of leases, in milliseconds. */
export interface LeaseTimes {
  /** How long a lease lives unless it is renewed. */
  readonly ttlMs: number;
  /** How often it is renewed. */
  readonly renewMs: number;
  /** How often the first in line asks whether another process is done. */
  readonly pollMs: number;
}

const DEFAULT_WAIT_MS = 30_000;
const DEFAULT_TIMES: LeaseTimes = { ttlMs: 15_000, renewMs: 5_000, pollMs: 100 };

type LeaseRows = Pick<CapabilityRows, "acquireLease" | "renewLease" | "releaseLease">;

/** What leases are made with. */
export interface UploadLeasesOptions {
  readonly rows: LeaseRows;
  readonly clock: Clock;
  readonly times?: Partial<LeaseTimes>;
  /** Returns why a capability that gives no lease is dead. */
  explain(capability: Capability, begunMs: number): Promise<AppError>;
}

/** Gives out the leases of this process. */
export class UploadLeases {
  readonly #options: UploadLeasesOptions;
  readonly #times: LeaseTimes;
  readonly #turns = new Turns();

  constructor(options: UploadLeasesOptions) {
    this.#options = options;
    this.#times = { ...DEFAULT_TIMES, ...options.times };
  }

  /** How many capabilities have an upload that is open or waits. */
  get size(): number {
    return this.#turns.size;
  }

  /**
   * Waits until this is the one open upload of the capability.
   *
   * Throws why the capability is dead as soon as it is (`already_used` when the upload before it landed), AppError
   * `unavailable` after the longest wait, or the signal's reason.
   */
  async acquire(capability: Capability, begunMs: number, wait: LeaseWait = {}): Promise<UploadLease> {
    const patience = new AbortController();
    const timer = setTimeout(() => patience.abort(tooLong()), wait.waitMs ?? DEFAULT_WAIT_MS);
    const stop = wait.signal === undefined
      ? patience.signal
      : AbortSignal.any([patience.signal, wait.signal]);
    try {
      const passOn = await this.#turns.take(capability.tokenId, stop);
      try {
        return await this.#claim(capability, begunMs, stop, passOn);
      } catch (error) {
        passOn();
        throw error;
      }
    } finally {
      clearTimeout(timer);
    }
  }

  async #claim(
    capability: Capability,
    begunMs: number,
    stop: AbortSignal,
    passOn: PassOn,
  ): Promise<UploadLease> {
    const { rows, clock, explain } = this.#options;
    const { tokenId } = capability;
    const leaseId = createId(PREFIX.lease);
    for (;;) {
      stop.throwIfAborted();
      const nowMs = clock.now();
      const untilMs = nowMs + this.#times.ttlMs;
      const outcome = await rows.acquireLease({ tokenId, leaseId, nowMs, untilMs, begunMs });
      if (outcome === "dead") throw await explain(capability, begunMs);
      if (outcome === "acquired") {
        const lease = new HeldLease({ rows, clock, times: this.#times, tokenId, leaseId, untilMs, passOn });
        if (!stop.aborted) return lease;
        await lease.release();
      } else {
        await pause(this.#times.pollMs, stop);
      }
    }
  }
}

interface HeldLeaseOptions {
  readonly rows: LeaseRows;
  readonly clock: Clock;
  readonly times: LeaseTimes;
  readonly tokenId: string;
  readonly leaseId: string;
  readonly untilMs: number;
  readonly passOn: PassOn;
}

class HeldLease implements UploadLease {
  readonly #options: HeldLeaseOptions;
  readonly #timer: ReturnType<typeof setInterval>;
  #untilMs: number;
  #taken = false;
  #renewing: Promise<void> | undefined;
  #ended: Promise<void> | undefined;

  constructor(options: HeldLeaseOptions) {
    this.#options = options;
    this.#untilMs = options.untilMs;
    this.#timer = setInterval(() => this.#renewing ??= this.#renew(), options.times.renewMs);
  }

  get id(): string {
    return this.#options.leaseId;
  }

  get lost(): boolean {
    return this.#taken || this.#options.clock.now() >= this.#untilMs;
  }

  release(): Promise<void> {
    return this.#ended ??= this.#end();
  }

  async #renew(): Promise<void> {
    const { rows, clock, times, tokenId, leaseId } = this.#options;
    const untilMs = clock.now() + times.ttlMs;
    try {
      if (await rows.renewLease(tokenId, leaseId, untilMs)) this.#untilMs = untilMs;
      else this.#taken = true;
    } catch {
      // Nobody waits for this; the next tick tries again, and the spend decides by what the row says then.
    } finally {
      this.#renewing = undefined;
    }
  }

  async #end(): Promise<void> {
    const { rows, tokenId, leaseId, passOn } = this.#options;
    clearInterval(this.#timer);
    try {
      await this.#renewing;
      await rows.releaseLease(tokenId, leaseId);
    } catch (error) {
      // A busy database must not turn a finished upload into an error: the lease runs out by itself.
      if (!(error instanceof AppError)) throw error;
    } finally {
      passOn();
    }
  }
}

function tooLong(): AppError {
  return new AppError("unavailable", "Cannot upload now: another upload with this capability is still open", {
    retryAfterSeconds: 5,
  });
}

/** Resolves after `ms`, or rejects with the signal's reason. */
function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const finish = (settle: () => void) => {
      clearTimeout(timer);
      stop.removeEventListener("abort", abandon);
      settle();
    };
    const abandon = () => finish(() => reject(stop.reason));
    const timer = setTimeout(() => finish(resolve), ms);
    stop.addEventListener("abort", abandon);
  });
}
