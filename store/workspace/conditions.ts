/** Whether a write may happen, by what its request demanded of the present file. Pure. */
import { AppError } from "../../base/errors.ts";
import type { FileVersion, WriteConditions } from "./types.ts";

function refuse(why: string): never {
  throw new AppError("precondition_failed", `Cannot change this file: ${why}`);
}

/** RFC 9110 8.8.3.2: weak tags never match where bytes are to be replaced. */
function matchesStrongly(tags: readonly string[], etag: string): boolean {
  return tags.some((tag) => tag === etag && !tag.startsWith("W/"));
}

/** A tag that must not be current is compared weakly: `W/"x"` names the same file as `"x"`. */
function matchesWeakly(tags: readonly string[], etag: string): boolean {
  return tags.some((tag) => (tag.startsWith("W/") ? tag.slice(2) : tag) === etag);
}

/**
 * Throws AppError `precondition_failed` unless `current` (undefined: there is no file) meets the conditions.
 *
 * `ifUnmodifiedSinceMs` counts only where `ifMatch` is absent, and compares whole seconds, as the header has no more.
 * Source: SYS-FS-05; RFC 9110 13.2.2; report 16.
 */
export function checkWriteConditions(
  conditions: WriteConditions | undefined,
  current: FileVersion | undefined,
): void {
  if (conditions === undefined) return;
  const { ifMatch, ifNoneMatch, ifUnmodifiedSinceMs } = conditions;
  if (ifMatch !== undefined) {
    if (current === undefined) refuse("there is no such file to match");
    if (ifMatch !== "*" && !matchesStrongly(ifMatch, current.etag)) refuse("it is another version");
  } else if (ifUnmodifiedSinceMs !== undefined && current !== undefined) {
    if (Math.floor(current.mtimeMs / 1000) > Math.floor(ifUnmodifiedSinceMs / 1000)) {
      refuse("it was modified since");
    }
  }
  if (ifNoneMatch !== undefined && current !== undefined) {
    if (ifNoneMatch === "*") refuse("it exists already");
    if (matchesWeakly(ifNoneMatch, current.etag)) refuse("it is the version that was excluded");
  }
}
