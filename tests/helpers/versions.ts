/** Contents that say which version they are, and what may be found of them after a crash. */
import { Buffer } from "node:buffer";

/** Returns the content of a version: its number and length, then bytes that only this version has. */
export function toContent(version: number, length: number): Uint8Array<ArrayBuffer> {
  const content = new Uint8Array(length);
  const unit = new TextEncoder().encode(`${version} ${length}\n`);
  content.set(unit.subarray(0, length));
  for (let filled = unit.length; filled < length; filled *= 2) content.copyWithin(filled, 0, length - filled);
  return content;
}

/** Returns the version that `bytes` are, whole; undefined for anything torn or mixed. */
export function versionOf(bytes: Uint8Array): number | undefined {
  const [, version, length] = /^(\d+) (\d+)\n/.exec(new TextDecoder().decode(bytes.subarray(0, 40))) ?? [];
  if (version === undefined || Number(length) !== bytes.length) return undefined;
  return Buffer.from(toContent(Number(version), bytes.length)).equals(bytes) ? Number(version) : undefined;
}

interface Sent {
  readonly begunAt: number;
  /** When its success was answered; infinite while that has not happened. */
  answeredAt: number;
}

/** What was sent to one path, and in which order that could be seen from outside. */
export class History {
  readonly #sent = new Map<number, Sent>();
  #now = 0;

  /** A version is on its way; call what comes back when its success was answered. */
  begin(version: number): () => void {
    const sent: Sent = { begunAt: ++this.#now, answeredAt: Infinity };
    this.#sent.set(version, sent);
    return () => sent.answeredAt = ++this.#now;
  }

  /** Whether any success was answered, so that a file must be there. */
  get hasAnswer(): boolean {
    return [...this.#sent.values()].some(({ answeredAt }) => answeredAt < Infinity);
  }

  /**
   * Whether `version` may be what is found: it was sent, and no version that was begun after its answer has itself been
   * answered, for that one would have replaced it.
   */
  allows(version: number): boolean {
    const found = this.#sent.get(version);
    return found !== undefined &&
      ![...this.#sent.values()].some(({ begunAt, answeredAt }) =>
        begunAt > found.answeredAt && answeredAt < Infinity
      );
  }

  /** Forgets all but the version that was found: what was cut off before can no longer land. */
  restartFrom(version: number | undefined): void {
    this.#sent.clear();
    if (version !== undefined) this.begin(version)();
  }
}
