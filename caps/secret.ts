/**
 * Secrets: what they look like, how they are stored, and how they are kept out of text.
 *
 * A secret is shown once; everywhere else there is its SHA-256 only. Source: architecture.md "Capabilities"; report S2.
 */
import { createSecret, PREFIX } from "../base/ids.ts";
import { sha256Hex } from "./sha256.ts";

const SECRET_LENGTH = PREFIX.capabilitySecret.length + 43;
const BASE64URL = /^[A-Za-z0-9_-]+$/;
// Also a secret that was cut off on its way: half of one is already worth guessing at.
const LOOKS_SECRET = new RegExp(
  `(${PREFIX.capabilitySecret}|${PREFIX.adminToken}|${PREFIX.agentKey})[A-Za-z0-9_-]{16,}`,
  "g",
);

/** Returns whether `text` has the shape of a capability's secret: `caps_` and 43 characters of base64url. */
export function isSecretShaped(text: string): boolean {
  return text.length === SECRET_LENGTH && text.startsWith(PREFIX.capabilitySecret) && BASE64URL.test(text);
}

/**
 * Returns the SHA-256 of a secret in hex, as it is stored and looked up.
 *
 * Undefined for what cannot be a secret of ours: more than 55 bytes, or not ASCII.
 */
export function hashSecret(text: string): string | undefined {
  return sha256Hex(text);
}

/** Returns a fresh secret of a capability and the hash under which it is stored. */
export function createCapabilitySecret(): { secret: string; secretHash: string } {
  const secret = createSecret(PREFIX.capabilitySecret);
  const secretHash = hashSecret(secret);
  if (secretHash === undefined) throw new TypeError("Cannot hash a secret: it is longer than one block");
  return { secret, secretHash };
}

/** Returns `text` with everything shaped like a secret of ours cut down to its prefix and `…`. */
export function redact(text: string): string {
  return text.replace(LOOKS_SECRET, "$1…");
}
