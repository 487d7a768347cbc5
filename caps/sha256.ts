/**
 * SHA-256 of short ASCII text, in plain TypeScript.
 *
 * Every request on the system plane hashes its secret. A call into the runtime's own hash costs several microseconds
 * inside the server, one block here well under one. It never sees more than one block, so there is no padding across
 * blocks to get wrong; a test compares it with the platform's hash. Source: FIPS 180-4.
 */

/** Longest input that fits into one block beside its padding, in bytes. */
export const MAX_ONE_BLOCK_BYTES = 55;

/** The first 32 bits of the fraction of `root(prime)`, for the first `count` primes. */
function fractionsOfPrimes(count: number, root: (prime: number) => number): Int32Array {
  const words = new Int32Array(count);
  for (let candidate = 2, found = 0; found < count; candidate++) {
    let prime = true;
    for (let divisor = 2; divisor * divisor <= candidate; divisor++) prime &&= candidate % divisor !== 0;
    if (prime) words[found++] = Math.floor((root(candidate) % 1) * 2 ** 32) | 0;
  }
  return words;
}

const ROUNDS = fractionsOfPrimes(64, Math.cbrt);
const INITIAL = fractionsOfPrimes(8, Math.sqrt);
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
// One call runs to its end before the next begins, so the schedule can be shared.
const schedule = new Int32Array(64);

function toHex(word: number): string {
  return HEX[word >>> 24]! + HEX[(word >>> 16) & 255]! + HEX[(word >>> 8) & 255]! + HEX[word & 255]!;
}

/** Writes the padded block of `text` into the schedule; false when `text` is not short ASCII. */
function fillBlock(text: string): boolean {
  const length = text.length;
  if (length > MAX_ONE_BLOCK_BYTES) return false;
  schedule.fill(0, 0, 16);
  for (let index = 0; index < length; index++) {
    const code = text.charCodeAt(index);
    if (code > 127) return false;
    schedule[index >> 2]! |= code << (24 - (index & 3) * 8);
  }
  schedule[length >> 2]! |= 0x80 << (24 - (length & 3) * 8);
  schedule[15] = length * 8;
  return true;
}

/** Returns the SHA-256 of `text` as 64 lower-case hex digits; undefined unless it is ASCII of at most 55 bytes. */
export function sha256Hex(text: string): string | undefined {
  if (!fillBlock(text)) return undefined;
  const w = schedule;
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15]!, y = w[i - 2]!;
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    w[i] = (w[i - 16]! + s0 + w[i - 7]! + s1) | 0;
  }
  let a = INITIAL[0]!, b = INITIAL[1]!, c = INITIAL[2]!, d = INITIAL[3]!;
  let e = INITIAL[4]!, f = INITIAL[5]!, g = INITIAL[6]!, h = INITIAL[7]!;
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUNDS[i]! + w[i]!) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g, g = f, f = e, e = (d + t1) | 0, d = c, c = b, b = a, a = (t1 + t2) | 0;
  }
  return toHex(a + INITIAL[0]!) + toHex(b + INITIAL[1]!) + toHex(c + INITIAL[2]!) + toHex(d + INITIAL[3]!) +
    toHex(e + INITIAL[4]!) + toHex(f + INITIAL[5]!) + toHex(g + INITIAL[6]!) + toHex(h + INITIAL[7]!);
}
