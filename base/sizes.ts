/** Sizes in bytes as people write them: `1048576`, `10MB`, `256MiB`, `5GiB`. Pure. */

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
};

/** What a size may look like, for the sentence that refuses another. */
export const SIZE_EXAMPLES = "a whole number of bytes, or a number with KB, MB, GB, TB, KiB, MiB, GiB or TiB";

/**
 * Returns a size in bytes, or undefined when the text is none.
 *
 * A fraction is taken where the result is whole bytes after rounding down (`1.5GiB`). No sign, no spaces inside.
 */
export function tryParseSize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)([a-z]*)$/i.exec(text.trim());
  const unit = UNITS[match?.[2]?.toLowerCase() ?? "?"];
  if (match === null || unit === undefined) return undefined;
  if (unit === 1 && match[1]?.includes(".")) return undefined;
  const bytes = Math.floor(Number(match[1]) * unit);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** Returns a size for a person: the largest binary unit that leaves at most one decimal, e.g. `256 MiB`. */
export function formatSize(bytes: number): string {
  const names = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < names.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : Number(value.toFixed(1))} ${names[unit]}`;
}
