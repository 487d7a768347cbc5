/**
 * Turns: one holder for each key, the others wait in line and may give up.
 *
 * Unlike a lock around a function, a turn is held across calls and a waiter leaves when its signal says so.
 */

/** Gives a turn to the next in line. Calling it again does nothing. */
export type PassOn = () => void;

/** Lines of waiters by key. */
export class Turns {
  readonly #lines = new Map<string, (() => void)[]>();

  /** How many keys are held. */
  get size(): number {
    return this.#lines.size;
  }

  /** Resolves when it is the caller's turn; rejects with the signal's reason when that comes first. */
  async take(key: string, stop: AbortSignal): Promise<PassOn> {
    stop.throwIfAborted();
    const line = this.#lines.get(key);
    if (line === undefined) this.#lines.set(key, []);
    else await waitInLine(line, stop);
    let passed = false;
    return () => {
      if (passed) return;
      passed = true;
      const next = this.#lines.get(key)?.shift();
      if (next === undefined) this.#lines.delete(key);
      else next();
    };
  }
}

function waitInLine(line: (() => void)[], stop: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const enter = () => {
      stop.removeEventListener("abort", leave);
      resolve();
    };
    const leave = () => {
      line.splice(line.indexOf(enter), 1);
      reject(stop.reason);
    };
    line.push(enter);
    stop.addEventListener("abort", leave, { once: true });
  });
}
