/** The reasons of refusals that routes share, for the table of routes. */
import type { ErrorCode } from "../base/errors.ts";

/** What any route may answer. */
export const COMMON_ERRORS = ["bad_host", "unavailable"] as const satisfies readonly ErrorCode[];

/** What is wrong with a secret. */
export const CREDENTIAL = [
  "missing_capability",
  "unknown_token",
  "rate_limited",
  "expired",
  "revoked",
  "already_used",
] as const;
/** What is wrong with what is asked of a living secret. */
export const SCOPE = [
  "conflicting_credentials",
  "invalid_request",
  "invalid_path",
  "verb_not_allowed",
  "path_outside_scope",
] as const;
/** What is wrong with the file itself. */
export const FILE = [
  "symlink",
  "permission_denied",
  "is_directory",
  "parent_is_file",
  "not_a_file",
  "not_supported",
] as const;
/** Who is not let in on the admin and channel planes. */
export const ADMIN = [
  "admin_required",
  "unknown_token",
  "rate_limited",
  "host_not_allowed",
  "cross_site",
] as const;
/** What is wrong with a JSON body. */
export const JSON_BODY = [
  "invalid_request",
  "too_large",
  "unsupported_media_type",
  "request_timeout",
] as const;
