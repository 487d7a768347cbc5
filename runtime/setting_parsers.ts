/** Readers of single settings. Pure: text in, a value out or a sentence about what is allowed. */
import { DURATION_EXAMPLES, formatDuration, tryParseDuration } from "../base/durations.ts";
import { SIZE_EXAMPLES, tryParseSize } from "../base/sizes.ts";

/** A value, or what would be allowed instead. `secret`: the refused text may hold a secret and is not repeated. */
export type Parsed<T> = { readonly value: T } | { readonly allowed: string; readonly secret?: boolean };

/** Returns a reader that takes exactly one of `values`. */
export function oneOf<const T extends string>(values: readonly T[]): (text: string) => Parsed<T> {
  return (text) => {
    const value = values.find((candidate) => candidate === text);
    return value === undefined ? { allowed: `one of ${values.join(", ")}` } : { value };
  };
}

/** Returns a reader of whole numbers within two bounds. */
export function integer(min: number, max: number): (text: string) => Parsed<number> {
  return (text) => {
    const value = Number(text);
    return /^\d{1,15}$/.test(text) && value >= min && value <= max
      ? { value }
      : { allowed: `a whole number from ${min} to ${max}` };
  };
}

/** Returns a reader of sizes in bytes, at least `min`. */
export function size(min: number): (text: string) => Parsed<number> {
  return (text) => {
    const value = tryParseSize(text);
    if (value === undefined) return { allowed: SIZE_EXAMPLES };
    return value >= min ? { value } : { allowed: `at least ${min}` };
  };
}

/** Returns a reader of durations in milliseconds, more than 0 and at most `maxMs`. */
export function duration(maxMs: number): (text: string) => Parsed<number> {
  return (text) => {
    const value = tryParseDuration(text);
    if (value === undefined) return { allowed: DURATION_EXAMPLES };
    return value > 0 && value <= maxMs
      ? { value }
      : { allowed: `more than nothing, at most ${formatDuration(maxMs)}` };
  };
}

/** Reads what a variable says for a flag that is given or not. */
export function flagValue(text: string): Parsed<boolean> {
  if (["true", "1", "yes", "on"].includes(text)) return { value: true };
  return ["false", "0", "no", "off"].includes(text) ? { value: false } : { allowed: "true or false" };
}

/** Returns a reader of one line of text. */
export function printable(maxLength: number): (text: string) => Parsed<string> {
  return (text) =>
    text.length > 0 && text.length <= maxLength && !/\p{Cc}/u.test(text)
      ? { value: text }
      : { allowed: `1 to ${maxLength} characters without line breaks` };
}

/** Reads the path of a folder; whether it is there is found out later. */
export function folder(text: string): Parsed<string> {
  return text === "" || text.includes("\0") ? { allowed: "the path of a folder" } : { value: text };
}

/** Reads `auto`, `true` or `false`. */
export function autoOrFlag(text: string): Parsed<"auto" | boolean> {
  const values: Record<string, "auto" | boolean> = { auto: "auto", true: true, false: false };
  const value = Object.hasOwn(values, text) ? values[text] : undefined;
  return value === undefined ? { allowed: "one of auto, true, false" } : { value };
}
