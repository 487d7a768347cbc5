/** Pages of capability records. Source: SYS-CAP-03. */
import { encodeBase64Url, tryDecodeBase64Url } from "../base/base64url.ts";
import { AppError } from "../base/errors.ts";
import type { CapabilityRows } from "../store/database/capability_rows.ts";
import { toCapability } from "./model.ts";
import { type CapabilityRecord, toRecord } from "./wire.ts";

/** Most records in one page. */
export const MAX_LIST_LIMIT = 1000;
const DEFAULT_LIST_LIMIT = 100;

/** Which records to list. */
export interface ListOptions {
  readonly agentId?: string;
  /** Only those of one incarnation of the agent. */
  readonly incarnation?: string;
  /** From 1 to `MAX_LIST_LIMIT`; 100 unless given. */
  readonly limit?: number;
  /** The `cursor` of the page before. */
  readonly cursor?: string;
}

/** One page: the records, newest first, and where the next page begins if there is one. */
export interface CapabilityPage {
  readonly capabilities: readonly CapabilityRecord[];
  readonly cursor?: string;
}

/** Wraps a row's number, so that nobody counts on what is in it. */
function encodeCursor(seq: number): string {
  return encodeBase64Url(new TextEncoder().encode(String(seq)));
}

function decodeCursor(cursor: string): number {
  const bytes = cursor.length <= 32 ? tryDecodeBase64Url(cursor) : undefined;
  const seq = bytes === undefined ? Number.NaN : Number(new TextDecoder().decode(bytes));
  // Only the one spelling that we gave out.
  if (Number.isSafeInteger(seq) && seq >= 1 && encodeCursor(seq) === cursor) return seq;
  throw new AppError(
    "invalid_request",
    "Cannot list capabilities: the cursor is not one that an earlier page gave",
  );
}

/**
 * Returns one page of records without secrets, with what each is at `nowMs`.
 *
 * Throws AppError `invalid_request` for a limit out of bounds and for a cursor that no page gave.
 */
export async function listCapabilities(
  rows: Pick<CapabilityRows, "list">,
  { agentId, incarnation, limit = DEFAULT_LIST_LIMIT, cursor }: ListOptions,
  nowMs: number,
): Promise<CapabilityPage> {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIST_LIMIT) {
    throw new AppError(
      "invalid_request",
      `Cannot list capabilities: limit must be an integer from 1 to ${MAX_LIST_LIMIT}`,
    );
  }
  const found = await rows.list({
    ...(agentId === undefined ? {} : { agentId }),
    ...(incarnation === undefined ? {} : { incarnation }),
    ...(cursor === undefined ? {} : { beforeSeq: decodeCursor(cursor) }),
    // One more than the page shows that there is another.
    limit: limit + 1,
  });
  const page = found.slice(0, limit);
  const last = page.at(-1);
  return {
    capabilities: page.map((row) => toRecord(toCapability(row), nowMs)),
    ...(found.length > limit && last !== undefined ? { cursor: encodeCursor(last.seq) } : {}),
  };
}
