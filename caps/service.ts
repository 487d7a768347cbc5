/**
 * Capabilities at work: look up, authorise, mint, list, revoke, spend.
 *
 * What allows a request is `policy.ts`; what is stored is `store/database/`. This keeps the memory between them honest:
 * every change of a capability goes through here and drops it, and where another process may have changed one, the
 * database is asked. Source: System API, "Capability tokens"; SYS-CAP; architecture.md "Capabilities".
 */
import type { Clock } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import { parseTargetPath, type PathResult } from "../base/paths.ts";
import type { CapabilityRows } from "../store/database/capability_rows.ts";
import type { Engine } from "../store/database/engine.ts";
import type { MaybePromise } from "../store/workspace/types.ts";
import type { Grant } from "./grant.ts";
import { type LeaseTimes, type LeaseWait, type UploadLease, UploadLeases } from "./lease.ts";
import { type CapabilityPage, listCapabilities, type ListOptions } from "./listing.ts";
import { CapabilityMemory } from "./memory.ts";
import { prepareCapability, type PreparedCapability } from "./minting.ts";
import { type Capability, toCapability, type Verb } from "./model.ts";
import { decide, type Permission, refuseDead } from "./policy.ts";
import { hashSecret, isSecretShaped } from "./secret.ts";
import type { MintedCapability } from "./wire.ts";

export type { CapabilityRecord, MintedCapability } from "./wire.ts";

/** How long a dead record is kept, in milliseconds (SYS-CAP-05). */
export const DEAD_RECORD_KEPT_MS = 7 * 24 * 60 * 60 * 1000;

/** What the service works with. */
export interface CapabilityServiceOptions {
  readonly rows: CapabilityRows;
  /**
   * Asked before each use of the memory. It must be this service's alone: an engine answers true once per change, and
   * whoever else asked first would have had the answer.
   */
  readonly engine: Pick<Engine, "changedElsewhere">;
  readonly clock: Clock;
  /** Most capabilities that are remembered. */
  readonly memoryLimit?: number;
  readonly leaseTimes?: Partial<LeaseTimes>;
}

/** Keeps the capabilities of this installation. */
export class CapabilityService {
  readonly #options: CapabilityServiceOptions;
  readonly #memory: CapabilityMemory;
  readonly #leases: UploadLeases;

  constructor(options: CapabilityServiceOptions) {
    this.#options = options;
    this.#memory = new CapabilityMemory(options.memoryLimit);
    this.#leases = new UploadLeases({
      rows: options.rows,
      clock: options.clock,
      ...(options.leaseTimes === undefined ? {} : { times: options.leaseTimes }),
      explain: (capability, begunMs) => this.#explain(capability, begunMs),
    });
  }

  /** How many capabilities are remembered at present. */
  get remembered(): number {
    return this.#memory.size;
  }

  #recall(secretHash: string): Capability | undefined {
    if (this.#options.engine.changedElsewhere()) this.#memory.clear();
    return this.#memory.get(secretHash);
  }

  /** Returns the capability of a secret, dead or alive: at once when it is remembered, else from the database. */
  lookup(secret: string): MaybePromise<Capability | undefined> {
    const hash = isSecretShaped(secret) ? hashSecret(secret) : undefined;
    return hash === undefined ? undefined : this.#recall(hash) ?? this.#fetch(hash);
  }

  async #fetch(hash: string): Promise<Capability | undefined> {
    // Taken before the database is asked: see `memory.ts`.
    const { epoch } = this.#memory;
    const row = await this.#options.rows.findByHash(hash);
    return row === undefined ? undefined : this.#memory.remember(toCapability(row), epoch);
  }

  /**
   * Returns what a secret allows, or throws the one refusal in the order of SYS-ERR-04.
   *
   * `target` is the raw path of the request target, or what `parseTargetPath` made of it. At once when the capability
   * is remembered; `begunMs` is when the request began, now unless given.
   */
  authorise(
    secret: string | undefined,
    verb: Verb,
    target: string | PathResult,
    begunMs: number = this.#options.clock.now(),
  ): MaybePromise<Permission> {
    if (!secret) {
      throw new AppError("missing_capability", "Cannot use the system plane without a capability");
    }
    const path = typeof target === "string" ? parseTargetPath(target) : target;
    const found = this.lookup(secret);
    return found instanceof Promise
      ? found.then((capability) => requirePermission(capability, verb, path, begunMs))
      : requirePermission(found, verb, path, begunMs);
  }

  /**
   * Makes a capability that some other transaction will store (pairing); nothing is stored yet.
   *
   * With `incarnation` it binds to that one of the agent's incarnations or to none.
   */
  prepare(grant: Grant, agentId: string, incarnation?: string): PreparedCapability {
    return prepareCapability(grant, agentId, this.#options.clock.now(), incarnation);
  }

  /** Mints a capability and returns it with its secret, once it is durable. Throws `agent_not_found`. */
  async mint(grant: Grant, agentId: string, incarnation?: string): Promise<MintedCapability> {
    const { row, minted } = this.prepare(grant, agentId, incarnation);
    if (await this.#options.rows.insert(row) !== undefined) return minted;
    throw new AppError("agent_not_found", "Cannot mint capability: there is no such agent");
  }

  /** Returns one page of records, newest first. See `listCapabilities`. */
  list(options: ListOptions = {}): Promise<CapabilityPage> {
    return listCapabilities(this.#options.rows, options, this.#options.clock.now());
  }

  /** Finds a capability by its public id, in the database. */
  async find(tokenId: string): Promise<Capability | undefined> {
    const row = isTokenId(tokenId) ? await this.#options.rows.findByTokenId(tokenId) : undefined;
    return row === undefined ? undefined : toCapability(row);
  }

  /** Revokes a capability; `revoked` is false when it was dead already. Throws `capability_not_found`. */
  async revoke(tokenId: string): Promise<{ revoked: boolean }> {
    const { row, revoked } = isTokenId(tokenId)
      ? await this.#changing(tokenId, () => this.#options.rows.revoke(tokenId, this.#options.clock.now()))
      : { row: undefined, revoked: false };
    if (row === undefined) {
      throw new AppError("capability_not_found", "Cannot revoke: there is no such capability");
    }
    return { revoked };
  }

  /**
   * Spends a single-use capability: of all who try, one returns. Call it when success is certain and not yet visible.
   *
   * `begunMs` is when the request began: expiry is judged then. With `leaseId` the lease must still be held. Throws
   * `already_used`, `revoked` or `expired` as the record says, or `unavailable` when the lease was lost.
   */
  async spend(capability: Capability, begunMs: number, leaseId?: string): Promise<void> {
    const { tokenId } = capability;
    const nowMs = this.#options.clock.now();
    const spent = await this.#changing(tokenId, () =>
      this.#options.rows.spend({
        tokenId,
        nowMs,
        begunMs,
        ...(leaseId === undefined ? {} : { leaseId }),
      }));
    if (!spent) throw await this.#explain(capability, begunMs);
  }

  /**
   * Makes sure, before an effect becomes visible, that a capability still lives: unrevoked, unspent, its agent there.
   *
   * Expiry is judged at `begunMs`, so that a slow upload that began in time lands. At once when nothing was dropped
   * since the request was authorised. Throws as `spend` does.
   */
  requireLive(capability: Capability, begunMs: number): MaybePromise<void> {
    // The very object that allowed the request is still remembered: no change of it was begun since.
    const untouched = this.#recall(capability.secretHash) === capability;
    if (untouched && refuseDead(capability, begunMs) === undefined) return;
    return this.#requireStored(capability, begunMs);
  }

  async #requireStored(capability: Capability, begunMs: number): Promise<void> {
    if (await this.#options.rows.isLive({ tokenId: capability.tokenId, begunMs })) return;
    throw await this.#explain(capability, begunMs);
  }

  /** Waits to be the one open upload of a single-use capability. See `UploadLeases.acquire`. */
  acquireLease(capability: Capability, begunMs: number, wait: LeaseWait = {}): Promise<UploadLease> {
    return this.#leases.acquire(capability, begunMs, wait);
  }

  /** Forgets the capabilities of an agent that was deleted; their records were revoked with it. */
  forgetAgent(incarnation: string): void {
    this.#memory.dropAgent(incarnation);
  }

  /** Drops the records that died more than seven days ago (SYS-CAP-05). Returns how many. */
  async purge(): Promise<number> {
    const dropped = await this.#options.rows.purgeDead(this.#options.clock.now() - DEAD_RECORD_KEPT_MS);
    if (dropped > 0) this.#memory.clear();
    return dropped;
  }

  /**
   * Runs a write that changes a capability and forgets it before and after, also when the write fails: a failure may
   * hide a commit. Before, so that no upload that ends meanwhile trusts the memory; after, for what was read meanwhile.
   */
  async #changing<T>(tokenId: string, write: () => Promise<T>): Promise<T> {
    this.#memory.drop(tokenId);
    try {
      return await write();
    } finally {
      this.#memory.drop(tokenId);
    }
  }

  /** Says why a change did not find the capability as it must be, by what the record says now. */
  async #explain({ tokenId }: Capability, begunMs: number): Promise<AppError> {
    const row = await this.#options.rows.findByTokenId(tokenId);
    const dead = refuseDead(row === undefined ? undefined : toCapability(row), begunMs);
    if (dead !== undefined) return new AppError(dead.code, dead.message);
    if (await this.#options.rows.isLive({ tokenId, begunMs })) {
      return new AppError("unavailable", "Cannot finish: another upload with this capability took its turn", {
        retryAfterSeconds: 1,
      });
    }
    return new AppError("revoked", "Cannot use this capability: its agent was deleted");
  }
}

/** What cannot be an id never reaches the database, where a NUL would cut it short. */
function isTokenId(text: string): boolean {
  return /^cap_[A-Za-z0-9_-]{1,64}$/.test(text);
}

function requirePermission(
  capability: Capability | undefined,
  verb: Verb,
  path: PathResult,
  nowMs: number,
): Permission {
  const decision = decide(capability, verb, path, nowMs);
  if (decision.ok) return decision;
  throw new AppError(decision.code, decision.message);
}
