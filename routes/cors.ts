/**
 * Lets pages of origins that the operator listed move bytes with a capability; off otherwise.
 *
 * The preflight carries no secret and is answered without one. Source: report 56; architecture.md "No CORS header unless
 * configured".
 */

const METHODS = "GET, HEAD, PUT, DELETE";
const REQUEST_HEADERS =
  "Authorization, Content-Type, If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since, " +
  "If-Range, Range";
const EXPOSED =
  "ETag, Content-Length, Content-Range, Content-Disposition, Last-Modified, Accept-Ranges, Retry-After";

function listedOrigin(request: Request, origins: readonly string[]): string | undefined {
  const origin = request.headers.get("origin");
  return origin !== null && origins.includes(origin) ? origin : undefined;
}

/** Returns whether a request is a browser's question before the real one. */
export function isPreflight(request: Request): boolean {
  return request.method === "OPTIONS" && request.headers.has("origin") &&
    request.headers.has("access-control-request-method");
}

/** Answers a preflight; an origin that is not listed gets no permission. */
export function toPreflight(request: Request, origins: readonly string[]): Response {
  const origin = listedOrigin(request, origins);
  return new Response(null, {
    status: 204,
    headers: {
      vary: "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
      ...(origin === undefined ? {} : {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": METHODS,
        "access-control-allow-headers": REQUEST_HEADERS,
        "access-control-max-age": "600",
      }),
    },
  });
}

/** Adds to a response what a page of a listed origin may read. */
export function addCorsHeaders(request: Request, response: Response, origins: readonly string[]): Response {
  response.headers.append("vary", "Origin");
  const origin = listedOrigin(request, origins);
  if (origin !== undefined) {
    response.headers.set("access-control-allow-origin", origin);
    response.headers.set("access-control-expose-headers", EXPOSED);
  }
  return response;
}
