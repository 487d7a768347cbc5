/** Reads the small JSON bodies of the admin plane. Source: SYS-CAP-02; architecture.md "Errors". */
import { AppError } from "../base/errors.ts";
import { LimitedBytesTransformStream, toBytes } from "../base/std.ts";

/** Longest JSON body, in bytes. */
export const MAX_JSON_BYTES = 65_536;

/**
 * Reads a body of at most `maxBytes` as UTF-8 text.
 *
 * Throws `too_large`, `invalid_request`, or `request_timeout` when it is not there after `timeoutMs`: it is small.
 */
export async function readText(request: Request, maxBytes: number, timeoutMs: number): Promise<string> {
  const tooLarge = () => new AppError("too_large", `Cannot read this body: the limit is ${maxBytes} bytes`);
  const declared = request.headers.get("content-length");
  if (declared !== null && Number(declared) > maxBytes) throw tooLarge();
  if (request.body === null) return "";
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), timeoutMs);
  let bytes: Uint8Array;
  try {
    bytes = await toBytes(
      request.body.pipeThrough(new LimitedBytesTransformStream(maxBytes, { error: true }), {
        preventCancel: true,
        signal: patience.signal,
      }),
    );
  } catch (error) {
    if (error instanceof RangeError) throw tooLarge();
    if (patience.signal.aborted) {
      throw new AppError("request_timeout", `Cannot read this body: it was not there after ${timeoutMs} ms`);
    }
    throw new AppError("invalid_request", "Cannot read this body: it broke off", {}, error);
  } finally {
    clearTimeout(timer);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new AppError("invalid_request", "Cannot read this body: it is not valid UTF-8");
  }
}

const FORM = "application/x-www-form-urlencoded";

/** Returns the media type of a request in lower case without parameters, or "". */
export function mediaTypeOf(request: Request): string {
  return (request.headers.get("content-type") ?? "").split(";")[0]!.trim().toLowerCase();
}

/**
 * Reads a JSON object.
 *
 * A missing media type passes, and so does the form type that curl sends with `-d`, as long as the body is a JSON object.
 * Throws `unsupported_media_type`, `invalid_request` or `too_large`.
 */
export async function readJsonObject(
  request: Request,
  timeoutMs: number,
): Promise<Record<string, unknown>> {
  const type = mediaTypeOf(request);
  const isJson = type === "" || type === "application/json" || type.endsWith("+json");
  const wrongType = () =>
    new AppError("unsupported_media_type", "Cannot read this body: it must be JSON", {
      hint: "Send a JSON object with 'Content-Type: application/json'.",
    });
  if (!isJson && type !== FORM) throw wrongType();
  const text = await readText(request, MAX_JSON_BYTES, timeoutMs);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    if (!isJson) throw wrongType();
    throw new AppError("invalid_request", "Cannot read this body: it is not valid JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    if (!isJson) throw wrongType();
    throw new AppError("invalid_request", "Cannot read this body: it must be a JSON object");
  }
  return value as Record<string, unknown>;
}
