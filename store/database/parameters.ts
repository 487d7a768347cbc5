/**
 * What may be bound to a statement. Checked by us, because the drivers fail in ways that no caller survives:
 * a boolean aborts the process, text is cut at a NUL, large integers lose digits, and a missing parameter silently
 * keeps the value of the previous call.
 */
import type { SqlValue } from "./engine.ts";

function refuse(index: number, what: string): never {
  throw new TypeError(`Cannot bind parameter ${index + 1}: ${what}`);
}

/** Throws `TypeError` when a driver would not store one of `values` exactly as it is. */
export function checkParameters(values: readonly SqlValue[]): void {
  for (let index = 0; index < values.length; index++) {
    const value: unknown = values[index];
    if (typeof value === "string") {
      if (value.includes("\0")) refuse(index, "text must not hold a NUL character");
    } else if (typeof value === "number") {
      if (!Number.isSafeInteger(value)) refuse(index, "a number must be a safe integer");
    } else if (typeof value === "bigint") {
      if (!Number.isSafeInteger(Number(value))) refuse(index, "an integer must be a safe one");
    } else if (value !== null && !(value instanceof Uint8Array)) {
      refuse(index, `${typeof value} is no SQL value`);
    }
  }
}

/** Returns how many `?` a statement has outside of quoted text and names. */
export function countPlaceholders(sql: string): number {
  return sql.replaceAll(/'[^']*'|"[^"]*"/g, "").split("?").length - 1;
}

/** Throws `TypeError` unless `given` parameters fill a statement that has `expected` placeholders. */
export function checkCount(expected: number, given: number): void {
  if (expected !== given) {
    throw new TypeError(`Cannot run statement: it has ${expected} placeholders, got ${given} parameters`);
  }
}
