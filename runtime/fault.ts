/**
 * Words for a bug in the log: enough to find it, without secrets, queries and paths of the host.
 *
 * Source: SYS-ERR-03; report 40.
 */
import type { LogFields } from "../base/log.ts";
import { redact } from "../caps/secret.ts";

const QUERY = /\?[^\s"'`)]+/g;
/** An absolute path or file URL; its last segment stays, so that a stack still leads to its line. */
const HOST_PATH = /(?:file:\/\/)?(?:[A-Za-z]:)?(?:[\\/][^\s"'`():\\/]+)+[\\/]/g;
const MAX_FRAMES = 6;

/** Returns `text` with secrets, queries and folders of the host cut out. */
export function scrub(text: string): string {
  return redact(text).replace(QUERY, "?***").replace(HOST_PATH, "");
}

/** Returns the fields that describe a fault: its kind, its message, and where it happened. */
export function describeFault(error: unknown): LogFields {
  if (!(error instanceof Error)) return { fault: scrub(String(error)).slice(0, 500) };
  const frames = (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line)).slice(0, MAX_FRAMES);
  return {
    fault: error.name,
    detail: scrub(error.message).slice(0, 500),
    at: frames.map((line) => scrub(line).trim().replace(/^at /, "")).join(" < "),
  };
}
