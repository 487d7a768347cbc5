/** How long to wait for a busy database: by timer, because the driver's own wait stops the event loop (M10). */

/** How long a caller waits for a lock before it is told to come back, in milliseconds. */
export const BUSY_BUDGET_MS = 5_000;

const FIRST_MS = 5;
const LONGEST_MS = 100;

/** Returns the pause before try number `attempt` (from 0), in milliseconds: 5, 10, … 100, less up to half of it. */
export function backoffMs(attempt: number): number {
  const full = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(attempt, 10));
  return full * (1 - Math.random() / 2);
}

/** Resolves after `ms` milliseconds. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
