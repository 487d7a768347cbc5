/**
 * The operator's token: made at the first start, kept as a hash, left where the command line on this host finds it.
 *
 * The file comes first and the hash second, so that a crash in between is mended by the next start, and of two processes
 * that start at once both end up with the token in the file. Source: architecture.md "Who is the operator".
 */
import { OperatorError } from "../base/operator_error.ts";
import { createSecret, PREFIX } from "../base/ids.ts";
import { hashSecret } from "../caps/secret.ts";
import type { DataFolder } from "../store/data_folder/open.ts";
import type { SettingRows } from "../store/database/setting_rows.ts";

const SETTING = "admin_token_sha256";

const TOKEN = new RegExp(`^${PREFIX.adminToken}[A-Za-z0-9_-]{43}$`);

async function readOrMake(folder: DataFolder): Promise<string> {
  const present = await folder.readAdminToken();
  if (present !== undefined) return present;
  await folder.writeAdminToken(createSecret(PREFIX.adminToken), { keepExisting: true });
  return await folder.readAdminToken() ?? "";
}

/**
 * Makes sure that there is an admin token. Returns whether it came into force now.
 *
 * Later starts look at the hash alone: who removes the file does not make a new token. Refuses (OperatorError) a file that
 * holds no token, or one that could be guessed.
 */
export async function ensureAdminToken(folder: DataFolder, settings: SettingRows): Promise<boolean> {
  if (await settings.get(SETTING) !== undefined) return false;
  const token = await readOrMake(folder);
  const hash = TOKEN.test(token) ? hashSecret(token) : undefined;
  if (hash === undefined) {
    throw new OperatorError(
      "failed",
      "Cannot start: the file admin.token in the data folder holds no admin token",
      "Remove that file and start again: a new token is made",
    );
  }
  return await settings.setIfAbsent(SETTING, hash) === hash;
}

/** Returns the SHA-256 (hex) of the admin token that is in force. */
export function readAdminTokenHash(settings: SettingRows): Promise<string | undefined> {
  return settings.get(SETTING);
}
