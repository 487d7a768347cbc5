/**
 * Makes a refusal readable: the rest of a body is read and dropped before the answer.
 *
 * A client that is still sending when the connection closes often loses the answer (report 11).
 * A client that waits for `100 Continue` is answered at once. Bounded in time, constant in memory.
 */

const MAX_DRAIN_MS = 30_000;

/** Reads and drops what is left of a request's body, for half a minute at most. Never throws. */
export async function drainBody(request: Request): Promise<void> {
  const { body } = request;
  if (body === null || body.locked || request.headers.has("expect")) return;
  const reader = body.getReader();
  const giveUp = () =>
    void reader.cancel().catch(() => {/* a broken stream cannot be cancelled and need not be */});
  // Cancelling ends a read that waits. A race with a promise would keep every chunk until the end (report 11).
  const timer = setTimeout(giveUp, MAX_DRAIN_MS);
  try {
    while (!(await reader.read()).done);
  } catch {
    // The client is gone: there is nobody left to read the answer.
  } finally {
    clearTimeout(timer);
    giveUp();
  }
}
