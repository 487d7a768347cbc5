/**
 * How long a body is must be said in one way: some versions of the runtime let a request through that says it in two.
 *
 * A proxy that believes the other way would see two requests where this server sees one. Source: report 23;
 * RFC 9112 §6.
 */
import { AppError } from "../base/errors.ts";

/**
 * Makes sure that nothing which follows a body with a transfer coding is taken for a request of its own: an older
 * runtime drops a length that comes after the coding before anyone can see it.
 */
export function closeAfterCoding(request: Request, response: Response): Response {
  if (request.headers.has("transfer-encoding")) response.headers.set("connection", "close");
  return response;
}

/**
 * Returns whether a body comes with a transfer coding. Throws `invalid_request` for a length beside one, and for a coding
 * that nothing here decodes.
 */
export function requirePlainFraming(headers: Headers): boolean {
  const coding = headers.get("transfer-encoding");
  if (coding === null) return false;
  if (headers.has("content-length")) {
    throw new AppError(
      "invalid_request",
      "Cannot serve a request with both a Content-Length and a Transfer-Encoding",
    );
  }
  if (coding.trim().toLowerCase() !== "chunked") {
    throw new AppError("invalid_request", "Cannot take a body in another transfer coding than chunked");
  }
  return true;
}
