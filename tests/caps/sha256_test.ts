import { hash } from "node:crypto";
import { createCapabilitySecret } from "../../caps/secret.ts";
import { MAX_ONE_BLOCK_BYTES, sha256Hex } from "../../caps/sha256.ts";
import { expect } from "../helpers/expect.ts";

function randomAscii(length: number): string {
  return String.fromCharCode(...crypto.getRandomValues(new Uint8Array(length)).map((byte) => byte & 127));
}

Deno.test("sha256Hex() agrees with the platform on every length that it takes", () => {
  for (let length = 0; length <= MAX_ONE_BLOCK_BYTES; length++) {
    for (let round = 0; round < 100; round++) {
      const text = randomAscii(length);
      expect(sha256Hex(text), JSON.stringify(text)).toBe(hash("sha256", text, "hex"));
    }
  }
});

Deno.test("sha256Hex() agrees with the platform on thousands of secrets", () => {
  for (let round = 0; round < 5000; round++) {
    const { secret, secretHash } = createCapabilitySecret();
    expect(secretHash).toBe(hash("sha256", secret, "hex"));
  }
});

Deno.test("sha256Hex() does not carry one input into the next", () => {
  const empty = hash("sha256", "", "hex");
  sha256Hex("x".repeat(MAX_ONE_BLOCK_BYTES));
  expect(sha256Hex("")).toBe(empty);
  // A refused input leaves its first bytes in the shared block.
  expect(sha256Hex("abcdefgh\u00e9")).toBeUndefined();
  expect(sha256Hex("")).toBe(empty);
});

Deno.test("sha256Hex() refuses what is not short ASCII", () => {
  for (
    const text of [
      "x".repeat(MAX_ONE_BLOCK_BYTES + 1),
      "\u0080",
      "\u00e9",
      "\ud83e\uddf5",
      "\ud800",
      "a\u0100",
    ]
  ) {
    expect(sha256Hex(text), JSON.stringify(text)).toBeUndefined();
  }
});
