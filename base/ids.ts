import { encodeBase64Url } from "./base64url.ts";

/** The prefixes by which a person tells one identifier or secret from another. */
export const PREFIX = {
  capability: "cap_",
  capabilitySecret: "caps_",
  adminToken: "adm_",
  agentKey: "agk_",
  event: "evt_",
  incarnation: "inc_",
  lease: "lease_",
} as const;

/** Returns a fresh identifier: `prefix` and 96 random bits as 16 characters of base64url. Not a secret. */
export function createId(prefix: string): string {
  return prefix + encodeBase64Url(crypto.getRandomValues(new Uint8Array(12)));
}

/** Returns a fresh secret: `prefix` and 256 random bits as 43 characters of base64url. */
export function createSecret(prefix: string): string {
  return prefix + encodeBase64Url(crypto.getRandomValues(new Uint8Array(32)));
}
