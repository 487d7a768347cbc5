/**
 * The audit trail: who changed what, which single uses were spent, and how often the rest was read.
 *
 * No answer waits for it: entries gather in memory and are written together. Plain reads are only counted, refusals
 * have a budget, and what does not fit is counted as dropped. Source: architecture.md "Audit".
 */
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { redact } from "../caps/secret.ts";
import type { AuditRows } from "../store/database/audit_rows.ts";

/** One thing that was done, or refused. */
export interface AuditEntry {
  /** `operator`, `agent:<id>`, `capability:<token_id>` or `webhook`. */
  readonly actor: string;
  /** What was done, as `capability.mint` or `fs.put`. */
  readonly action: string;
  readonly agentId?: string;
  readonly tokenId?: string;
  /** `ok`, or the reason of the refusal. */
  readonly outcome: string;
  readonly detail?: Readonly<Record<string, string | number | boolean>>;
}

const FLUSH_MS = 1_000;
const MAX_WAITING = 10_000;
const MAX_COUNTERS = 10_000;
const REFUSALS_PER_MINUTE = 60;
const HOUR_MS = 3_600_000;
const KEEP_MS = 30 * 86_400_000;
const MAX_BYTES = 1024 ** 3;

type Row = Parameters<AuditRows["append"]>[0][number];
type Counter = Parameters<AuditRows["append"]>[1][number];

/** Gathers and writes audit entries. */
export class Audit {
  readonly #rows: AuditRows;
  readonly #clock: Clock;
  readonly #log: Log;
  #waiting: Row[] = [];
  #counters = new Map<string, Counter>();
  #refusals = new Map<string, { minute: number; count: number }>();
  #dropped = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: { rows: AuditRows; clock: Clock; log: Log }) {
    this.#rows = options.rows;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  /** Records one entry. Never throws and never waits. */
  record(entry: AuditEntry): void {
    if (this.#waiting.length >= MAX_WAITING) {
      this.#dropped++;
      return;
    }
    this.#waiting.push({
      at: this.#clock.now(),
      actor: entry.actor,
      action: entry.action,
      agent_id: entry.agentId ?? null,
      token_id: entry.tokenId ?? null,
      outcome: entry.outcome,
      detail: redact(JSON.stringify(entry.detail ?? {})),
    });
    this.#schedule();
  }

  /** Records a refusal of a known capability, at most 60 a minute for each; the rest is counted. */
  refusal(entry: AuditEntry & { tokenId: string }): void {
    const minute = Math.floor(this.#clock.now() / 60_000);
    if (this.#refusals.size > MAX_COUNTERS) this.#refusals.clear();
    const seen = this.#refusals.get(entry.tokenId);
    const count = seen?.minute === minute ? seen.count + 1 : 1;
    this.#refusals.set(entry.tokenId, { minute, count });
    if (count <= REFUSALS_PER_MINUTE) this.record(entry);
    else this.count(entry.tokenId, "refused");
  }

  /** Counts one use of a capability under an hour. `tokenId` is "" for a credential that nobody knows. */
  count(tokenId: string, action: string): void {
    const hour = Math.floor(this.#clock.now() / HOUR_MS) * HOUR_MS;
    const key = `${hour} ${tokenId} ${action}`;
    const counter = this.#counters.get(key);
    if (counter !== undefined) counter.count++;
    else if (this.#counters.size < MAX_COUNTERS) {
      this.#counters.set(key, { hour, token_id: tokenId, action, count: 1 });
      this.#schedule();
    } else this.#dropped++;
  }

  /** Writes what has gathered. Resolves when it is stored, or given back to wait for a better time. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  /** Writes what has gathered for the last time; what the database does not take then is lost, and the log says so. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.flush();
  }

  /** Drops what is older than 30 days, and the oldest part beyond 1 GiB. */
  async prune(): Promise<void> {
    await this.#rows.prune({ beforeMs: this.#clock.now() - KEEP_MS, maxBytes: MAX_BYTES });
  }

  #schedule(): void {
    if (!this.#closed) this.#timer ??= setTimeout(() => this.flush(), FLUSH_MS);
  }

  async #write(): Promise<void> {
    const rows = this.#waiting;
    const counters = [...this.#counters.values()];
    if (rows.length === 0 && counters.length === 0) return;
    this.#waiting = [];
    this.#counters = new Map();
    try {
      await this.#rows.append(rows, counters);
      if (this.#dropped > 0) this.#log.warn("audit entries dropped", { count: this.#dropped });
      this.#dropped = 0;
    } catch (error) {
      // The database is busy, gone or full: keep the entries within the bound, and say so.
      this.#waiting = [...rows, ...this.#waiting].slice(0, MAX_WAITING);
      for (const counter of counters) this.#giveBack(counter);
      this.#log.warn("audit entries could not be written", {
        count: rows.length,
        reason: error instanceof Error ? error.message : String(error),
      });
      this.#schedule();
    }
  }

  #giveBack(counter: Counter): void {
    const key = `${counter.hour} ${counter.token_id} ${counter.action}`;
    const present = this.#counters.get(key);
    if (present !== undefined) present.count += counter.count;
    else this.#counters.set(key, counter);
  }
}
