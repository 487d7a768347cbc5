/**
 * The key that seals what the server must be able to show or use again.
 *
 * Source: architecture.md "Records"; the key is 32 bytes, and every process on one data folder has the same.
 */
import { writeFileAtomic } from "../../base/atomic_file.ts";
import { encodeBase64Url, tryDecodeBase64Url } from "../../base/base64url.ts";
import { OperatorError } from "../../base/operator_error.ts";

/** Length of the key in bytes. */
export const SECRET_KEY_BYTES = 32;

const MAKE_ONE = "Make one with: openssl rand -hex 32";

/** Returns the key that `text` spells in hex (64 digits) or base64url (43 characters), or undefined. */
export function tryParseSecretKey(text: string): Uint8Array<ArrayBuffer> | undefined {
  const trimmed = text.trim();
  if (/^[0-9a-f]{64}$/i.test(trimmed)) {
    return Uint8Array.from(trimmed.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  }
  const bytes = tryDecodeBase64Url(trimmed.replace(/=$/, ""));
  return bytes?.length === SECRET_KEY_BYTES ? bytes : undefined;
}

/**
 * Returns the key: the operator's own when given, else the one in `path`, which is made (0600) when missing.
 *
 * Two processes that make it at once agree: the first to publish wins, and both read what is there. A given key
 * is never written to disk. Refuses (OperatorError) a key that is not 32 bytes, without repeating it.
 */
export async function loadSecretKey(
  path: string,
  given: string | undefined,
): Promise<Uint8Array<ArrayBuffer>> {
  if (given !== undefined) {
    const key = tryParseSecretKey(given);
    if (key !== undefined) return key;
    throw new OperatorError(
      "usage",
      "Cannot use STRING_SECRET_KEY: it must be 32 bytes, as 64 hex digits or 43 characters of base64url",
      MAKE_ONE,
    );
  }
  const text = await readOrMake(path);
  const key = tryParseSecretKey(text);
  if (key !== undefined) return key;
  throw new OperatorError(
    "failed",
    `Cannot use the secret key in "${path}": it is not 32 bytes in hex or base64url`,
    "Restore the file from a backup. A new key cannot open what the old one sealed",
  );
}

async function readOrMake(path: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  const fresh = encodeBase64Url(crypto.getRandomValues(new Uint8Array(SECRET_KEY_BYTES)));
  writeFileAtomic(path, fresh + "\n", { mode: 0o600, keepExisting: true });
  return await Deno.readTextFile(path);
}
