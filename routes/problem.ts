/**
 * The one place where an error becomes a response.
 *
 * What a caller caused carries its code; everything else is a bug, whose details stay in the log under an id that the
 * client also gets. Source: SYS-ERR-01 … 03; architecture.md "Errors".
 */
import { AppError } from "../base/errors.ts";
import { createId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { redact } from "../caps/secret.ts";
import { json } from "./respond.ts";

/** Which request failed, for the log: its method and route template, never its target. */
export interface FailedRequest {
  readonly method: string;
  readonly route: string;
}

/** What a log line repeats of a method; anything else may be a secret in the wrong place. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"]);

/** Returns a method as a log line may name it. */
export function toLoggedMethod(method: string): string {
  return METHODS.has(method) ? method : "other";
}

function toAppError(
  error: unknown,
  request: FailedRequest,
  log: Log,
): { known: AppError; requestId?: string } {
  if (error instanceof AppError && error.status < 500) return { known: error };
  const requestId = createId("req_");
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : undefined;
  log.error("request failed", {
    request_id: requestId,
    method: toLoggedMethod(request.method),
    route: request.route,
    // The message of a refusal names the caller's path, which is nobody's business here.
    error: redact(
      error instanceof AppError
        ? error.code
        : error instanceof Error
        ? `${error.name}: ${error.message}`
        : String(error),
    ),
    cause: cause === undefined ? undefined : redact(cause),
    stack: error instanceof AppError || !(error instanceof Error) ? undefined : redact(error.stack ?? ""),
  });
  if (error instanceof AppError) return { known: error, requestId };
  return { known: new AppError("internal", "Cannot serve this request: something broke inside"), requestId };
}

/** Turns an error into the response for it. A refusal of HEAD is its status alone. */
export function toProblem(error: unknown, request: FailedRequest, log: Log): Response {
  const { known, requestId } = toAppError(error, request, log);
  const { allow, retryAfterSeconds, sizeBytes } = known.details;
  const headers: Record<string, string> = {
    ...(known.status === 401 ? { "www-authenticate": "Bearer" } : {}),
    ...(allow === undefined ? {} : { allow: allow.join(", ") }),
    ...(retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) }),
    ...(known.status === 503 && retryAfterSeconds === undefined ? { "retry-after": "1" } : {}),
    ...(sizeBytes === undefined ? {} : { "content-range": `bytes */${sizeBytes}` }),
  };
  if (request.method === "HEAD") {
    return new Response(null, {
      status: known.status,
      headers: { "cache-control": "no-store, no-transform", ...headers },
    });
  }
  const body = {
    error: redact(known.message),
    reason: known.code,
    hint: known.hint,
    ...(requestId === undefined ? {} : { request_id: requestId }),
  };
  return json(body, known.status, headers);
}
