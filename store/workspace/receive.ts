/**
 * Takes a request's body into a staging file.
 *
 * Up to 64 KiB are gathered and written at once; what is longer flows by the runtime's own pipe, which no wrapper may
 * slow down (performance.md §2, trap 13), while a timer watches the file grow. When this fails for a reason of ours the
 * body is left unlocked and uncancelled, so that the caller can read and drop the rest (report 11).
 */
import { AppError } from "../../base/errors.ts";
import { diskCodeOf } from "./disk_errors.ts";
import type { StagedFile } from "./opener.ts";
import type { Bytes } from "./types.ts";

/** Longest body that is gathered in memory, in bytes. */
const MAX_GATHERED = 64 * 1024;
const WATCH_MS = 50;

/** What bounds one body. */
export interface Bounds {
  readonly maxBytes: number;
  readonly declaredBytes: number | undefined;
  readonly idleTimeoutMs: number;
  /** Ends the receiving with its reason. */
  readonly signal: AbortSignal;
  /** Throws AppError `disk_full` when the disk has come too close to its end. */
  checkReserve(): void;
}

/** Returns the refusal of a body that is longer than allowed. */
export function tooLarge(maxBytes: number): AppError {
  return new AppError("too_large", `Cannot take this body: it is longer than ${maxBytes} bytes`);
}

function brokeOff(cause?: unknown): AppError {
  return new AppError("invalid_request", "Cannot take this body: it broke off before its end", {}, cause);
}

function stalled(idleTimeoutMs: number): AppError {
  return new AppError(
    "request_timeout",
    `Cannot take this body: nothing of it arrived for ${idleTimeoutMs} ms`,
  );
}

async function writeAll(file: Deno.FsFile, chunks: readonly Bytes[]): Promise<void> {
  for (const chunk of chunks) {
    for (let written = 0; written < chunk.length;) {
      written += await file.write(written === 0 ? chunk : chunk.subarray(written));
    }
  }
}

function joined(chunks: readonly Bytes[], total: number): Bytes[] {
  if (chunks.length < 2) return [...chunks];
  const all = new Uint8Array(total);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return [all];
}

interface Gathered {
  readonly chunks: readonly Bytes[];
  readonly bytes: number;
  /** Whether the body ended. */
  readonly whole: boolean;
}

/** Reads until the end or until more than 64 KiB are there, each read within the idle time. */
async function gather(body: ReadableStream<Bytes>, bounds: Bounds): Promise<Gathered> {
  const reader = body.getReader();
  const chunks: Bytes[] = [];
  let bytes = 0;
  const idle = Promise.withResolvers<never>();
  let seen = -1;
  // Fires between once and twice the idle time after the last byte; one timer for the whole body.
  const timer = setInterval(() => {
    if (bytes === seen) idle.reject(stalled(bounds.idleTimeoutMs));
    seen = bytes;
  }, bounds.idleTimeoutMs);
  const onAbort = () => idle.reject(bounds.signal.reason);
  bounds.signal.addEventListener("abort", onAbort);
  idle.promise.catch(() => {/* also when nobody waits any more */});
  try {
    bounds.signal.throwIfAborted();
    while (bytes <= MAX_GATHERED) {
      const { done, value } = await Promise.race([reader.read(), idle.promise]);
      if (done) return { chunks, bytes, whole: true };
      chunks.push(value);
      bytes += value.length;
      if (bytes > bounds.maxBytes) throw tooLarge(bounds.maxBytes);
    }
    return { chunks, bytes, whole: false };
  } catch (error) {
    throw error instanceof AppError ? error : brokeOff(error);
  } finally {
    clearInterval(timer);
    bounds.signal.removeEventListener("abort", onAbort);
    reader.releaseLock();
  }
}

/** Watches a staging file grow; `signal` aborts with the reason when it must not go on. */
function watch(staged: StagedFile, bounds: Bounds): { signal: AbortSignal; stop(): void } {
  const controller = new AbortController();
  let size = -1;
  let grewMs = performance.now();
  const timer = setInterval(() => {
    try {
      const now = performance.now();
      const grown = staged.facts().size;
      if (grown !== size) {
        size = grown;
        grewMs = now;
        bounds.checkReserve();
      }
      if (size > bounds.maxBytes) throw tooLarge(bounds.maxBytes);
      if (now - grewMs >= bounds.idleTimeoutMs) throw stalled(bounds.idleTimeoutMs);
    } catch (error) {
      controller.abort(error);
    }
  }, WATCH_MS);
  return { signal: AbortSignal.any([controller.signal, bounds.signal]), stop: () => clearInterval(timer) };
}

async function pipe(body: ReadableStream<Bytes>, staged: StagedFile, bounds: Bounds): Promise<void> {
  const { writable } = staged.content;
  const { signal, stop } = watch(staged, bounds);
  try {
    await body.pipeTo(writable, { preventClose: true, preventCancel: true, preventAbort: true, signal });
    // The pipe may resolve before its last write has failed; an empty write comes after it and fails as it did.
    await writable.getWriter().write(new Uint8Array());
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    // A failed write has a system's code; what a lost client gives differs by version and has none of a disk's.
    const code = diskCodeOf(error);
    const ofDisk = ["ENOSPC", "EDQUOT", "EFBIG", "EIO", "EROFS", "ENOMEM"].includes(code ?? "");
    throw error instanceof AppError || ofDisk ? error : brokeOff(error);
  } finally {
    stop();
  }
}

/** Writes the body to the staging file and makes it durable. Returns its length; throws as `Upload.receive` says. */
export async function receiveBody(
  body: ReadableStream<Bytes> | null,
  staged: StagedFile,
  bounds: Bounds,
): Promise<number> {
  const { declaredBytes } = bounds;
  if (body !== null) {
    let rest = true;
    if (declaredBytes === undefined || declaredBytes <= MAX_GATHERED) {
      const gathered = await gather(body, bounds);
      await writeAll(staged.content, joined(gathered.chunks, gathered.bytes));
      rest = !gathered.whole;
    }
    if (rest) await pipe(body, staged, bounds);
  }
  const { size } = staged.facts();
  if (size > bounds.maxBytes) throw tooLarge(bounds.maxBytes);
  // report 10: a torso must never replace a good file.
  if (declaredBytes !== undefined && size !== declaredBytes) throw brokeOff();
  await staged.content.syncData();
  return size;
}
