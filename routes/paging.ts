/** Paging of listings: how many, and where to go on. */
import { encodeBase64Url, tryDecodeBase64Url } from "../base/base64url.ts";
import { AppError } from "../base/errors.ts";
import { readSingleQuery } from "./target.ts";

const MAX_PAGE = 1000;
const USUAL_PAGE = 100;

/** Reads `limit` of a listing: 1 to 1000, 100 when absent. Throws `invalid_request`. */
export function readLimit(query: string): number {
  const text = readSingleQuery(query, "limit");
  if (text === undefined) return USUAL_PAGE;
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > MAX_PAGE) {
    throw new AppError("invalid_request", `Cannot list: limit must be an integer from 1 to ${MAX_PAGE}`);
  }
  return limit;
}

/** Reads `cursor` of a listing: where the page before ended, 0 when absent. Throws `invalid_request`. */
export function readSeqCursor(query: string): number {
  const text = readSingleQuery(query, "cursor");
  if (text === undefined) return 0;
  const bytes = tryDecodeBase64Url(text);
  const seq = bytes === undefined ? "" : new TextDecoder().decode(bytes);
  if (!/^\d{1,15}$/.test(seq)) {
    throw new AppError("invalid_request", "Cannot list: cursor is none that a page before gave");
  }
  return Number(seq);
}

/** Returns the cursor of a page that ended at `seq`; what is in it is nobody's business. */
export function toSeqCursor(seq: number): string {
  return encodeBase64Url(new TextEncoder().encode(String(seq)));
}
