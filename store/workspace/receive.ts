/**
 * Takes a request's body into a staging file.
 *
 * Two buffers take turns: one is filled from the network while the other is written. Not by `pipeTo(file.writable)`:
 * in Deno 2.9 that gathers up to 64 KiB and, unless the file is closed by the pipe, drops them without an error; in
 * 2.6 it takes three times the processor time. So every byte is counted, and the limit is exact.
 * When this fails for a reason of ours the body is left unlocked and uncancelled, so that the caller can read and drop
 * the rest (report 11).
 */
import { AppError } from "../../base/errors.ts";
import type { StagedFile } from "./opener.ts";
import type { Bytes } from "./types.ts";

/** A buffer begins with this size and doubles when the network fills it: a slow client holds little. */
const FIRST_BUFFER_BYTES = 64 * 1024;
const MAX_BUFFER_BYTES = 1024 * 1024;
/** How many bytes may land between two looks at the disk's free space. */
const RESERVE_STEP_BYTES = 4 * 1024 * 1024;

/** What bounds one body. */
export interface Bounds {
  readonly maxBytes: number;
  readonly declaredBytes: number | undefined;
  readonly idleTimeoutMs: number;
  /** Ends the receiving with its reason. */
  readonly signal: AbortSignal;
  /** Runs when all bytes are written, before they are made durable together with what it changes. */
  finish(): void;
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
  const message = `Cannot take this body: nothing of it arrived for ${idleTimeoutMs} ms`;
  return new AppError("request_timeout", message);
}

/** Reads a body into buffers where it can be read so, else chunk by chunk as it comes. */
interface Source {
  /** Whether `read` uses the buffer that it is given. */
  readonly fills: boolean;
  /** Gives the next bytes, in memory of `buffer` or their own; undefined at the end. `buffer` is gone afterwards. */
  read(buffer: Bytes): Promise<Bytes | undefined>;
  release(): void;
}

function openSource(body: ReadableStream<Bytes>): Source {
  let reader: ReadableStreamBYOBReader;
  try {
    reader = body.getReader({ mode: "byob" });
  } catch (error) {
    // Not a byte stream, as every request's body is. A locked one throws again below.
    if (!(error instanceof TypeError)) throw error;
    const plain = body.getReader();
    return {
      fills: false,
      read: async () => (await plain.read()).value,
      release: () => plain.releaseLock(),
    };
  }
  return {
    fills: true,
    read: async (buffer) => {
      const { done, value } = await reader.read(buffer);
      return done ? undefined : value;
    },
    release: () => reader.releaseLock(),
  };
}

/** Rejects when nothing has arrived for the idle time while a read waited, or when `signal` aborts. */
class Patience {
  readonly #end = Promise.withResolvers<never>();
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #onAbort = () => this.#end.reject(this.bounds.signal.reason);
  #waiting = false;
  #stillWaiting = false;

  constructor(private readonly bounds: Bounds) {
    this.#end.promise.catch(() => {/* also when nobody waits any more */});
    // One timer for the whole body: it fires between once and twice the idle time after the last byte.
    this.#timer = setInterval(() => {
      if (this.#stillWaiting) this.#end.reject(stalled(bounds.idleTimeoutMs));
      this.#stillWaiting = this.#waiting;
    }, bounds.idleTimeoutMs);
    if (bounds.signal.aborted) this.#onAbort();
    else bounds.signal.addEventListener("abort", this.#onAbort);
  }

  async wait<T>(reading: Promise<T>): Promise<T> {
    this.#waiting = true;
    try {
      return await Promise.race([reading, this.#end.promise]);
    } finally {
      this.#waiting = this.#stillWaiting = false;
    }
  }

  stop(): void {
    clearInterval(this.#timer);
    this.bounds.signal.removeEventListener("abort", this.#onAbort);
  }
}

async function writeAll(file: Deno.FsFile, bytes: Bytes): Promise<Bytes> {
  for (let written = 0; written < bytes.length;) {
    written += await file.write(written === 0 ? bytes : bytes.subarray(written));
  }
  return bytes;
}

/** The buffer to read into next: that of `written`, or a larger one where it was filled. */
function nextBuffer(written: Bytes): Bytes {
  const { byteLength } = written.buffer;
  const full = written.length === byteLength && byteLength < MAX_BUFFER_BYTES;
  return full ? new Uint8Array(Math.min(byteLength * 2, MAX_BUFFER_BYTES)) : new Uint8Array(written.buffer);
}

async function pump(source: Source, file: Deno.FsFile, bounds: Bounds, patience: Patience): Promise<number> {
  const first = Math.max(1, Math.min(bounds.declaredBytes ?? FIRST_BUFFER_BYTES, FIRST_BUFFER_BYTES));
  let buffer: Bytes = new Uint8Array(first);
  let writing: Promise<Bytes> = Promise.resolve(new Uint8Array(0));
  let total = 0;
  let unchecked = 0;
  try {
    for (;;) {
      let chunk: Bytes | undefined;
      try {
        chunk = await patience.wait(source.read(buffer));
      } catch (error) {
        throw error instanceof AppError ? error : brokeOff(error);
      }
      const written = await writing;
      if (chunk === undefined) return total;
      total += chunk.length;
      if (total > bounds.maxBytes) throw tooLarge(bounds.maxBytes);
      unchecked += chunk.length;
      if (unchecked >= RESERVE_STEP_BYTES) {
        bounds.checkReserve();
        unchecked = 0;
      }
      writing = writeAll(file, chunk);
      // It is awaited only after the next read; until then its failure must not count as unhandled.
      writing.catch(() => {});
      if (source.fills) buffer = written.length === 0 ? new Uint8Array(first) : nextBuffer(written);
    }
  } finally {
    // The file must not close under a write; how that ends no longer matters when something else went wrong before.
    await writing.catch(() => {});
  }
}

/** Writes the body to the staging file and makes it durable. Returns its length; throws as `Upload.receive` says. */
export async function receiveBody(
  body: ReadableStream<Bytes> | null,
  staged: StagedFile,
  bounds: Bounds,
): Promise<number> {
  let total = 0;
  if (body !== null) {
    const source = openSource(body);
    const patience = new Patience(bounds);
    try {
      total = await pump(source, staged.content, bounds, patience);
    } finally {
      patience.stop();
      source.release();
    }
  }
  // report 10: a torso must never replace a good file.
  if (bounds.declaredBytes !== undefined && total !== bounds.declaredBytes) throw brokeOff();
  bounds.finish();
  await staged.content.syncData();
  return total;
}
