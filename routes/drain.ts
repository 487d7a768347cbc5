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
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<"late">((resolve) => timer = setTimeout(() => resolve("late"), MAX_DRAIN_MS));
  try {
    while (true) {
      const step = await Promise.race([reader.read(), deadline]);
      if (step === "late" || step.done) break;
    }
  } catch {
    // The client is gone: there is nobody left to read the answer.
  } finally {
    clearTimeout(timer);
    // Whatever is still to come is not wanted; a broken stream cannot be cancelled and need not be.
    reader.cancel().catch(() => {});
  }
}
