/**
 * The closed list of what a caller can cause, and the one error type that carries an entry of it.
 *
 * The code is the wire's `reason`. Everything that is not an `AppError` is a bug: it becomes `internal`, and its
 * details stay in the log. Source: System API, "Status semantics"; SYS-ERR-02.
 */
export const ERRORS = {
  invalid_request: { status: 400, hint: "Correct the request as the message says and send it again." },
  invalid_path: {
    status: 400,
    hint: "Use a workspace-relative path without '..', '\\' and NUL, percent-encoded once.",
  },
  conflicting_credentials: {
    status: 400,
    hint: "Send one secret: in Authorization or in ?cap=, not two different ones.",
  },
  bad_host: { status: 400, hint: "Send exactly one Host header that matches the request target." },
  missing_capability: { status: 401, hint: "Send 'Authorization: Bearer <secret>' or '?cap=<secret>'." },
  unknown_token: { status: 401, hint: "Check the secret, or ask for a new capability." },
  expired: { status: 401, hint: "Ask for a new capability." },
  revoked: { status: 401, hint: "Ask for a new capability." },
  already_used: { status: 401, hint: "A single-use capability works once; ask for a new one." },
  admin_required: {
    status: 401,
    hint: "Send the admin token (see <data>/admin.token) or the agent's own key as 'Authorization: Bearer'.",
  },
  verb_not_allowed: { status: 403, hint: "Ask for a capability with this verb." },
  path_outside_scope: { status: 403, hint: "Stay inside the subtree that the capability names." },
  symlink: { status: 403, hint: "Address the file itself; links are never followed." },
  permission_denied: { status: 403, hint: "Give the server's user access to this file on the host." },
  host_not_allowed: {
    status: 403,
    hint: "Start the server with --allowed-host or --public-url, or send a token.",
  },
  cross_site: { status: 403, hint: "Call this from a program, not from another site's page." },
  not_your_agent: { status: 403, hint: "An agent's key works for that agent alone." },
  prefetch: { status: 403, hint: "A single-use link is not served to a prefetch; open it for real." },
  not_found: { status: 404, hint: "Check the path." },
  agent_not_found: { status: 404, hint: "Create it with POST /agents, or list with GET /agents." },
  capability_not_found: { status: 404, hint: "List with GET /capabilities." },
  method_not_allowed: { status: 405, hint: "Use one of the methods in the Allow header." },
  request_timeout: { status: 408, hint: "Send the body without long pauses." },
  is_directory: { status: 409, hint: "Address a file inside it." },
  parent_is_file: { status: 409, hint: "A parent of this path is a file; choose another path or remove it." },
  not_a_file: { status: 409, hint: "Only regular files can be read or written here." },
  precondition_failed: { status: 412, hint: "Read the current version and decide again." },
  too_large: { status: 413, hint: "Send less; the limit is in GET /describe." },
  unsupported_media_type: { status: 415, hint: "Send the media type that the message names." },
  range_not_satisfiable: { status: 416, hint: "Ask for a range inside the file." },
  rate_limited: { status: 429, hint: "Wait as Retry-After says." },
  internal: { status: 500, hint: "Look up the request_id in the server's log." },
  not_supported: { status: 501, hint: "See GET /describe for what this server can do." },
  unavailable: { status: 503, hint: "Try again as Retry-After says." },
  disk_full: { status: 507, hint: "Free disk space on the host, or lower --disk-reserve." },
} as const satisfies Record<string, { status: number; hint: string }>;

/** A code from the closed list; on the wire it is the `reason`. */
export type ErrorCode = keyof typeof ERRORS;

/** What an answer may add to the code's own status and hint. */
export interface ErrorDetails {
  /** What to do next, where it is more exact than the code's own hint. */
  hint?: string;
  /** Methods for the `Allow` header (405). */
  allow?: readonly string[];
  /** Seconds for `Retry-After` (429, 503). */
  retryAfterSeconds?: number;
  /** Current size of the file in bytes, for the `Content-Range` of a 416. */
  sizeBytes?: number;
}

/** Something a caller caused. The message is for a person and never holds a secret or a path of the host. */
export class AppError extends Error {
  override readonly name = "AppError";

  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly details: ErrorDetails = {},
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
  }

  /** The HTTP status of the code. */
  get status(): number {
    return ERRORS[this.code].status;
  }

  /** What to do next. */
  get hint(): string {
    return this.details.hint ?? ERRORS[this.code].hint;
  }
}
