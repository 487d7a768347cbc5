/**
 * Workspace paths: the one place that turns text into a `CanonicalPath`.
 *
 * The policy compares and the disk resolves the very same value, so that no second reading of a path can open
 * what the first one refused. Pure text in, value out. Source: SYS-FS-07, SYS-FS-08; reports 8, 14, 19, 20, 23.
 */

declare const canonical: unique symbol;

/** Segments joined by "/", none empty, none "." or ".."; "" is the workspace itself. Made only in this file. */
export type CanonicalPath = string & { readonly [canonical]: true };

/** Longest segment, in bytes of UTF-8. */
export const MAX_SEGMENT_BYTES = 255;
/** Longest path, in bytes of UTF-8. */
export const MAX_PATH_BYTES = 4095;
/** The folder in each workspace that belongs to String: outside every grant. */
export const RESERVED_SEGMENT = ".string";

/** A canonical path, or the sentence that says why there can be none. */
export type PathResult =
  | { readonly ok: true; readonly path: CanonicalPath }
  | { readonly ok: false; readonly message: string };

/** The workspace itself. */
export const ROOT_PATH = "" as CanonicalPath;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();
// Every character stands for itself, no segment can be "." or "..", and no length check can fail on 255 characters.
const PLAIN_PATH = /^(?:[A-Za-z0-9_~-][A-Za-z0-9._~-]*\/)*[A-Za-z0-9_~-][A-Za-z0-9._~-]*$/;

function refuse(message: string): PathResult {
  return { ok: false, message: `Cannot use this path: ${message}` };
}

/** Decodes one percent-encoded segment once; undefined for a bad escape or bytes that are no UTF-8. */
function decodeSegment(raw: string): string | undefined {
  const bytes = encoder.encode(raw);
  const out = new Uint8Array(bytes.length);
  let length = 0;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]!;
    if (byte !== 0x25) {
      out[length++] = byte;
      continue;
    }
    const hex = String.fromCharCode(bytes[index + 1] ?? 0, bytes[index + 2] ?? 0);
    if (!/^[0-9A-Fa-f]{2}$/.test(hex)) return undefined;
    out[length++] = Number.parseInt(hex, 16);
    index += 2;
  }
  try {
    return utf8.decode(out.subarray(0, length));
  } catch {
    return undefined; // not UTF-8: the caller answers with a sentence of its own
  }
}

/** What a caller's grammar allows inside a segment. */
interface SegmentRules {
  backslash: boolean;
}

function joinSegments(segments: readonly string[], rules: SegmentRules): PathResult {
  const kept: string[] = [];
  for (const segment of segments) {
    if (segment === "" || segment === ".") continue;
    if (segment === "..") return refuse("it has a '..' segment");
    if (segment.includes("\0")) return refuse("it has a NUL character");
    if (segment.includes("/")) return refuse("a segment has an encoded slash");
    if (!rules.backslash && segment.includes("\\")) return refuse("it has a backslash");
    if (segment.length * 3 > MAX_SEGMENT_BYTES && encoder.encode(segment).length > MAX_SEGMENT_BYTES) {
      return refuse(`a segment is longer than ${MAX_SEGMENT_BYTES} bytes`);
    }
    kept.push(segment);
  }
  const path = kept.join("/");
  if (path.length * 3 > MAX_PATH_BYTES && encoder.encode(path).length > MAX_PATH_BYTES) {
    return refuse(`it is longer than ${MAX_PATH_BYTES} bytes`);
  }
  return { ok: true, path: path as CanonicalPath };
}

/**
 * Parses the part of a request target that follows `/fs/`, as it was sent (percent-encoded, without the query).
 *
 * Decodes each segment exactly once. Refuses `..` in any spelling, an encoded slash, a backslash, NUL, bad escapes,
 * bytes that are no UTF-8 and what is too long; drops empty and `.` segments. Source: SYS-FS-07.
 */
export function parseTargetPath(raw: string): PathResult {
  if (raw.length <= MAX_SEGMENT_BYTES && PLAIN_PATH.test(raw)) {
    return { ok: true, path: raw as CanonicalPath };
  }
  // A raw byte that is no UTF-8 reaches us as U+FFFD: two names would become one.
  if (raw.includes("\uFFFD") || !raw.isWellFormed()) return refuse("it is not valid UTF-8");
  const segments: string[] = [];
  for (const segment of raw.split("/")) {
    const decoded = decodeSegment(segment);
    if (decoded === undefined) return refuse("it has a bad percent-escape or is not valid UTF-8");
    segments.push(decoded);
  }
  return joinSegments(segments, { backslash: false });
}

/**
 * Parses a path that is plain text already (a JSON value, a flag): nothing is decoded.
 *
 * A leading slash is dropped. `backslash` allows `\` as an ordinary character (the External File System API does).
 */
export function parsePlainPath(text: string, rules: SegmentRules = { backslash: false }): PathResult {
  if (!text.isWellFormed()) return refuse("it is not valid Unicode");
  return joinSegments(text.split("/"), rules);
}

/** Returns whether `path` is `prefix` or inside it: whole segments, byte-exact; "" covers everything. */
export function covers(prefix: CanonicalPath, path: CanonicalPath): boolean {
  if (prefix === "" || prefix === path) return true;
  return path.length > prefix.length && path.charCodeAt(prefix.length) === 0x2F && path.startsWith(prefix);
}

/** Characters that some file systems leave out of a name. */
const IGNORED = /\p{Default_Ignorable_Code_Point}/gu;

/**
 * Returns whether a path is inside the folder that belongs to String.
 *
 * On a file system that folds names `.STRING`, compatible letters, invisible ones and dots at the end are the same.
 */
export function isReserved(path: CanonicalPath): boolean {
  const first = path.charCodeAt(0);
  if (first !== 0x2E && !(first > 0x7F)) return false;
  const end = path.indexOf("/");
  const segment = end < 0 ? path : path.slice(0, end);
  return segment.normalize("NFKC").replaceAll(IGNORED, "").replace(/[. ]+$/, "").toLowerCase() ===
    RESERVED_SEGMENT;
}

/** Returns the parent ("" for a path of one segment) and the last segment of a path that is not the root. */
export function splitPath(path: CanonicalPath): { parent: CanonicalPath; name: string } {
  const slash = path.lastIndexOf("/");
  return { parent: path.slice(0, Math.max(slash, 0)) as CanonicalPath, name: path.slice(slash + 1) };
}
