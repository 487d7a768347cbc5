/** Waiting without guessing: for a condition or a promise, never longer than a deadline that a slow machine meets. */

/** The deadline of whatever is not told another, in milliseconds. */
export const DEADLINE_MS = 60_000;

/** Waits until `condition` holds, and fails naming `what` when it does not within `ms`. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  ms = DEADLINE_MS,
): Promise<void> {
  const giveUpAt = performance.now() + ms;
  while (!(await condition())) {
    if (performance.now() > giveUpAt) throw new Error(`Waited ${ms} ms in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Returns what `work` resolves to, and fails naming `what` when that takes longer than `ms`. */
export async function within<T>(what: string, work: Promise<T>, ms = DEADLINE_MS): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`Waited ${ms} ms in vain: ${what}`)), ms);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
