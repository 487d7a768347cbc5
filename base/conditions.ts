/**
 * Conditional requests: what the headers ask for, and whether it holds.
 *
 * Pure. Source: RFC 9110 §13; SYS-FS-02, SYS-FS-05.
 */
import { AppError } from "./errors.ts";
import { parseHttpDate } from "./http_date.ts";

/** Returns the value of a request header by its lower-case name. */
export type HeaderGetter = (name: string) => string | null | undefined;

/** Entity tags as they were sent, or `*`. */
export type TagList = readonly string[] | "*";

/** What a reader knows already. Times are Unix milliseconds, in whole seconds. */
export interface ReadConditions {
  readonly ifMatch?: TagList;
  readonly ifUnmodifiedSinceMs?: number;
  readonly ifNoneMatch?: TagList;
  readonly ifModifiedSinceMs?: number;
}

/** What must hold of the present file for a change to happen. */
export interface WriteConditions {
  /** Strong tags of which one must be current, or `*` for any existing file. */
  readonly ifMatch?: TagList;
  /** Tags without their `W/` of which none may be current, or `*` for no file at all. */
  readonly ifNoneMatch?: TagList;
  /** Unix milliseconds (whole seconds): the file must not be newer. */
  readonly ifUnmodifiedSinceMs?: number;
}

/** The version that conditions are held against; `etag` is strong, with its quotes. */
export interface Validators {
  readonly etag: string;
  readonly mtimeMs: number;
}

const UNCONDITIONAL = Object.freeze({});
// Commas are ordinary characters inside the quotes of a tag.
const NEXT_TAG = /[ \t]*(?:((?:W\/)?"[\x21\x23-\x7E\x80-\uFFFF]*")[ \t]*)?(?:,|$)/y;

/** Returns the tags of a list, `*`, or undefined when it is not well-formed. */
function parseTags(header: string): TagList | undefined {
  if (header.trim() === "*") return "*";
  const tags: string[] = [];
  NEXT_TAG.lastIndex = 0;
  while (NEXT_TAG.lastIndex < header.length) {
    const match = NEXT_TAG.exec(header);
    if (match === null) return undefined;
    if (match[1] !== undefined) tags.push(match[1]);
  }
  return tags.length > 0 ? tags : undefined;
}

function withoutWeakness(tag: string): string {
  return tag.startsWith("W/") ? tag.slice(2) : tag;
}

/** Whole seconds, because that is all a date in a header can say. */
function isNewer(mtimeMs: number, dateMs: number): boolean {
  return Math.floor(mtimeMs / 1000) * 1000 > dateMs;
}

function parseDate(header: string | null | undefined): number | undefined {
  return header ? parseHttpDate(header.trim()) : undefined;
}

/**
 * Reads the conditions of a GET or HEAD.
 *
 * A list of tags that is not well-formed matches nothing; a date that is none is ignored. A date that a tag list
 * overrides is left out.
 */
export function parseReadConditions(get: HeaderGetter): ReadConditions {
  const match = get("if-match"), noneMatch = get("if-none-match");
  const unmodified = get("if-unmodified-since"), modified = get("if-modified-since");
  if (!match && !noneMatch && !unmodified && !modified) return UNCONDITIONAL;
  const ifUnmodifiedSinceMs = match ? undefined : parseDate(unmodified);
  const ifModifiedSinceMs = noneMatch ? undefined : parseDate(modified);
  return {
    ...(match ? { ifMatch: parseTags(match) ?? [] } : {}),
    ...(ifUnmodifiedSinceMs === undefined ? {} : { ifUnmodifiedSinceMs }),
    ...(noneMatch ? { ifNoneMatch: parseTags(noneMatch) ?? [] } : {}),
    ...(ifModifiedSinceMs === undefined ? {} : { ifModifiedSinceMs }),
  };
}

/** Judges a read of an existing file, in the order of RFC 9110 §13.2.2. */
export function evaluateRead(
  conditions: ReadConditions,
  { etag, mtimeMs }: Validators,
): "proceed" | "not_modified" | "precondition_failed" {
  const { ifMatch, ifUnmodifiedSinceMs, ifNoneMatch, ifModifiedSinceMs } = conditions;
  if (ifMatch !== undefined) {
    // Strong comparison: a weak tag never equals ours.
    if (ifMatch !== "*" && !ifMatch.includes(etag)) return "precondition_failed";
  } else if (ifUnmodifiedSinceMs !== undefined && isNewer(mtimeMs, ifUnmodifiedSinceMs)) {
    return "precondition_failed";
  }
  if (ifNoneMatch !== undefined) {
    const known = ifNoneMatch === "*" || ifNoneMatch.some((tag) => withoutWeakness(tag) === etag);
    return known ? "not_modified" : "proceed";
  }
  return ifModifiedSinceMs !== undefined && !isNewer(mtimeMs, ifModifiedSinceMs) ? "not_modified" : "proceed";
}

/**
 * Returns whether a `Range` may be honoured: there is no `If-Range`, or it names exactly this version.
 *
 * A weak tag never does; a date does only when it is the file's own second.
 */
export function ifRangeHolds(ifRange: string | null | undefined, { etag, mtimeMs }: Validators): boolean {
  if (!ifRange) return true;
  const validator = ifRange.trim();
  return validator === etag || parseHttpDate(validator) === Math.floor(mtimeMs / 1000) * 1000;
}

/**
 * Reads the conditions of a PUT or DELETE.
 *
 * Throws AppError `invalid_request` for a list of tags that is not well-formed: a write must not happen because its
 * condition could not be read. A date that is none is ignored, as RFC 9110 §13.1.4 says.
 */
export function parseWriteConditions(get: HeaderGetter): WriteConditions {
  const match = get("if-match"), noneMatch = get("if-none-match"), unmodified = get("if-unmodified-since");
  // Present and empty is a condition that cannot be read, not none.
  const hasMatch = typeof match === "string", hasNoneMatch = typeof noneMatch === "string";
  if (!hasMatch && !hasNoneMatch && !unmodified) return UNCONDITIONAL;
  const ifMatch = hasMatch ? readTags("If-Match", match) : undefined;
  const ifNoneMatch = hasNoneMatch ? readTags("If-None-Match", noneMatch) : undefined;
  const ifUnmodifiedSinceMs = hasMatch ? undefined : parseDate(unmodified);
  return {
    ...(ifMatch === undefined ? {} : { ifMatch: keepStrong(ifMatch) }),
    ...(ifNoneMatch === undefined ? {} : { ifNoneMatch: keepOpaque(ifNoneMatch) }),
    ...(ifUnmodifiedSinceMs === undefined ? {} : { ifUnmodifiedSinceMs }),
  };
}

function readTags(name: string, header: string): TagList {
  const tags = parseTags(header);
  if (tags !== undefined) return tags;
  throw new AppError(
    "invalid_request",
    `Cannot read ${name}: it must be "*" or entity tags in double quotes`,
  );
}

function keepStrong(tags: TagList): TagList {
  return tags === "*" ? tags : tags.filter((tag) => !tag.startsWith("W/"));
}

function keepOpaque(tags: TagList): TagList {
  return tags === "*" ? tags : tags.map(withoutWeakness);
}
