/** Where the time comes from; handed in everywhere, so that a test can hold it. */
export interface Clock {
  /** Returns the time in Unix milliseconds. */
  now(): number;
}

/** The machine's own clock. */
export const systemClock: Clock = { now: () => Date.now() };
