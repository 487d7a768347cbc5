/** JSON answers of every plane but the file bodies: exact length, never stored, never transformed on the way. */

/**
 * Returns a JSON response.
 *
 * It ends with a line break, for people who read it in a terminal. The length is set, so that HEAD answers the same
 * headers as GET on every runtime (report 26); `no-transform` keeps the runtime from compressing what may hold a secret
 * (M5).
 */
export function json(body: unknown, status = 200, headers: Record<string, string> = {}): Response {
  const bytes = new TextEncoder().encode(`${JSON.stringify(body)}\n`);
  return new Response(bytes, {
    status,
    headers: {
      "content-type": "application/json",
      "content-length": String(bytes.length),
      "cache-control": "no-store, no-transform",
      // As in fs.ts: some versions of the runtime say it of whatever has a body, so not of HEAD.
      "vary": "Accept-Encoding",
      "x-content-type-options": "nosniff",
      ...headers,
    },
  });
}
