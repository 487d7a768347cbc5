// The part of @std/expect that the tests use; the package on npm carries no types.

/** Assertions on one value; `not` turns each around. */
export interface Expected {
  not: Expected;
  resolves: AsyncExpected;
  rejects: AsyncExpected;
  toBe(expected: unknown): void;
  toEqual(expected: unknown): void;
  toStrictEqual(expected: unknown): void;
  toMatchObject(expected: unknown): void;
  toHaveProperty(name: string | readonly string[], value?: unknown): void;
  toHaveLength(length: number): void;
  toContain(expected: unknown): void;
  toContainEqual(expected: unknown): void;
  toMatch(expected: string | RegExp): void;
  toBeTruthy(): void;
  toBeFalsy(): void;
  toBeNull(): void;
  toBeUndefined(): void;
  toBeDefined(): void;
  toBeNaN(): void;
  toBeCloseTo(expected: number, digits?: number): void;
  toBeGreaterThan(expected: number | bigint): void;
  toBeGreaterThanOrEqual(expected: number | bigint): void;
  toBeLessThan(expected: number | bigint): void;
  toBeLessThanOrEqual(expected: number | bigint): void;
  // deno-lint-ignore no-explicit-any
  toBeInstanceOf(expected: new (...args: any[]) => unknown): void;
  // deno-lint-ignore no-explicit-any
  toThrow(expected?: string | RegExp | (new (...args: any[]) => Error)): void;
}
/** The same assertions on what a promise settles to. */
export type AsyncExpected =
  & { not: AsyncExpected }
  & {
    [K in Exclude<keyof Expected, "not" | "resolves" | "rejects">]: (
      ...args: Parameters<Expected[K]>
    ) => Promise<void>;
  };
/** Begins an assertion on `value`; `message` is printed when it fails. */
export function expect(value: unknown, message?: string): Expected;
/** Fails when the number of assertions run differs. */
export namespace expect {
  function any(constructor: unknown): unknown;
  function anything(): unknown;
  function stringContaining(text: string): unknown;
  function stringMatching(pattern: string | RegExp): unknown;
  function objectContaining(object: Record<string, unknown>): unknown;
  function arrayContaining(items: readonly unknown[]): unknown;
}
