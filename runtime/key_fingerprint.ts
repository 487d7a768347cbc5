/** Binds a database to the key that seals things in it. Source: architecture.md "Records". */
import { OperatorError } from "../base/operator_error.ts";
import type { SettingRows } from "../store/database/setting_rows.ts";

const SETTING = "secret_key_fingerprint";

async function fingerprint(secretKey: Uint8Array<ArrayBuffer>): Promise<string> {
  const key = await crypto.subtle.importKey("raw", secretKey, { name: "HMAC", hash: "SHA-256" }, false, [
    "sign",
  ]);
  const bytes = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode("string fingerprint"));
  return [...new Uint8Array(bytes).subarray(0, 16)].map((byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  );
}

/**
 * Makes sure that the database was written under this key.
 *
 * Refuses (OperatorError) another one: it could neither show webhook URLs nor open what is sealed.
 */
export async function requireSameKey(
  secretKey: Uint8Array<ArrayBuffer>,
  settings: SettingRows,
): Promise<void> {
  const own = await fingerprint(secretKey);
  if (await settings.setIfAbsent(SETTING, own) === own) return;
  throw new OperatorError(
    "failed",
    "Cannot start: this database was written under another secret key",
    "Bring back the secret.key (or STRING_SECRET_KEY) that belongs to it; all servers on one database share one data folder",
  );
}
